"""What a tracker is: somewhere to put numbers by series and step."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import Any, Protocol

from shoal.errors import ConfigError, how_to_install


class Tracker(Protocol):
    """`series` is a node, as "node" or "run/node". Steps of a series do not decrease, except where
    a journal's do. All values are finite. After `close` everything is where it belongs, and nothing may
    be logged."""

    @property
    def name(self) -> str: ...
    def log(self, series: str, step: int, values: Mapping[str, float]) -> None: ...
    def close(self) -> None: ...


class MemoryTracker:
    """A tracker that keeps what it is given, for tests."""

    name = "memory"

    def __init__(self) -> None:
        self.logged: list[tuple[str, int, dict[str, float]]] = []
        self.closed = False

    def log(self, series: str, step: int, values: Mapping[str, float]) -> None:
        self.logged.append((series, step, dict(values)))

    def close(self) -> None:
        self.closed = True


def import_for(tracker: str, module: str) -> Any:
    """A module of an optional package, or a ConfigError that says how to install it."""
    try:
        return import_module(module)
    except ImportError as error:
        missing = error.name or module
    raise ConfigError(f"--to {tracker} needs the package {missing}: {how_to_install(tracker)}")
