"""Zimin 2025: its tables and figures."""

ARTEFACTS: tuple[str, ...] = ("theorem2.1",)
