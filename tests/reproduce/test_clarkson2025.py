"""The artefacts of Clarkson 2025 at their tiny size, and what the paper says of them."""

import itertools
import math

import numpy as np
import pandas as pd
import pytest
import torch

from measureflow.circuits import kmeans_transformer, textbook
from measureflow.circuits.clarkson import rows
from measureflow.reproduce import artefacts, reproduce
from measureflow.reproduce.clarkson2025 import fig3, fig4, lean, learnability, one_gamma, outliers, sweep, table1
from reproduce.tables import the, words


@pytest.mark.parametrize("name", ["fig3", "fig4", "one_gamma", "outliers", "lean"])
def test_every_artefact_is_written(name, tmp_path):
    assert name in artefacts("clarkson2025")
    for path in reproduce("clarkson2025", name, "tiny", tmp_path):
        assert path.stat().st_size > 50, path


@pytest.fixture(scope="module")
def live(tmp_path_factory):
    return table1.compute("tiny", tmp_path_factory.mktemp("cache"))


def test_table1_is_exact_in_every_row(live):
    table = live["table1"]
    assert table["labels that differ"].sum() == 0
    assert table["largest difference"].max() < 1e-12
    assert table["printed"].sum() == 7
    assert "44 configurations" in table1.findings(live)
    assert table1.render(live)["table1"].axes
    assert set(words(table1, live).values()) == {"holds"}
    wrong = live["table1"].copy()
    wrong.loc[0, "largest difference"] = 1e-6
    assert the(words(table1, {"table1": wrong}), "Lloyd (L2)") == "fails"
    other = live["table1"].copy()
    other.loc[~other["printed"], "labels that differ"] = 1
    assert the(words(table1, {"table1": other}), "other forms") == "fails"


def test_table1_says_what_the_paper_prints(live):
    table = live["table1"]
    printed = table[table["printed"]].set_index("algorithm")
    columns = ["Enc-SA", "Enc-CA", "Dec-SA", "Dec-CA"]
    assert printed.loc["soft k-means", columns].tolist() == ["ℓ2-LSMA", "ℓ2-SMA", "⟨·⟩-LSMA", "⟨·⟩-LinA"]
    assert printed.loc["trimmed k-means", columns].tolist() == ["ℓ2-LSMA", "ℓ2-LSMA", "⟨·⟩-LSMA", "ℓ2-NMA"]
    assert printed.loc["k-medoids", columns].tolist() == ["ℓ2-LSMA", "ℓ2-LSMA", "⟨·⟩-LSMA", "ℓ2-GSMA"]
    assert printed.loc["spherical k-means", ["Norm", "NLT"]].tolist() == ["LayerNorm", "-"]
    assert printed.loc["Lloyd", "NLT"].tolist() == ["-", "✓"]


def test_fig3_is_exact_where_the_scale_is_wide(tmp_path):
    tables = fig3.compute("tiny", tmp_path)
    wide, unit = tables["scales"].to_dict("records")
    assert wide["last labels differ"] == 0
    assert wide["centres differ by"] < 1e-9 < unit["centres differ by"]
    last = tables["objective"].query("layer == 10").set_index("algorithm")["objective"]
    X = tables["points"][["x", "y"]].to_numpy()
    C = tables["centers"].query("algorithm == 'Lloyd' and layer == 10")[["x", "y"]].to_numpy()
    assert last["Lloyd"] == pytest.approx(textbook.inertia(X, C), rel=1e-12)


def test_fig3_verdict_follows_the_data(tmp_path):
    tables = fig3.compute("tiny", tmp_path)
    assert set(words(fig3, tables).values()) == {"corrected"}
    tables["scales"][["last labels differ", "centres differ by"]] = 0
    assert set(words(fig3, tables).values()) == {"holds"}
    tables["scales"]["last labels differ"] = 1
    assert set(words(fig3, tables).values()) == {"fails"}


