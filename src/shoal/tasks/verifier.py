"""The requests that a node makes of its verifier, the replies, and the rewards of raw scores: plain data and
pure functions. Any text gives an answer, in time that is linear in the text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Literal, Protocol

import msgspec

AnswerMode = Literal["lenient", "tags"]
"""The answer is in the last <answer>…</answer>; without one, "tags" finds nothing ("")."""
RewardKind = Literal["binary", "raw"]
"""1 for a right answer and 0 for any other (as in the SAPO paper), or the score itself."""

STOPPED = "the verifier was stopped"
SLOW = "too slow"
"""The beginnings of refusals that cost much time: the worker had to be ended, or worked for too long."""
RIGHT = 0.99
"""The raw score from which an answer counts as right. Lower scores are credit for nearly right answers and,
in some generators, for any text at all; a group whose scores differ only in that has nothing to teach."""
MOST_TEXT = 1 << 18
"""Characters of a text that count: the last ones, since the answer comes at the end."""
OPEN, CLOSE = "<answer>", "</answer>"


class Problem(msgspec.Struct, frozen=True):
    """One task: a family with its parameters (canonical JSON) and the seed. Without `version`: any."""

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
    """One raw score per answer, from 0 to 1."""

    question: str
    scores: tuple[float, ...]


class Refused(msgspec.Struct, frozen=True, tag="refused"):
    """No question or score. `reason` is a short phrase that can be counted; more may follow after a colon.
    `uncheckable`: this node is not equipped for the task, which says nothing about its author."""

    reason: str
    uncheckable: bool = False


class Posing(msgspec.Struct, frozen=True, tag="pose"):
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
    """It raises nothing, whatever a stranger's text or parameters hold: it gives `Refused`, or scores 0."""

    def pose(self, problem: Problem) -> Posed | Refused: ...

    def score(self, scorings: Sequence[Scoring]) -> list[Scored | Refused]:
        """Makes question and key anew and scores the answers of each. Many requests together cost less."""

    def close(self) -> None: ...


def extract_answer(text: str, mode: AnswerMode = "lenient", *, whole_text: bool = False) -> str:
    """The content of the last complete <answer>…</answer> span, without blanks around it. Without such a
    span, mode "lenient" takes the first line, so that small models need no tags; or the whole text if the
    family asks for `whole_text` and no tag is closed."""
    tail = text[-MOST_TEXT:]
    end = tail.rfind(CLOSE)
    if whole_text and mode != "tags" and CLOSE not in text:
        return text[:MOST_TEXT].strip()
    start = tail.rfind(OPEN, 0, end) if end >= 0 else -1
    if start >= 0:
        return tail[start + len(OPEN) : end].strip()
    return "" if mode == "tags" else text[:MOST_TEXT].strip().partition("\n")[0].strip()


def clamp(score: float) -> float:
    """The score within [0, 1]; a score that is not a number is 0."""
    return float(min(max(0.0, score), 1.0))


def rewards(scores: Iterable[float], kind: RewardKind = "binary") -> tuple[float, ...]:
    if kind == "raw":
        return tuple([clamp(score) for score in scores])
    return tuple([1.0 if score >= RIGHT else 0.0 for score in scores])
