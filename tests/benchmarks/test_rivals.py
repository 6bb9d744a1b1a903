"""The README's table of rivals is made from the saved results of two benchmarks, losses included."""

import json

import pytest

from figures import rivals as page

LOSS = 0.30  # on "moons", where the peer has 0.90


def row(name: str, ours: float, peer: float, note: str) -> dict:
    return {
        "name": name,
        "ours_s": ours,
        "peer_s": peer,
        "ratio": ours / peer,
        "target": None,
        "met": None,
        "note": note,
    }


def mean_of(peer: str, score: float, off: float) -> dict:
    return row(f"tables, against {peer}", 0.6, score, f"mean ARI of 3 tables; number of clusters off by {off}, 3 s")


ROWS = [
    mean_of("HDBSCAN (5)", 0.4, 2.5),
    mean_of("GaussianMixture (four) + BIC", 0.5, 3.5),
    mean_of("k-means + silhouette", 0.45, 2.0),
    row("tables, clusters off by", 1.25, 1.5, "mean over 3 tables; at most 1.5"),
    row("iris", 0.9, 0.6, "ARI; 150 rows, 4 columns, 3 clusters found of 3; best peer HDBSCAN (5)"),
    row("wine", 0.58, 0.6, "ARI; 178 rows, 13 columns, 4 clusters found of 3; best peer PLSCAN"),
    row("moons", LOSS, 0.9, "ARI; 500 rows, 2 columns, 9 clusters found of 2; best peer HDBSCAN (5)"),
]
CLOUDS = [  # the same methods, one of which is twice as good
    *({**line, "name": line["name"].replace("tables", "clouds")} for line in ROWS[1:4]),
    {**ROWS[0], "name": "clouds, against HDBSCAN (5)", "peer_s": 0.8},
    row("square", 0.5, 0.75, "ARI; 90 rows, 2 columns, 1 clusters found of 4; best peer MeanShift"),
]


@pytest.fixture
def saved(tmp_path, monkeypatch):
    """A folder of results, and how to save rows into it."""
    monkeypatch.setattr("figures.scoreboard.RESULTS", tmp_path)
    (tmp_path / "AMD").mkdir()

    def save(rows, clouds=CLOUDS):
        for name, found in (("tables", rows), ("clouds", clouds)):
            if found:
                (tmp_path / "AMD" / f"{name}.json").write_text(json.dumps({"rows": found}))

    return save


def test_every_method_has_its_means(saved):
    saved(ROWS)
    lines = page.rivals().splitlines()
    assert "| **FlowMixture** | **0.60** | **1.2** | **0.60** | **1.2** | nothing |" in lines
    assert any(line.startswith("| HDBSCAN | 0.40 | 2.5 | 0.80 | 2.5 |") for line in lines)
    assert any(line.startswith("| k-means, K by silhouette | 0.45 | 2.0 | 0.45 | 2.0 |") for line in lines)


def test_the_losses_are_told_and_the_near_ties_are_not(saved):
    saved(ROWS)
    *_, tables, _, clouds = page.rivals().splitlines()
    assert tables.startswith("Means over the 3 labelled tables")
    assert "moons (0.30, HDBSCAN (5) 0.90)" in tables
    assert "wine" not in tables
    assert "iris" not in tables
    assert clouds.startswith("Means over the 1 clouds")
    assert "square (0.50, MeanShift 0.75)" in clouds


def test_without_a_loss_it_says_so(saved):
    saved([row for row in ROWS if row["ours_s"] != LOSS])
    assert "On none of them" in page.rivals()


def test_a_note_of_another_form_is_an_error(saved):
    saved([{**ROWS[0], "note": "something else"}, *ROWS[1:]])
    with pytest.raises(ValueError, match="does not say by how much K is off"):
        page.rivals()


def test_without_results_the_command_is_named(saved):
    assert "make bench BENCH=tables" in page.rivals()
    saved(ROWS, clouds=None)
    assert "make bench BENCH=clouds" in page.rivals()
