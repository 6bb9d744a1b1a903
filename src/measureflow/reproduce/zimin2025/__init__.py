"""Zimin 2025: its tables and figures."""

TABLES = {f"table{i}": f"tables:table{i}" for i in range(1, 12)}
ARTEFACTS: dict[str, str] = {
    "theorem2.1": "theorem2_1",
    "targets": "targets",
    **TABLES,
    "fig1": "fig1",
    "fig2": "fig2",
    "fig4": "curves:fig4",
    "fig6": "fig6",
    "fig7": "curves:fig7",
    "fig8": "fig8",
    "fig9": "curves:fig9",
    "fig10": "curves:fig10",
    "fig11": "curves:fig11",
    "rescale": "rescale",
    "easy_to_hard": "easy_to_hard",
    "equal_budgets": "trained.equal_budgets",
}
