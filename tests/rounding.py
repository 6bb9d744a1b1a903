"""What float32 may lose: a few times what it loses by itself on the processor at hand, which float64 tells.

Two orders of the same float32 sums err by amounts of one size, and another processor chooses another order. So no
constant found on one machine is a law; a multiple of float32's own error, measured where the test runs, is.
"""

import numpy as np
import torch

TIMES = 8  # the largest of many errors in one order of the sums, over the largest in another: up to 3 was seen
EPS = float(np.finfo(np.float32).eps)


def distance(a, exact) -> float:
    """The largest difference, in float64."""
    return float(np.abs(np.asarray(a, dtype=np.float64) - np.asarray(exact, dtype=np.float64)).max())


def allowed(own, exact) -> float:
    """How far a float32 answer may lie from the exact one, where float32's own answer is another."""
    return TIMES * max(distance(own, exact), EPS * float(np.abs(np.asarray(exact)).max()))


def moved_by_rounding(x: torch.Tensor, seed: int = 0) -> torch.Tensor:
    """Float32 numbers as float64, each moved by as much as float32 may round it."""
    signs = torch.randint(0, 2, x.shape, generator=torch.Generator().manual_seed(seed)) * 2 - 1
    return x.double() * (1 + EPS / 2 * signs)
