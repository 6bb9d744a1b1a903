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
COMPUTING = {"compute", "WEIGHTS"}
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
    """A digest of the syntax trees an artefact is made by: comments, docstrings and layout do not enter.

    Of the files it reaches, only the definitions enter that it reaches by name, and what binds no name.
    """
    return _digest(module, set())


def computing_digest(module: ModuleType | object) -> str:
    """The same without the functions that only show: where it is unchanged, the tables of a run still hold."""
    return _digest(module, SHOWING)


def _digest(module: ModuleType | object, left_out: set[str]) -> str:
    home, total = Path(sys.modules["measureflow"].__path__[0]), hashlib.sha256()
    parts = []
    for path in sources(module):
        name = path.relative_to(home).as_posix()
        parts += [(name, part) for part in _parts(ast.parse(path.read_text(encoding="utf-8")), left_out)]
    for name, part in _reached(parts, _file(module), _roots(module)):
        total.update(json.dumps([name, _plain(part)]).encode())
    return total.hexdigest()[:16]


def _file(module: ModuleType | object) -> str:
    name = module.__name__ if isinstance(module, ModuleType) else type(module).__module__
    return "/".join(name.split(".")[1:]) + ".py"


def _roots(module: ModuleType | object) -> set[str]:
    """The names in its own file that an artefact begins from."""
    return COMPUTING | SHOWING if isinstance(module, ModuleType) else {type(module).__name__, "BY_NAME"}


def _parts(tree: ast.Module, left_out: set[str]) -> list[ast.stmt]:
    """The statements of a file, an import for each name; definitions left out are gone, from classes too."""
    body = tree.body[1:] if ast.get_docstring(tree) is not None else tree.body
    parts = []
    for part in body:
        if isinstance(part, ast.ImportFrom):
            parts += [ast.ImportFrom(part.module, [alias], part.level) for alias in part.names]
        else:
            parts.append(part)
        if isinstance(part, ast.ClassDef):
            part.body = [inner for inner in part.body if not _names(inner) & left_out]
    return [part for part in parts if not _names(part) & left_out]


def _reached(parts: list[tuple[str, ast.stmt]], file: str, roots: set[str]) -> list[tuple[str, ast.stmt]]:
    """The parts by these names in a file, those whose names they use, wherever these are, and so on.

    An import is reached by what uses its name in the same file alone.
    """
    bound = [(_names(part), _imports(part)) for _, part in parts]
    mentioned = [{(name, word) for word in _used(part)} for name, part in parts]
    inside = [
        not names or (name == file and bool(names & roots)) for (name, _), (names, _) in zip(parts, bound, strict=True)
    ]
    while True:
        used = set().union(*(pairs for pairs, now in zip(mentioned, inside, strict=True) if now))
        words = {word for _, word in used}
        grown = [
            now or any((name, word) in used if imports else word in words for word in names)
            for (name, _), (names, imports), now in zip(parts, bound, inside, strict=True)
        ]
        if grown == inside:
            return [each for each, now in zip(parts, inside, strict=True) if now]
        inside = grown


def _imports(part: ast.stmt) -> bool:
    return isinstance(part, ast.Import | ast.ImportFrom)


def _names(part: ast.stmt) -> set[str]:
    """The names that a definition, an assignment or an import binds."""
    if isinstance(part, ast.FunctionDef | ast.ClassDef):
        return {part.name}
    if isinstance(part, ast.Import | ast.ImportFrom):
        return {alias.asname or alias.name.partition(".")[0] for alias in part.names}
    targets = part.targets if isinstance(part, ast.Assign) else [part.target] if isinstance(part, ast.AnnAssign) else []
    return {name.id for target in targets for name in ast.walk(target) if isinstance(name, ast.Name)}


def _used(part: ast.stmt) -> set[str]:
    """The names that a statement mentions, attributes among them, and what an import takes from another file."""
    if isinstance(part, ast.ImportFrom):
        return {alias.name for alias in part.names}
    nodes = list(ast.walk(part))
    return {n.id for n in nodes if isinstance(n, ast.Name)} | {n.attr for n in nodes if isinstance(n, ast.Attribute)}


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
