"""The starter set: one warrior per classic strategy, each with comments that teach it."""

from __future__ import annotations

from importlib import resources

from shoal.corewar.redcode import assemble
from shoal.corewar.settings import Settings
from shoal.corewar.warrior import Warrior
from shoal.errors import ConfigError


def starter_names() -> list[str]:
    """The names of the set, in alphabetical order."""
    files = resources.files(__name__).iterdir()
    return sorted(file.name.removesuffix(".red") for file in files if file.name.endswith(".red"))


def starter_source(name: str) -> str:
    """The source of one warrior, with its comments."""
    if name not in starter_names():
        raise ConfigError(f"no starter warrior is called {name!r}: there are {', '.join(starter_names())}")
    return (resources.files(__name__) / f"{name}.red").read_text(encoding="utf-8")


def starter_set(settings: Settings = Settings()) -> dict[str, Warrior]:
    """All of them, assembled, by name."""
    return {name: assemble(starter_source(name), settings) for name in starter_names()}
