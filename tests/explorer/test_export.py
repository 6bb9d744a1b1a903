"""What the browser runs is what torch runs: the same function in float64, and in float32 up to its rounding."""

import copy
import json
import re
from itertools import product

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from packaging.version import Version

import export_models as export
from measureflow.models import AnyDimensionFlow, FlowTransformer, load_pretrained
from measureflow.models.any_dimension import AnyDimensionConfig
from measureflow.models.flow_transformer import FlowTransformerConfig
from rounding import allowed, distance

TINY = {
    "flow-transformer": lambda: FlowTransformer(FlowTransformerConfig(width=8, n_heads=2, hidden=8, n_layers=2)),
    "any-dimension": lambda: AnyDimensionFlow(AnyDimensionConfig(n_features=8, n_messages=2, hidden=8, n_layers=2)),
}

# Exporting is a tool of development, run with the torch of the lock: torch 2.6 exports with the shapes of its example.
exports = pytest.mark.skipif(Version(torch.__version__) < Version("2.13"), reason="exports fixed shapes")


def session(graph: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(graph, options)


def assert_same_function(model, graph: onnxruntime.InferenceSession, n: int, dimensions, ratios) -> None:
    """The graph lies no farther from torch in float64 than a few times what torch in float32 does, on n normal points.

    Layers of softmaxes amplify what rounding does to a few tokens, so the largest error over all clouds is compared.
    """
    whole, exact = export.WholePath(model), export.WholePath(copy.deepcopy(model).double())
    paths, clocks = [], []
    for d, snr_db in product(dimensions, ratios):
        x, snr = torch.randn(n, d, generator=torch.Generator().manual_seed(n)), torch.tensor([snr_db])
        with torch.no_grad():
            torchs, truth = whole(x, snr), exact(x.double(), snr.double())
        graphs = graph.run(None, {"points": x.numpy(), "snr_db": snr.numpy()})
        assert graphs[0].shape == truth[0].shape
        for found, part in ((paths, 0), (clocks, 1)):
            found.append((distance(graphs[part], truth[part]), allowed(torchs[part], truth[part])))
    for found in (paths, clocks):
        assert max(error for error, _ in found) <= max(most for _, most in found)


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


@pytest.mark.parametrize("entry", json.loads((export.MODELS / "models.json").read_text()), ids=lambda e: e["name"])
def test_the_shipped_export_is_the_shipped_model(entry):
    model = load_pretrained(entry["name"])
    assert entry == export.describe(entry["name"], model), "run `python tools/export_models.py`"
    run = session((export.MODELS / f"{entry['name']}.onnx").read_bytes())
    ratios = (entry["snr_low"], (entry["snr_low"] + entry["snr_high"]) / 2, entry["snr_high"])
    for n in (2, 100, 700):
        assert_same_function(model, run, n, (2,) if entry["d"] else (1, 3, 8), ratios)


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


def test_what_is_exported_is_what_the_page_lists():
    exported = [entry["name"] for entry in json.loads((export.MODELS / "models.json").read_text())]
    assert exported == list(export.EXPORTED)
    assert set(exported) <= set(load_pretrained.available())


def test_exporting_again_writes_nothing_new(monkeypatch):
    monkeypatch.setattr(export, "to_onnx", lambda model: pytest.fail("exported a model that has not changed"))
    assert export.export() == []
