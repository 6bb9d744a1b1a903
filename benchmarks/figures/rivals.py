"""Why FlowMixture and not another clusterer: the README's small table, with the tables on which it loses."""

import re

from figures.cells import table
from figures.scoreboard import benchmarks, processors

AGAINST = "tables, against "  # how bench_tables.py begins the name of a row that compares means
PEERS = {  # of the benchmark, as a reader knows them, and what each needs to be told
    "HDBSCAN (5)": ("HDBSCAN", "a smallest cluster; some rows get no cluster"),
    "GaussianMixture (four) + BIC": ("GaussianMixture, K and shape by BIC", "a largest K"),
    "k-means + silhouette": ("k-means, K by silhouette", "a largest K"),
}
CLEAR = 0.05  # of the adjusted Rand index: a smaller gap is not called a loss
NOT_RUN = "Not measured with these weights yet: `make bench BENCH=tables` measures it and fills in this table."


def rivals() -> str:
    """Mean scores over the benchmark's tables, ours and those of three peers, and where ours are worse."""
    measured = [groups["tables"]["rows"] for groups in map(benchmarks, processors()) if "tables" in groups]
    return f"{means(measured[0])}\n\n{losses(measured[0])}" if measured else NOT_RUN


def means(rows: list[dict]) -> str:
    """A row for each method: mean adjusted Rand index, error in the number of clusters, what it must be told."""
    named = {row["name"]: row for row in rows}
    compared = {name: named[AGAINST + name] for name in PEERS}
    ours = next(iter(compared.values()))["ours_s"]
    off = named["tables, clusters off by"]["ours_s"]
    lines = [["**FlowMixture**", f"**{ours:.2f}**", f"**{off:.1f}**", "nothing"]]
    for name, row in compared.items():
        words, needs = PEERS[name]
        lines.append([words, f"{row['peer_s']:.2f}", clusters_off(row), needs])
    return table(["", "adjusted Rand index", "K off by", "what you tell it"], lines)


def clusters_off(row: dict) -> str:
    """The mean error in the number of clusters, which the benchmark tells in the note of a peer's row."""
    found = re.search(r"number of clusters off by ([\d.]+)", row["note"])
    if found is None:
        raise ValueError(f"the note of {row['name']!r} does not say by how much K is off: {row['note']!r}")
    return found[1]


def losses(rows: list[dict]) -> str:
    """Tables on which the best of all peers, chosen by the true labels, is clearly better than ours."""
    single = [row for row in rows if "; best peer " in row["note"]]
    lost = [row for row in single if row["peer_s"] > row["ours_s"] + CLEAR]
    means_of = f"Means over {len(single)} labelled tables and clouds of the benchmark. "
    if not lost:
        return means_of + f"On none of them is any of the benchmark's peers better by more than {CLEAR:g}."
    worst_first = sorted(lost, key=lambda row: row["ours_s"] - row["peer_s"])
    cases = [f"{row['name']} ({row['ours_s']:.2f}, {best(row)} {row['peer_s']:.2f})" for row in worst_first]
    return means_of + f"**It loses** by more than {CLEAR:g} to the best of all peers on: {'; '.join(cases)}."


def best(row: dict) -> str:
    return row["note"].rpartition("best peer ")[2]