def cells(**columns):
    """A sweep of two values of everything, its losses made up."""
    grid = itertools.product((5, 10), (1, 2), (100, 278), (1, 2), sweep.GAMMAS)
    table = pd.DataFrame(list(grid), columns=["k", "d", "n", "scale", "gamma"])
    loss = (table["k"] * table["n"] ** 0.1) / (table["d"] * table["scale"] * table["gamma"])
    return {
        "differences": table.assign(ours=loss, theirs=loss).assign(**{k: f(table, loss) for k, f in columns.items()})
    }


def test_fig4_verdicts_follow_the_data():
    right = words(fig4, cells())
    assert set(right.values()) == {"holds"}
    off = words(fig4, cells(ours=lambda t, loss: loss * np.where(t["gamma"] == 10, 1.11, 1)))
    assert off["mean difference at gamma = 10"] == "fails"
    assert off["mean difference at gamma = 100"] == "holds"
    for part in ("with dimension", "with scale", "with points", "with clusters"):
        assert the(right, part) == "holds"
        assert the(words(fig4, cells(ours=lambda t, loss: 1 / loss)), part) == "fails"
    rises = cells()
    rises["differences"].loc[0, "ours"] -= 100
    assert the(words(fig4, rises), "uniformly") == "fails"


def test_fig4_compares_with_what_the_authors_published():
    table = sweep.published()
    assert len(table) == 10_000
    means = table[[f"gamma {gamma}" for gamma in sweep.GAMMAS]].mean()
    np.testing.assert_allclose(means, [0.993, 0.267, 0.031], atol=5e-4)  # of the file they published
    first = table.query("k == 5 and d == 1 and n == 100 and scale == 1").iloc[0]
    assert first["gamma 1"] == pytest.approx(3.3355, abs=1e-4)


def test_the_sweep_is_the_circuit_of_soft_k_means_and_of_lloyd():
    X = sweep.draw(4, 3, 60, 2.0)
    assert X.min() == 0
    assert X.max() == pytest.approx(2.0)
    for gamma, row in ((3.0, rows.soft(3.0)), (math.inf, rows.lloyd())):
        net = kmeans_transformer(3, 4, row, n_layers=5)
        centers = net(torch.tensor(X), torch.tensor(X[:4])).numpy()
        np.testing.assert_allclose(sweep.steps(X, X[:4], gamma, 5), centers, atol=1e-10)
    assert sweep.objective(X, X[:4]) == pytest.approx(textbook.inertia(X, X[:4]), rel=1e-12)


def test_draws_with_an_empty_cluster_are_left_out_as_the_authors_are():
    far = np.array([[0.0, 0.0], [0.1, 0.0], [0.0, 0.1], [9.0, 9.0], [9.0, 9.1]])
    assert all(np.isfinite(value) for value in sweep.differences(far[[0, 3, 1, 2, 4]], 2).values())
    twins = far[[0, 0, 1, 2, 3]]  # two first centres in one place: the second wins no point
    assert all(np.isnan(value) for value in sweep.differences(twins, 2).values())
    mean, singles = next(sweep.cells(60, (4,), (2,), (3,), 3)), [sweep.draw(4, 2, 60, 3, i) for i in range(3)]
    each = [sweep.differences(X, 4)["gamma 10"] for X in singles]
    assert len(set(each)) == 3
    assert mean["gamma 10"] == pytest.approx(np.nanmean(each))
    table = cells(ours=lambda t, loss: loss.where(t["k"] == 5))["differences"]
    assert fig4.compared(table).query("by == 'gamma'")["cells"].tolist() == [8, 8, 8]


def test_one_gamma_verdicts_follow_the_data():
    falling = pd.DataFrame({"gamma": [1.0, 10.0, 100.0], "difference": [1.0, 0.1, 1e-4]})
    assert set(words(one_gamma, {"differences": falling}).values()) == {"holds"}
    bent = falling.assign(difference=[0.1, 0.2, 1e-4])
    assert the(words(one_gamma, {"differences": bent}), "uniformly") == "fails"
    stays = falling.assign(difference=[1.0, 0.5, 0.3])
    assert the(words(one_gamma, {"differences": stays}), "vanishes") == "fails"


