"""The rules of the house: who may import whom, and what must not stand in the source at all."""

from __future__ import annotations

import ast
from dataclasses import fields
from pathlib import Path

from shoal.applications import APPLICATIONS

SOURCE = Path(__file__).parents[1] / "src" / "shoal"

OPEN = {"errors", "files", "lazy", "prctl", "__version__"}
"""Modules that every room may import."""

ARROWS: dict[str, set[str]] = {
    # room: the rooms it may import. `cli` may import every room, and nobody imports `cli`.
    "errors": set(),
    "files": set(),
    "lazy": set(),
    "prctl": set(),
    "swarm": set(),
    "runs": set(),
    "corewar": set(),
    "models": set(),
    "confine": set(),
    "applications": {"runs"},
    "presets": {"runs"},
    "api": {"applications", "evolve", "node", "presets", "runs", "train"},
    "node": {"runs", "swarm"},
    "sim": {"node", "runs", "swarm"},
    "tasks": {"confine", "corewar"},
    "policy": {"models", "runs", "tasks"},
    "evolve": {"node", "models", "policy", "confine", "corewar", "runs", "swarm"},
    "train": {"judge", "node", "models", "policy", "tasks", "runs", "swarm"},
    "judge": {"node", "tasks", "runs", "swarm"},
    "lab": {
        "applications", "evolve", "train", "sim", "node", "models", "policy", "presets", "tasks", "runs",
        "swarm",
    },
    "report": {"applications", "runs", "corewar"},
    "dashboard": {"applications", "runs", "corewar"},
    "trackers": {"applications", "runs"},
}  # fmt: skip

ALIKE: set[str] = {"runs/records.py:Arrived and swarm/authors.py:Received"}
"""Pairs of classes that are alike on purpose: the form in the journal and the one in memory."""

FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__"}
FORBIDDEN_MODULES = {"pickle", "cPickle", "marshal", "shelve", "dill", "cloudpickle", "joblib", "imp", "code"}
FORBIDDEN_ATTRIBUTES = {
    ("os", "system"),
    ("os", "popen"),
    ("torch", "load"),
    ("yaml", "load"),
    ("numpy", "load"),
    ("np", "load"),
}


def modules() -> list[tuple[Path, ast.Module]]:
    found = [(path, ast.parse(path.read_text(encoding="utf-8"))) for path in sorted(SOURCE.rglob("*.py"))]
    assert found
    return found


def room_of(path: Path) -> str:
    part = path.relative_to(SOURCE).parts[0]
    return part.removesuffix(".py")


def imported_rooms(tree: ast.Module) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "relative imports hide the arrows"
            module = node.module or ""
            names |= {f"{module}.{alias.name}" for alias in node.names} if module == "shoal" else {module}
    return {name.split(".")[1] for name in names if name.startswith("shoal.")}


def test_imports_follow_the_arrows() -> None:
    wrong = []
    for path, tree in modules():
        room = room_of(path)
        if room in ("__init__", "__main__", "cli"):
            continue
        assert room in ARROWS, f"{path}: the room {room!r} is not in the plan of the house"
        for other in imported_rooms(tree) - {room} - OPEN:
            if other not in ARROWS[room]:
                wrong.append(f"{path.relative_to(SOURCE)} imports {other}")
    assert not wrong, "\n".join(wrong)


def test_every_part_of_a_manifest_is_there() -> None:
    for application in APPLICATIONS.values():
        for part in fields(application):
            if part.name not in ("name", "title") and getattr(application, part.name):
                assert application.load(part.name) is not None


def schemas() -> dict[str, frozenset[str]]:
    """The fields of every struct and dataclass, by module and class."""
    found = {}
    for path, tree in modules():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                names = [
                    item.target.id
                    for item in node.body
                    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name)
                ]
                found[f"{path.relative_to(SOURCE)}:{node.name}"] = frozenset(names)
    return found


def test_no_schema_is_declared_twice() -> None:
    """Two classes with the same three or more fields, or one of six or more that is a part of another, say the
    same thing in two places."""
    known = sorted(schemas().items())
    twice = [
        f"{one} and {other}"
        for place, (one, fewer) in enumerate(known)
        for other, more in known[place + 1 :]
        if (len(fewer) >= 3 and fewer == more)
        or (min(len(fewer), len(more)) >= 6 and (fewer <= more or more <= fewer))
    ]
    assert not [pair for pair in twice if pair not in ALIKE], twice


def test_nobody_imports_the_command_line() -> None:
    assert not [
        str(path) for path, tree in modules() if room_of(path) != "cli" and "cli" in imported_rooms(tree)
    ]


def test_no_foreign_text_can_reach_an_interpreter() -> None:
    """No unpickling, eval, exec or shell anywhere in the source."""
    wrong = []
    for path, tree in modules():
        for node in ast.walk(tree):
            where = f"{path.relative_to(SOURCE)}:{getattr(node, 'lineno', 0)}"
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in FORBIDDEN_CALLS
            ):
                wrong.append(f"{where} calls {node.func.id}")
            if isinstance(node, ast.Call):
                wrong += [
                    f"{where} uses a shell"
                    for word in node.keywords
                    if word.arg == "shell"
                    and not (isinstance(word.value, ast.Constant) and word.value.value is False)
                ]
            if (
                isinstance(node, ast.Attribute)
                and isinstance(node.value, ast.Name)
                and (node.value.id, node.attr) in FORBIDDEN_ATTRIBUTES
            ):
                wrong.append(f"{where} uses {node.value.id}.{node.attr}")
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            wrong += [f"{where} imports {name}" for name in names if name.split(".")[0] in FORBIDDEN_MODULES]
    assert not wrong, "\n".join(wrong)


def test_modules_fit_in_the_head() -> None:
    too_long = {
        str(path): lines for path, _ in modules() if (lines := len(path.read_text().splitlines())) > 600
    }
    assert not too_long


def test_torch_is_imported_by_policies_and_the_transformers_client_only() -> None:
    """Inside functions too: a program that opens no policy never loads torch."""
    wrong = []
    for path, tree in modules():
        place = path.relative_to(SOURCE).as_posix()
        if place.startswith("policy/") or place == "models/transformers_folder.py":
            continue
        for node in ast.walk(tree):
            names: list[str] = []
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            wrong += [f"{place}:{node.lineno}" for name in names if name.split(".")[0] == "torch"]  # type: ignore[attr-defined]
    assert not wrong
