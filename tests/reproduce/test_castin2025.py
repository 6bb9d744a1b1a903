"""The figures of Castin 2025 at their tiny size: written in full, and saying what their findings say."""

import pandas as pd
import pytest

from measureflow.reproduce import artefacts, reproduce
from measureflow.reproduce.castin2025 import fig2, fig3, fig4, panels


@pytest.mark.parametrize("artefact", artefacts("castin2025"))
def test_every_figure_is_written(artefact, tmp_path):
    files = reproduce("castin2025", artefact, "tiny", tmp_path)
    endings = {file.suffix for file in files}
    assert endings == {".csv", ".png", ".pdf", ".md"}
    assert all(file.stat().st_size > 0 for file in files)
    assert "Found" in files[-1].read_text(encoding="utf-8")
    for file in files:
        if file.suffix == ".csv":
            table = pd.read_csv(file).drop(columns=["blow_up_time"], errors="ignore")
            numbers = table.select_dtypes("number").drop(columns=[c for c in table if c.startswith("eigenvalue")])
            assert numbers.notna().all().all()
    assert_claims(artefact, tmp_path / "castin2025" / artefact)


def assert_claims(artefact, folder):
    if artefact == "fig2":
        counts = panels.summary({"fates": pd.read_csv(folder / "fates.csv")})
        assert (counts.loc[["a", "b"], "finite time"] == counts.loc[["a", "b"], "runs"]).all()
        assert counts.loc["c", "finite time"] == 0
    if artefact == "fig4":
        assert (pd.read_csv(folder / "fates.csv").largest < 1e-3).all()
    if artefact in ("fig3", "fig8"):
        runs = pd.read_csv(folder / "runs.csv")
        assert runs.groupby(["value", "d"]).size().eq(12).all()  # none left out
        identity = runs[runs["value"] == "identity"]
        assert (identity["rank"] <= identity.d - identity.d // 2).all()


def test_the_modules_say_what_they_are():
    for module in (fig2, fig3, fig4):
        assert module.TITLE.startswith("Castin 2025, Figure")
