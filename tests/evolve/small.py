"""Searches that take a second: a small core, few battles, few calls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Self

from shoal.corewar import Settings
from shoal.evolve.domains.corewar import CoreWar
from shoal.evolve.history import NodeHistory, read_run
from shoal.evolve.prompts import Prompts, generic_prompts
from shoal.evolve.settings import EvolveSettings

RULES = {"core_size": 800, "cycles": 800, "processes": 100, "length": 20, "distance": 20}
FOUR = ("builtin:bomber", "builtin:replicator", "builtin:scanner", "builtin:random")


def small(**changes: Any) -> EvolveSettings:
    chosen: dict[str, Any] = {
        "models": FOUR,
        "calls": 96,
        "rounds": 3,
        "repeats": 3,
        "retest_repeats": 3,
        "options": RULES,
    }
    return EvolveSettings(**{**chosen, **changes})


def histories(folder: Path) -> list[NodeHistory]:
    return read_run(folder).histories


def archives(folder: Path) -> list[bytes]:
    """The final archive of each node, as bytes."""
    return [history.archive.snapshot() for history in histories(folder) if history.archive is not None]


class Brief(CoreWar):
    """Core War with a short prompt, which small language models on a busy machine read in a second."""

    def __init__(self) -> None:
        super().__init__(
            Settings(core_size=800, cycles=800, processes=100, length=20, distance=20, stop="play-on")
        )

    @classmethod
    def from_options(cls, options: Mapping[str, Any], *, threads: int | None = None) -> Self:
        return cls()

    @property
    def prompts(self) -> Prompts:  # type: ignore[override]
        return generic_prompts("corewar", "You write warriors in Redcode.")
