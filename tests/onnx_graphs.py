"""ONNX graphs of models, and whether they are the same function as torch's, up to the rounding of float32."""

import copy
from itertools import product

import onnxruntime
import torch

import export_models as export
from rounding import allowed, distance


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
