"""Numbers in words: how probable, how often, how many."""

from __future__ import annotations

from collections.abc import Sequence

LIKELY = 0.8  # the probability of a range of K that is told where no K is probable by itself


def odds(posterior: dict[int, float], K: int) -> str:
    """How probable K clusters are; where that is below one half, also numbers around it that are more than likely.

    >>> odds({2: 0.1, 3: 0.4, 4: 0.3, 5: 0.2}, 3)
    'K = 3 has probability 0.40, K from 3 to 5 has 0.90'
    """
    low = high = K
    total = posterior.get(K, 0.0)
    said = f"K = {K} has probability {total:.2f}"
    if total >= 0.5:
        return said
    while total < LIKELY - 1e-9 and (low > min(posterior) or high < max(posterior)):
        below, above = posterior.get(low - 1, 0.0), posterior.get(high + 1, 0.0)
        if high < max(posterior) and (above >= below or low <= min(posterior)):
            high, total = high + 1, total + above
        else:
            low, total = low - 1, total + below
    return f"{said}, K from {low} to {high} has {total:.2f}"


def more_probable(posterior: dict[int, float], K: int) -> list[str]:
    """A sentence where another number of clusters is more probable than K, to two figures.

    >>> more_probable({3: 0.4, 4: 0.3}, 4)
    ['K = 3 is more probable (0.40): clusters are chosen by which rows belong together, not by their number alone']
    >>> more_probable({3: 0.4, 4: 0.6}, 4)
    []
    """
    best = max(posterior, key=lambda k: (posterior[k], -k), default=K)
    if round(posterior.get(best, 0.0), 2) <= round(posterior.get(K, 0.0), 2):
        return []
    said = f"K = {best} is more probable ({posterior[best]:.2f})"
    return [f"{said}: clusters are chosen by which rows belong together, not by their number alone"]


def times(share: float, fits: int) -> str:
    """A share of some fits as a count of them.

    >>> times(0.9, 10)
    '9 of 10 fits'
    """
    return f"{round(share * fits)} of {count(fits, 'fit')}"


def again(shares: dict[int, float], K: int, fits: int) -> str:
    """How often K came back when parts of the rows were fitted again, and what was found instead.

    >>> again({3: 0.8, 4: 0.2}, 3, 10)
    'Fitted again to 10 parts of the rows, K = 3 came back 8 times; the others found 4'
    >>> again({3: 1.0}, 3, 10)
    'Fitted again to 10 parts of the rows, K = 3 came back every time'
    """
    back, others = round(shares.get(K, 0.0) * fits), [str(other) for other in sorted(shares) if other != K]
    often = (
        "every time" if back == fits else "in none of them" if not back else "once" if back == 1 else f"{back} times"
    )
    found = " or ".join(others) if len(others) < 4 else f"{others[0]} to {others[-1]}"
    rest = f"; {'the others' if back else 'they'} found {found}" if others else ""
    return f"Fitted again to {count(fits, 'part')} of the rows, K = {K} came back {often}{rest}"


def percent(p: float) -> str:
    """A share of a hundred; one that is nearly nothing is not called nothing.

    >>> percent(0.667), percent(0.001), percent(0.0)
    ('67%', '<1%', '0%')
    """
    return "<1%" if 0 < p < 0.005 else f"{p:.0%}"


def listed(names: Sequence[str], most: int) -> str:
    """Names with commas; where there are many, the first of them and how many more there are.

    >>> listed(["a", "b", "c"], 3), listed(["a", "b", "c", "d"], 2)
    ('a, b, c', 'a, b and 2 more')
    """
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[:most])} and {len(names) - most} more"


def sentence(words: str) -> str:
    """The words with a capital at the start and a stop at the end, if they have none.

    >>> sentence("leave it out?"), sentence("the rows are few")
    ('Leave it out?', 'The rows are few.')
    """
    words = words.strip()
    return words[:1].upper() + words[1:] + ("" if words.endswith((".", "?", "!")) else ".")


def count(n: int, thing: str) -> str:
    """The number of things, in words that fit it."""
    return f"{n:,} {thing}" + "s" * (n != 1)


def brief(x: float) -> str:
    """A number in few figures."""
    return f"{x:.3g}" if abs(x) < 1000 else f"{x:.0f}" if abs(x) < 1e6 else f"{x:.2e}"
