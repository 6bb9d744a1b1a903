"""Does requirements.lock resolve for every Python and platform that we name? Nothing is downloaded but metadata.

uv resolves the lock for each of them, from wheels alone. What comes out must be pinned in the lock: a package that is
missing there would make ``pip install --no-deps`` leave a hole.
"""

import os
import re
import subprocess
import sys
from pathlib import Path

LOCK = Path(__file__).parents[2] / "requirements.lock"
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
PLATFORMS = {  # uv's name for it, and whether we promise it: no torch since 2.2 has wheels for Intel Macs
    "Linux x86_64": ("x86_64-manylinux_2_28", True),
    "Linux arm64": ("aarch64-manylinux_2_28", True),
    "macOS arm64": ("aarch64-apple-darwin", True),
    "macOS x86_64": ("x86_64-apple-darwin", False),
}
PIN = re.compile(r"^([\w.-]+==[\w.+!-]+)", re.MULTILINE)


def resolve(python: str, platform: str) -> tuple[int, str]:
    """How many packages one machine would install, 0 if there is a hole; and what is wrong."""
    uv = Path(sys.executable).parent / "uv"
    options = ["--quiet", "--no-build", "--no-header", "--no-annotate"]
    command = [uv, "pip", "compile", *options, "--python-version", python, "--python-platform", platform, LOCK]
    run = subprocess.run(command, capture_output=True, text=True, env=os.environ | {"MACOSX_DEPLOYMENT_TARGET": "14.0"})
    if run.returncode:
        reason = re.search(r"[Bb]ecause (.*?)(?: and you require|, we can conclude|$)", run.stderr, re.DOTALL)
        return 0, " ".join(reason.group(1).split()) if reason else run.stderr.strip()
    pins = set(PIN.findall(run.stdout))
    missing = pins - set(PIN.findall(LOCK.read_text()))
    return (0, f"not in the lock: {', '.join(sorted(missing))}") if missing else (len(pins), "resolves")


def main() -> int:
    """Print the table; the exit code says whether every promise holds."""
    broken = 0
    print(f"{'platform':<14}{'Python':<8}{'packages':>8}  {'promised':<9} outcome")
    for name, (platform, promised) in PLATFORMS.items():
        for python in PYTHONS:
            count, outcome = resolve(python, platform)
            broken += promised and not count
            print(f"{name:<14}{python:<8}{count:>8}  {'yes' if promised else 'no':<9} {outcome}", flush=True)
    return int(broken > 0)


if __name__ == "__main__":
    sys.exit(main())
