"""What the browser runs is what torch runs: the same function in float64, and in float32 up to its rounding."""

import json
import re

import numpy as np
import onnx
import onnxruntime
import pytest
import torch
from onnx.reference import ReferenceEvaluator
from packaging.version import Version

from measureflow.explorer import export
from measureflow.models import AnyDimensionFlow, FlowTransformer, load_pretrained
from measureflow.models.any_dimension import AnyDimensionConfig
from measureflow.models.flow_transformer import FlowTransformerConfig

TINY = {
    "flow-transformer": lambda: FlowTransformer(FlowTransformerConfig(width=8, n_heads=2, hidden=8, n_layers=2)),
    "any-dimension": lambda: AnyDimensionFlow(AnyDimensionConfig(n_features=8, n_messages=2, hidden=8, n_layers=2)),
}

# In float32 torch itself strays from float64 by up to 4e-5 of the spread of the data in the any-dimension flow (eight
# layers of softmaxes of squared distances), and the graph by as much another way: 1e-5 is what float64 keeps.
ROUNDING = {"any-dimension": 1e-4, "flow-transformer": 1e-5}

# Exporting is a tool of development, run with the torch of the lock: torch 2.6 exports with the shapes of its example.
exports = pytest.mark.skipif(Version(torch.__version__) < Version("2.13"), reason="exports fixed shapes")


def session(graph: bytes) -> onnxruntime.InferenceSession:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    return onnxruntime.InferenceSession(graph, options)


def gap(model, graph: onnxruntime.InferenceSession, n: int, d: int, snr_db: float) -> float:
    """The largest difference between torch's path and the graph's, on standard normal data."""
    x = torch.randn(n, d, generator=torch.Generator().manual_seed(n))
    with torch.no_grad():
        path, times = export.WholePath(model)(x, torch.tensor([snr_db]))
    ours, clock = graph.run(None, {"points": x.numpy(), "snr_db": np.array([snr_db], np.float32)})
    assert ours.shape == path.shape
    assert np.abs(clock - times.numpy()).max() < 1e-5
    return float(np.abs(ours - path.numpy()).max())


@pytest.fixture(scope="module")
def fresh() -> dict:
    """A tiny model of each kind, its weights stirred (by more, float32 itself strays beyond 1e-5), and its export."""
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
    for d in dimensions:
        for n in (2, 50, 300):
            assert gap(model, run, n, d, 7.0) < 1e-5


@pytest.mark.slow
@pytest.mark.parametrize("kind", TINY)
def test_an_export_names_no_file_of_this_machine(kind, fresh):
    assert not re.search(rb"\.py|site-packages|/home|/root|/work", fresh[kind][1])


@pytest.mark.parametrize("entry", json.loads((export.MODELS / "models.json").read_text()), ids=lambda e: e["name"])
def test_the_shipped_export_is_the_shipped_model(entry):
    model = load_pretrained(entry["name"])
    assert entry == export.describe(entry["name"], model), "run `python -m measureflow.explorer.export`"
    run = session((export.MODELS / f"{entry['name']}.onnx").read_bytes())
    for d in (2,) if entry["d"] else (1, 3, 8):
        for n in (2, 100, 700):
            for snr_db in (entry["snr_low"], (entry["snr_low"] + entry["snr_high"]) / 2, entry["snr_high"]):
                assert gap(model, run, n, d, snr_db) < ROUNDING[entry["name"]]


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
