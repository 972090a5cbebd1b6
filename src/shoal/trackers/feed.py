"""Reads the journals of runs and hands their numbers to trackers, each record once.

Nothing is remembered between two feeds, locked, or changed in the run folder. A journal that is damaged is
read up to there, and `troubles` says so; a note that is not understood is counted in `unread`.

Searches are counted in turns, training in steps. A number that a turn does not have (a reward of others where
none were used, the archive while a round is not open) is left out rather than written as 0.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from shoal.applications import APPLICATIONS
from shoal.errors import RunError
from shoal.runs import Follower, Record, RunFolder
from shoal.runs.judging import Counted, JudgeNote
from shoal.runs.records import Note, Started, Stopped, content_of
from shoal.runs.search import SearchNote
from shoal.runs.training import TrainNote
from shoal.trackers.destinations import Tracker

MOST_STEP = (1 << 53) - 1
STEP_VALUES = "reward_local reward_external reward_batch loss gradient_norm used verified tokens".split()


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
        """Reads the records since the last call; returns how many points they gave."""
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


class _Node:
    """One journal. `ended`: the process that wrote it last has stopped, or nothing more can be read."""

    def __init__(self, series: str, journal: Path) -> None:
        self.series = series
        self.follower = Follower(journal)
        self.application = ""
        self.ended = False
        self.trouble = ""

    def read(self) -> Iterator[Record]:
        """New records. Errors of reading are the journal's trouble; those of a tracker are not caught."""
        if self.trouble:
            return
        try:
            yield from self.follower.poll()
        except (RunError, OSError) as error:
            self.trouble, self.ended = str(error), True


def _titles(runs: Sequence[Path]) -> list[str]:
    """A name for each run: its folder's, with a number where two are called the same."""
    names = [path.absolute().name or "run" for path in runs]
    return [
        name if names.count(name) == 1 else f"{name}-{names[: place + 1].count(name)}"
        for place, name in enumerate(names)
    ]


class Point(NamedTuple):
    step: int
    values: dict[str, float]


def point_of(application: str, note: msgspec.Raw) -> Point | None:
    """The numbers of one note, if any; a note of another shape is a `msgspec.MsgspecError`."""
    found = APPLICATIONS.get(application)
    if found is None:
        return None
    point: Point | None = found.load("points")(msgspec.json.decode(note, type=found.load("note")))
    return point


def search_point(note: SearchNote) -> Point | None:
    """`fitness_placed` is that of the program that took a cell, or the mean where a turn placed several."""
    placed = [one.fitness for one in note.placed]
    if note.step == "propose" and note.result in ("new", "improved") and note.fitness is not None:
        placed = [note.fitness]
    return _point(
        note.turn,
        {
            "cells": None if note.opponents is None else note.cells,
            "best": note.best,
            "fitness_placed": statistics.fmean(placed) if placed else None,
        },
    )


def train_point(note: TrainNote) -> Point | None:
    if note.kind == "evaluation":
        return _point(note.step, {"reward_held_out": note.reward_held_out})
    if note.kind != "step":
        return None
    values: dict[str, float | None] = {name: getattr(note, name) for name in STEP_VALUES}
    values["informative_share"] = note.own_informative / note.own if note.own > 0 else None
    return _point(note.step, values)


def judge_point(note: JudgeNote) -> Point | None:
    """The rewards of the questions that were over in this turn."""
    rewards = [event.reward for event in note.events if isinstance(event, Counted)]
    values: dict[str, float | None] = {
        "reward": statistics.fmean(rewards) if rewards else None,
        "counted": len(rewards) or None,
        "open": note.open if note.events else None,
    }
    return _point(note.turn, values)


def _point(step: int, values: dict[str, float | None]) -> Point | None:
    known = {name: float(value) for name, value in values.items() if value is not None}
    finite = {name: value for name, value in known.items() if math.isfinite(value)}
    return Point(step, finite) if finite and 0 <= step <= MOST_STEP else None
