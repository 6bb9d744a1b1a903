"""Distances between measures: exact and entropic transport, closed forms for Gaussians, transport slice by slice."""

from measureflow.measures.transport.exact import Transport, wasserstein2

__all__ = ["Transport", "wasserstein2"]
