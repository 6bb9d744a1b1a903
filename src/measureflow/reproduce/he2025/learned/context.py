"""Experiment 3 and check 1: the context rows P of eq. (4), given or left out."""

from measureflow.reproduce.he2025.learned import sizes
from measureflow.reproduce.he2025.learned.trained import Setting, measured
from measureflow.reproduce.verdicts import Verdict, judged

TITLE = "He 2025, experiment 3: with and without the context rows P"
ABLATED = "ARI, P at random"
QUARTERS = [f"training loss {i}/4" for i in range(1, 5)]


def budget(size: str) -> str:
    """Steps and seeds."""
    plan = sizes.SIZES[size]
    return f"{plan.recipe.n_steps} steps, {plan.seeds} seeds, {plan.n_test} test sets; the paper trains without P alone"


def compute(size, cache):
    """Two models at distance 20, where the spectral start is good but not perfect; all seeds."""
    plan = sizes.SIZES[size]
    grid = [(context, seed) for context in (False, True) for seed in range(plan.seeds)]
    mixtures = sizes.by_distance(20)
    settings = [Setting(mixtures, plan.recipe, seed, plan.n_test, {"context": context}) for context, seed in grid]
    table = measured(settings, cache, "context")
    table.insert(0, "context", ["P given" if context else "no P" for context, _ in grid])
    for score in ("ARI", "NMI", "loss"):  # without P there is none to take away
        table[f"{score}, P at random"] = table[f"{score}, P at random"].fillna(table[score])
    return {"context": table}


def render(tables):
    """Training loss by quarter, and final ARI."""
    import matplotlib.pyplot as plt

    table = tables["context"]
    figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3.2))
    for name, part in table.groupby("context"):
        left.plot(range(1, 5), part[QUARTERS].mean(), "o-", label=name)
        right.bar(name, part["ARI"].mean(), yerr=part["ARI"].std(ddof=0), width=0.6)
    given = table[table["context"] == "P given"][ABLATED]
    right.bar("P at random\nat test", given.mean(), yerr=given.std(ddof=0), width=0.6)
    right.axhline(table["spectral ARI"].mean(), color="k", ls=":", label="spectral start alone")
    right.axhline(table["Lloyd ARI"].mean(), color="k", ls="--", label="Lloyd")
    left.set(xlabel="quarter of training", ylabel="mean loss", xticks=range(1, 5))
    right.set(ylabel="ARI", ylim=(0, 1.25), yticks=[0, 0.2, 0.4, 0.6, 0.8, 1.0])
    for ax in (left, right):
        ax.legend(frameon=False, fontsize=8, loc="upper right")
    figure.tight_layout()
    return {"context": figure}


def verdicts(tables) -> list[Verdict]:
    """P is removable, in training or at test alone; with P the model should at least keep the start that P holds."""
    mean = tables["context"].groupby("context")[["ARI", "spectral ARI", ABLATED]].mean()
    ablated = mean.loc["P given", ABLATED]
    given, without = mean.loc["P given", "ARI"], mean.loc["no P", "ARI"]
    start = mean.loc["P given", "spectral ARI"]
    return [
        judged("P is removable", "as good without P", f"{without:.3f} without, {given:.3f} with",
               bool(without > given - 0.05)),
        judged("a model trained with P does without it at test", "P is removable",
               f"{ablated:.3f} with first labels at random, {given:.3f} with P", bool(ablated > given - 0.05)),
        judged("with P the model improves the spectral start it is given", "Theorem 3.3",
               f"{given:.3f} for {start:.3f}", bool(given > start)),
    ]  # fmt: skip


def findings(tables):
    """How much P helps, in speed and in the end."""
    mean = tables["context"].groupby("context")[["ARI", "spectral ARI", "Lloyd ARI", ABLATED, *QUARTERS]].mean()
    rows = [
        f"{name}: ARI {row['ARI']:.3f}, loss by quarter of training " + ", ".join(f"{row[q]:.3f}" for q in QUARTERS)
        for name, row in mean.iterrows()
    ]
    base = mean.iloc[0]
    ablated = mean.loc["P given", ABLATED]
    return (
        "The theory needs P; the paper says its experiments do without. "
        + "; ".join(rows)
        + f". The spectral start alone has ARI {base['spectral ARI']:.3f}, Lloyd {base['Lloyd ARI']:.3f}. "
        f"The model trained with P, given one of random first labels at test, has {ablated:.3f}."
    )
