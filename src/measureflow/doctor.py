"""What is installed, and whether it works: versions, threads, checksums of the weights, problems with known answers."""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Callable
from importlib import metadata
from importlib.resources import files

from packaging.requirements import Requirement

from measureflow import __version__


def diagnose() -> dict:
    """Everything the doctor finds, ready for JSON; ``ok`` sums it up."""
    required, optional = packages()
    missing = [name for name, found in required.items() if found is None]
    checks = [] if missing else [examine(*problem) for problem in (*weights(), *PROBLEMS)]
    return {
        "measureflow": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "required": required,
        "optional": optional,
        "threads": {} if missing else threads(),
        "checks": checks,
        "ok": not missing and all(check["ok"] for check in checks),
    }


def packages() -> tuple[dict[str, str | None], dict[str, str | None]]:
    """The versions of everything our own metadata asks for, required and optional; None where it is not installed."""
    required: dict[str, str | None] = {}
    optional: dict[str, str | None] = {}
    for requirement in requirements():
        always = requirement.marker is None or requirement.marker.evaluate({"extra": ""})
        (required if always else optional)[requirement.name] = installed(requirement.name)
    return required, optional


def requirements() -> list[Requirement]:
    """What our own metadata asks for, extras included."""
    return [Requirement(line) for line in metadata.requires("measureflow") or []]


def installed(name: str) -> str | None:
    """The version of a package, or None."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def threads() -> dict[str, int]:
    """How many threads each engine would use."""
    import numba
    import torch

    return {"cpus": os.cpu_count() or 1, "torch": torch.get_num_threads(), "numba": numba.get_num_threads()}


def examine(name: str, check: Callable[[], tuple[bool, str]]) -> dict:
    """Run one check; an exception in it is reported as a failure."""
    try:
        ok, detail = check()
    except Exception as error:
        ok, detail = False, f"{type(error).__name__}: {error}"
    return {"name": name, "ok": ok, "detail": detail}


def weights() -> list[tuple[str, Callable[[], tuple[bool, str]]]]:
    """One check for each shipped model."""
    from measureflow.models import load_pretrained

    return [(f"weights of {name}", lambda name=name: checksum(name)) for name in load_pretrained.available()]


def checksum(name: str) -> tuple[bool, str]:
    """Whether a shipped weight file has the SHA-256 that was recorded when it was made."""
    folder = files("measureflow") / "weights" / name
    content = (folder / "model.safetensors").read_bytes()
    found, size = hashlib.sha256(content).hexdigest(), f"{len(content) / 1e6:.2f} MB"
    recorded = json.loads((folder / "config.json").read_text(encoding="utf-8")).get("sha256")
    if recorded is None:
        return True, f"{size}, SHA-256 {found[:12]}, no recorded value to compare with"
    return recorded == found, f"{size}, SHA-256 {found[:12]}, expected {recorded[:12]}"


def versions() -> tuple[bool, str]:
    """Whether every package that is installed has a version that our metadata allows."""
    found = [(wanted, installed(wanted.name)) for wanted in requirements()]
    wrong = [(wanted, version) for wanted, version in found if version and not wanted.specifier.contains(version, True)]
    detail = ", ".join(f"{wanted.name} {version} is not {wanted.specifier}" for wanted, version in wrong)
    return not wrong, detail or "all within what pyproject.toml allows"


def transport() -> tuple[bool, str]:
    """Move half the mass from 0 and half from 2 onto one atom at 1: the squared distance is exactly 1."""
    import torch

    from measureflow import measures

    points = torch.tensor([[[0.0], [2.0]]], dtype=torch.float64)
    atoms = torch.tensor([[[1.0]]], dtype=torch.float64)
    cost = float(measures.wasserstein2(points, atoms).cost)
    return abs(cost - 1) < 1e-12, f"squared W2 is {cost:g}, expected 1"


def clusters() -> tuple[bool, str]:
    """Find three clusters that are far apart, without giving their number."""
    import numpy as np

    from measureflow import FlowMixture

    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(center, 0.3, (100, 2)) for center in (-2, 0, 2)])
    found = FlowMixture().fit(X).n_clusters_
    return found == 3, f"{found} clusters found, expected 3"


PROBLEMS: tuple[tuple[str, Callable[[], tuple[bool, str]]], ...] = (
    ("versions", versions),
    ("exact transport", transport),
    ("FlowMixture", clusters),
)