def test_verdicts_of_lean_and_outliers_follow_the_data(tmp_path):
    tables = lean.compute("tiny", tmp_path)
    assert set(words(lean, tables).values()) == {"holds"}
    wider = {"lean": tables["lean"].assign(slots=9)}
    assert the(words(lean, wider), "slots are enough") == "fails"
    assert set(words(lean, {"lean": tables["lean"].assign(**{"labels that differ": 1})}).values()) == {"fails"}
    names, shares = ["Lloyd", "trimmed, 80th percentile", "robust, softmax"], (0.0, 0.05)
    rows = [(share, name, 0.2 if name != "Lloyd" or not share else 1.0) for share in shares for name in names]
    errors = pd.DataFrame(rows, columns=["outliers", "circuit", "error"])
    assert set(words(outliers, {"errors": errors}).values()) == {"holds"}
    useless = errors.assign(error=np.where(errors["outliers"] > 0, 1.0, errors["error"]))
    claims = words(outliers, {"errors": useless})
    assert (the(claims, "robust, softmax: helps"), the(claims, "robust, softmax: costs")) == ("fails", "holds")
    dear = errors.assign(error=np.where(errors["circuit"] == "robust, softmax", 0.4, errors["error"]))
    assert the(words(outliers, {"errors": dear}), "robust, softmax: costs") == "fails"


def test_fig4_goes_on_from_finished_parts(tmp_path):
    table = fig4.compute("tiny", tmp_path)["differences"]
    assert len(table) == 3 * 2**4
    assert table["theirs"].notna().all()
    marked = pd.read_csv(tmp_path / "n100-k5.csv").assign(**{"gamma 10": -7.0})
    marked.to_csv(tmp_path / "n100-k5.csv", index=False)
    again = fig4.compute("tiny", tmp_path)["differences"]
    assert (again.query("k == 5 and n == 100 and gamma == 10")["ours"] == -7.0).all()
    pd.testing.assert_frame_equal(again.query("k == 20"), table.query("k == 20"))


def test_learnability_is_judged_on_every_seed():
    row = {"before": 0.02, "after": -0.04, learnability.AGREE: 0.97, "Lloyd at rest": -0.04, "falling": 0.0}
    runs = pd.DataFrame([{"start": start, "seed": seed, **row} for start in learnability.STARTS for seed in range(2)])
    assert set(words(learnability, {"runs": runs}).values()) == {"holds"}
    worse = runs.copy()
    worse.loc[[1, 3], "after"], worse.loc[1, learnability.AGREE] = 0.5, 0.6  # one seed of each start
    assert set(words(learnability, {"runs": worse}).values()) == {"fails"}
    worse.loc[3, "falling"] = 1.0
    assert the(words(learnability, {"runs": worse}), "random weights") == "open"


def test_labels_are_compared_whatever_the_clusters_are_called():
    labels = torch.randint(3, (5, 40), generator=torch.Generator().manual_seed(0))
    renamed = torch.stack(
        [torch.tensor(names)[row] for names, row in zip(itertools.permutations(range(3)), labels, strict=False)]
    )
    assert learnability.agreement(renamed, labels, 3).tolist() == [1.0] * 5
    renamed[:, :4] = (renamed[:, :4] + 1) % 3  # another name for 4 points of 40
    assert learnability.agreement(renamed, labels, 3).tolist() == pytest.approx([0.9] * 5)


def test_lloyds_weights_are_near_lloyd_before_training():
    points, first = learnability.draw(50, torch.Generator().manual_seed(0))
    near = learnability.log_objective(points, learnability.lloyd(points, first, learnability.LAYERS))
    with torch.no_grad():
        soft = learnability.log_objective(points, learnability.begin("Lloyd's weights", 0)(points, first))
        random = learnability.log_objective(points, learnability.begin("random weights", 0)(points, first))
    assert float((soft - near).mean()) < 0.1 < 0.5 < float((random - near).mean())
