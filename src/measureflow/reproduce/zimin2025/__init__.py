"""Zimin 2025: its tables and figures."""

TABLES = tuple(f"table{i}" for i in range(1, 12))
ARTEFACTS: tuple[str, ...] = (
    "theorem2.1", "targets", *TABLES,
    "fig1", "fig2", "fig4", "fig6", "fig7", "fig8", "fig9", "fig10", "fig11",
)  # fmt: skip


def artefact(name: str):
    """The tables share one module, told apart by their columns; curves over SNR share another."""
    if name in TABLES:
        from measureflow.reproduce.zimin2025.tables import TABLES_BY_NAME

        return TABLES_BY_NAME[name]
    if name in ("fig4", "fig7", "fig9", "fig10", "fig11"):
        from measureflow.reproduce.zimin2025.curves import CURVES_BY_NAME

        return CURVES_BY_NAME[name]
    return None
