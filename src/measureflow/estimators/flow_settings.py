"""The flow as an estimator's parameters ask for it: which weights, how many layers, which schedule, on which device."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from functools import lru_cache
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from measureflow.coclustering.average import Average
from measureflow.flows import Trajectory
from measureflow.models import load_pretrained
from measureflow.models.pretrained import load_model


@dataclass(frozen=True)
class FlowSettings:
    """A flow with its settings, so that the search and `FlowDial.cut` run it in the same way."""

    model: Any
    n_layers: int | None = None
    schedule: str = "uniform"

    def flow_and_noise(
        self, points: Tensor, snr_db: Tensor, *, exact: bool, weights: Tensor, n_layers: int | None = None
    ) -> tuple[Trajectory, Tensor]:
        """As `AnyDimensionFlow.flow_and_noise`, with these settings."""
        layers = self.n_layers if n_layers is None else n_layers
        return self.model.flow_and_noise(
            points, snr_db, exact=exact, weights=weights, n_layers=layers, schedule=self.schedule
        )


AVERAGE = "average.json"
KINDS = {"flow_and_noise": "an AnyDimensionFlow, which takes any number of columns", "together": "an AnyShapeFlow"}


def open_flow(model, device=None, *, name: str = "model", method: str = "flow_and_noise") -> nn.Module:
    """The flow that ``model`` names or is; on ``device`` if one is given, as a copy if it has to move there.

    ``name`` is the parameter that errors name, ``method`` a method that the flow must have.
    """
    place = None if device is None else _place(device)
    shipped = isinstance(model, str) and model in load_pretrained.available()
    if shipped:
        flow = _shipped(model, str(place or "cpu"))
    elif isinstance(model, nn.Module):
        flow = model
    elif isinstance(model, (str, Path)) and _is_folder(model):
        try:
            flow = load_model(model)
        except ValueError as error:
            raise ValueError(f"{name}: {error}") from None
    else:
        names = ", ".join(load_pretrained.available())
        raise ValueError(f"{name} must be one of {names}, a folder with weights or a module, got {model!r:.80}")
    if not hasattr(flow, method):
        raise ValueError(f"{name} must be {KINDS[method]}")
    if not shipped:
        check_weights(flow, name)
    if place is None or all(parameter.device == place for parameter in flow.parameters()):
        return flow
    return copy.deepcopy(flow).to(place)


def _is_folder(path: str | Path) -> bool:
    try:
        return Path(path).is_dir()
    except (ValueError, OSError):  # names that no file can have
        return False


def open_average(model) -> Average:
    """The coefficients that average both flows: those in the folder of the second, else the shipped ones."""
    if isinstance(model, (str, Path)) and _is_folder(model) and (Path(model) / AVERAGE).is_file():
        return Average.read(Path(model) / AVERAGE)
    return _shipped_average()


def check_weights(model: nn.Module, called: str = "model") -> None:
    """Refuse a module whose weights cannot be computed with."""
    for name, tensor in model.named_parameters():
        if tensor.dtype not in (torch.float32, torch.float64):
            raise ValueError(f"{called} must have weights in float32 or float64, {name} is {tensor.dtype}")
        if tensor.is_meta:
            raise ValueError(f"{called} must have weights with values, {name} is on the meta device, which holds none")
        if not torch.isfinite(tensor).all():
            raise ValueError(f"{called} must have finite weights, {name} has others")


def _place(device) -> torch.device:
    """A device that exists and can compute."""
    try:
        place = torch.empty(0, device=device).device
    except Exception as error:  # each backend has its own word for not being there
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise ValueError(f"device={device!r:.80} cannot be used: {reason}") from None
    if place.type == "meta":
        raise ValueError("device must be one that computes: 'meta' holds no numbers")
    return place


@lru_cache
def _shipped(name: str, device: str) -> nn.Module:
    """A model of the package, loaded once for each device."""
    return load_pretrained(name).to(device)


@lru_cache
def _shipped_average() -> Average:
    with as_file(files("measureflow") / "weights" / "any-shape" / AVERAGE) as path:
        return Average.read(path)
