"""Transformers with hand-set weights."""
