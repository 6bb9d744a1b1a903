"""Clarkson 2025: its tables and figures."""

ARTEFACTS: tuple[str, ...] = ("table1", "fig3", "fig4")
