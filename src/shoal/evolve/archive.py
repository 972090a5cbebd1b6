"""The MAP-Elites archive: the best program of each cell, under one evaluator, which is the rules, the
opponents and the seeds as one id. Guarantees, each with a property test, for archives with the same axes and
evaluator:

- the content depends on which programs were added, not on their order nor on how often;
- `merge` is commutative, associative and idempotent, and equal to adding everything to one archive;
- an elite leaves its cell only for a better one (`better` is the total order), by `remove` or `rescore`;
- coverage never falls by adding.

The objective moves when opponents change, so `rescore` may lower a fitness, move an elite, or cost it its
place.
"""

from __future__ import annotations

import hashlib
import math
import random
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

import msgspec

from shoal.errors import ConfigError, DomainError, RunError, ShoalError
from shoal.runs.search import Axis, Cell, Evaluation, Origin

Status = Literal["new", "improved", "duplicate", "rejected"]

FORMAT = "shoal.archive"
VERSION = 1
SNAPSHOT_SIZE = 1 << 28
"""Bytes that `load` reads at most."""


EVALUATIONS_KEPT = 8
"""Evaluations that an elite remembers, the newest last. Older ones are forgotten first."""

MIXED = "mixed"
"""The evaluator of an archive that compares numbers of different evaluators, as the DEI paper does."""

UNKNOWN = Origin()


def cell_of(axes: Sequence[Axis], measures: Mapping[str, float]) -> Cell:
    missing = [axis.measure for axis in axes if axis.measure not in measures]
    if missing:
        raise DomainError(
            f"no measure {', '.join(missing)}: the evaluation gives {', '.join(sorted(measures)) or 'none'}"
        )
    return tuple(axis.bin(measures[axis.measure]) for axis in axes)


class Elite(msgspec.Struct, frozen=True):
    """A program, by the hash of its canonical text, with one evaluation per evaluator, the newest last."""

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
    """A strict total order on different elites: fitness, then digest. Of two records of the same program with
    the same fitness, made by different authors or in different ways, all the rest as bytes decides."""
    ours, theirs = ((elite.evaluation(evaluator).fitness, elite.digest) for elite in (one, other))
    return ours > theirs if ours != theirs else _as_bytes(one) > _as_bytes(other)


_as_bytes = msgspec.msgpack.Encoder(order="deterministic").encode


class Placement(NamedTuple):
    """The effect of `add`: "new" filled an empty cell, "improved" replaced `displaced`, "duplicate" found the
    same program in its cell, "rejected" found a better one."""

    status: Status
    cell: Cell
    displaced: Elite | None = None


class Rescore(NamedTuple):
    """Digests of the elites that changed their cell, and the elites that lost their place."""

    moved: tuple[str, ...]
    displaced: tuple[Elite, ...]


