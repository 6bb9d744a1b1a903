"""What a run says of a claim of the paper: it holds, it fails, it was corrected, or this run cannot tell."""

from __future__ import annotations

from dataclasses import dataclass

WORDS = ("holds", "fails", "corrected", "open")


@dataclass(frozen=True)
class Verdict:
    """A claim, what is printed of it, what was found, and one of the four words."""

    claim: str
    printed: str
    ours: str
    verdict: str

    def __post_init__(self):
        if self.verdict not in WORDS:
            raise ValueError(f"verdict must be one of {', '.join(WORDS)}, got {self.verdict!r}")


def judged(claim: str, printed: str, ours: str, holds: bool) -> Verdict:
    """The claim as printed, which holds or fails.

    >>> judged("entropy falls", "falls", "-0.1", True).verdict
    'holds'
    """
    return Verdict(claim, printed, ours, "holds" if holds else "fails")


def corrected(claim: str, printed: str, ours: str, print_holds: bool, correction_holds: bool) -> Verdict:
    """A claim that is false as printed and has a corrected form: "corrected" if the data bear this out."""
    word = "holds" if print_holds else "corrected" if correction_holds else "fails"
    return Verdict(claim, printed, ours, word)


def unsettled(claim: str, printed: str, ours: str) -> Verdict:
    """A claim that this run cannot judge, with the reason in ``ours``."""
    return Verdict(claim, printed, ours, "open")
