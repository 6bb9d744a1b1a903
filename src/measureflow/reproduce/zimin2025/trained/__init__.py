"""Artefacts that train models of their own."""
