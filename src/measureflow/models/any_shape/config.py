"""The shape of an `AnyShapeFlow`."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class AnyShapeConfig:
    """The shape of an `AnyShapeFlow`."""

    n_near: int = 4  # heads that attend among the tokens
    n_em: int = 1  # heads in which tokens compete for the rows
    n_features: int = 64  # invariant numbers that each token carries
    n_colours: int = 8  # landmarks of each of two kinds: colours lie on the unit sphere of twice as many dimensions
    n_messages: int = 8  # numbers that each head passes on
    n_keys: int = 8  # width of the learned part of the score
    hidden: int = 320
    judge_hidden: int = 64  # of the networks that judge merges
    n_layers: int = 6
    distinct: bool = False  # a layer of its own for each step, instead of one shared by all
    reshape_after: int = 2  # layers after which space is reshaped by the noise found so far; 0 never

    def __post_init__(self):
        for name in ("n_near", "n_em", "n_features", "n_colours", "hidden", "judge_hidden", "n_layers"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
