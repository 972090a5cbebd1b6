"""What a node's notes say in numbers. The rooms that write them are not imported: only these fields are read.

Searches are counted in turns, training in steps. What a turn has no number for (a reward of others where none
were used, the archive while a round is not open) is left out rather than written as 0.
"""

from __future__ import annotations

import math
import statistics
from typing import Annotated, NamedTuple

import msgspec

Step = Annotated[int, msgspec.Meta(ge=0, le=(1 << 53) - 1)]


class Point(NamedTuple):
    step: int
    values: dict[str, float]


class _Placed(msgspec.Struct):
    fitness: float = 0.0


class _SearchNote(msgspec.Struct):
    turn: Step
    step: str = ""
    result: str = ""
    fitness: float | None = None
    placed: list[_Placed] = []
    cells: int | None = None
    best: float | None = None


class _Right(msgspec.Struct):
    total: int = 0
    reward: float = 0.0


class _TrainNote(msgspec.Struct):
    step: Step
    kind: str = ""
    own: int = 0
    own_informative: int = 0
    reward_local: float | None = None
    reward_external: float | None = None
    reward_batch: float | None = None
    verified: int = 0
    used: int = 0
    loss: float | None = None
    gradient_norm: float | None = None
    tokens: int = 0
    held_out: dict[str, _Right] = {}


_search = msgspec.json.Decoder(_SearchNote).decode
_train = msgspec.json.Decoder(_TrainNote).decode


def point_of(application: str, note: msgspec.Raw) -> Point | None:
    """The numbers of one note; None where there are none, or the application is not known here. A note of
    another shape is a `msgspec.MsgspecError`."""
    if application == "evolve":
        return _search_point(_search(note))
    if application == "train":
        return _train_point(_train(note))
    return None


def _search_point(note: _SearchNote) -> Point | None:
    """`fitness_placed` is that of the program that took a cell, or the mean where a turn placed several."""
    placed = [one.fitness for one in note.placed]
    if note.step == "propose" and note.result in ("new", "improved") and note.fitness is not None:
        placed = [note.fitness]
    return _point(
        note.turn,
        {
            "cells": note.cells,
            "best": note.best,
            "fitness_placed": statistics.fmean(placed) if placed else None,
        },
    )


def _train_point(note: _TrainNote) -> Point | None:
    if note.kind == "evaluation":
        total = sum(right.total for right in note.held_out.values())
        reward = math.fsum(right.reward for right in note.held_out.values())
        return _point(note.step, {"reward_held_out": reward / total if total > 0 else None})
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
    return Point(step, finite) if finite else None
