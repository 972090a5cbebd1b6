"""Reads the journals of runs and hands their numbers to a tracker, each record once.

Nothing is remembered between two feeds, nothing is locked and nothing in the run folder is changed. A journal
that is damaged is read up to there, and `troubles` says so; a note that this version does not understand is
counted in `unread`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from shoal.errors import RunError
from shoal.runs import Follower, Record, RunFolder
from shoal.runs.records import Note, Started, Stopped, content_of
from shoal.trackers.base import Tracker
from shoal.trackers.points import point_of


class _Node:
    """One journal. `ended`: the process that wrote it last has stopped, or nothing more can be read."""

    def __init__(self, series: str, journal: Path) -> None:
        self.series = series
        self.follower = Follower(journal)
        self.application = ""
        self.ended = False
        self.trouble = ""

    def read(self) -> Iterator[Record]:
        """New records. What goes wrong here is the journal's trouble; what a tracker raises is not caught."""
        path = self.follower.path
        if self.trouble or not path.exists():
            return
        try:
            yield from self.follower.poll()
        except (RunError, OSError) as error:
            self.trouble, self.ended = str(error), True


class Feed:
    """From `runs`, given with the names of the nodes that each is going to have, to `trackers`. Series are
    named by node, and by run and node where there are several runs."""

    def __init__(self, runs: Sequence[tuple[Path, Sequence[str]]], trackers: Sequence[Tracker]) -> None:
        self.points = 0
        self.unread = 0
        self._trackers = trackers
        self._nodes: list[_Node] = []
        titles = _titles([path for path, _ in runs])
        for title, (path, names) in zip(titles, runs, strict=True):
            folder = RunFolder.look(path)
            for name in names:
                series = f"{title}/{name}" if len(runs) > 1 else name
                self._nodes.append(_Node(series, folder.journal_path(name)))

    def poll(self) -> int:
        """Reads what has been written since the last call; returns how many points that gave."""
        before = self.points
        for node in self._nodes:
            for record in node.read():
                self._take(node, record)
        return self.points - before

    @property
    def ended(self) -> bool:
        """Whether every node has begun and stopped. A run that was killed never says so."""
        return all(node.ended for node in self._nodes)

    @property
    def nodes(self) -> int:
        """Nodes of which anything was read."""
        return sum(1 for node in self._nodes if node.follower.number)

    @property
    def troubles(self) -> list[str]:
        return [node.trouble for node in self._nodes if node.trouble]

    def _take(self, node: _Node, record: Record) -> None:
        if record.kind not in ("note", "started", "stopped"):
            return
        try:
            content = content_of(record)
            point = point_of(node.application, content.note) if isinstance(content, Note) else None
        except (RunError, msgspec.MsgspecError, OverflowError, RecursionError):
            self.unread += 1
            return
        if isinstance(content, Started):
            node.application, node.ended = content.application, False
        elif isinstance(content, Stopped):
            node.ended = True
        elif point is not None:
            self.points += 1
            for tracker in self._trackers:
                tracker.log(node.series, point.step, point.values)


def _titles(runs: Sequence[Path]) -> list[str]:
    """A name for each run: its folder's, with a number where two are called the same."""
    names = [path.absolute().name or "run" for path in runs]
    return [
        name if names.count(name) == 1 else f"{name}-{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]
