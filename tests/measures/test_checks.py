"""Bad input: a ValueError that names the argument and says what was wrong, before any work."""

import math

import numpy as np
import pytest
import torch

from measureflow.attention import (
    Against,
    Attention,
    DotProduct,
    GumbelSoftmax,
    Masked,
    Matrix,
    MultiHead,
    NegativeSquaredDistance,
    NormMax,
    Relative,
    Sinkhorn,
    Softmax,
    SoftmaxExpansion,
    Sparsemax,
    Sum,
    TimeDependent,
    TopK,
)
from measureflow.flows import (
    NoFlow,
    OnSphere,
    Tangent,
    Uniform,
    Unit,
    cluster_count,
    dopri5,
    entropy,
    integrate,
)
from measureflow.measures import Empirical, Gaussian

X = torch.tensor([[0.0, 1.0], [2.0, 3.0], [4.0, 6.0]])
EYE = torch.eye(2)
NAN = torch.tensor([[0.0, 1.0], [math.nan, 3.0]])
INF = torch.tensor([[0.0, 1.0], [2.0, -math.inf]])
GENERATOR = torch.Generator()
HEADS = Attention(DotProduct(torch.ones(3, 2, 2)), value=torch.ones(3, 2, 2))

CASES = {
    # points and masses
    "NaN point": (lambda: Empirical(NAN), r"points has 1 non-finite .* at \(1, 0\), is NaN"),
    "infinite point": (lambda: Empirical(INF), r"points has 1 non-finite .* at \(1, 1\), is infinite"),
    "one axis": (lambda: Empirical([1.0, 2.0]), r"points must have shape \(\*batch, n, d\), got \(2,\)"),
    "no points": (lambda: Empirical(torch.zeros(0, 2)), r"points must hold at least one point .* got \(0, 2\)"),
    "no dimensions": (lambda: Empirical(torch.zeros(3, 0)), r"points must hold at least one point"),
    "a word": (lambda: Empirical("abc"), "points must be an array of numbers"),
    "nothing": (lambda: Empirical(None), "points must be an array of numbers"),
    "words in an array": (lambda: Empirical(np.array([["a", "b"]])), "points must be an array of numbers"),
    "uneven rows": (lambda: Empirical([[1.0], [1.0, 2.0]]), "points must be an array of numbers"),
    "complex": (lambda: Empirical(torch.ones(2, 2, dtype=torch.complex64)), "points must be real"),
    "negative mass": (lambda: Empirical(X, [1, -2, 1]), r"weights must be non-negative, the least is -2"),
    "no mass": (lambda: Empirical(X, [0, 0, 0]), "weights must not be all zero"),
    "no mass in one of a batch": (
        lambda: Empirical(X.expand(2, 3, 2), [[1, 1, 1], [0, 0, 0]]),
        "weights must not be all zero",
    ),
    "NaN mass": (lambda: Empirical(X, [1, math.nan, 1]), "weights has 1 non-finite"),
    "infinite mass": (lambda: Empirical(X, [1, math.inf, 1]), "weights has 1 non-finite"),
    "too few masses": (lambda: Empirical(X, [1, 1]), r"weights must have shape \(3,\), .* got \(2,\)"),
    "words for masses": (lambda: Empirical(X, "heavy"), "weights must be an array of numbers"),
    "no clouds": (lambda: Empirical.ragged([]), "clouds must hold at least one cloud"),
    "clouds of two dimensions": (lambda: Empirical.ragged([X, X[:, :1]]), "clouds must have shapes .* same d"),
    "masses of too few clouds": (lambda: Empirical.ragged([X, X], [[1, 1, 1]]), "weights must have one entry for each"),
    # Gaussians
    "not square": (lambda: Gaussian([0, 0], torch.ones(2, 3)), r"covariance must be square, .* got \(2, 3\)"),
    "not symmetric": (lambda: Gaussian([0, 0], [[1.0, 0.5], [0.0, 1.0]]), "covariance must be symmetric"),
    "not positive": (
        lambda: Gaussian([0, 0], [[1.0, 2.0], [2.0, 1.0]]),
        "covariance must be positive semi-definite, its least eigenvalue is -1",
    ),
    "NaN covariance": (lambda: Gaussian([0, 0], NAN), "covariance has 1 non-finite"),
    "NaN mean": (lambda: Gaussian([0, math.nan], EYE), "mean has 1 non-finite"),
    "mean too long": (lambda: Gaussian([0, 0, 0], EYE), r"mean must have shape \(\*batch, 2\), got \(3,\)"),
    "mean of no axis": (lambda: Gaussian(0.0, EYE), "mean must have shape"),
    "batches that differ": (
        lambda: Gaussian(torch.zeros(3, 2), EYE.expand(4, 2, 2)),
        r"mean and covariance have different batches: \(3,\) and \(4,\)",
    ),
    "empty covariance": (lambda: Gaussian(torch.zeros(0), torch.zeros(0, 0)), "covariance must be square"),
    "empty sample": (lambda: Gaussian([0, 0], EYE).sample(0, GENERATOR), "n must be a whole number, at least 1, got 0"),
    # normalisers
    "gamma zero": (lambda: Softmax(0), "gamma must be positive, got 0"),
    "gamma NaN": (lambda: Softmax(math.nan), "gamma must be positive, got nan"),
    "gamma infinite": (lambda: Softmax(math.inf), "gamma must be finite; .* Hardmax"),
    "gamma a word": (lambda: Softmax("high"), "gamma must be a number, got 'high'"),
    "gamma a list": (lambda: Sparsemax([1.0, 2.0]), "gamma must be a number"),
    "gamma negative": (lambda: Sparsemax(-1.0), "gamma must be positive"),
    "alpha one": (lambda: NormMax(1.0), r"alpha must be greater than 1 \(inf allowed\), got 1"),
    "alpha NaN": (lambda: NormMax(math.nan), "alpha must be greater than 1"),
    "alpha a word": (lambda: NormMax("two"), "alpha must be a number, got 'two'"),
    "normmax gamma": (lambda: NormMax(2.0, gamma=0.0), "gamma must be positive"),
    "k zero": (lambda: TopK(0), "k must be positive, got 0"),
    "k none": (lambda: TopK(None), "k must be a number, got None"),
    "k above the mass": (lambda: Attention(normaliser=TopK(2))(X), r"k=2 asks for more mass than the keys have \(1\)"),
    "epsilon": (lambda: Sinkhorn(-1.0), "epsilon must be positive, got -1"),
    "tolerance": (lambda: Sinkhorn(1.0, tol=0.0), "tol must be positive, got 0"),
    "iterations": (lambda: Sinkhorn(1.0, max_iter=0), "max_iter must be positive, got 0"),
    "epsilon of the expansion": (lambda: SoftmaxExpansion(0.0), "epsilon must be positive"),
    "temperature": (lambda: GumbelSoftmax(-1.0, generator=GENERATOR), "temperature must be zero or positive"),
    "temperature NaN": (lambda: GumbelSoftmax(math.nan, generator=GENERATOR), "temperature must be zero or positive"),
    "a seed is no generator": (lambda: GumbelSoftmax(1.0, generator=3), "generator must be of type Generator, got int"),
    # matrices, scores, fields
    "NaN matrix": (lambda: DotProduct(NAN), "M has 1 non-finite"),
    "vector for a matrix": (lambda: Matrix([1.0, 2.0]), r"M must be a matrix, got shape \(2,\)"),
    "nothing to learn": (lambda: DotProduct(learn=True), "M must be given to be learned"),
    "matrix too narrow": (
        lambda: Attention(value=torch.ones(2, 5))(X),
        "points have 2 coordinates, the matrix takes 5",
    ),
    "Q without its K": (
        lambda: Attention(DotProduct(torch.ones(3, 2)))(X),
        "Q maps queries to 3 coordinates and K maps keys to 2",
    ),
    "Q and K apart": (
        lambda: Attention(NegativeSquaredDistance(torch.ones(1, 2), torch.ones(2, 2)))(X),
        "Q maps queries to 1 coordinates and K maps keys to 2",
    ),
    "queries elsewhere": (
        lambda: Attention().at(torch.ones(2, 3), Empirical(X)),
        "Q maps queries to 3 coordinates and K maps keys to 2",
    ),
    "a word for a score": (lambda: Attention("dot"), "score must be of type Score, got str: 'dot'"),
    "a class for a score": (lambda: Attention(DotProduct), "score must be of type Score, got type"),
    "a word for a normaliser": (lambda: Attention(None, "softmax"), "normaliser must be of type Normaliser"),
    "an array for a measure": (lambda: Attention()(X.numpy()), "mu must be of type .* got ndarray"),
    "a word for heads": (lambda: MultiHead("two"), "heads must be of type Attention"),
    "heads without an axis": (lambda: MultiHead.averaged(Attention()), "heads must have at least one matrix"),
    "heads without a value": (
        lambda: MultiHead.averaged(Attention(DotProduct(torch.ones(3, 2, 2)))),
        "heads must have a value matrix",
    ),
    "joined too narrow": (lambda: MultiHead.concatenated(HEADS, torch.ones(2, 5)), r"W must have shape \(d, 3 k\)"),
    "a number for a field": (lambda: Relative(3), "field must be of type Field, got int"),
    "masked nothing": (lambda: Masked(None), "field must be of type Field, got NoneType"),
    "tangent of a word": (lambda: Tangent("east"), "field must be of type Field"),
    "against a list": (lambda: Against(Attention(), [1.0]), "nu must be of type Empirical or Gaussian, got list"),
    "against points as a Gaussian": (
        lambda: Against(Attention(), Empirical(X))(Gaussian([0, 0], EYE)),
        "nu is not a Gaussian",
    ),
    "sum of nothing": (lambda: Sum(), "fields must hold at least one field"),
    "sum of words": (lambda: Sum("a"), "fields must be of type Field"),
    "coefficients": (lambda: Sum(Attention(), coefficients=[1.0, 2.0]), "coefficients has 2 entries for 1 fields"),
    "time without a function": (lambda: TimeDependent(3), "fields must be a function of time"),
    "masked Gaussian": (lambda: Masked(Attention())(Gaussian([0, 0], EYE)), "Masked has no closed form on a Gaussian"),
    # flows
    "NaN tokens": (lambda: integrate(Attention(), NAN, [1.0]), "mu has 1 non-finite"),
    "one token axis": (lambda: integrate(Attention(), X[0], [1.0]), r"mu must have shape \(\*batch, n, d\)"),
    "a list for a measure": (lambda: integrate(Attention(), [[1.0]], [1.0]), "mu must be an Empirical, a Gaussian or"),
    "a function for a field": (lambda: integrate(torch.sin, X, [1.0]), "field must be of type Field"),
    "a word for a method": (lambda: integrate(Attention(), X, [1.0], "euler"), "method must be of type Solver"),
    "a number for a schedule": (lambda: integrate(Attention(), X, 1.0), "schedule must be a list of step sizes"),
    "NaN step": (lambda: integrate(Attention(), X, [1.0, math.nan]), r"schedule\[1\] has 1 non-finite .* is NaN"),
    "infinite step": (lambda: integrate(Attention(), X, [math.inf]), r"schedule\[0\] has 1 non-finite .* is infinite"),
    "a word for a step": (lambda: integrate(Attention(), X, ["big"]), r"schedule\[0\] must be an array of numbers"),
    "steps of another batch": (
        lambda: integrate(Attention(), X.expand(4, 3, 2), [torch.ones(3)]),
        r"schedule\[0\] must be one number, or one for each batch element, \(4,\), got shape \(3,\)",
    ),
    "steps back in time": (
        lambda: integrate(Attention(), X.double(), [-1.0], dopri5),
        "schedule must not step back in time",
    ),
    "tolerance below rounding": (lambda: integrate(Attention(), X, [1.0], dopri5), "rtol=1e-08 is finer than"),
    "a field that changes the dimension": (
        lambda: integrate(Attention(value=torch.ones(1, 2)), X, [1.0]),
        "field must return velocities of the dimension of the points",
    ),
    "adaptive on the sphere": (lambda: OnSphere(dopri5), "method must be of type FixedStep, got Dopri5"),
    "no layers": (lambda: Uniform(1.0, 0), "n_layers must be a whole number, at least 1, got 0"),
    "half a layer": (lambda: NoFlow(2.5), "n_layers must be a whole number, at least 1, got 2.5"),
    "NaN layers": (lambda: Unit(1.0, math.nan), "n_layers must be a whole number, at least 1, got nan"),
    "NaN time": (lambda: Uniform(math.nan, 3), "time has 1 non-finite"),
    "infinite time of one": (lambda: Unit(torch.tensor([1.0, math.inf]), 3), r"time has 1 non-finite .* at \(1,\)"),
    "a word for a time": (lambda: Uniform("long", 3), "time must be an array of numbers"),
    "too many neighbours": (lambda: entropy(Empirical(X), k=3), "k must lie between 1 and n - 1 = 2, .* got 3"),
    "neighbours without mass": (lambda: entropy(Empirical(X, [1, 1, 0]), k=2), "k must lie between 1 and n - 1 = 1"),
    "radius": (lambda: cluster_count(Empirical(X), 0.0), "radius must be positive, got 0"),
}


@pytest.mark.parametrize("case", CASES)
def test_bad_input_is_named(case):
    call, words = CASES[case]
    with pytest.raises(ValueError, match=words):
        call()


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_rounding_is_not_bad_input(dtype):
    """A covariance computed as a product is symmetric and positive up to rounding only."""
    generator = torch.Generator().manual_seed(1)
    for d in (1, 2, 10, 50):
        R = torch.randn(20, d, max(1, d // 2), generator=generator, dtype=dtype)
        S = torch.stack([(1e3 * r) @ r.mT for r in R])
        Gaussian(torch.zeros(d), S)
