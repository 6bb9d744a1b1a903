"""Transformers with learned weights, and how they are saved and loaded."""

from measureflow.models.any_dimension import AnyDimensionConfig, AnyDimensionFlow
from measureflow.models.any_shape import AnyShapeConfig, AnyShapeFlow
from measureflow.models.flow_transformer import FlowTransformer, FlowTransformerConfig
from measureflow.models.in_context import InContextClusterer, InContextConfig
from measureflow.models.pretrained import load_model, load_pretrained, save_model

__all__ = [
    "FlowTransformer", "FlowTransformerConfig", "AnyDimensionFlow", "AnyDimensionConfig",
    "AnyShapeFlow", "AnyShapeConfig", "InContextClusterer", "InContextConfig",
    "load_pretrained", "load_model", "save_model",
]  # fmt: skip
