"""ARCHITECTURE.md shows the house as it is: its rooms exist, and each name on its walks is there."""

from __future__ import annotations

import importlib
import re
from functools import reduce
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
NAMES = re.findall(r"`((?:[a-z_]+\.)*[a-z_]+):([A-Za-z_][\w.]*)`", PAGE)


def section(title: str) -> str:
    return PAGE.partition(f"## {title}\n")[2].partition("\n## ")[0]


@pytest.mark.parametrize(("module", "name"), sorted(set(NAMES)))
def test_a_name_on_a_walk_exists(module: str, name: str) -> None:
    found = reduce(getattr, name.split("."), importlib.import_module(f"shoal.{module}"))
    assert found is not None


def test_both_walks_name_every_verb_of_the_loop() -> None:
    for walk, kind in (("The walk of a proposal", "Searcher"), ("The walk of a rollout group", "Trainer")):
        for verb in ("produce", "share", "gather", "verify", "absorb"):
            assert f"{kind}.{verb}`" in section(walk), f"{walk}: {verb}"


def test_every_room_is_on_the_plan_and_nothing_else() -> None:
    plan = section("Rooms")
    shown = set(re.findall(r"(?<![\w/])([a-z]+)/(?= )", plan.partition("An arrow")[0]))
    there = {path.name for path in (ROOT / "src" / "shoal").iterdir() if (path / "__init__.py").is_file()}
    assert shown == there
