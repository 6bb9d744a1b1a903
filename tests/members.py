"""Every member of every family, by name. One more line here runs every law on a new member.

Values are factories, so that a random member starts from its seed each time it is made.
"""

import math

import torch

from measureflow.attention import (
    Against,
    Attention,
    DotProduct,
    Exp,
    GumbelSoftmax,
    Hardmax,
    Identity,
    Linear,
    Masked,
    Matrix,
    MultiHead,
    NegativeSquaredDistance,
    Normed,
    NormMax,
    Relative,
    ReLU,
    Sigmoid,
    Sinkhorn,
    Softmax,
    SoftmaxExpansion,
    Sparsemax,
    Sum,
    TokenWise,
    TopK,
)
from measureflow.flows import Tangent, euler, heun, rk4
from measureflow.flows.adaptive import STAGES
from measureflow.measures import Empirical
from problems import normal, seeded

SCORES = {
    "dot product": DotProduct,
    "negative squared distance": NegativeSquaredDistance,
}

NORMALISERS = {
    "softmax 0.3": lambda: Softmax(0.3),
    "softmax 1": lambda: Softmax(1.0),
    "softmax 20": lambda: Softmax(20.0),
    "hardmax": Hardmax,
    "linear": Linear,
    "sparsemax": Sparsemax,
    "sparsemax 0.1": lambda: Sparsemax(0.1),
    "normmax 1.5": lambda: NormMax(1.5),
    "normmax 2": lambda: NormMax(2.0),
    "normmax 5": lambda: NormMax(5.0, gamma=3.0),
    "normmax inf": lambda: NormMax(math.inf),
    "top k": lambda: TopK(0.4),
    "gumbel 1": lambda: GumbelSoftmax(1.0, generator=seeded()),
    "gumbel 0": lambda: GumbelSoftmax(0.0, generator=seeded()),
    "sinkhorn": lambda: Sinkhorn(1.0, tol=1e-13),
    "sinkhorn 3": lambda: Sinkhorn(3.0, tol=1e-13),
    "softmax expansion": lambda: SoftmaxExpansion(0.5),
    "identity": Identity,
    "exp": Exp,
    "sigmoid": Sigmoid,
    "relu": ReLU,
}
RANDOM = ("gumbel 1", "gumbel 0")  # equal draws come only with equal shapes: laws of exact values leave these out
EXACT = tuple(name for name in NORMALISERS if name not in RANDOM)
SMOOTH = tuple(name for name in EXACT if NORMALISERS[name]().differentiable)
ROW_BY_ROW = tuple(name for name in NORMALISERS if not NORMALISERS[name]().couples_queries)


def heads(normaliser=None, score=DotProduct, H: int = 3, d: int = 2, seed: int = 5) -> Attention:
    """H heads with random matrices of their own."""
    Q, K, V = normal(3, H, d, d, seed=seed)
    return Attention(score(Q, K), normaliser, V)


FIELDS = {
    "one head": lambda: MultiHead(heads(H=1)),
    "dot product": lambda: Attention(DotProduct(normal(2, 2, seed=1)), Softmax(0.7), normal(2, 2, seed=2)),
    "distance": lambda: Attention(NegativeSquaredDistance(), Softmax(0.7)),
    "sigmoid": lambda: Attention(NegativeSquaredDistance(), Sigmoid()),
    "sinkhorn": lambda: Attention(DotProduct(), Sinkhorn(1.0, tol=1e-13)),
    "heads": lambda: MultiHead(heads()),
    "heads, written out": lambda: MultiHead(heads(), normal(3, 2, 2, seed=6)),
    "relative": lambda: Relative(Attention(NegativeSquaredDistance())),
    "against": lambda: Against(Attention(), Empirical(normal(5, 2, seed=7))),
    "relative against": lambda: Relative(Against(Attention(), Empirical(normal(5, 2, seed=7)))),
    "normed": lambda: Normed(Attention(NegativeSquaredDistance()), torch.nn.Tanh()),
    "token-wise": lambda: TokenWise(Matrix(normal(2, 2, seed=9))),
    "sum": lambda: Sum(Attention(), Attention(NegativeSquaredDistance()), coefficients=[0.5, -2.0]),
    "tangent": lambda: Tangent(Attention()),
    "masked": lambda: Masked(Attention(value=normal(1, 1, seed=8))),
    "masked heads": lambda: Masked(MultiHead(heads(d=1))),
}

METHODS = {"euler": euler, "heun": heun, "rk4": rk4, "dopri5, fixed steps": STAGES}