class Archive:
    """Cells by the bins of `axes`. Every elite has an evaluation by `evaluator`, which places it."""

    def __init__(self, axes: Sequence[Axis], evaluator: str, elites: Iterable[Elite] = ()) -> None:
        if not axes or len({axis.measure for axis in axes}) != len(axes):
            raise ConfigError("an archive needs one or more axes, each with a measure of its own")
        self.axes = tuple(axes)
        self.evaluator = evaluator
        self._cells: dict[Cell, Elite] = {}
        for elite in elites:
            self.add(elite)

    def __len__(self) -> int:
        return len(self._cells)

    def __iter__(self) -> Iterator[Elite]:
        """The elites in the order of their cells."""
        return (elite for _, elite in self.items())

    def __contains__(self, digest: object) -> bool:
        return any(elite.digest == digest for elite in self._cells.values())

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Archive):
            return NotImplemented
        return (self.axes, self.evaluator, self._cells) == (other.axes, other.evaluator, other._cells)

    __hash__ = None  # type: ignore[assignment]

    @property
    def capacity(self) -> int:
        """The number of cells, filled or not."""
        return math.prod(self.shape)

    @property
    def shape(self) -> tuple[int, ...]:
        return tuple(axis.bins for axis in self.axes)

    def items(self) -> list[tuple[Cell, Elite]]:
        """Cells with their elites, in the order of the cells: the same content, the same list."""
        return sorted(self._cells.items(), key=lambda item: item[0])

    def get(self, cell: Cell) -> Elite | None:
        return self._cells.get(cell)

    def find(self, digest: str) -> Elite | None:
        return next((elite for elite in self if elite.digest == digest), None)

    def evaluation(self, elite: Elite) -> Evaluation:
        """The evaluation that places the elite here."""
        return elite.evaluation(self.evaluator)

    def fitness(self, elite: Elite) -> float:
        return self.evaluation(elite).fitness

    def cell(self, elite: Elite) -> Cell:
        """The cell that the elite belongs in, whether it is there or not."""
        return cell_of(self.axes, self.evaluation(elite).measures)

    @property
    def best(self) -> Elite | None:
        """The champion: the greatest by `better`, so that equal archives have the same."""
        champion: Elite | None = None
        for elite in self._cells.values():
            if champion is None or better(elite, champion, self.evaluator):
                champion = elite
        return champion

    def sample(self, rng: random.Random) -> Elite:
        """A uniformly drawn elite; it depends on the content and on `rng`, not on the history."""
        if not self._cells:
            raise ConfigError("the archive is empty: there is no elite to draw")
        return self._cells[rng.choice(sorted(self._cells))]

    def add(self, elite: Elite) -> Placement:
        """Places the elite if its cell is empty or it is better than the one there."""
        cell = self.cell(elite)
        held = self._cells.get(cell)
        if held is None:
            self._cells[cell] = elite
            return Placement("new", cell)
        if not better(elite, held, self.evaluator):
            return Placement("duplicate" if elite.digest == held.digest else "rejected", cell)
        self._cells[cell] = elite
        return Placement("duplicate" if elite.digest == held.digest else "improved", cell, held)

    def remove(self, digest: str) -> list[Elite]:
        """Empties the cells that hold this program."""
        cells = [cell for cell, elite in self._cells.items() if elite.digest == digest]
        return [self._cells.pop(cell) for cell in sorted(cells)]

    def rescore(self, evaluations: Mapping[str, Evaluation]) -> Rescore:
        """Gives elites new evaluations, by digest, and places all of them anew. A new evaluator needs all
        elites, and becomes the archive's. On an error nothing has changed."""
        evaluators = {evaluation.evaluator for evaluation in evaluations.values()}
        if not evaluators:
            return Rescore((), ())
        if len(evaluators) > 1:
            raise ConfigError(f"re-scored by {len(evaluators)} evaluators at once: only one can be compared")
        (evaluator,) = evaluators
        missing = [elite.digest[:12] for elite in self if elite.digest not in evaluations]
        if missing and evaluator != self.evaluator:
            raise ConfigError(
                f"{len(missing)} elites have no evaluation by the new evaluator ({', '.join(missing[:3])}…): "
                "evaluate them too, or remove them first"
            )
        rescored = Archive(self.axes, evaluator)
        before: dict[str, set[Cell]] = {}
        for cell, elite in self.items():
            before.setdefault(elite.digest, set()).add(cell)
            evaluation = evaluations.get(elite.digest)
            rescored.add(elite if evaluation is None else elite.with_evaluation(evaluation))
        after = {elite.digest: cell for cell, elite in rescored.items()}
        displaced = {elite.digest: elite for elite in self if elite.digest not in after}
        self.evaluator, self._cells = evaluator, rescored._cells
        return Rescore(
            tuple(digest for digest, cell in sorted(after.items()) if cell not in before[digest]),
            tuple(displaced[digest] for digest in sorted(displaced)),
        )

    def merge(self, other: Archive) -> Archive:
        """A new archive with the better elite of each cell."""
        if (self.axes, self.evaluator) != (other.axes, other.evaluator):
            raise ConfigError(
                "archives with different axes or evaluators cannot be merged: their numbers do not compare. "
                "Re-score both with common opponents and seeds first"
            )
        merged = Archive(self.axes, self.evaluator)
        merged._cells = dict(self._cells)
        for elite in other:
            merged.add(elite)
        return merged

    def snapshot(self) -> bytes:
        """The archive as JSON with a checksum; equal archives give equal bytes."""
        body = msgspec.json.encode(_Body(self.axes, self.evaluator, tuple(self)), order="deterministic")
        return msgspec.json.encode(_Snapshot(FORMAT, VERSION, _checksum(body), msgspec.Raw(body))) + b"\n"


def load(snapshot: bytes) -> Archive:
    """The archive of a snapshot. Any other bytes raise RunError."""
    if len(snapshot) > SNAPSHOT_SIZE:
        raise RunError(f"archive snapshot of {len(snapshot)} bytes: at most {SNAPSHOT_SIZE} are read")
    try:
        outer = msgspec.json.decode(snapshot, type=_Snapshot)
        if outer.format != FORMAT:
            raise RunError(f"this is {outer.format!r}, not an archive snapshot ({FORMAT!r})")
        if outer.version != VERSION:
            raise RunError(
                f"archive snapshot of version {outer.version}: this release reads version {VERSION}; "
                "use the release that wrote it"
            )
        if _checksum(bytes(outer.body)) != outer.checksum:
            raise RunError("archive snapshot is damaged: its checksum does not fit; use an older one")
        body = msgspec.json.decode(outer.body, type=_Body)
        archive = Archive(body.axes, body.evaluator, body.elites)
    except RunError:
        raise
    except (msgspec.MsgspecError, ShoalError, UnicodeDecodeError, RecursionError) as error:
        raise RunError(f"archive snapshot cannot be read: {error}") from error
    if len(archive) != len(body.elites):
        raise RunError("archive snapshot is damaged: two of its elites are in one cell")
    return archive


class _Body(msgspec.Struct, frozen=True):
    axes: tuple[Axis, ...]
    evaluator: str
    elites: tuple[Elite, ...]


class _Snapshot(msgspec.Struct, frozen=True):
    format: str
    version: int
    checksum: str
    body: msgspec.Raw


def _checksum(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
