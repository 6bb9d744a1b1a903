"""He 2025: its figures, and the experiments and checks that a reader of it would ask for."""

ARTEFACTS: tuple[str, ...] = (
    "fig1", "fig2", "fig3", "fig4", "fig5",
    "separation", "layers", "context", "temperature", "dimension", "theorem",
)  # fmt: skip
