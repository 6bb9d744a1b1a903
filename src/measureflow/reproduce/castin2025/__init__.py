"""Castin 2025: its figures, and runs of the theorems that have none."""

ARTEFACTS: dict[str, str] = {
    "stability": "stability",
    "fig1": "covariances.fig1",
    "fig2": "covariances.fig2",
    "fig3": "ranks:fig3",
    "fig4": "covariances.fig4",
    "fig5": "covariances.fig5",
    "fig6": "covariances.fig6",
    "fig7": "covariances.fig7",
    "fig8": "ranks:fig8",
    "section5": "section5",
}
