"""A verifier in the node's own process, for the families that need no isolation: ours without dependencies.

It is what the simulator and tests use. Everything else is refused, because nothing here limits or confines.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from shoal.errors import TaskError
from shoal.train.tasks.base import Family
from shoal.train.tasks.sums import BUILTIN
from shoal.train.verifier.base import Posed, Problem, Refused, Scored, Scoring
from shoal.train.verifier.judging import Judge


class DirectVerifier:
    """Poses and scores `sums`, `compare`, `reverse` and `count`."""

    def __init__(self) -> None:
        self._judge = Judge(_open_builtin)

    def pose(self, problem: Problem) -> Posed | Refused:
        return self._judge.pose(problem)

    def score(
        self, problem: Problem, answers: Sequence[str], *, question: str | None = None, foreign: bool = True
    ) -> Scored | Refused:
        return self._judge.score(problem, answers, question=question, foreign=foreign)

    def score_all(self, scorings: Sequence[Scoring]) -> list[Scored | Refused]:
        return [
            self._judge.score(one.problem, one.answers, question=one.question, foreign=one.foreign)
            for one in scorings
        ]

    def close(self) -> None:
        pass


def _open_builtin(name: str, parameters: Mapping[str, object]) -> Family:
    if name not in BUILTIN:
        raise TaskError(f"{name} needs the worker's isolation; without it there are {', '.join(BUILTIN)}")
    return BUILTIN[name](parameters)
