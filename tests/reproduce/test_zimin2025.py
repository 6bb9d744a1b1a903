"""Every table and figure of Zimin 2025 runs at its tiny size and says something."""

from itertools import pairwise
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
import torch

from measureflow.measures.priors import paper_test_prior
from measureflow.models import load_pretrained
from measureflow.reproduce import artefacts, opponents, reproduce
from measureflow.reproduce.opponents import em_with_bic, kmeans, shared_variance_em
from measureflow.reproduce.run import module_of
from measureflow.reproduce.zimin2025 import contestants, easy_to_hard, fig8, orderings, rescale
from measureflow.reproduce.zimin2025.contestants import BASE, BUDGETS, Classical
from measureflow.reproduce.zimin2025.measurements import LEVELS, SEED, measure
from measureflow.reproduce.zimin2025.tables import BY_NAME, DEPTHS, ROUNDED, draw_columns, printed
from measureflow.training.config import read_config, seeded
from reproduce.tables import read, the, words

MADE = [name for name in artefacts("zimin2025") if name != "theorem2.1"]


@pytest.mark.parametrize("name", MADE)
def test_artefact_is_made(name, out):
    paths = reproduce("zimin2025", name, "tiny", out)
    endings = {path.suffix for path in paths}
    assert endings == {".csv", ".png", ".pdf", ".md"}
    assert all(path.stat().st_size > 0 for path in paths)


def test_printed_numbers_are_all_there():
    for name, table in BY_NAME.items():
        columns = {f"{c.name}, n={n}" for c in table.columns for n in (100, 500, 1000, 2000)}
        expected = columns if table.all_sizes else {c.name for c in table.columns}
        numbers = printed(name)
        assert set(numbers["column"]) == expected
        assert len(numbers) == 3 * len(expected)


def table_of(values: dict[str, list[float]], printed_values: dict[str, float]):
    """Scores and cells of one level: a column for each contestant, a value for each set."""
    rows = [("High SNR", 1000, name, i, w2) for name, column in values.items() for i, w2 in enumerate(column)]
    scores = pd.DataFrame(rows, columns=["data", "n", "column", "set", "w2"])
    cells = scores.groupby(["data", "n", "column"], as_index=False)["w2"].agg(ours="mean", error="sem", sets="size")
    cells["printed"] = cells["column"].map(printed_values)
    return {"scores": scores, "cells": cells}


NOISE = np.random.default_rng(0).normal(size=40)


def test_a_factor_is_judged_by_the_paired_difference():
    """The sets vary by far more than the two read-outs differ."""
    first = 5 + NOISE
    claims = []
    for second in (first - 0.1, first + 0.1, first + 0.1 * np.roll(NOISE, 1)):
        table = {"data": "Low SNR", "set": range(40), "as printed": first, "rescaled": second, "factor": 0.9}
        (claim,) = rescale.verdicts({"scores": pd.DataFrame(table | {"best factor": 0.95})})
        claims.append(claim.verdict)
    assert claims == ["corrected", "holds", "holds"]


def test_rescaled_tokens_have_the_best_factor_of_the_plan(out):
    reproduce("zimin2025", "rescale", "tiny", out)
    table = read(out / "zimin2025" / "rescale")["scores"]
    assert ((table["best factor"] > 0) & (table["best factor"] <= 1.5)).all()
    nearer = (table["factor"] - table["best factor"]).abs() < (1 - table["best factor"]).abs()
    assert (table["rescaled"] < table["as printed"])[nearer].all()  # the cost is a parabola of the factor, or below it


def hard_scores(**shift: float):
    """Scores of all levels: those told the truth, and what the others lie above them by."""
    names = {
        "told_the_truth": 0.0,
        easy_to_hard.EM.name: 0.1,
        easy_to_hard.MEAN: 0.2,
        "told at least 3 dB": 0.3,
    } | shift
    rows = [
        (level, name.replace("_", " "), i, 5 + noise + above, 12.0)
        for level in easy_to_hard.LEVELS for name, above in names.items() for i, noise in enumerate(NOISE)
    ]  # fmt: skip
    return {"scores": pd.DataFrame(rows, columns=["snr_db", "contestant", "set", "w2", "flow"])}


