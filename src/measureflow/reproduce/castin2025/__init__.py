"""Castin 2025: its figures."""

ARTEFACTS: tuple[str, ...] = ("fig1", "fig2", "fig3", "fig4", "fig5", "fig6", "fig7", "fig8")
