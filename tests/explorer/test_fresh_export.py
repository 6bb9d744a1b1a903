"""Models exported now are the same function as torch's, in float64 too, and tell nothing of this machine."""

import re

import numpy as np
import onnx
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from packaging.version import Version

import export_models as export
from measureflow.models import AnyDimensionFlow, FlowTransformer, load_pretrained
from measureflow.models.any_dimension import AnyDimensionConfig
from measureflow.models.flow_transformer import FlowTransformerConfig
from onnx_graphs import assert_same_function, session

TINY = {
    "flow-transformer": lambda: FlowTransformer(FlowTransformerConfig(width=8, n_heads=2, hidden=8, n_layers=2)),
    "any-dimension": lambda: AnyDimensionFlow(AnyDimensionConfig(n_features=8, n_messages=2, hidden=8, n_layers=2)),
}

# Exporting is a tool of development, run with the torch of the lock: torch 2.6 exports with the shapes of its example.
exports = pytest.mark.skipif(Version(torch.__version__) < Version("2.13"), reason="exports fixed shapes")


@pytest.fixture(scope="module")
def fresh() -> dict:
    """A tiny model of each kind, its weights stirred, and its export."""
    out = {}
    for kind, make in TINY.items():
        torch.manual_seed(0)
        model = make().eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(0.03 * torch.randn_like(parameter))
        out[kind] = model, export.to_onnx(model)
    return out


@exports
@pytest.mark.slow
@pytest.mark.parametrize("kind", TINY)
def test_a_fresh_export_agrees_with_torch(kind, fresh):
    model, graph = fresh[kind]
    run = session(graph)
    dimensions = (2,) if export.dimension(model) else (1, 2, 5)
    for n in (2, 50, 300):
        assert_same_function(model, run, n, dimensions, (7.0,))


@pytest.mark.slow
@pytest.mark.parametrize("kind", TINY)
def test_an_export_names_no_file_of_this_machine(kind, fresh):
    assert not re.search(rb"\.py|site-packages|/home|/root|/work", fresh[kind][1])


@exports
@pytest.mark.slow
@pytest.mark.parametrize("name", export.EXPORTED)
def test_in_float64_the_graph_is_the_shipped_model(name):
    model = load_pretrained(name).double()
    graph = ReferenceEvaluator(onnx.load_from_string(export.to_onnx(model)))  # the runtime lacks float64 kernels
    for d in (2,) if export.dimension(model) else (1, 8):
        for snr_db in (5.0, 15.0):
            x = torch.randn(60, d, generator=torch.Generator().manual_seed(d)).double()
            with torch.no_grad():
                path, _ = export.WholePath(model)(x, torch.tensor([snr_db]).double())
            ours = graph.run(None, {"points": x.numpy(), "snr_db": np.array([snr_db])})[0]
            np.testing.assert_allclose(ours, path.numpy(), rtol=0, atol=1e-5)