def test_harder_sets_are_judged_by_paired_differences_at_each_level():
    assert set(words(easy_to_hard, hard_scores()).values()) == {"holds"}
    for name, part in (
        (easy_to_hard.EM.name, "EM told K"),
        (easy_to_hard.MEAN, "mean"),
        ("told at least 3 dB", "longer"),
    ):
        claims = words(easy_to_hard, hard_scores(**{name: -0.1}))
        assert the(claims, part) == "fails"
        assert list(claims.values()).count("holds") == 2


def test_orderings_are_judged_by_the_error_of_the_paired_difference():
    """The sets vary by far more than the columns differ: only the pairing tells them apart."""
    means = {"K-means": 3.0, "16 layers": 1.0, "32 layers": 1.5, "No flow": 2.0}
    values = {name: list(mean + 10 * NOISE + 0.1 * np.roll(NOISE, i)) for i, (name, mean) in enumerate(means.items())}
    values["32 layers"] = list(np.array(values["16 layers"]) + 0.1 * NOISE)  # as good as the same
    tables = table_of(values, {"K-means": 4.0, "16 layers": 2.0, "32 layers": 1.0, "No flow": 3.0})
    pairs = orderings.paired(tables["scores"], tables["cells"], DEPTHS, logarithm=False)
    word = {(row.low, row.high): row.word for row in pairs.itertuples()}
    assert word["16 layers", "K-means"] == "holds"
    assert word["32 layers", "16 layers"] == "close"
    assert len(pairs) == 6
    assert set(pairs[pairs["equal"]]["high"]) == {"K-means"}  # the models had other budgets
    said = {verdict.claim: verdict for verdict in orderings.verdicts(pairs)}
    assert [verdict.verdict for verdict in said.values()] == ["holds", "open"]
    tables["scores"].loc[tables["scores"]["column"] == "No flow", "w2"] += 20
    pairs = orderings.paired(tables["scores"], tables["cells"], DEPTHS, logarithm=False)
    fair = orderings.verdicts(pairs)[0]
    assert fair.verdict == "fails"
    assert "No flow below K-means" in fair.ours


def test_printed_numbers_are_met_or_not():
    table2, target = BY_NAME["table2"], {"K-means": 0.0441, "16 layers": 0.0016}
    values = {name: list(value * (1 + 0.1 * NOISE)) for name, value in target.items()}
    claims = words(table2, table_of(values, target))
    assert the(claims, "K-means, the paper's opponent") == "holds"
    assert the(claims, "16-layer model") == "holds"
    worse = {name: [1.3 * w2 for w2 in column] for name, column in values.items()}
    claims = words(table2, table_of(worse, target))
    assert the(claims, "K-means, the paper's opponent") == "fails"
    assert the(claims, "16-layer model") == "fails"


def test_budgets_are_those_of_the_configs():
    root = Path(__file__).parents[2] / "configs"
    seen = lambda config: sum(stage.steps * stage.batch for stage in config.stages)  # noqa: E731
    first, longer = read_config(root / "cpu.toml"), read_config(root / "rows" / f"{BASE}-longer.toml")
    assert BUDGETS[BASE] == (seen(first) + seen(longer), 0)
    rows = {name: read_config(root / "rows" / f"{name}.toml") for name in BUDGETS if name != BASE}
    for name, config in rows.items():
        assert BUDGETS[name] == (seen(config), seen(first))
    assert {config.start for config in (longer, *rows.values())} == {f"checkpoints/{BASE}-start"}
    assert set(BUDGETS) == {name for name in load_pretrained.available() if name.startswith(BASE)}


def flow(layers, factor=1.0):
    snr = np.linspace(3, 15, 5)
    return pd.DataFrame({"layers": layers, "snr_db": snr, "total": factor * (20 - snr)})


def test_fig8_does_not_judge_a_depth_by_weights_that_began_as_another(monkeypatch):
    tables = {"flow": pd.concat([flow(16), flow(32)])}
    assert the(words(fig8, tables), "hardly depends on the depth") == "open"
    monkeypatch.setitem(fig8.BUDGETS, fig8.BY_DEPTH[32], (5600, 0))
    assert the(words(fig8, tables), "hardly depends on the depth") == "holds"
    apart = {"flow": pd.concat([flow(16), flow(32, 1.3)])}
    assert the(words(fig8, apart), "hardly depends on the depth") == "fails"
    assert the(words(fig8, {"flow": flow(16, -1.0)}), "16 layers") == "fails"


