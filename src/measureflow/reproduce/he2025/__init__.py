"""He 2025: its figures, and the experiments and checks that a reader of it would ask for."""

ARTEFACTS: dict[str, str] = {
    "fig1": "learned.figures:fig1",
    "fig2": "learned.figures:fig2",
    "fig3": "learned.fig3",
    "fig4": "learned.figures:fig4",
    "fig5": "learned.figures:fig5",
    "separation": "learned.separation",
    "layers": "constructed.layers",
    "context": "learned.context",
    "temperature": "constructed.temperature",
    "dimension": "constructed.dimension",
    "theorem": "constructed.theorem",
    "minimax": "constructed.minimax",
    "generalisation": "learned.generalisation",
    "layer_norm": "learned.layer_norm",
    "right_product": "constructed.right_product",
}
