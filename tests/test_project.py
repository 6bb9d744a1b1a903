"""The project keeps its own promises: a cheap import, one version, a complete lock, an independent oracle."""

import ast
import pkgutil
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from packaging.utils import canonicalize_name
from packaging.version import Version

import measureflow
from measureflow.data import load_faithful, load_penguins

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PROJECT = SETTINGS["project"]
MAKEFILE = (ROOT / "Makefile").read_text()
LOCKS = {name: (ROOT / name).read_text() for name in ("requirements.lock", "requirements-oldest.lock")}


def asked() -> list[Requirement]:
    extras = PROJECT["optional-dependencies"].values()
    return [Requirement(line) for line in (*PROJECT["dependencies"], *(line for extra in extras for line in extra))]


def listed(name: str) -> list[Requirement]:
    lines = (line.partition("#")[0].strip() for line in (ROOT / name).read_text().splitlines())
    return [Requirement(line) for line in lines if line]


def locked(name: str) -> dict[str, set[Version]]:
    """The versions a lock pins, more than one where Pythons or platforms differ."""
    pins: dict[str, set[Version]] = {}
    for package, version in re.findall(r"^([\w.-]+)==([\w.!+-]+)", LOCKS[name], re.MULTILINE):
        pins.setdefault(canonicalize_name(package), set()).add(Version(version))
    return pins


@pytest.mark.parametrize("module", ["measureflow", "measureflow.cli"])
def test_importing_the_package_is_cheap(module):
    script = f"import sys, {module}; print(*sorted({{m.split('.')[0] for m in sys.modules}}))"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    heavy = {"torch", "numpy", "scipy", "sklearn", "numba", "pandas", "matplotlib"}
    assert heavy.isdisjoint(run.stdout.split())


def test_every_public_name_resolves():
    for name in measureflow.__all__:
        assert getattr(measureflow, name) is not None


def test_the_two_versions_agree():
    assert PROJECT["version"] == measureflow.__version__


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_pins_every_direct_dependency_within_its_bounds(lock):
    pins = locked(lock)
    for requirement in (*asked(), *listed(lock.replace(".lock", ".in"))):
        versions = pins[canonicalize_name(requirement.name)]
        assert all(version in requirement.specifier for version in versions), requirement


def test_the_oldest_lock_pins_the_lower_bounds_themselves():
    """Down to the patch: a bound of 1.11 may be met by 1.11.1, where 1.11.0 was withdrawn."""
    pins = locked("requirements-oldest.lock")
    for requirement in asked():
        (bound,) = (Version(part.version) for part in requirement.specifier)
        (version,) = pins[canonicalize_name(requirement.name)]
        assert (version.major, version.minor) == (bound.major, bound.minor), requirement


def test_the_make_targets_and_the_metadata_name_the_same_pythons():
    lowest, highest = re.search(r"\((\d, \d+)\) <= sys.version_info\[:2\] < \((\d, \d+)\)", MAKEFILE).groups()
    said = SpecifierSet(f">={lowest.replace(', ', '.')},<{highest.replace(', ', '.')}")
    assert said == SpecifierSet(PROJECT["requires-python"])


@pytest.mark.parametrize("lock", LOCKS)
def test_a_lock_names_no_host(lock):
    assert not re.search(r"://|--index-url|--find-links|--trusted-host", LOCKS[lock])


@pytest.mark.parametrize("lock", LOCKS)
def test_every_locked_package_carries_a_hash(lock):
    for block in re.split(r"\n(?=[\w.-]+==)", LOCKS[lock])[1:]:
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


def test_the_map_in_the_design_is_the_contract_of_imports():
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    first, second = page.split("```\n")[1].splitlines()
    assert first.split(" <- ")[-1] == second.split(" <- ")[0]
    drawn = [set(layer.split(" | ")) for layer in (*first.split(" <- "), *second.split(" <- ")[1:])]
    contract = SETTINGS["tool"]["importlinter"]["contracts"][0]
    layers = [set(layer.replace("measureflow.", "").split(" | ")) for layer in reversed(contract["layers"])]
    beside = {"data", "simulate", "doctor"}  # no rooms: two tables, and a command each
    assert drawn == [layer - beside for layer in layers if layer - beside]


def test_what_the_design_names_is_there():
    """Dotted names that begin with a room, and files; the walks are ten lines or fewer."""
    page = (ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    home = ROOT / "src" / "measureflow"
    rooms = "|".join(path.name for path in home.iterdir() if path.is_dir())
    names = re.findall(rf"`((?:{rooms})(?:\.\w+)+)`", page)
    files = re.findall(r"`([\w/]+/\w+\.py)`", page)
    assert len(names) > 8
    assert len(files) > 4
    for name in names:
        assert pkgutil.resolve_name(f"measureflow.{name}") is not None
    assert [
        name for name in files if not any((folder / name).is_file() for folder in (home, home / "models", ROOT))
    ] == []
    walks = page.split("## Three walks\n\n")[1].split("\n\n## ")[0].split("\n\n")
    assert [len(walk.splitlines()) <= 10 for walk in walks] == [True, True, True]


def test_what_a_docstring_names_is_there():
    """Names between single backticks are names of the code, of the module or of an argument."""
    known, said = {"csv", "Sniffer"}, []
    for path in (ROOT / "src").rglob("*.py"):
        known |= {path.stem, *path.relative_to(ROOT).parts}
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            known |= {str(getattr(node, field)) for field in ("name", "id", "attr", "arg") if hasattr(node, field)}
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                text = re.sub(r"``[^`]*``|:math:`[^`]*`", "", ast.get_docstring(node) or "")
                said += [(path.name, name) for quote in re.findall(r"`([^`]+)`", text) for name in quote.split(".")]
    assert len(said) > 100
    assert [(file, name) for file, name in said if name.isidentifier() and name not in known] == []


@pytest.mark.parametrize("room", ["src", "tests", "benchmarks", "tools"])
def test_no_module_is_longer_than_300_lines(room):
    lengths = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in (ROOT / room).rglob("*.py")}
    assert lengths
    assert [str(path.relative_to(ROOT)) for path, length in lengths.items() if length > 300] == []


def test_no_room_has_more_modules_than_one_can_hold_in_the_head():
    rooms = [path for path in (ROOT / "src").rglob("*") if path.is_dir() and any(path.glob("*.py"))]
    assert len(rooms) > 20
    assert [room.name for room in rooms if len([*room.glob("*.py")]) > 14] == []
