"""Every artefact of He 2025 at its tiny size, and the scores and opponents they stand on."""

import json
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import torch

from measureflow.circuits.textbook_em import lloyd_path
from measureflow.measures.he_mixtures import HeMixtures
from measureflow.reproduce import artefacts, reproduce
from measureflow.reproduce.he2025.constructed import dimension, layers, minimax, right_product, temperature, theorem
from measureflow.reproduce.he2025.learned import (
    context,
    families,
    fig3,
    generalisation,
    layer_norm,
    separation,
    sizes,
    trained,
)
from measureflow.reproduce.he2025.learned.families import Family
from measureflow.reproduce.he2025.learned.figures import BY_NAME
from measureflow.reproduce.he2025.learned.heads import judgements
from measureflow.reproduce.he2025.learned.sweeps import attained, relatives
from measureflow.reproduce.he2025.learned.trained import Setting, measured
from measureflow.training.in_context import Recipe
from reproduce.tables import read, the, words


@pytest.mark.parametrize("artefact", artefacts("he2025"))
def test_artefact_writes_tables_pictures_and_findings(artefact, out):
    paths = reproduce("he2025", artefact, "tiny", out)
    endings = {path.suffix for path in paths}
    assert endings == {".csv", ".png", ".pdf", ".md"}
    for path in paths:
        assert path.stat().st_size > 0
        if path.suffix == ".csv":
            assert not pd.read_csv(path).isna().any().any()
    text = next(path for path in paths if path.name == "findings.md").read_text()
    assert "nan" not in text.split("\n\n", 1)[1]


def sweep_table(name, ari, values=(1, 2, 3), lloyd=0.9, heads="concatenated", attained=None, turned=None):
    """A sweep whose scores are given, two seeds that differ by 0.002."""
    rows = [
        {"sweep": name, "value": value, "seed": seed, "ARI": score + 0.002 * seed, "Lloyd ARI": lloyd, "heads": heads,
         "attained": value if attained is None else attained, "NMI": score, "loss": 1 - score, "spectral ARI": lloyd,
         trained.TURNED: score if turned is None else turned, trained.STARTED: lloyd}
        for value, score in zip(values, ari, strict=True) for seed in range(2)
    ]  # fmt: skip
    return pd.DataFrame(rows)


def test_sweeps_are_judged_by_their_ends_and_by_lloyd():
    up, flat, near = [0.2, 0.5, 0.8], [0.5, 0.5, 0.51], [0.86, 0.88, 0.89]
    tables = {name: sweep_table(name, up) for name in ("distance", "dimension", "apart", "data")}
    tables["apart"] = sweep_table("apart", flat)
    claims = words(BY_NAME["fig1"], tables)
    assert claims["ARI rises with the minimum distance"] == "holds"
    assert claims["ARI rises with the dimension, distance asked 5"] == "holds"
    assert the(claims, "at the same attained distance") == "fails"
    assert the(claims, "strong alternative") == "fails"
    claims = words(BY_NAME["fig1"], tables | {"distance": sweep_table("distance", near)})
    assert the(claims, "strong alternative") == "holds"
    claims = words(BY_NAME["fig1"], tables | {"distance": sweep_table("distance", up, turned=0.89)})
    assert (the(claims, "one look"), the(claims, "of each")) == ("fails", "holds")
    claims = words(
        BY_NAME["fig2"], {"classes": sweep_table("classes", up[::-1]), "imbalance": sweep_table("imbalance", flat)}
    )
    assert the(claims, "more classes") == "holds"
    assert the(claims, "imbalance") == "holds"
    claims = words(
        BY_NAME["fig2"], {"classes": sweep_table("classes", flat), "imbalance": sweep_table("imbalance", up)}
    )
    assert the(claims, "more classes") == "fails"
    assert the(claims, "imbalance") == "fails"


@pytest.mark.parametrize(("averaged", "word"), [([0.25, 0.5, 0.75], "holds"), ([0.8, 0.5, 0.2], "fails")])
def test_kinds_of_heads_are_compared(averaged, word):
    both = [sweep_table("s", [0.2, 0.5, 0.8]), sweep_table("s", averaged, heads="averaged")]
    assert [verdict.verdict for verdict in judgements({"s": pd.concat(both)})] == [word]


