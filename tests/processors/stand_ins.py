"""Environments in which this machine computes as another would: libraries choose their kernels by what they are told.

A stand-in is another processor, for which every library takes the kernels it would take there, or another number of
threads. One that this machine cannot run is left out.
"""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
from dataclasses import dataclass, field
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


def _kernels(torch: str, onednn: str, mkl: str, openblas: str) -> dict[str, str]:
    return {
        "ATEN_CPU_CAPABILITY": torch, "ONEDNN_MAX_CPU_ISA": onednn, "MKL_CBWR": mkl, "OPENBLAS_CORETYPE": openblas
    }  # fmt: skip


def all_stand_ins() -> list[StandIn]:
    """Those that this machine can run; processors are named by their makers' names.

    Each processor comes with one number of threads, or two where answers are known to depend on it.
    """
    prescott = _kernels("default", "SSE41", "COMPATIBLE", "Prescott") | _portable() | _without_vectors()
    found = [
        *(StandIn(f"this one, {_threads(n)}", threads=n) for n in (1, 3)),
        StandIn("Prescott, 2 threads", prescott, threads=2),
        StandIn("Nehalem, 1 thread", _kernels("default", "SSE41", "SSE4_2", "Nehalem") | _portable()),
        StandIn("Haswell, 3 threads", _kernels("avx2", "AVX2", "AVX2", "Haswell"), threads=3, needs="avx2"),
        StandIn("Skylake server, 2 threads", _kernels("avx512", "AVX512_CORE", "AVX512", "SkylakeX"), 2, "avx512f"),
    ]
    intel = _intel()
    if intel is not None:
        found += [StandIn(f"Intel's MKL, {_threads(n)}", intel, threads=n) for n in (1, 2)]
    flags = _flags()
    return [each for each in found if not each.needs or each.needs in flags]


def _threads(n: int) -> str:
    return "1 thread" if n == 1 else f"{n} threads"


def of_name(name: str) -> StandIn | None:
    """One of them, where this machine has it."""
    return next((each for each in all_stand_ins() if each.name == name), None)
