"""The answer within a completion, and the reward of a raw score.

Pure functions. Time is linear in the text, and any text gives an answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

AnswerMode = Literal["lenient", "tags"]
"""The answer is in the last <answer>…</answer>; without one, "tags" finds nothing ("")."""
RewardKind = Literal["binary", "raw"]
"""1 for a right answer and 0 for any other (as in the SAPO paper), or the score itself."""

RIGHT = 0.99
"""The raw score from which an answer counts as right. Lower scores are credit for nearly right answers and,
in some generators, for any text at all; a group whose scores differ only in that has nothing to teach."""
MOST_TEXT = 1 << 18
"""Characters of a text that count: the last ones, since the answer comes at the end."""
OPEN, CLOSE = "<answer>", "</answer>"


def extract_answer(text: str, mode: AnswerMode = "lenient", *, whole_text: bool = False) -> str:
    """The content of the last complete <answer>…</answer> span, without blanks around it.

    Without such a span, mode "lenient" takes the first line, so that small models need no tags; or the whole
    text if the family asks for `whole_text` and no tag is closed.
    """
    tail = text[-MOST_TEXT:]
    end = tail.rfind(CLOSE)
    if whole_text and mode != "tags" and CLOSE not in text:
        return text[:MOST_TEXT].strip()
    if end >= 0:
        start = tail.rfind(OPEN, 0, end)
        if start >= 0:
            return tail[start + len(OPEN) : end].strip()
    if mode == "tags":
        return ""
    return text[:MOST_TEXT].strip().partition("\n")[0].strip()


def clamp(score: float) -> float:
    """The score within [0, 1]; a score that is not a number is 0."""
    if 0.0 <= score <= 1.0:
        return float(score)
    return 1.0 if score > 1.0 else 0.0


def rewards(scores: Iterable[float], kind: RewardKind = "binary") -> tuple[float, ...]:
    if kind == "raw":
        return tuple([clamp(score) for score in scores])
    return tuple([1.0 if score >= RIGHT else 0.0 for score in scores])
