"""Values that no parameter should have, and some that it may."""

import decimal
import fractions
import pathlib
import tempfile

import numpy as np
import torch

from measureflow.models import AnyDimensionConfig, AnyDimensionFlow, FlowTransformer, InContextClusterer

ANYTHING = (None, "", "x", b"x", [], [1], {}, (), object(), 1j, float("nan"), float("inf"), np.array([1, 2]), len, int)
NUMBERS = (-1, 0, 1, 2, 2.0, 2.5, True, 10**400, -(10**400), np.int64(2), np.float32(2), np.array(2), torch.tensor(2))
NUMBERS += (decimal.Decimal(2), fractions.Fraction(5, 2), "2")


def odd_parameters(kind: str) -> dict[str, tuple]:
    """Values to try for each parameter of an estimator, one at a time."""
    return {"FlowMixture": _flow_mixture, "TransformerKMeans": _kmeans, "InContextClustering": _in_context}[kind]()


def _flow_mixture() -> dict[str, tuple]:
    flow = AnyDimensionFlow(AnyDimensionConfig(n_layers=1, hidden=8, n_features=8))
    return {
        "n_clusters": (*ANYTHING, *NUMBERS, 29, 30, 31, 10**9),
        "snr_db": (*ANYTHING, *NUMBERS, -100, 100, -101, 1e300),
        "n_layers": (*ANYTHING, *NUMBERS, 50, 10**9),
        "schedule": (*ANYTHING, "uniform", "unit", "no-flow", "cosine", 0),
        "polish": (*ANYTHING, True, False, np.True_, 0, 1, "no"),
        "missing": (*ANYTHING, "error", "drop", "impute", True),
        "random_state": (*ANYTHING, 0, -1, 2.5, np.random.RandomState(0), np.random.default_rng(0)),
        "device": (*ANYTHING, "cpu", "cpu:0", "meta", "cuda", "cuda:7", "mps", "xpu", "xla", "vulkan", "gpu", 0, -1,
                   3.5, torch.device("cpu"), torch.device("meta"), "CPU"),
        "model": (*ANYTHING, *_folders(), flow, flow.train(), _copy(flow).double(), _copy(flow).half(), flow.to_empty,
                  _copy(flow).bfloat16(), _copy(flow).to("meta"), _broken(flow), torch.nn.Linear(2, 2),
                  FlowTransformer(), AnyDimensionFlow, InContextClusterer(), "flow-transformer", "any-dimension",
                  "../..", "a\0b", 3),
    }  # fmt: skip


def _folders() -> list:
    """Folders that hold no model."""
    folder = pathlib.Path(tempfile.mkdtemp())
    half, junk, file = folder / "half", folder / "junk", folder / "file"
    half.mkdir()
    junk.mkdir()
    (half / "config.json").write_text('{"kind": "any-dimension", "settings": {}}')
    (junk / "config.json").write_text("junk")
    (junk / "model.safetensors").write_bytes(b"junk")
    file.write_text("not a folder")
    return [folder, str(folder), half, junk, file, folder / "absent", "."]


def _copy(flow: AnyDimensionFlow) -> AnyDimensionFlow:
    return AnyDimensionFlow(flow.config)


def _broken(flow: AnyDimensionFlow) -> AnyDimensionFlow:
    """A flow with a weight that is not a number."""
    broken = _copy(flow)
    with torch.no_grad():
        broken.log_width.fill_(float("nan"))
    return broken


def _kmeans() -> dict[str, tuple]:
    numbers = ("gamma", "tol", "percentile", "n_nearest", "gap")
    words = ("algorithm", "attention", "empty_cluster", "weighting", "engine")
    return {
        "n_clusters": (*ANYTHING, *NUMBERS, 30, 31, 10**9),
        "init": (*ANYTHING, "random", np.zeros((3, 2)), np.zeros((3, 3)), np.full((3, 2), np.nan), [[1, 2], [3]],
                 np.full((3, 2), "x"), torch.zeros(3, 2, requires_grad=True), [[10**400, 1]] * 3,
                 np.full((3, 2), 1e300)),
        "n_init": (*ANYTHING, *NUMBERS[:7], "auto"),
        "max_iter": (*ANYTHING, *NUMBERS[:10]),
        "n_threads": (*ANYTHING, *NUMBERS, 1000),
        "random_state": (*ANYTHING, 0, -1, 2.5, np.random.RandomState(0), np.random.default_rng(0)),
        **dict.fromkeys(numbers, (*ANYTHING, *NUMBERS, 1e300, 1e-300)),
        **dict.fromkeys(words, (*ANYTHING, 0)),
    }  # fmt: skip


def _in_context() -> dict[str, tuple]:
    fit = {"n_classes": 3, "dimension": 2, "width": 8}
    return {
        "n_clusters": (*ANYTHING, *NUMBERS, 30, 31, 10**9),
        "n_steps": (*ANYTHING, -1, 0, 1, 2.0, 2.5, True, np.int64(1), "2"),
        "random_state": (*ANYTHING, 0, -1, 2.5, np.random.RandomState(0), np.random.default_rng(0)),
        "model": (*ANYTHING, InContextClusterer(**fit), InContextClusterer(**fit).double(), AnyDimensionFlow(), "x",
                  InContextClusterer(**fit).half(), InContextClusterer(), InContextClusterer(**fit, context=True),
                  InContextClusterer(**fit).to("meta"), InContextClusterer, torch.nn.Linear(2, 2)),
    }  # fmt: skip
