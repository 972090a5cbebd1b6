"""One scoring at a time, where a test asks for no more."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.tasks.verifier import Problem, Refused, Scored, Scoring, Verifier


def score(
    verifier: Verifier,
    problem: Problem,
    answers: Sequence[str],
    *,
    question: str | None = None,
    foreign: bool = True,
) -> Scored | Refused:
    (found,) = verifier.score([Scoring(problem, tuple(answers), question, foreign)])
    return found