def test_figure_3_is_judged_on_both_sides():
    curve = lambda by, ari: pd.DataFrame({by: np.repeat([1, 6], 2), "ARI": np.repeat(ari, 2)})  # noqa: E731
    claims = words(fig3, {"transformer": curve("layers", [0.17, 0.18]), "lloyd": curve("iterations", [0.2, 0.3])})
    assert (the(claims, "more layers"), the(claims, "more iterations")) == ("fails", "holds")


def test_context_is_held_against_the_start_it_is_given():
    table = pd.DataFrame({"context": ["no P", "P given"], "ARI": [0.88, 0.90], "spectral ARI": 0.91})
    table[context.ABLATED] = [0.88, 0.2]
    claims = words(context, {"context": table})
    assert (the(claims, "removable"), the(claims, "improves the spectral start")) == ("holds", "fails")
    assert the(claims, "without it at test") == "fails"
    assert the(words(context, {"context": table.assign(**{context.ABLATED: 0.89})}), "without it at test") == "holds"
    better = table.assign(ARI=[0.7, 0.95])
    claims = words(context, {"context": better})
    assert (the(claims, "removable"), the(claims, "improves the spectral start")) == ("fails", "holds")


def test_layer_norm_is_judged_by_the_scores():
    table = pd.DataFrame({"kind": ["layer norm", "no layer norm"], "ARI": [0.85, 0.60]})
    assert set(words(layer_norm, {"norms": table}).values()) == {"fails"}
    assert set(words(layer_norm, {"norms": table.assign(ARI=0.85)}).values()) == {"holds"}


def test_the_right_product_is_judged_by_its_errors_and_is_a_soft_max_over_tokens(tmp_path):
    tables = right_product.compute("tiny", tmp_path)
    claims = words(right_product, tables)
    assert (the(claims, "d of two or more"), the(claims, "other tokens' part")) == ("holds", "holds")
    line = tables["errors"]["dimension"] == 1
    flat_line = tables["errors"].assign(error=tables["errors"]["error"].where(~line, 0.01))
    claims = words(right_product, {"errors": flat_line})
    assert (the(claims, "d = 1"), the(claims, "d of two or more")) == ("fails", "holds")
    flat = tables["errors"].assign(error=0.5)
    assert set(words(right_product, {"errors": flat}).values()) == {"fails"}
    x, w = right_product.ball(7, 2, torch.Generator().manual_seed(0)), torch.ones(1, 2, dtype=torch.float64)
    share = right_product.heads_at(x, w, 3.0)[:, 0] / math.exp(3.0)
    with_sink = torch.softmax(torch.cat([x.sum(-1), torch.tensor([3.0])]), 0)
    torch.testing.assert_close(share, with_sink[:-1])


def test_the_least_distance_asked_is_only_a_constraint():
    assert attained(sizes.by_dimension(10)) == pytest.approx(9.8, abs=0.5)  # 5 is asked
    assert attained(sizes.by_dimension(20)) > 12
    for d in (2, 10, 20):
        assert attained(sizes.by_dimension_apart(d)) == pytest.approx(15.0, rel=1e-4)


@pytest.mark.parametrize("d", [2, 4])
def test_starts_of_the_theorem_move_labels(d):
    for kind in ("wide gaps", "rough"):
        x, start = theorem.start_of(kind, 0, d)
        path = lloyd_path(x, start, 1)
        assert (path[0][0] != path[1][0]).mean() >= 0.05  # a network that returned its input would miss these


@pytest.fixture(scope="module")
def proven(out):
    reproduce("he2025", "theorem", "tiny", out)
    return out / "he2025" / "theorem"


