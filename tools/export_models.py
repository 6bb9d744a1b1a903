"""Shipped models as ONNX files that the page runs in the browser: ``python tools/export_models.py``.

The exported graph takes points (n, d) and one SNR in dB (1,), and gives the whole flow at once: ``path``
(L + 1, n, d), the tokens at every layer, and ``times`` (L + 1,), how far each has flowed.
"""

from __future__ import annotations

import contextlib
import copy
import hashlib
import json
import logging
import math
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from measureflow import explorer
from measureflow.measures import checks
from measureflow.models import any_dimension, any_dimension_heads, load_pretrained
from measureflow.models.checkpoints import write_atomically
from measureflow.models.flow_transformer import FlowTransformer

MODELS = Path(explorer.__file__).parent / "static" / "models"
EXPORTED = ("any-dimension", "flow-transformer")  # the rows of the paper's tables would weigh as much again
OPSET = 20


class WholePath(nn.Module):
    """One cloud in, its tokens at every layer out."""

    def __init__(self, model: nn.Module):
        super().__init__()
        self.model: Any = model

    def forward(self, points: Tensor, snr_db: Tensor) -> tuple[Tensor, Tensor]:
        path = self.model.flow(points[None], snr_db)
        times = torch.stack([torch.as_tensor(t, dtype=points.dtype).expand(1)[0] for t in path.times])
        return torch.stack([state[0] for state in path]), times


class _Mathematics:
    """The functions of ``math``, also of a dimension that is not known until the graph runs."""

    def __getattr__(self, name: str):
        return getattr(math, name)

    def log(self, value):
        return math.log(value) if isinstance(value, (int, float)) else torch.scalar_tensor(value).log()

    def sqrt(self, value):
        return math.sqrt(value) if isinstance(value, (int, float)) else torch.scalar_tensor(value).sqrt()


@contextlib.contextmanager
def _traceable() -> Iterator[None]:
    """Lift what a tracer cannot follow: checks of values, and logarithms of an unknown dimension."""
    with contextlib.ExitStack() as stack:
        stack.enter_context(mock.patch.object(checks, "finite", lambda name, tensor: tensor))
        for module in (any_dimension, any_dimension_heads):
            stack.enter_context(mock.patch.object(module, "math", _Mathematics()))
        stack.enter_context(warnings.catch_warnings())
        warnings.simplefilter("ignore")  # of the exporter, about itself
        yield


def dimension(model: nn.Module) -> int | None:
    """The dimension of the data a model takes, None if any."""
    return getattr(model.config, "d", None)


def to_onnx(model: nn.Module) -> bytes:
    """The model as an ONNX graph with any number of points and, where the model allows it, any dimension."""
    model = copy.deepcopy(model).eval().requires_grad_(False)
    if isinstance(model, FlowTransformer):
        P = model.projection()  # a decomposition that ONNX lacks, of weights that no longer change
        model.projection = lambda: P  # pyright: ignore[reportAttributeAccessIssue]
    d, dtype = dimension(model), next(model.parameters()).dtype
    sizes: dict[int, Any] = {0: torch.export.Dim("n", min=2, max=2**20)}
    if d is None:
        sizes[1] = torch.export.Dim("d", min=1, max=2**12)
    with _traceable(), tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.onnx"
        torch.onnx.export(
            WholePath(model).eval(),
            (
                torch.randn(37, d or 3, generator=torch.Generator().manual_seed(0)).to(dtype),
                torch.tensor([9.0]).to(dtype),
            ),
            str(file),
            input_names=["points", "snr_db"],
            output_names=["path", "times"],
            dynamic_shapes={"points": sizes, "snr_db": None},
            opset_version=OPSET,
            external_data=False,
            dynamo=True,
            verbose=False,
        )
        return _bare(file.read_bytes())


def _bare(graph: bytes) -> bytes:
    """The same graph without the exporter's notes, which triple its size and name files of this machine."""
    import onnx

    model = onnx.load_from_string(graph)
    del model.metadata_props[:], model.graph.metadata_props[:], model.graph.value_info[:]
    for part in (*model.graph.node, *model.graph.input, *model.graph.output, *model.graph.initializer):
        del part.metadata_props[:]
        part.doc_string = ""
    return model.SerializeToString(deterministic=True)


def fingerprint(model: nn.Module) -> str:
    """A digest of a model's settings and weights, by which a stale export is known."""
    digest = hashlib.sha256(repr(model.config).encode())
    for name, tensor in sorted(model.state_dict().items()):
        digest.update(name.encode() + tensor.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def describe(name: str, model: nn.Module) -> dict[str, Any]:
    """What the page must know of a model before it runs it."""
    c: Any = model.config
    return {
        "name": name,
        "d": dimension(model),
        "layers": c.n_layers,
        "snr_low": c.snr_low,
        "snr_high": c.snr_high,
        "max_flow": c.max_flow,
        "fingerprint": fingerprint(model),
    }


def export(folder: Path = MODELS, *, again: bool = False) -> list[Path]:
    """Write every model of the page whose export is missing or stale (or all, ``again``), and ``models.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    index = folder / "models.json"
    known = {entry["name"]: entry for entry in json.loads(index.read_text())} if index.is_file() else {}
    entries, written = [], []
    for name in EXPORTED:
        model = load_pretrained(name)
        entry, file = describe(name, model), folder / f"{name}.onnx"
        if again or known.get(name) != entry or not file.is_file():
            written.append(write_atomically(file, to_onnx(model)))
        entries.append(entry)
    text = json.dumps(entries, indent=2) + "\n"
    if not index.is_file() or index.read_text() != text:
        written.append(write_atomically(index, text.encode()))
    return written


if __name__ == "__main__":
    logging.getLogger("torch.onnx").setLevel(logging.ERROR)  # it warns of packages that nothing here needs
    files = export()
    print("\n".join(str(file) for file in files) or "Every exported model is up to date.")