@pytest.mark.parametrize(
    ("name", "claim", "before", "table", "column", "change", "after"),
    [
        ("fig1", "entropy", "corrected", "entropy", "entropy", lambda t: 0 * t["entropy"], "fails"),
        ("fig2", "data at 5 dB", "any", "tokens", "w2", lambda t: 1 / t["told_snr"], "fails"),
        ("fig4", "16 layers and K-means", "any", "gaps", "gap", lambda t: 9 * t["error"], "fails"),
        ("fig4", "16 layers and K-means", "any", "gaps", "gap", lambda t: -9 * t["error"], "holds"),
        ("fig4", "16 layers and K-means", "any", "gaps", "gap", lambda t: 0 * t["error"], "open"),
        ("fig6", "Low SNR", "holds", "centers", "snr", lambda t: 1.1 * t["snr"], "fails"),
        ("targets", "Low SNR", "any", "targets", "w2", lambda t: 0 * t["w2"], "holds"),
        ("theorem2.1", "circle, beta = 1", "corrected", "entropy", "rate", lambda t: -t["rate"], "holds"),
    ],
)
def test_other_verdicts_follow_the_data(name, claim, before, table, column, change, after, out):
    reproduce("zimin2025", name, "tiny", out)
    module, tables = module_of("zimin2025", name), read(out / "zimin2025" / name)
    assert before in ("any", the(words(module, tables), claim))
    tables[table][column] = change(tables[table])
    assert the(words(module, tables), claim) == after


def test_scores_of_other_weights_are_not_taken_for_these(monkeypatch):
    model = DEPTHS[1]
    before = model.key
    monkeypatch.setattr("measureflow.reproduce.zimin2025.contestants.digest", lambda _: "others")
    assert model.key != before


def test_tokens_and_what_k_means_makes_of_them_are_scored_in_one_pass(tmp_path, monkeypatch):
    flows, model = [], contestants._model
    monkeypatch.setattr(contestants, "_model", lambda name: flows.append(name) or model(name))
    tokens, rounded = DEPTHS[1], ROUNDED[1]
    both = [measure((column,), {"High SNR": 15.0}, (30,), 12, tmp_path)["w2"] for column in (tokens, rounded)]
    assert len(flows) == 2  # chunks of ten and of two sets, not four
    mixtures = paper_test_prior(15.0).sample(10, 30, seeded(SEED, "tables", 15.0, 30, 0))
    apart = contestants.score_all(rounded, mixtures, seed=0)
    assert both[0][:10].tolist() == apart[tokens.key]
    assert both[1][:10].tolist() == apart[rounded.key]
    assert set(apart) == {tokens.key, rounded.key}
    more = measure((rounded,), {"High SNR": 15.0}, (30,), 14, tmp_path)["w2"]  # the tokens' scores go on with them
    assert more[:12].tolist() == both[1].tolist()
    measure((tokens,), {"High SNR": 15.0}, (30,), 14, tmp_path)
    assert len(flows) == 2 + 1 + 1  # and the one above


def sizes_table(kmeans: float = 1.0, model: float = 1.0):
    """Cells and scores of Table 10 as printed, but for a factor on each row."""
    table = BY_NAME["table10"]
    numbers = printed("table10")
    parts = numbers["column"].str.split(", n=", expand=True)
    cells = numbers.assign(column=parts[0], n=parts[1].astype(int), sets=len(NOISE))
    cells["ours"] = cells["printed"] * np.where(cells["column"] == "K-means", kmeans, model)
    cells["error"] = 0.02 * cells["ours"]
    rows = [
        (row.data, row.n, row.column, i, row.ours * (1 + 0.1 * noise))
        for row in cells.itertuples() for i, noise in enumerate(NOISE - NOISE.mean())
    ]  # fmt: skip
    scores = pd.DataFrame(rows, columns=["data", "n", "column", "set", "w2"])
    return table, {"cells": cells, "scores": scores}


