"""What a node asks of its verifier, and what comes back: plain data.

A verifier poses questions and scores answers. Rewards are raw scores from 0 to 1; what becomes of them is
the node's business (rewards.py).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

STOPPED = "the verifier was stopped"
SLOW = "too slow"
"""How refusals begin that cost much time: the worker had to be ended, or worked for too long."""


class Problem(msgspec.Struct, frozen=True):
    """One task: a family with its parameters (canonical JSON) and the seed. `version` empty: whatever is
    here."""

    family: str
    version: str
    parameters: str
    seed: int


class Posed(msgspec.Struct, frozen=True, tag="posed"):
    """The question, and one right answer where the family has one to show. `version` and `parameters` are
    what the family calls its own, in canonical form: what goes into a task's name."""

    question: str
    version: str
    parameters: str
    answer: str = ""


class Scored(msgspec.Struct, frozen=True, tag="scored"):
    """One raw score per answer."""

    question: str
    scores: tuple[float, ...]


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """Why nothing was scored: a short phrase that can be counted; after a colon it may tell more."""

    reason: str


class Scoring(msgspec.Struct, frozen=True):
    """What `Verifier.score` is asked."""

    problem: Problem
    answers: tuple[str, ...]
    question: str | None = None
    foreign: bool = True


class Verifier(Protocol):
    """Never raises for what a text or a stranger's parameters hold; whatever goes wrong with them is a
    `Refused` or a score of 0."""

    def pose(self, problem: Problem) -> Posed | Refused: ...

    def score(
        self, problem: Problem, answers: Sequence[str], *, question: str | None = None, foreign: bool = True
    ) -> Scored | Refused:
        """Makes question and key anew and scores the answers. With `question`, refuses "another question" if
        the question here is not that text. `foreign` answers are refused by families whose scorer would
        evaluate them."""

    def score_all(self, scorings: Sequence[Scoring]) -> list[Scored | Refused]:
        """What `score` says about each; together they cost less."""

    def close(self) -> None: ...
