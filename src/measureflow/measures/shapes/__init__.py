"""Random labelled sets whose clusters have many shapes: what the any-shape flow learns from."""

from measureflow.measures.shapes.catalogue import SHAPES
from measureflow.measures.shapes.columns import COLUMN_EFFECTS
from measureflow.measures.shapes.placement import PLACEMENTS
from measureflow.measures.shapes.prior import LabelledShapes, ShapePrior
from measureflow.measures.shapes.scenes import SCENES

__all__ = ["COLUMN_EFFECTS", "PLACEMENTS", "SCENES", "SHAPES", "LabelledShapes", "ShapePrior"]
