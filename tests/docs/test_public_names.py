"""Pages use public names only, and docs/api.md names those that people begin with."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator

import pytest

import shoal
from tests.docs.pages import PAGES, ROOT, Block, blocks

PAGE = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
ROOMS = ("corewar", "evolve", "lab", "models", "node", "policy", "presets", "runs", "swarm", "tasks")
PUBLIC = {"shoal", *(f"shoal.{room}" for room in ROOMS)}
EXCEPTIONS = {"docs/join.md": {"shoal.swarm.transport.tls"}}
"""Deeper modules that a page imports because their names are in no room's `__init__`."""


def imported(text: str) -> Iterator[tuple[int, str, tuple[str, ...]]]:
    """Line, module and names of each import of Shoal."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            found = [(node.module, tuple(alias.name for alias in node.names))]
        elif isinstance(node, ast.Import):
            found = [(alias.name, ()) for alias in node.names]
        else:
            continue
        for module, names in found:
            if module.partition(".")[0] == "shoal":
                yield node.lineno, module, names


def deep_imports(block: Block) -> list[str]:
    allowed = PUBLIC | EXCEPTIONS.get(str(block.page.relative_to(ROOT)), set())
    return [
        f"{block.page.name}:{block.line + line - 1}: {module}"
        for line, module, names in imported(block.text)
        if module not in allowed or (module == "shoal" and not set(names) <= {*shoal.__all__, *ROOMS})
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_python_blocks_import_no_deeper_than_a_room(page) -> None:
    found = [one for block in blocks(page) if block.language == "python" for one in deep_imports(block)]
    assert not found, f"{found}: make the name public in its room's __init__.pyi and import it from there"


def test_a_deeper_import_is_found() -> None:
    for text in (
        "from shoal.evolve.metrics import x",
        "import shoal.evolve.metrics",
        "from shoal import cli",
    ):
        assert deep_imports(Block(PAGES[0], 1, "python", text)) != []


def test_the_page_has_every_name_of_the_package() -> None:
    assert [name for name in shoal.__all__ if f"`{name}" not in PAGE] == []


def test_the_names_of_each_room_exist() -> None:
    rows = re.findall(r"^\| `(shoal\.\w+)` \| (.*?) \|", PAGE, re.MULTILINE)
    assert sorted(room for room, _ in rows) == sorted(PUBLIC - {"shoal"})
    for room, names in rows:
        missing = set(re.findall(r"`(\w+)`", names)) - set(importlib.import_module(room).__all__)
        assert not missing, f"{room} has no {missing}"