def test_verdicts_of_the_theorem_follow_the_data(proven):
    tables = read(proven)
    assert the(words(theorem, tables), "Theorem 3.2: the labels' distance") == "holds"
    assert the(words(theorem, tables), "Theorem 3.1, wide gaps: three blocks") == "holds"
    tables["labels"][["clear", "moved", "wrong", "wrong of clear"]] = 100, 100, 0, 0
    claims = words(theorem, tables)
    assert {the(claims, f"{name}, rough: one block") for name in theorem.VARIANTS} == {"holds"}
    tables["labels"]["wrong of clear"] = 1
    claims = words(theorem, tables)
    assert {the(claims, f"{name}, rough: one block") for name in theorem.VARIANTS} == {"fails"}
    tables["labels"]["wrong"] = tables["labels"]["moved"]  # what returning the input would do
    claims = words(theorem, tables)
    assert all(the(claims, f"wide gaps: {n} block") == "fails" for n in ("one", "three"))
    tables["points"]["labels"] = 0.1  # no decay in N
    tables["heads"]["label error"] = 0.1  # nor in M
    claims = words(theorem, tables)
    for part in ("Theorem 3.1: the labels' distance", "Theorem 3.2: the labels' distance", "the error in the heads"):
        assert the(claims, part) == "fails"


def test_other_verdicts_follow_the_data():
    table = pd.DataFrame({"iterations": [1, 2], "same as Lloyd": [1.0, 0.99], "built": 0.9, "Lloyd": [0.8, 1.0]})
    assert set(words(layers, {"layers": table}).values()) == {"holds"}
    assert set(words(layers, {"layers": table.assign(**{"same as Lloyd": 0.9})}).values()) == {"fails"}
    assert set(words(layers, {"layers": table.assign(Lloyd=1.0)}).values()) == {"fails"}  # nothing moved: no proof
    grid = pd.DataFrame({"dimension": [2, 2, 5, 5], "heads": [16, 256, 16, 256], "error": [1.0, 0.1, 1.0, 0.3]})
    assert set(words(dimension, {"dimension": grid}).values()) == {"holds"}
    assert set(words(dimension, {"dimension": grid.assign(error=1.0)}).values()) == {"fails"}
    soft = pd.DataFrame(
        {"separation": [2.0, 2.0, 9.0, 9.0], "beta / log N": [1, 9] * 2, "mean error": [0.5, 0.2, 0.1, 0.0]}
    )
    assert set(words(temperature, {"temperature": soft}).values()) == {"holds"}
    assert set(words(temperature, {"temperature": soft.assign(**{"mean error": [0, 1, 0, 1]})}).values()) == {"fails"}
    sweep, recipes = sweep_table("d", [0.1, 0.4, 0.8]), pd.DataFrame({"recipe": ["printed", "found"], "steps": 1})
    scores = {"Lloyd ARI": 0.96, trained.STARTED: 0.98, trained.TURNED: [0.7, 0.98]}
    tables = {"sweep": sweep, "recipes": recipes.assign(ARI=[0.6, 0.93], **scores)}
    claims = words(separation, tables)
    assert [the(claims, part) for part in ("clustering sets in", "printed", "found")] == ["holds", "fails", "holds"]
    worse = tables | {"recipes": tables["recipes"].assign(**{trained.TURNED: 0.93})}
    assert the(words(separation, worse), "found recipe at distance 30: with") == "fails"
    assert the(words(separation, tables | {"sweep": sweep.assign(ARI=0.1)}), "clustering sets in") == "fails"


def test_minimax_verdicts_follow_the_data():
    rows = [
        (gap, who, float(minimax.bayes(gap)) * 1.05)
        for gap in (2.0, 4.0)
        for who in ("spectral start", "Lloyd", "transformer")
    ]
    table = pd.DataFrame(rows, columns=["separation", "who", "error"])
    assert set(words(minimax, {"errors": table}).values()) == {"holds"}
    ours = table["who"] == "transformer"
    worse = words(minimax, {"errors": table.assign(error=table["error"].where(~ours, 3 * table["error"]))})
    assert (the(worse, "minimax rate"), the(worse, "as Lloyd does")) == ("fails", "fails")
    better = words(minimax, {"errors": table.assign(error=table["error"].where(~ours, 0.5 * table["error"]))})
    assert the(better, "lower bound") == "fails"


