"""Models by name: a config.json that says what they are and a model.safetensors with their weights."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Callable
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any, cast

from torch import Tensor, nn

from measureflow.models.any_dimension import AnyDimensionConfig, AnyDimensionFlow
from measureflow.models.any_shape import AnyShapeConfig, AnyShapeFlow
from measureflow.models.any_shape.layer import ShapeLayer
from measureflow.models.checkpoints import load_tensors, read_json, save_tensors, write_atomically
from measureflow.models.flow_transformer import FlowTransformer, FlowTransformerConfig
from measureflow.models.in_context import InContextClusterer, InContextConfig

KINDS: dict[str, tuple[type, type, Callable[[Any], nn.Module]]] = {
    "flow-transformer": (FlowTransformer, FlowTransformerConfig, FlowTransformer),
    "any-dimension": (AnyDimensionFlow, AnyDimensionConfig, AnyDimensionFlow),
    "any-shape": (AnyShapeFlow, AnyShapeConfig, AnyShapeFlow),
    "in-context": (InContextClusterer, InContextConfig, lambda c: InContextClusterer(**dataclasses.asdict(c))),
}

LARGEST_SETTING = 1024  # no model of ours is wider or deeper


def build(kind: str, settings: dict) -> nn.Module:
    """A fresh model of a kind, its settings checked one by one."""
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"kind must be one of {', '.join(KINDS)}, got {kind!r}")
    _, config, make = KINDS[kind]
    known = {field.name: getattr(field.type, "__name__", field.type) for field in dataclasses.fields(config)}
    for name, value in settings.items():
        if name not in known:
            raise ValueError(f"{kind} has no setting {name!r}; it has {', '.join(known)}")
        kinds = {"int": int, "float": (int, float), "bool": bool, "str": str}[str(known[name])]
        if not isinstance(value, kinds) or (isinstance(value, bool) and known[name] != "bool"):
            raise ValueError(f"{name} must be of type {known[name]}, got {value!r}")
        if not isinstance(value, str) and not abs(value) <= LARGEST_SETTING:
            raise ValueError(f"{name} must be a number of at most {LARGEST_SETTING}, got {str(value)[:30]}")
    try:
        return make(config(**settings))
    except (RuntimeError, TypeError, ArithmeticError) as error:
        raise ValueError(f"no {kind} has these settings: {str(error).splitlines()[0]}") from None


def save_model(model: nn.Module, folder: str | Path, facts: dict | None = None) -> Path:
    """Write a model into ``folder``: its weights, and a config.json with its kind, its settings and further facts.

    >>> import tempfile
    >>> from measureflow.models import AnyDimensionFlow
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     print(type(load_model(save_model(AnyDimensionFlow(), folder))).__name__)
    AnyDimensionFlow
    """
    kind = next((kind for kind, (cls, _, _) in KINDS.items() if type(model) is cls), None)
    if kind is None:
        known = ", ".join(cls.__name__ for cls, _, _ in KINDS.values())
        raise ValueError(f"model must be one of {known}, got {type(model).__name__}")
    config: Any = model.config
    folder = Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    weights = save_tensors(folder / "model.safetensors", model.state_dict())
    sha256 = hashlib.sha256(weights.read_bytes()).hexdigest()  # the doctor compares
    table = {"kind": kind, "settings": dataclasses.asdict(config), "sha256": sha256, "facts": facts or {}}
    write_atomically(folder / "config.json", (json.dumps(table, indent=2) + "\n").encode())
    return folder


def load_model(folder: str | Path) -> nn.Module:
    """The model in ``folder``, in evaluation mode; a ValueError says what is wrong with a broken one."""
    for name in ("config.json", "model.safetensors"):
        if not (Path(folder) / name).is_file():
            raise ValueError(f"no model in {str(folder)!r}: it has no file {name}")
    table = read_json(Path(folder) / "config.json")
    settings = table.get("settings")
    if not isinstance(settings, dict):
        raise ValueError("config.json has no table 'settings'")
    model = build(table.get("kind", ""), settings)
    tensors, _ = load_tensors(Path(folder) / "model.safetensors")
    wanted = model.state_dict()
    if tensors.keys() != wanted.keys():
        odd = sorted(tensors.keys() ^ wanted.keys())
        raise ValueError(f"model.safetensors does not fit config.json: {len(odd)} names differ, such as {odd[0]!r}")
    for name, tensor in tensors.items():
        if tensor.shape != wanted[name].shape or tensor.dtype != wanted[name].dtype:
            raise ValueError(f"{name} should be {tuple(wanted[name].shape)} {wanted[name].dtype}, got {tensor.shape}")
    model.load_state_dict(tensors)
    return model.eval()


def warm_start(model: nn.Module, start: str) -> None:
    """Give a fresh model the weights of another wherever they fit; a shared block is copied into each distinct one.

    Hidden layers may be wider than the other's: their new units read at random and say nothing yet, so the wider model
    begins as the same map. So does one that is deeper than another with distinct layers: each further layer is a copy
    of the last that does nothing yet. ``start`` names a shipped model, or the folder of one.
    """
    source = _tensors(start)
    fitting = {}
    for name, tensor in model.state_dict().items():
        given = source.get(name, source.get(_of_last_block(name, source)))
        if given is not None and given.shape == tensor.shape:
            fitting[name] = given
        elif given is not None and given.ndim == tensor.ndim <= 2 and _is_wider(tensor, given):
            fitting[name] = _widened(tensor, given)
    if not fitting:
        raise ValueError(f"start: no weight of {start!r} fits this model")
    model.load_state_dict(fitting, strict=False)
    given = _count("layers", source)
    if isinstance(model, AnyShapeFlow) and given > 1:
        for layer in model.layers[given:]:
            cast(ShapeLayer, layer).rest()


def _is_wider(tensor: Tensor, given: Tensor) -> bool:
    """Whether one axis is longer, and no other differs."""
    longer = [a - b for a, b in zip(tensor.shape, given.shape, strict=True)]
    return sorted(longer)[:-1] == [0] * (len(longer) - 1) and max(longer) > 0


def _widened(tensor: Tensor, given: Tensor) -> Tensor:
    """Weights of a wider layer: those given, zero for what new units say, and as they are for what new units read."""
    wide = tensor.clone()
    wide[..., given.shape[-1] :] *= float(tensor.ndim == 1)
    wide[tuple(slice(n) for n in given.shape)] = given
    return wide


def digest(start: str) -> str:
    """A digest of the weights ``start`` names, which differs where any of them does."""
    tensors = _tensors(start)
    content = b"".join(name.encode() + tensor.numpy().tobytes() for name, tensor in sorted(tensors.items()))
    return hashlib.sha256(content).hexdigest()[:16]


def _tensors(start: str) -> dict[str, Tensor]:
    """The weights ``start`` names, whatever model they are of."""
    if start in load_pretrained.available():
        with as_file(files("measureflow") / "weights" / start) as folder:
            return load_tensors(folder / "model.safetensors")[0]
    if (Path(start) / "model.safetensors").is_file():
        return load_tensors(Path(start) / "model.safetensors")[0]
    shipped = ", ".join(load_pretrained.available())
    raise ValueError(f"start must be a shipped model ({shipped}) or the folder of a model, got {start!r}")


def _of_last_block(name: str, source: dict[str, Tensor]) -> str:
    """The name in the last block or layer of the source: ``blocks.7.ffn.0.bias`` is ``blocks.0.ffn.0.bias`` if one is
    shared by all."""
    kind = name.split(".")[0]
    return re.sub(r"^(blocks|layers)\.\d+\.", rf"\1.{_count(kind, source) - 1}.", name)


def _count(kind: str, source: dict[str, Tensor]) -> int:
    """How many distinct blocks or layers the source has."""
    return len({name.split(".")[1] for name in source if name.startswith(f"{kind}.")})


class _Pretrained:
    """``load_pretrained(name)`` returns a shipped model ready to use; ``load_pretrained.available()`` lists them.

    >>> type(load_pretrained("any-dimension")).__name__, "any-shape" in load_pretrained.available()
    ('AnyDimensionFlow', True)
    """

    def __call__(self, name: str) -> nn.Module:
        if name not in self.available():
            raise ValueError(f"name must be one of {', '.join(self.available()) or '(none shipped)'}, got {name!r}")
        with as_file(files("measureflow") / "weights" / name) as folder:
            return load_model(folder)

    def available(self) -> tuple[str, ...]:
        """The names of the models that ship with the package."""
        home = files("measureflow") / "weights"
        if not home.is_dir():
            return ()
        return tuple(sorted(entry.name for entry in home.iterdir() if (entry / "config.json").is_file()))


load_pretrained = _Pretrained()
