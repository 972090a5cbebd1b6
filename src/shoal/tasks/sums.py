"""The builtin families: they need nothing but Python, and are easy enough for a model of a million
parameters.

Arithmetic, comparison, copying in reverse and counting: different enough that nodes can have different tasks.
An answer is right or wrong; blanks around it do not matter.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

from shoal.tasks.family import Puzzle
from shoal.tasks.parameters import Letters, Number, Setting, read_settings

MOST_ANSWER = 256


class SmallFamily:
    """A family whose key is the one right answer. Question and answer depend on settings and seed only: from
    version to version, Python keeps the numbers of `random.Random` for whole-number seeds."""

    name: ClassVar[str]
    version = "1"
    safe = True
    most_answer = MOST_ANSWER
    settings: ClassVar[Mapping[str, Setting]]

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        self.parameters: Mapping[str, Any] = read_settings(self.name, parameters, self.settings)

    def pose(self, seed: int) -> Puzzle:
        question, answer = self.make(random.Random(seed), **self.parameters)
        return Puzzle(question, answer, answer)

    def score(self, puzzle: Puzzle, answer: str) -> float:
        return 1.0 if answer.strip() == puzzle.key else 0.0

    def make(self, rng: random.Random, **settings: Any) -> tuple[str, str]:
        """Question and answer."""
        raise NotImplementedError


class Sums(SmallFamily):
    """`3+4=`: a short calculation, from left to right with the product first."""

    name = "sums"
    settings: ClassVar[Mapping[str, Setting]] = {
        "largest": Number(9, 1, 10**9),
        "terms": Number(2, 2, 8),
        "operators": Letters("+", "+-*"),
    }

    def make(self, rng: random.Random, **settings: Any) -> tuple[str, str]:
        numbers = [rng.randint(0, settings["largest"]) for _ in range(settings["terms"])]
        operators = [rng.choice(settings["operators"]) for _ in numbers[1:]]
        text = str(numbers[0])
        total, product = 0, numbers[0]
        for operator, number in zip(operators, numbers[1:], strict=True):
            text += f"{operator}{number}"
            if operator == "*":
                product *= number
            else:
                total, product = total + product, number if operator == "+" else -number
        return f"{text}=", str(total + product)


class Compare(SmallFamily):
    """`larger of 3 and 17:`: two different numbers."""

    name = "compare"
    settings: ClassVar[Mapping[str, Setting]] = {"largest": Number(99, 1, 10**9)}

    def make(self, rng: random.Random, **settings: Any) -> tuple[str, str]:
        first, second = rng.sample(range(settings["largest"] + 1), 2)
        return f"larger of {first} and {second}:", str(max(first, second))


class Reverse(SmallFamily):
    """`reverse 407:`: a string of digits, written backwards."""

    name = "reverse"
    settings: ClassVar[Mapping[str, Setting]] = {
        "digits": Number(3, 1, 64),
        "alphabet": Letters("0123456789", "0123456789abcdefghijklmnopqrstuvwxyz"),
    }

    def make(self, rng: random.Random, **settings: Any) -> tuple[str, str]:
        text = "".join(rng.choice(settings["alphabet"]) for _ in range(settings["digits"]))
        return f"reverse {text}:", text[::-1]


class Count(SmallFamily):
    """`count a in abcaa:`: the occurrences of a letter in a short string."""

    name = "count"
    settings: ClassVar[Mapping[str, Setting]] = {
        "length": Number(6, 1, 128),
        "alphabet": Letters("abc", "abcdefghijklmnopqrstuvwxyz"),
    }

    def make(self, rng: random.Random, **settings: Any) -> tuple[str, str]:
        text = "".join(rng.choice(settings["alphabet"]) for _ in range(settings["length"]))
        letter = rng.choice(settings["alphabet"])
        return f"count {letter} in {text}:", str(text.count(letter))


BUILTIN: Mapping[str, Callable[[Mapping[str, Any] | None], SmallFamily]] = {
    family.name: family for family in (Sums, Compare, Reverse, Count)
}
"""The families of this module: safe, cheap and without dependencies, so they may run in any process."""