def test_numbers_of_points_are_judged_by_the_printed_cells_and_their_fall():
    claims = words(*sizes_table())
    assert the(claims, "K-means, the paper's opponent") == "holds"
    assert the(claims, "16-layer model has") == "holds"
    assert the(claims, "falls with the number of points") == "holds"
    assert the(words(*sizes_table(kmeans=1.2)), "K-means, the paper's opponent") == "fails"
    worse = words(*sizes_table(model=1.2))
    assert (the(worse, "16-layer model has"), the(worse, "K-means, the paper's")) == ("fails", "holds")
    table, tables = sizes_table()
    tables["cells"].loc[tables["cells"]["n"] == 2000, "ours"] *= 9
    assert the(words(table, tables), "falls with the number of points") == "fails"
    assert the(words(*sizes_table(kmeans=0.01)), "order of the columns") == "fails"


@pytest.mark.parametrize("ends", [(0.03, 0.2), (0.04, 0.07), (0.001, 0.06), (0.0008, 1.5)])
def test_labels_of_a_logarithmic_axis_do_not_meet(ends):
    names = ["16 layers", "K-means"]
    cells = pd.DataFrame({"data": "High SNR", "column": names, "ours": ends, "error": 0.0, "printed": ends})
    every = pd.concat([cells.assign(data=level) for level in LEVELS])
    figure = draw_columns(every, names, 2, list(LEVELS), "W2 squared")
    figure.canvas.draw()
    for axes in figure.axes:
        labels = [t for t in axes.get_xticklabels() if ends[0] <= float(t.get_text() or 0) <= ends[1]]
        boxes = sorted((t.get_window_extent() for t in labels), key=lambda box: box.x0)
        assert len(boxes) >= 2
        assert all(a.x1 < b.x0 for a, b in pairwise(boxes))
    plt.close(figure)


def test_scores_of_one_model_under_two_names_are_computed_once():
    regimes, depths, layers = (BY_NAME[name].columns[1] for name in ("table1", "table2", "table6"))
    assert regimes.key == depths.key == layers.key
    others = [column.key for column in (*BY_NAME["table1"].columns, *BY_NAME["table8"].columns) if column.available]
    assert len(set(others)) == len(others) - 1  # k-means stands in both tables


def test_base_weights_ship():
    assert BASE in load_pretrained.available()


def problem(snr_db: float, seed: int = 0):
    m = paper_test_prior(snr_db).sample(1, 600, torch.Generator().manual_seed(seed))
    return m.points[0].double().numpy(), int(m.n_components[0]), float(m.noise_variance[0])


def test_shared_variance_em_finds_the_noise_and_never_loses_likelihood():
    x, K, variance = problem(20.0)
    fit = shared_variance_em(x, K, seed=0)
    assert fit.variance == pytest.approx(variance, rel=0.15)  # 600 points in 2-d: a standard error of 4 %
    assert fit.masses.sum() == pytest.approx(1.0)
    fewer = shared_variance_em(x, K, seed=0, starts=1)
    assert fit.log_likelihood >= fewer.log_likelihood - 1e-6 * len(x)
    oracle = kmeans(x, K, 0, starts=10, init="k-means++")
    assert np.sort(fit.masses) == pytest.approx(np.sort(oracle.masses), abs=0.05)


def test_bic_finds_one_cluster_where_there_is_one():
    x = np.random.default_rng(0).normal(size=(300, 2))
    assert len(em_with_bic(x, seed=0, most=4, starts=3).masses) == 1


def test_patience_ends_the_search_and_finds_the_same(monkeypatch):
    x, _, _ = problem(20.0)
    tried = []
    fit = opponents.shared_variance_em
    monkeypatch.setattr(opponents, "shared_variance_em", lambda x, K, *a, **kw: tried.append(K) or fit(x, K, *a, **kw))
    whole = em_with_bic(x, seed=0, most=10, starts=3)
    assert tried == list(range(1, 11))
    tried.clear()
    short = em_with_bic(x, seed=0, most=10, starts=3, patience=2)
    assert len(short.masses) == len(whole.masses)
    assert tried[-1] == len(short.masses) + 2 < 10


def test_slow_contestants_see_the_first_sets_alone(tmp_path):
    columns = (BY_NAME["table1"].columns[0], Classical("slow", lambda x, K, seed: kmeans(x, K, seed), slow=True))
    scores = measure(columns, {"High SNR": 15.0}, (30,), 4, tmp_path, slow_sets=2)
    assert scores.groupby("column", sort=False)["set"].max().tolist() == [3, 1]
