"""What an archive holds: an elite, the evaluations it went through, and the axes that give it a cell.

An evaluation is only comparable with others of the same evaluator: the rules, the set of opponents and
the seeds, together as one id. All types are immutable; what changes is which of them an archive holds.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence

import msgspec

from shoal.errors import ConfigError, DomainError

Cell = tuple[int, ...]

EVALUATIONS_KEPT = 8
"""Evaluations that an elite remembers, the newest last. Older ones are forgotten first."""

MIXED = "mixed"
"""The evaluator of an archive that compares numbers of different evaluators, as the DEI paper does."""


class Axis(msgspec.Struct, frozen=True):
    """One side of the grid: bin k holds edges[k-1] <= value < edges[k], the last bin all the rest."""

    measure: str
    edges: tuple[float, ...]

    def __post_init__(self) -> None:
        finite = all(math.isfinite(edge) for edge in self.edges)
        if (
            not self.edges
            or not finite
            or any(a >= b for a, b in zip(self.edges, self.edges[1:], strict=False))
        ):
            raise ConfigError(
                f"axis {self.measure!r} has the edges {self.edges!r}: give one or more finite numbers, each "
                "larger than the one before"
            )
        # Whole numbers become floats, so that what was loaded has the same bytes as what was saved.
        msgspec.structs.force_setattr(self, "edges", tuple(map(float, self.edges)))

    @property
    def bins(self) -> int:
        return len(self.edges) + 1

    def bin(self, value: float) -> int:
        if math.isnan(value):
            raise DomainError(f"measure {self.measure!r} is not a number: a program without it has no cell")
        return bisect_right(self.edges, value)

    def label(self, index: int) -> str:
        """The values of a bin for people: "<1", "1–10", "≥10000"."""
        if index == 0:
            return f"<{self.edges[0]:g}"
        if index == len(self.edges):
            return f"≥{self.edges[-1]:g}"
        return f"{self.edges[index - 1]:g}–{self.edges[index]:g}"


def cell_of(axes: Sequence[Axis], measures: Mapping[str, float]) -> Cell:
    """The cell of a program with these measures."""
    missing = [axis.measure for axis in axes if axis.measure not in measures]
    if missing:
        raise DomainError(
            f"no measure {', '.join(missing)}: the evaluation gives {', '.join(sorted(measures)) or 'none'}"
        )
    return tuple(axis.bin(measures[axis.measure]) for axis in axes)


class Evaluation(msgspec.Struct, frozen=True):
    """What one evaluator found: `mean` and unbiased `variance` of the scores of `count` rounds, and the
    measures averaged over the rounds. `opponents` is the id of the opponent set alone."""

    evaluator: str
    opponents: str
    count: int
    mean: float
    variance: float
    measures: dict[str, float]

    def __post_init__(self) -> None:
        if self.count < 1:
            raise DomainError(f"an evaluation of {self.count} rounds: at least one is needed")
        if not (math.isfinite(self.mean) and math.isfinite(self.variance) and self.variance >= 0):
            raise DomainError(
                f"mean {self.mean} with variance {self.variance}: both must be finite, the variance not "
                "negative. A program that cannot be scored is refused when it is parsed"
            )
        bad = [name for name, value in self.measures.items() if not math.isfinite(value)]
        if bad:
            raise DomainError(f"measure {', '.join(bad)} is not finite")
        msgspec.structs.force_setattr(self, "mean", float(self.mean))
        msgspec.structs.force_setattr(self, "variance", float(self.variance))
        measures = {name: float(value) for name, value in self.measures.items()}
        msgspec.structs.force_setattr(self, "measures", measures)

    @property
    def fitness(self) -> float:
        return self.mean

    @property
    def standard_error(self) -> float:
        return math.sqrt(self.variance / self.count)


class Origin(msgspec.Struct, frozen=True):
    """Who made a program: the model, the node and round it ran in, the digest of the parent."""

    model: str = ""
    node: str = ""
    round: int = 0
    parent: str | None = None


UNKNOWN = Origin()


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
