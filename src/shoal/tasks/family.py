"""A family of tasks: a generator that makes question and key from a seed, and a scorer.

Both run in a confined worker, never in the node's process. A family is found by its name (registry.py); third
parties register theirs under the entry point `shoal.tasks`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable


@dataclass(frozen=True, slots=True)
class Puzzle:
    """A question with the key to score answers by. `answer` is one right answer, where there is one to show
    (for examples in prompts and for warm-up)."""

    question: str
    key: Any
    answer: str = ""


@runtime_checkable
class Family(Protocol):
    """A generator with its settings.

    `safe`: `score` hands the answer to no interpreter, and so may get a stranger's text. `most_answer`: an
    answer of more characters is wrong. A family may also have `whole_text = True`: then an answer without
    <answer> tags is the whole text and not its first line. Its class may have a static `prepare()`, which
    imports a library that takes seconds.
    """

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]:
        """All settings, defaults included: plain JSON values."""

    @property
    def safe(self) -> bool: ...
    @property
    def most_answer(self) -> int: ...

    def pose(self, seed: int) -> Puzzle:
        """The task of this seed; the same everywhere."""

    def score(self, puzzle: Puzzle, answer: str) -> float:
        """From 0 to 1; 1 is right. May raise for absurd answers: that is a 0."""
