"""Families of reasoning-gym, a library of question generators: `gym:base_conversion` and a hundred more.

What is added to the library: the settings of the SAPO paper as defaults for its nine specialties, bounds on
settings and answers, silence on standard output, and a list of the generators whose scorer interprets
nothing (gym_tables.py).
"""

from __future__ import annotations

import dataclasses
import decimal
import importlib
import random
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from shoal.errors import TaskError
from shoal.tasks.family import Puzzle
from shoal.tasks.gym_library import NOT_PLAIN, configuration, library, library_version, plain, silence
from shoal.tasks.gym_tables import PAPER, SAFE

MOST_ANSWER = 512
MOST_OPERATORS = 48
MOST_DEPTH = 24
MOST_STRANGE_NAMES = 2
"""Names in a formula beyond those of the question."""


class GymFamily:
    """One generator with its settings. `version` covers the library, `parameters` all of its settings."""

    most_answer = MOST_ANSWER

    def __init__(self, generator: str, parameters: Mapping[str, Any] | None = None) -> None:
        self.name = f"gym:{generator}"
        self.version = library_version()
        self.safe = generator in SAFE
        self._generator = generator
        self._settings = configuration(generator, {**PAPER.get(generator, {}), **(parameters or {})})
        self.parameters: Mapping[str, Any] = {
            name: known for name, value in self._settings.items() if (known := plain(value)) is not NOT_PLAIN
        }
        self._score = OWN_SCORERS.get(generator, _library_score)

    def pose(self, seed: int) -> Puzzle:
        """The library's item 0 under this seed. Generators that take 32 bits only get the lowest ones, and so
        all of them do."""
        random.seed(seed)  # for generators that draw from the module's own state, if there are any
        decimal.setcontext(decimal.Context())  # some generators change it for all that follow
        with silence():
            dataset = library().create_dataset(self._generator, seed=seed % 2**32, size=1, **self._settings)
            entry = dataset[0]
        answer = entry["answer"]
        if isinstance(answer, str) and len(answer) > self.most_answer:
            raise TaskError(
                f"task {self.name}: the right answer has {len(answer)} characters, and at most "
                f"{self.most_answer} are scored: choose smaller settings"
            )
        key = Key(dataset, entry)
        if answer is None:
            answer = _proven(key)
        return Puzzle(str(entry["question"]), key, answer if isinstance(answer, str) else "")

    def score(self, puzzle: Puzzle, answer: str) -> float:
        """The library's score of the stripped answer."""
        with silence():
            return float(self._score(answer.strip(), puzzle.key))


@dataclasses.dataclass(frozen=True, slots=True)
class Key:
    """What the library scores with: its item, and the dataset that made it."""

    dataset: Any
    entry: Mapping[str, Any]


def _library_score(answer: str, key: Key) -> float:
    return float(key.dataset.score_answer(answer, key.entry))


def _score_matrix(answer: str, key: Key) -> float:
    """Like the library's for rows of numbers (1) and for nested lists in JSON form (0.1)."""
    if answer == key.entry["answer"]:
        return 1.0
    if not answer.startswith("["):
        return 0.0
    try:
        rows = msgspec.json.decode(answer.encode(), type=list[list[int | str]])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return 0.0
    return 0.1 if "\n".join(" ".join(map(str, row)) for row in rows) == key.entry["answer"] else 0.0


def _score_logic(answer: str, key: Key) -> float:
    """The library's score of formulas of reasonable size. Its parser is quadratic and recursive, and its
    truth table has 2^n rows for n names, whatever they are: larger formulas are wrong."""
    depth = deepest = 0
    for character in answer:
        depth += (character == "(") - (character == ")")
        deepest = max(deepest, depth)
    operators = sum(map(answer.count, "¬∧∨→↔"))
    if deepest > MOST_DEPTH or operators > MOST_OPERATORS:
        return 0.0
    read = importlib.import_module("reasoning_gym.logic.propositional_logic").Expression.from_string
    try:
        names = key.dataset._collect_variables([read(answer)])
    except (ValueError, AttributeError):  # the library scores these 0 too
        return 0.0
    if len(names) > len(key.entry["metadata"]["variables"]) + MOST_STRANGE_NAMES:
        return 0.0
    return _library_score(answer, key)


OWN_SCORERS: Mapping[str, Callable[[str, Key], float]] = {
    "binary_matrix": _score_matrix,
    "propositional_logic": _score_logic,
}


def _proven(key: Key) -> str:
    """The example of a task with several right answers, if it is one; the library falls back to others."""
    example = key.entry.get("metadata", {}).get("example_answer")
    if not isinstance(example, str) or len(example) > MOST_ANSWER:
        return ""
    return example if _library_score(example, key) >= 1 else ""
