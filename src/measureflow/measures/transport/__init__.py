"""Distances between measures: exact and entropic transport, closed forms for Gaussians, conditional transport."""

from measureflow.measures.transport.bures import bures_wasserstein2, entropic_bures
from measureflow.measures.transport.conditional import conditional_wasserstein2
from measureflow.measures.transport.entropic import EntropicTransport, sinkhorn
from measureflow.measures.transport.exact import Transport, wasserstein2

__all__ = [
    "wasserstein2", "Transport", "sinkhorn", "EntropicTransport",
    "bures_wasserstein2", "entropic_bures", "conditional_wasserstein2",
]  # fmt: skip
