"""The numbers in a node's notes.

Searches are counted in turns, training in steps. A number that a turn does not have (a reward of others where
none were used, the archive while a round is not open) is left out rather than written as 0.
"""

from __future__ import annotations

import math
import statistics
from typing import NamedTuple

import msgspec

from shoal.applications import APPLICATIONS
from shoal.runs.search import SearchNote
from shoal.runs.training import TrainNote

MOST_STEP = (1 << 53) - 1


class Point(NamedTuple):
    step: int
    values: dict[str, float]


def point_of(application: str, note: msgspec.Raw) -> Point | None:
    """The numbers of one note; None where there are none, or the application is not known here. A note of
    another shape is a `msgspec.MsgspecError`."""
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
    return _point(
        note.step,
        {
            "reward_local": note.reward_local,
            "reward_external": note.reward_external,
            "reward_batch": note.reward_batch,
            "loss": note.loss,
            "gradient_norm": note.gradient_norm,
            "used": note.used,
            "verified": note.verified,
            "tokens": note.tokens,
            "informative_share": note.own_informative / note.own if note.own > 0 else None,
        },
    )


def _point(step: int, values: dict[str, float | None]) -> Point | None:
    known = {name: float(value) for name, value in values.items() if value is not None}
    finite = {name: value for name, value in known.items() if math.isfinite(value)}
    return Point(step, finite) if finite and 0 <= step <= MOST_STEP else None
