"""The velocity field: scores, normalisers, and attention made of them."""

from measureflow.attention.closed_forms import Affine, closed_form
from measureflow.attention.field import Attention, Field, MultiHead
from measureflow.attention.gauss_transform import Fast
from measureflow.attention.matrix import Matrix
from measureflow.attention.normalisers import (
    Exp,
    GumbelSoftmax,
    Hardmax,
    Identity,
    Linear,
    Normaliser,
    NormMax,
    ReLU,
    Sigmoid,
    Softmax,
    SoftmaxExpansion,
    Sparsemax,
    TopK,
)
from measureflow.attention.scores import DotProduct, NegativeSquaredDistance, Score
from measureflow.attention.sinkhorn import Sinkhorn
from measureflow.attention.wrappers import Against, Layers, Masked, Normed, Relative, Sum, TimeDependent, TokenWise

__all__ = [
    "Attention", "Field", "MultiHead", "Masked", "Relative", "Against", "Sum", "Normed", "TokenWise",
    "TimeDependent", "Layers", "Fast",
    "Score", "DotProduct", "NegativeSquaredDistance",
    "Normaliser", "Softmax", "Hardmax", "Linear", "Sparsemax", "NormMax", "TopK", "GumbelSoftmax", "Sinkhorn",
    "Sigmoid", "ReLU", "Exp", "Identity", "SoftmaxExpansion",
    "Matrix", "Affine", "closed_form",
]  # fmt: skip
