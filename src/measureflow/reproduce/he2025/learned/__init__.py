"""Transformers that learn to cluster in context: the figures of section 4, and what they leave open."""
