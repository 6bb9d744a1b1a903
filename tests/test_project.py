"""The project keeps its own promises: a cheap import, one version, a complete lock, an independent oracle."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import measureflow
from measureflow.data import load_faithful, load_penguins

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
LOCK = (ROOT / "requirements.lock").read_text()
LEFT_OUT_OF_THE_LOCK = {"torch"}  # its builds share a version and differ in hash; the Makefile pins it


def normalised(requirement: str) -> str:
    name = re.match(r"[\w.-]+", requirement.strip()).group()
    return re.sub(r"[-_.]+", "-", name).lower()


def locked() -> set[str]:
    return {normalised(line) for line in LOCK.splitlines() if re.match(r"[\w.-]+==", line)}


def test_importing_the_package_is_cheap():
    script = "import sys, measureflow; print(*sorted({m.split('.')[0] for m in sys.modules}))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = {"torch", "numpy", "scipy", "sklearn", "numba", "pandas", "matplotlib"}
    assert heavy.isdisjoint(run.stdout.split())


def test_every_public_name_resolves():
    for name in measureflow.__all__:
        assert getattr(measureflow, name) is not None


def test_the_two_versions_agree():
    assert PROJECT["version"] == measureflow.__version__


def test_the_lock_pins_every_direct_dependency():
    extras = PROJECT["optional-dependencies"].values()
    asked = [*PROJECT["dependencies"], *(line for extra in extras for line in extra)]
    asked += [line for line in (ROOT / "requirements.in").read_text().splitlines() if line and line[0] != "#"]
    assert {normalised(line) for line in asked} - locked() == LEFT_OUT_OF_THE_LOCK


def test_torch_is_pinned_where_it_is_installed():
    asked = re.search(r"^torch==(\S+)", (ROOT / "requirements.in").read_text(), re.MULTILINE).group(1)
    assert f"torch=={asked}" in (ROOT / "Makefile").read_text()


def test_the_lock_names_no_host_and_no_accelerator_packages():
    assert not re.search(r"://|--index-url|--find-links|--trusted-host", LOCK)
    assert not any(name.startswith(("nvidia-", "cuda-", "triton")) for name in locked())


def test_every_locked_package_carries_a_hash():
    for block in re.split(r"\n(?=[\w.-]+==)", LOCK)[1:]:
        assert "--hash=sha256:" in block, block.splitlines()[0]


def test_the_textbook_oracle_imports_nothing_of_ours():
    for oracle in (ROOT / "src/measureflow/circuits").glob("textbook*.py"):
        for node in ast.walk(ast.parse(oracle.read_text())):
            if isinstance(node, ast.Import):
                assert not any(alias.name.startswith("measureflow") for alias in node.names)
            if isinstance(node, ast.ImportFrom):
                assert node.level == 0
                assert not (node.module or "").startswith("measureflow")


def test_old_faithful_is_the_published_table():
    table = load_faithful()
    assert table.shape == (272, 2)
    assert not table.isna().any(axis=None)
    # 272 times the means of R's own copy, 3.487783 and 70.89706 minutes.
    assert round(table["eruptions"].sum() * 1000) == 948_677
    assert table["waiting"].sum() == 19_284


def test_palmer_penguins_is_the_published_table():
    table = load_penguins()
    assert table.shape == (344, 8)
    assert table.isna().sum().sum() == 19  # two birds without four measurements, eleven without a sex
    assert table.groupby("island").size().to_dict() == {"Biscoe": 168, "Dream": 124, "Torgersen": 52}


def test_the_ten_lines_of_the_readme_print_what_they_say(capsys):
    import matplotlib

    matplotlib.use("Agg")
    code = re.search(
        r"```python\n(import torch.*?)```", (ROOT / "README.md").read_text(encoding="utf-8"), re.DOTALL
    ).group(1)
    exec(code, {})
    said = re.search(r"# (\[[\d, ]+\]) groups", code).group(1)
    assert capsys.readouterr().out.strip() == said
