"""From a verifier's raw score to the reward that is learned from: a number from 0 to 1, whatever came."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

RewardKind = Literal["binary", "raw"]

RIGHT = 0.99
"""The raw score from which an answer counts as right. Below it stands credit for nearly right answers and, in
some generators, for any text at all; a group whose scores differ only in that has nothing to teach."""


def clamp(score: float) -> float:
    """The score within [0, 1]; what is not a number is 0."""
    if 0.0 <= score <= 1.0:
        return float(score)
    return 1.0 if score > 1.0 else 0.0


def reward(score: float, kind: RewardKind = "binary") -> float:
    """1 for a right answer and 0 for any other ("binary", as in the paper), or the score itself ("raw")."""
    if kind == "raw":
        return clamp(score)
    return 1.0 if score >= RIGHT else 0.0


def rewards(scores: Iterable[float], kind: RewardKind = "binary") -> tuple[float, ...]:
    return tuple([reward(score, kind) for score in scores])
