"""Clarkson 2025: transformers with hand-set weights that are k-means and its variants."""
