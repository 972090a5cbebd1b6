"""One run as a page shows it: its nodes, what it was asked for, and programs by their digest."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from shoal.corewar import Settings, starter_names
from shoal.dashboard.authors import Authors
from shoal.dashboard.node_view import NodeView
from shoal.dashboard.programs import Kept, lineage
from shoal.dashboard.text import SOURCE, shown, shown_line
from shoal.errors import ConfigError, RunError
from shoal.runs import RunFolder

MOST_NODES = 64


class AxisView(msgspec.Struct, frozen=True):
    """One side of the grid and what its bins are called."""

    measure: str
    labels: tuple[str, ...]


class RunView:
    """`axes` name the bins of an archive; without them cells go by their numbers. Nodes that begin later are
    found by `look`."""

    def __init__(self, path: Path, title: str, axes: Sequence[AxisView] = ()) -> None:
        self.folder = RunFolder.look(path)
        self.title = shown_line(title, 100)
        self.axes = tuple(axes)
        self.authors = Authors()
        self.nodes: dict[str, NodeView] = {}
        self.passed_over = 0
        self.config = _config(self.folder)
        self.application = str(self.config.get("application", "evolve"))[:40]
        self.domain = str(self.config.get("domain", "corewar"))[:40] if self.application == "evolve" else ""
        self.rules, self.lenient = _rules(self.config) if self.domain == "corewar" else (None, False)

    def look(self) -> bool:
        """Sees which nodes there are and how far their journals have grown. True: something changed."""
        changed = False
        try:
            names = self.folder.node_names()
        except OSError:
            return False
        self.passed_over = max(0, len(names) - MOST_NODES)
        for name in names[:MOST_NODES]:
            if name not in self.nodes:
                try:
                    folder = self.folder.node_folder(name)
                except RunError:  # a name that could lead elsewhere
                    continue
                self.nodes[name] = NodeView(name, folder, self._model_of(name), self.authors)
                changed = True
        for node in self.nodes.values():
            changed |= node.look()
        return changed

    def find(self, digest: str) -> Kept | None:
        """The program, as the node that made it knows it, or else as any other does."""
        found = None
        for node in self.nodes.values():
            if node.search is not None and (one := node.search.programs.get(digest)) is not None:
                if one.turn:
                    return one
                found = one
        return found

    def lineage(self, digest: str) -> list[dict[str, Any]]:
        """The program and its ancestors for the page, the program first; empty if it is not known."""
        return [
            {
                "digest": one.digest,
                "source": shown(one.source, SOURCE),
                "model": one.model,
                "node": one.node,
                "round": max(-1, min(one.round, 10**9)),
                "turn": max(0, min(one.turn, 10**12)),
                "fitness": one.fitness,
                "parent": one.parent[:128] if one.parent else None,
            }
            for one in lineage(self.find, digest)
        ]

    def about(self) -> dict[str, Any]:
        """What the page needs to know once; small."""
        return {
            "title": self.title,
            "application": self.application,
            "domain": self.domain,
            "axes": msgspec.to_builtins(self.axes),
            "starters": starter_names() if self.rules is not None else [],
            "core": self.rules.core_size if self.rules is not None else 0,
            "nodes": list(self.nodes),
            "authors": self.authors.names(),
            "passed_over": self.passed_over,
        }

    def _model_of(self, name: str) -> str:
        """Nodes are named by their number and a short form of their model."""
        models, number = self.config.get("models"), name.partition("-")[0]
        if not isinstance(models, list) or not models or not number.isdecimal() or len(number) > 6:
            return ""
        return shown_line(str(models[(int(number) - 1) % len(models)]), 120)


def _config(folder: RunFolder) -> dict[str, Any]:
    try:
        return tomllib.loads(folder.config_toml)
    except (OSError, ValueError, RecursionError) as error:
        raise RunError(f"{folder.path / 'config.toml'}: this cannot be read: {error}") from error


def _rules(config: dict[str, Any]) -> tuple[Settings | None, bool]:
    """The rules that the run's battles are played by; None if they are not understood."""
    given = config.get("corewar", {})
    if not isinstance(given, dict):
        return None, False
    names = ("core_size", "cycles", "processes", "length", "distance")
    try:
        rules = Settings(**{name: given[name] for name in names if name in given}, stop="play-on")
    except ConfigError:
        return None, False
    return rules, given.get("lenient") is True
