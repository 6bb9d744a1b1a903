r"""measureflow: an attention layer is a velocity field on probability measures.

.. math::
    \partial_t \mu + \operatorname{div}(\mu\, \Gamma_\mu) = 0, \qquad
    \Gamma_\mu(x) = \sum_j \mathcal{N}(s(x, \cdot), w)_j\, V y_j
    \quad\text{for}\quad \mu = \sum_j w_j \delta_{y_j}

The folders are the nouns of that equation: ``measures`` (what flows), ``attention`` (the field Gamma),
``flows`` (its integration), ``circuits`` and ``models`` (fields with hand-set and with learned weights),
``estimators`` (scikit-learn estimators). Names resolve on first use, so importing the package is cheap.
"""

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from measureflow.estimators import FlowMixture, TransformerKMeans
    from measureflow.measures import Empirical, Gaussian

__version__ = "0.1.0"

_HOME = {
    "FlowMixture": "measureflow.estimators",
    "TransformerKMeans": "measureflow.estimators",
    "Empirical": "measureflow.measures",
    "Gaussian": "measureflow.measures",
}

__all__ = ["FlowMixture", "TransformerKMeans", "Empirical", "Gaussian", "__version__"]


def __getattr__(name: str):
    """Import a public name the first time it is asked for (PEP 562)."""
    if name not in _HOME:
        raise AttributeError(f"module 'measureflow' has no attribute {name!r}; it has {', '.join(__all__)}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
