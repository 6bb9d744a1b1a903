"""Clarkson 2025: its table and figures, and what they leave open."""

ARTEFACTS: dict[str, str] = {
    name: name for name in ("table1", "fig3", "fig4", "one_gamma", "outliers", "lean", "learnability")
}
