"""Environments in which this machine computes as another would: libraries choose their kernels by what they are told.

A stand-in names the kernels of another processor, or a number of threads. One that this machine cannot run is left out.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).parents[2]
OUT = ROOT / "out" / "processors"
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS", "NUMBA_NUM_THREADS")
CHOICES = (
    *("ATEN_CPU_CAPABILITY", "ONEDNN_MAX_CPU_ISA", "MKL_CBWR", "OPENBLAS_CORETYPE", "LD_PRELOAD"),
    *("NUMBA_CPU_NAME", "NUMBA_CACHE_DIR", "NPY_DISABLE_CPU_FEATURES"),
)

# MKL asks whether a processor is Intel's before it takes Intel's kernels, whose products depend on the threads.
YES = "int mkl_serv_intel_cpu_true(void) { return 1; }\nint mkl_serv_intel_cpu(void) { return 1; }\n"


@dataclass(frozen=True)
class StandIn:
    """Another processor, or another number of threads."""

    name: str
    settings: dict[str, str] = field(default_factory=dict)
    threads: int = 1
    needs: str = ""  # an instruction set, as Linux names it
    usual: bool = False  # it asks for what this processor takes by itself, so that "1 thread" is the same run

    @property
    def stem(self) -> str:
        """The name as part of the name of a file."""
        return re.sub(r"\W+", "-", self.name)

    def environment(self) -> dict[str, str]:
        """What a process needs to be told; choices that the caller's environment makes are forgotten."""
        kept = {name: value for name, value in os.environ.items() if name not in CHOICES}
        threads = dict.fromkeys(THREADS, str(self.threads)) | {"MKL_DYNAMIC": "FALSE"}  # even more than there are cores
        waiting = {"OMP_WAIT_POLICY": "PASSIVE"}  # threads that wait in a loop would take the cores from the others
        return kept | {"SCIPY_ARRAY_API": "1", "MPLBACKEND": "Agg"} | waiting | threads | self.settings


def _flags() -> set[str]:
    """The instruction sets of this processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    return next((set(line.split(":")[1].split()) for line in lines if line.startswith(("flags", "Features"))), set())


def _without_vectors() -> dict[str, str]:
    """NumPy without the instruction sets that it looks for when it starts."""
    import numpy as np

    core = np._core._multiarray_umath  # what np.show_runtime reads
    found = [name for name in core.__cpu_dispatch__ if core.__cpu_features__.get(name)]
    return {"NPY_DISABLE_CPU_FEATURES": " ".join(found)} if found else {}


def _portable() -> dict[str, str]:
    return {"NUMBA_CPU_NAME": "generic", "NUMBA_CACHE_DIR": str(OUT / "numba-generic")}


def _intel() -> dict[str, str] | None:
    """Intel's kernels of MKL on any processor; None without a compiler, or where a library cannot be put in front."""
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or platform.system() != "Linux" or platform.machine() != "x86_64":
        return None
    OUT.mkdir(parents=True, exist_ok=True)
    source, library = OUT / "intel.c", OUT / "intel.so"
    source.write_text(YES)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source], check=True)
    return {"LD_PRELOAD": str(library)}


def all_stand_ins() -> list[StandIn]:
    """Those that this machine can run."""
    oldest = {
        "ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE",
        "OPENBLAS_CORETYPE": "Prescott",
    }  # fmt: skip
    found = [
        *(StandIn(f"{n} thread{'s' * (n > 1)}", threads=n) for n in (1, 2, 3)),
        *(StandIn(f"torch for {name}", {"ATEN_CPU_CAPABILITY": name}, needs=needs)
          for name, needs in (("default", ""), ("avx2", "avx2"), ("avx512", "avx512f"))),
        *(StandIn(f"oneDNN for {name}", {"ONEDNN_MAX_CPU_ISA": name}, needs=needs)
          for name, needs in (("SSE41", ""), ("AVX2", "avx2"), ("AVX512_CORE", "avx512f"))),
        *(StandIn(f"MKL for {name}", {"MKL_CBWR": name}, needs=needs)
          for name, needs in (("COMPATIBLE", ""), ("AVX2", "avx2"), ("AVX512", "avx512f"))),
        *(StandIn(f"OpenBLAS for {name}", {"OPENBLAS_CORETYPE": name}, needs=needs)
          for name, needs in (("Prescott", ""), ("Nehalem", ""), ("Haswell", "avx2"), ("SkylakeX", "avx512f"))),
        StandIn("numba for any processor", _portable()),
        StandIn("NumPy without vectors", _without_vectors()),
        StandIn("all of the oldest", oldest | _portable() | _without_vectors(), threads=2),
    ]  # fmt: skip
    intel = _intel()
    if intel is not None:
        found += [StandIn(f"Intel's MKL, {n} thread{'s' * (n > 1)}", intel, threads=n) for n in (1, 2, 3)]
    flags = _flags()
    usual = _usual(flags)
    return [
        replace(each, usual=bool(each.settings) and each.settings.items() <= usual.items())
        for each in found
        if not each.needs or each.needs in flags
    ]


def _usual(flags: set[str]) -> dict[str, str]:
    """What torch and oneDNN choose on this processor when nobody tells them."""
    import torch

    widest = "AVX512_CORE" if "avx512f" in flags else "AVX2" if "avx2" in flags else "SSE41"
    later = {"avx_vnni", "avx512_vnni", "avx512_bf16", "amx_tile"} & flags  # oneDNN has kernels beyond the widest here
    usual = {"ATEN_CPU_CAPABILITY": torch.backends.cpu.get_cpu_capability().lower()}
    return usual if later else usual | {"ONEDNN_MAX_CPU_ISA": widest}


def of_name(name: str) -> StandIn | None:
    """One of them, where this machine has it."""
    return next((each for each in all_stand_ins() if each.name == name), None)