def test_generalisation_verdicts_follow_the_data():
    n = np.array([16, 64, 256])
    table = pd.DataFrame({"sets": n, "gap": 2 * n**-0.5, "loss": 1 + n**-0.25})
    assert set(words(generalisation, {"sets": table}).values()) == {"holds"}
    assert the(words(generalisation, {"sets": table.assign(gap=0.5)}), "gap") == "fails"
    assert the(words(generalisation, {"sets": table.assign(gap=[0.5, -0.1, 0.1])}), "gap") == "fails"
    assert the(words(generalisation, {"sets": table.assign(loss=[1, 2, 1])}), "new sets") == "fails"


def test_a_pool_holds_as_many_sets_as_asked():
    pool = generalisation.Pool(generalisation.MIXTURES, 3, seed=0)
    batch = pool.sample(50, torch.Generator().manual_seed(0))
    assert len({tuple(points.flatten().tolist()) for points in batch.points}) == 3


def test_finished_settings_are_not_trained_again(tmp_path, monkeypatch):
    setting = Setting(HeMixtures(n_classes=2, dimension=2, n_per_class=5), Recipe(n_steps=2, batch=2), n_test=4)
    first = measured([setting], tmp_path, "once")
    monkeypatch.setattr(trained, "measure", lambda setting: pytest.fail("trained twice"))
    pd.testing.assert_frame_equal(measured([setting], tmp_path, "twice"), first)
    assert json.loads(next(tmp_path.glob("*.json")).read_text())["seed"] == 0


def test_a_family_is_all_settings_of_its_classes_and_dimension_and_trains_on_each():
    members = relatives(sizes.by_distance(30), "small")
    assert {(m.n_classes, m.dimension) for m in members} == {(4, 10)}
    assert {m.minimum_distance for m in members} == {5.0, 10.0, 15.0, 20.0, 30.0, 50.0}
    assert relatives(sizes.by_classes(4), "small") == members  # whoever asks
    blend = Family(members, families.RECIPES["small"]).blend
    assert max(kind.n_per_class for kind in blend.kinds) == families.RECIPES["small"].n_per_class
    generator = torch.Generator().manual_seed(0)
    drawn = {blend.sample(1, generator).points.shape[1] for _ in range(60)}
    assert drawn == {kind.n_points for kind in blend.kinds}


def test_a_family_is_trained_once_and_its_seed_decides(tmp_path, monkeypatch):
    members = tuple(HeMixtures(2, 2, n_per_class=5, minimum_distance=apart) for apart in (1.0, 9.0))
    family = Family(members, Recipe(n_steps=2, batch=2), seed=1, n_test=4)
    first = families.tests(family, tmp_path)
    assert list(first) == list(members)
    assert families.measure(family)[1]["loss"] == first[members[1]]["loss"]
    assert families.measure(replace(family, seed=2))[1]["loss"] != first[members[1]]["loss"]
    monkeypatch.setattr(families, "measure", lambda family: pytest.fail("trained twice"))
    assert families.tests(family, tmp_path) == first


def test_an_interrupted_run_keeps_what_it_finished(tmp_path, monkeypatch):
    mixtures = HeMixtures(n_classes=2, dimension=2, n_per_class=5)
    settings = [Setting(mixtures, Recipe(n_steps=1, batch=2), seed, n_test=4) for seed in range(3)]
    real, done, stopped = trained.measure, [], []

    def stops_at_the_second(setting):
        if done == [0] and not stopped:
            stopped.append(True)
            raise KeyboardInterrupt
        done.append(setting.seed)
        return real(setting)

    monkeypatch.setattr(trained, "measure", stops_at_the_second)
    with pytest.raises(KeyboardInterrupt):
        measured(settings, tmp_path, "first")
    assert len(list(tmp_path.glob("*.json"))) == 1
    table = measured(settings, tmp_path, "second")
    assert list(table["seed"]) == [0, 1, 2]
    assert done == [0, 1, 2]
