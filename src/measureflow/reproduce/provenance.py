"""Where a result comes from: the code it was computed by, the weights it shows, and the commit."""

from __future__ import annotations

import ast
import hashlib
import json
import subprocess
import sys
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from measureflow.models.pretrained import digest, load_pretrained

ROOM = "measureflow.reproduce"
UNSEEN = {
    "ctx",
    "kind",
    "type_comment",
    "type_params",
    "type_ignores",
}  # fields that say nothing, or not in every Python
SHOWING = {
    "TITLE",
    "budget",
    "findings",
    "render",
    "tabulate",
    "verdicts",
}  # of an artefact: made from its tables alone
DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)


def sources(module: ModuleType | object) -> list[Path]:
    """The files of this room that an artefact reaches by its imports, its own among them.

    The ``__init__`` files of this room are lists of names and compute nothing: a new artefact leaves the others as
    they are.
    """
    first = module.__name__ if isinstance(module, ModuleType) else type(module).__module__
    found, waiting = {}, [first]
    while waiting:
        name = waiting.pop()
        spec = find_spec(name) if name.startswith(f"{ROOM}.") and name not in found else None
        if spec is not None and spec.origin is not None:
            found[name] = Path(spec.origin)
            waiting += _imported(ast.parse(found[name].read_text(encoding="utf-8")))
    return sorted(path for path in found.values() if path.name != "__init__.py")


def _imported(tree: ast.Module) -> list[str]:
    """Names of this room that may be modules: ``from room.a import b`` names room.a, and room.a.b if that is one."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(ROOM):
            names += [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
    return [name for name in names if _is_module(name)]


def _is_module(name: str) -> bool:
    if not name.startswith(f"{ROOM}."):
        return False
    path = Path(sys.modules["measureflow"].__path__[0]).joinpath(*name.split(".")[1:])
    return path.with_suffix(".py").is_file() or (path / "__init__.py").is_file()


def code_digest(module: ModuleType | object) -> str:
    """A digest of the syntax trees an artefact is made by: comments, docstrings and layout do not enter."""
    return _digest(sources(module), set())


def computing_digest(module: ModuleType | object) -> str:
    """The same without the functions that only show: where it is unchanged, the tables of a run still hold."""
    return _digest(sources(module), SHOWING)


def _digest(paths: list[Path], left_out: set[str]) -> str:
    home, total = Path(sys.modules["measureflow"].__path__[0]), hashlib.sha256()
    for path in paths:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in [tree, *(part for part in tree.body if isinstance(part, ast.ClassDef))]:
            node.body = [part for part in node.body if not _names(part) & left_out]
        total.update(json.dumps([path.relative_to(home).as_posix(), _plain(tree)]).encode())
    return total.hexdigest()[:16]


def _names(part: ast.stmt) -> set[str]:
    """The name that a function or an assignment binds."""
    if isinstance(part, ast.FunctionDef):
        return {part.name}
    return {name.id for name in part.targets if isinstance(name, ast.Name)} if isinstance(part, ast.Assign) else set()


def _plain(node) -> list | str:
    """A syntax tree as nested lists, the same in every Python; fields that are empty are left out."""
    if isinstance(node, list):
        return [_plain(item) for item in node]
    if not isinstance(node, ast.AST):
        return repr(node)
    fields = {name: value for name, value in ast.iter_fields(node) if name not in UNSEEN and value not in (None, [])}
    if isinstance(node, DOCUMENTED) and ast.get_docstring(node) is not None:
        fields["body"] = fields["body"][1:]
    return [type(node).__name__, *([name, _plain(value)] for name, value in fields.items())]


def weight_digests(names: tuple[str, ...]) -> dict[str, str]:
    """A digest of each model by name; empty for one whose weights do not ship."""
    return {name: digest(name)[:16] if name in load_pretrained.available() else "" for name in sorted(set(names))}


def commit() -> str:
    """The commit of the working copy, with a plus if files of it have changed; the empty string outside of one."""
    here = Path(__file__).parent
    try:
        head, changes = (_git(here, words) for words in ("rev-parse --short HEAD", "status --porcelain -uno ."))
    except (OSError, subprocess.CalledProcessError):
        return ""
    return head + ("+" if changes else "")


def _git(folder: Path, words: str) -> str:
    run = subprocess.run(["git", *words.split()], cwd=folder, capture_output=True, text=True, check=True)
    return run.stdout.strip()


def shown() -> dict[str, dict[str, dict]]:
    """What the pages show: for each paper and artefact the record of its run."""
    return json.loads((files(ROOM) / "published" / "shown.json").read_text(encoding="utf-8"))


def stale(record: dict, module: ModuleType | object) -> list[str]:
    """Why a record is older than what it shows; empty if it is not."""
    reasons = [] if record["code"] == code_digest(module) else ["its code has changed"]
    now = weight_digests(getattr(module, "WEIGHTS", ()))
    return reasons + [f"the weights {name} have changed" for name in now if now[name] != record["weights"].get(name)]
