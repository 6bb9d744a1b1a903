"""The artefacts of Clarkson 2025 at their tiny size, and what the paper says of them."""

import numpy as np
import pandas as pd
import pytest

from measureflow.circuits import textbook
from measureflow.reproduce import artefacts, reproduce
from measureflow.reproduce.clarkson2025 import fig3, fig4, table1


def test_every_artefact_is_written(tmp_path):
    assert artefacts("clarkson2025") == ("table1", "fig3", "fig4")
    for name in ("fig3", "fig4"):
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


def test_fig4_goes_on_from_finished_parts_and_falls_with_scale(tmp_path):
    table = fig4.compute("tiny", tmp_path)["differences"]
    assert len(table) == 2**5
    mean = table.groupby("scale")["difference"].mean()
    assert mean.iloc[-1] < mean.iloc[0]
    marked = pd.read_csv(tmp_path / "d2.csv").assign(difference=-7.0)
    marked.to_csv(tmp_path / "d2.csv", index=False)
    again = fig4.compute("tiny", tmp_path)["differences"]
    assert np.all(again.query("d == 2")["difference"] == -7.0)
    pd.testing.assert_frame_equal(again.query("d == 8"), table.query("d == 8"))
