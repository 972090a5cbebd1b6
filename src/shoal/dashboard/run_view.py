"""One run on the page: its nodes, its settings, and programs by their digest."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from shoal.applications import APPLICATIONS
from shoal.corewar import starter_names
from shoal.dashboard.bounds import DIGEST, NAME, SOURCE, shown, shown_line
from shoal.dashboard.node_view import NodeView
from shoal.dashboard.view import Authors, Kept, View
from shoal.errors import RunError
from shoal.runs import RunFolder
from shoal.runs.search import DomainFacts

MOST_NODES = 64
MOST_LINEAGE, MOST_LINEAGE_CHARACTERS = 20, 256 << 10


class RunView:
    """`facts` are those of a search's domain. Nodes that begin later are found by `look`."""

    def __init__(self, path: Path, title: str = "", facts: DomainFacts | None = None) -> None:
        self.folder = RunFolder.look(path)
        self.title = shown_line(title or "/".join(self.folder.path.parts[-2:]), 100)
        self.facts = facts or DomainFacts()
        self.authors = Authors()
        self.nodes: dict[str, NodeView] = {}
        self.passed_over = 0
        self.config = self.folder.config_table()
        known = APPLICATIONS.get(str(self.config.get("application", "evolve")))
        view: type[View] = View if known is None else known.load("view")
        self.tabs = ("swarm", *view.tabs, *self.facts.views, "budget")

    def look(self) -> None:
        """Finds new nodes, and the sizes of all journals."""
        try:
            names = self.folder.node_names()
        except OSError:
            return
        self.passed_over = max(0, len(names) - MOST_NODES)
        for name in names[:MOST_NODES]:
            if name not in self.nodes:
                try:
                    folder = self.folder.node_folder(name)
                except RunError:  # a name that could lead elsewhere
                    continue
                self.nodes[name] = NodeView(name, folder, self._model_of(name), self.authors)
        for node in self.nodes.values():
            node.look()

    def find(self, digest: str) -> Kept | None:
        """The program, as the node that made it knows it, or else as any other does."""
        found = [one for node in self.nodes.values() if (one := node.view.program(digest)) is not None]
        return next((one for one in found if one.turn), found[-1] if found else None)

    def lineage(self, digest: str) -> list[dict[str, Any]]:
        """The program and its ancestors for the page, the program first; empty if it is not known."""
        return [
            {
                **{name: getattr(one, name) for name in ("digest", "model", "node", "fitness")},
                "source": shown(one.source, SOURCE),
                "round": max(-1, min(one.round, 10**9)),
                "turn": max(0, min(one.turn, 10**12)),
                "parent": one.parent[:DIGEST] if one.parent else None,
            }
            for one in ancestors(self.find, digest)
        ]

    def about(self) -> dict[str, Any]:
        """The small facts about the run that the page needs once. `starters` can be met in a replay."""
        repeats = self.config.get("repeats")
        return {
            "title": self.title,
            "tabs": self.tabs,
            "axes": [
                {"measure": axis.measure, "labels": [axis.label(place) for place in range(axis.bins)]}
                for axis in self.facts.axes
            ],
            "words": {name: getattr(self.facts.words, name) for name in ("program", "programs", "plays")},
            "repeats": repeats if isinstance(repeats, int) else None,
            "starters": starter_names() if "replay" in self.tabs else [],
            "nodes": list(self.nodes),
            "authors": self.authors.names(),
            "passed_over": self.passed_over,
        }

    def _model_of(self, name: str) -> str:
        """Nodes are named by their number and a short form of their model."""
        models, number = self.config.get("models"), name.partition("-")[0]
        if not isinstance(models, list) or not models or not number.isdecimal() or len(number) > 6:
            return ""
        return shown_line(str(models[(int(number) - 1) % len(models)]), NAME)


def ancestors(find: Callable[[str], Kept | None], digest: str) -> list[Kept]:
    """A program, its parent, and so on as far as they are known, within bounds. Never goes in circles."""
    found: dict[str, Kept] = {}
    wanted: str | None = digest
    characters = MOST_LINEAGE_CHARACTERS
    while wanted and wanted not in found and len(found) < MOST_LINEAGE and (one := find(wanted)) is not None:
        characters -= len(one.source)
        if found and characters < 0:
            break
        found[wanted] = one
        wanted = one.parent
    return list(found.values())
