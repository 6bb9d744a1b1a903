"""Why FlowMixture and not another clusterer: the README's small table, with the tables on which it loses."""

import re

from figures.cells import table
from figures.scoreboard import benchmarks, processors

GROUPS = ("tables", "clouds")  # bench_tables.py and bench_clouds.py, whose rows of means begin with these words
PEERS = {  # of the benchmark, as a reader knows them, and what each needs to be told
    "HDBSCAN (5)": ("HDBSCAN", "a smallest cluster; some rows get no cluster"),
    "GaussianMixture (four) + BIC": ("GaussianMixture, K and shape by BIC", "a largest K"),
    "k-means + silhouette": ("k-means, K by silhouette", "a largest K"),
}
ABOUT = {
    "tables": "labelled tables of the benchmark, a few of them drawn by other people's generators",
    "clouds": "clouds in the manner of published benchmarks",
}
CLEAR = 0.05  # of the adjusted Rand index: a smaller gap is not called a loss
NOT_RUN = "Not measured with these weights yet: `make bench BENCH={}` measures it and fills in this table."


def rivals() -> str:
    """Mean scores over the tables and the clouds, ours and those of three peers, and where ours are worse."""
    measured = {name: rows_of(name) for name in GROUPS}
    for name, rows in measured.items():
        if not rows:
            return NOT_RUN.format(name)
    return "\n\n".join([means(measured), *(losses(name, rows) for name, rows in measured.items())])


def rows_of(group: str) -> list[dict]:
    """The rows of a benchmark on the first make of processor on which it was run."""
    return next((found[group]["rows"] for found in map(benchmarks, processors()) if group in found), [])


def means(measured: dict[str, list[dict]]) -> str:
    """A row for each method: mean adjusted Rand index, error in the number of clusters, what it must be told."""
    ours, lines = [], [[words] for words, _ in PEERS.values()]
    for name, rows in measured.items():
        named = {row["name"]: row for row in rows}
        compared = [named[f"{name}, against {peer}"] for peer in PEERS]
        off = named[f"{name}, clusters off by"]["ours_s"]
        ours += [f"**{compared[0]['ours_s']:.2f}**", f"**{off:.1f}**"]
        for line, row in zip(lines, compared, strict=True):
            line += [f"{row['peer_s']:.2f}", clusters_off(row)]
    told = [[*line, needs] for line, (_, needs) in zip(lines, PEERS.values(), strict=True)]
    heads = [head for name in measured for head in (f"{name}: adjusted Rand index", "K off by")]
    return table(["", *heads, "what you tell it"], [["**FlowMixture**", *ours, "nothing"], *told])


def clusters_off(row: dict) -> str:
    """The mean error in the number of clusters, which the benchmark tells in the note of a peer's row."""
    found = re.search(r"number of clusters off by ([\d.]+)", row["note"])
    if found is None:
        raise ValueError(f"the note of {row['name']!r} does not say by how much K is off: {row['note']!r}")
    return found[1]


def losses(name: str, rows: list[dict]) -> str:
    """Tables or clouds on which the best of all peers, chosen by the true labels, is clearly better than ours."""
    single = [row for row in rows if "; best peer " in row["note"]]
    lost = [row for row in single if row["peer_s"] > row["ours_s"] + CLEAR]
    means_of = f"Means over the {len(single)} {ABOUT[name]}. "
    if not lost:
        return means_of + f"On none of them is any of the benchmark's peers better by more than {CLEAR:g}."
    worst_first = sorted(lost, key=lambda row: row["ours_s"] - row["peer_s"])
    cases = [f"{row['name']} ({row['ours_s']:.2f}, {best(row)} {row['peer_s']:.2f})" for row in worst_first]
    return means_of + f"**It loses** by more than {CLEAR:g} to the best of all peers on: {'; '.join(cases)}."


def best(row: dict) -> str:
    return row["note"].rpartition("best peer ")[2]
