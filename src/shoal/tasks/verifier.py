"""The requests that a node makes of its verifier, and the replies: plain data.

A verifier poses questions and scores answers. Scores are raw, from 0 to 1; scoring.py makes rewards of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import msgspec

from shoal.tasks.scoring import AnswerMode

STOPPED = "the verifier was stopped"
SLOW = "too slow"
"""The beginnings of refusals that cost much time: the worker had to be ended, or worked for too long."""


class Problem(msgspec.Struct, frozen=True):
    """One task: a family with its parameters (canonical JSON) and the seed. An empty `version` is the one
    that is installed here."""

    family: str
    version: str
    parameters: str
    seed: int


class Posed(msgspec.Struct, frozen=True, tag="posed"):
    """The question, and one right answer where the family has one to show. `version` and `parameters` are
    the family's own, in canonical form, as they stand in a task's name."""

    question: str
    version: str
    parameters: str
    answer: str = ""


class Scored(msgspec.Struct, frozen=True, tag="scored"):
    """One raw score per answer."""

    question: str
    scores: tuple[float, ...]


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """No question or score. `reason` is a short phrase that can be counted; more may follow after a colon."""

    reason: str


class Posing(msgspec.Struct, frozen=True, tag="pose"):
    """Pose this problem."""

    problem: Problem


class Scoring(msgspec.Struct, frozen=True, tag="score"):
    """Score these texts. With `question`, "another question" is refused if the question made here is not that
    text. Families whose scorer would evaluate a text refuse `foreign` ones. `within` says where in a text the
    answer is; None: the text is the answer."""

    problem: Problem
    texts: tuple[str, ...]
    question: str | None = None
    foreign: bool = True
    within: AnswerMode | None = None


TaskRequest = Posing | Scoring
TaskReply = Posed | Scored | Refused


class Verifier(Protocol):
    """It raises nothing for any content of a text or of a stranger's parameters: such content gets a
    `Refused`, or a score of 0."""

    def pose(self, problem: Problem) -> Posed | Refused: ...

    def score(self, scorings: Sequence[Scoring]) -> list[Scored | Refused]:
        """Makes question and key anew and scores the answers of each. Many requests together cost less."""

    def close(self) -> None: ...
