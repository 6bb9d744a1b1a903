"""Clusters of any shape: tokens with a position, a colour and features learn who belongs with whom."""

from measureflow.models.any_shape.config import AnyShapeConfig
from measureflow.models.any_shape.flow import AnyShapeFlow, Together
from measureflow.models.any_shape.tokens import ColouredTokens

__all__ = ["AnyShapeFlow", "AnyShapeConfig", "Together", "ColouredTokens"]
