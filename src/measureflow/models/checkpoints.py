"""Weights on disk: written whole or not at all, read with limits, never a pickle."""

from __future__ import annotations

import json
import os
import tempfile
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor

MAX_BYTES = 2**31  # a checkpoint larger than 2 GB is not one of ours
MAX_TENSORS = 10_000
MAX_CONFIG_BYTES = 2**16


def write_atomically(path: str | Path, content: bytes) -> Path:
    """Write a file so that a crash at any moment leaves either the old one or the new one, whole.

    The bytes go to a temporary file beside it, are forced to disk, and take the name in one step. A full disk or
    a read-only folder raises before the old file is touched.
    """
    path = Path(path)
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.chmod(temporary, 0o666 & ~_umask())  # temporary files are private, what they become is not
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
    return path


def _umask() -> int:
    umask = os.umask(0)
    os.umask(umask)
    return umask


def save_tensors(path: str | Path, tensors: dict[str, Tensor], facts: dict | None = None) -> Path:
    """Named tensors and plain facts (anything JSON can hold) in one safetensors file."""
    flat = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    return write_atomically(path, save(flat, metadata={"facts": json.dumps(facts or {})}))


def load_tensors(path: str | Path) -> tuple[dict[str, Tensor], dict]:
    """The tensors and facts of a file, or a ValueError that says what is wrong with it."""
    path = Path(path)
    size = path.stat().st_size
    if size > MAX_BYTES:
        raise ValueError(f"{path.name} has {size} bytes, more than the limit of {MAX_BYTES}")
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            names = list(file.keys())
            if len(names) > MAX_TENSORS:
                raise ValueError(f"{path.name} holds {len(names)} tensors, more than the limit of {MAX_TENSORS}")
            facts = json.loads((file.metadata() or {}).get("facts", "{}"))
            tensors = {name: file.get_tensor(name) for name in names}
    except (SafetensorError, json.JSONDecodeError, UnicodeDecodeError, RecursionError, TypeError, KeyError) as error:
        raise ValueError(f"{path.name} is not a weight file we can read: {error}") from None
    if not isinstance(facts, dict):
        raise ValueError(f"{path.name} has facts that are not a table")
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not torch.isfinite(tensor).all():
            raise ValueError(f"{path.name} holds a value that is not finite, in {name}")
    return tensors, facts


def read_json(path: str | Path) -> dict:
    """A small JSON table from a file, or a ValueError that says what is wrong with it."""
    path = Path(path)
    if path.stat().st_size > MAX_CONFIG_BYTES:
        raise ValueError(f"{path.name} is larger than the limit of {MAX_CONFIG_BYTES} bytes")
    try:
        table = json.loads(path.read_text(encoding="utf-8"))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path.name} is not JSON: {error}") from None
    if not isinstance(table, dict):
        raise ValueError(f"{path.name} must hold a table, got {type(table).__name__}")
    return table
