"""He 2025: transformers with constructed weights that approximate EM."""
