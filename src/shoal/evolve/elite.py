"""An elite: a program with the evaluations it went through, and the order that decides between two.

An evaluation is only comparable with others of the same evaluator: the rules, the set of opponents and the
seeds, together as one id. All types are immutable; only an archive's choice of them changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from shoal.errors import ConfigError, DomainError
from shoal.runs.search import Axis, Cell, Evaluation, Origin

EVALUATIONS_KEPT = 8
"""Evaluations that an elite remembers, the newest last. Older ones are forgotten first."""

MIXED = "mixed"
"""The evaluator of an archive that compares numbers of different evaluators, as the DEI paper does."""

UNKNOWN = Origin()


def cell_of(axes: Sequence[Axis], measures: Mapping[str, float]) -> Cell:
    """The cell of a program with these measures."""
    missing = [axis.measure for axis in axes if axis.measure not in measures]
    if missing:
        raise DomainError(
            f"no measure {', '.join(missing)}: the evaluation gives {', '.join(sorted(measures)) or 'none'}"
        )
    return tuple(axis.bin(measures[axis.measure]) for axis in axes)


class Elite(msgspec.Struct, frozen=True):
    """A program, identified by `digest`, the hash of its canonical text. At most one evaluation per
    evaluator, the newest last."""

    digest: str
    source: str
    evaluations: tuple[Evaluation, ...]
    origin: Origin = UNKNOWN

    def evaluation(self, evaluator: str) -> Evaluation:
        """The one by this evaluator; under MIXED the newest."""
        if evaluator == MIXED and self.evaluations:
            return self.evaluations[-1]
        for evaluation in reversed(self.evaluations):
            if evaluation.evaluator == evaluator:
                return evaluation
        raise ConfigError(
            f"program {self.digest[:12]} was not evaluated by {evaluator!r}: evaluate it with the opponents "
            "and seeds of the archive first"
        )

    def with_evaluation(self, evaluation: Evaluation) -> Elite:
        """The same program with one more evaluation; an earlier one of the same evaluator is replaced."""
        others = [old for old in self.evaluations if old.evaluator != evaluation.evaluator]
        return msgspec.structs.replace(self, evaluations=(*others, evaluation)[-EVALUATIONS_KEPT:])


def better(one: Elite, other: Elite, evaluator: str) -> bool:
    """A strict total order on different elites: fitness, then digest, then all the rest as bytes.

    The last step decides only between two records of the same program with the same fitness, made by
    different authors or in different ways.
    """
    ours, theirs = one.evaluation(evaluator).fitness, other.evaluation(evaluator).fitness
    if ours != theirs:
        return ours > theirs
    if one.digest != other.digest:
        return one.digest > other.digest
    return _as_bytes(one) > _as_bytes(other)


def _as_bytes(elite: Elite) -> bytes:
    return msgspec.msgpack.encode(elite, order="deterministic")
