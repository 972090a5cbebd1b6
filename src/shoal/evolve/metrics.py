"""Numbers about archives, by pyribs' definitions. With C cells, elites E of fitness f, and an offset o:

    coverage              |E| / C
    QD-score              sum over E of (f - o)
    normalised QD-score   QD-score / C

The offset is the least possible fitness, in Core War 0, so that filling a cell never lowers the score. Sums
are exact (`math.fsum`), so equal archives have equal numbers.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Literal, NamedTuple

from shoal.errors import ConfigError
from shoal.evolve.archive import MIXED, Archive, Elite
from shoal.runs.search import Axis, Cell, Contest, Evaluation


class ArchiveSummary(NamedTuple):
    """The state of an archive in numbers; `best` and `mean` are None for an empty one."""

    filled: int
    cells: int
    coverage: float
    qd_score: float
    normalised_qd_score: float
    best: float | None
    mean: float | None


def coverage(archive: Archive) -> float:
    return len(archive) / archive.capacity


def qd_score(archive: Archive, offset: float = 0.0) -> float:
    return math.fsum(archive.fitness(elite) - offset for elite in archive)


def summarise_archive(archive: Archive, offset: float = 0.0) -> ArchiveSummary:
    values = [archive.fitness(elite) for elite in archive]
    score = qd_score(archive, offset)
    return ArchiveSummary(
        len(archive),
        archive.capacity,
        coverage(archive),
        score,
        score / archive.capacity,
        max(values, default=None),
        math.fsum(values) / len(values) if values else None,
    )


def merge_raw(archives: Sequence[Archive]) -> Archive:
    """The merged archive of the DEI paper: the greatest number of each cell, though of unlike opponents."""
    axes = _common_axes(archives)
    merged = Archive(axes, MIXED)
    for archive in archives:
        for elite in archive:
            merged.add(elite.with_evaluation(archive.evaluation(elite)))
    return merged


def merge_common(
    archives: Sequence[Archive], evaluate: Callable[[Sequence[Elite]], Sequence[Evaluation]]
) -> Archive:
    """The merged archive without that confound: every elite, fitness and measures alike, is evaluated anew by
    one common evaluator and then placed. `evaluate` gets each program once and gives one evaluation each."""
    axes = _common_axes(archives)
    first = {elite.digest: elite for archive in reversed(archives) for elite in archive}
    elites = [first[digest] for digest in sorted(first)]
    evaluations = list(evaluate(elites))
    evaluators = {evaluation.evaluator for evaluation in evaluations}
    if len(evaluations) != len(elites) or len(evaluators) > 1:
        raise ConfigError("a common merge needs one evaluation per program, all by the same evaluator")
    merged = Archive(axes, evaluators.pop() if evaluators else MIXED)
    again = {elite.digest: evaluation for elite, evaluation in zip(elites, evaluations, strict=True)}
    for archive in archives:
        for elite in archive:
            merged.add(elite.with_evaluation(again[elite.digest]))
    return merged


def _common_axes(archives: Sequence[Archive]) -> tuple[Axis, ...]:
    axes = {archive.axes for archive in archives}
    if len(axes) == 1:
        return axes.pop()
    if not axes:
        raise ConfigError("there is no archive to merge")
    raise ConfigError("archives with different axes cannot be merged: place their elites in one grid first")


def niche_novelty(received: Sequence[Cell], previous: Archive | None) -> float | None:
    """DEI's eta: the share of received champions whose cell was empty in the archive of the round before.
    None without any, and in a first round: nothing was there before, so everything would count as new."""
    if not received or previous is None:
        return None
    return sum(previous.get(cell) is None for cell in received) / len(received)


class Contribution(NamedTuple):
    """The cells that one model filled first, holds last, and filled as the only one of all models."""

    first: int = 0
    last: int = 0
    unique: int = 0


def contributions(fills: Iterable[tuple[Cell, str]]) -> dict[str, Contribution]:
    """By model, from cells and the models whose programs came into them, in the order of these events."""
    history: dict[Cell, list[str]] = {}
    for cell, model in fills:
        history.setdefault(cell, []).append(model)
    models = sorted({model for filled in history.values() for model in filled})
    return {
        model: Contribution(
            sum(filled[0] == model for filled in history.values()),
            sum(filled[-1] == model for filled in history.values()),
            sum(set(filled) == {model} for filled in history.values()),
        )
        for model in models
    }


TOLERANCE = 1e-9
"""Mean scores this close are a tie: less than one cycle of one round, more than rounding."""


class Duel(NamedTuple):
    """`own` and `other` are mean scores over `rounds` rounds; `opponent` is a digest."""

    opponent: str
    own: float
    other: float
    rounds: int

    @property
    def outcome(self) -> Literal["win", "tie", "loss"]:
        if abs(self.own - self.other) <= TOLERANCE:
            return "tie"
        return "win" if self.own > self.other else "loss"


def generality(duels: Iterable[Duel], name: str = "") -> Contest:
    """The tally of one program's duels against the programs that are called `name`."""
    outcomes = [duel.outcome for duel in duels]
    wins, ties, losses = (outcomes.count(kind) for kind in ("win", "tie", "loss"))
    most = 3 * len(outcomes)
    return Contest(name, len(outcomes), wins, ties, losses, 100 * (3 * wins + ties) / most if most else 0.0)
