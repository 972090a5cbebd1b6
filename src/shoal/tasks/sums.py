"""The builtin families: they need nothing but Python, are easy enough for a model of a million parameters,
and differ enough that nodes can have different tasks."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from functools import partial
from string import ascii_lowercase as letters, digits
from typing import Any

from shoal.tasks.family import FamilySettings, Letters, Number, Puzzle, read_settings


def _sums(rng: random.Random, largest: int, terms: int, operators: str) -> tuple[str, str]:
    """`3+4=`: a short calculation, from left to right with the product first."""
    numbers = [rng.randint(0, largest) for _ in range(terms)]
    signs = [rng.choice(operators) for _ in numbers[1:]]
    text = str(numbers[0])
    total, product = 0, numbers[0]
    for sign, number in zip(signs, numbers[1:], strict=True):
        text += f"{sign}{number}"
        if sign == "*":
            product *= number
        else:
            total, product = total + product, number if sign == "+" else -number
    return f"{text}=", str(total + product)


def _compare(rng: random.Random, largest: int) -> tuple[str, str]:
    """`larger of 3 and 17:`: two different numbers."""
    first, second = rng.sample(range(largest + 1), 2)
    return f"larger of {first} and {second}:", str(max(first, second))


def _reverse(rng: random.Random, digits: int, alphabet: str) -> tuple[str, str]:
    """`reverse 407:`: a string of digits, written backwards."""
    text = "".join(rng.choice(alphabet) for _ in range(digits))
    return f"reverse {text}:", text[::-1]


def _count(rng: random.Random, length: int, alphabet: str) -> tuple[str, str]:
    """`count a in abcaa:`: the occurrences of a letter in a short string."""
    text = "".join(rng.choice(alphabet) for _ in range(length))
    letter = rng.choice(alphabet)
    return f"count {letter} in {text}:", str(text.count(letter))


MAKERS: Mapping[str, tuple[Callable[..., tuple[str, str]], FamilySettings]] = {
    "sums": (
        _sums,
        {"largest": Number(9, 1, 10**9), "terms": Number(2, 2, 8), "operators": Letters("+", "+-*")},
    ),
    "compare": (_compare, {"largest": Number(99, 1, 10**9)}),
    "reverse": (
        _reverse,
        {"digits": Number(3, 1, 64), "alphabet": Letters(digits, digits + letters)},
    ),
    "count": (_count, {"length": Number(6, 1, 128), "alphabet": Letters("abc", letters)}),
}
"""Question and answer of each family, and its settings."""


class SmallFamily:
    """A family whose key is the one right answer; blanks around it do not matter. Question and answer depend
    on settings and seed only: all versions of Python draw the same numbers from whole-number seeds."""

    version = "1"
    safe = True
    most_answer = 256

    def __init__(self, name: str, parameters: Mapping[str, Any] | None = None) -> None:
        self.name = name
        self._make, settings = MAKERS[name]
        self.parameters: Mapping[str, Any] = read_settings(name, parameters, settings)

    def pose(self, seed: int) -> Puzzle:
        question, answer = self._make(random.Random(seed), **self.parameters)
        return Puzzle(question, answer, answer)

    def score(self, puzzle: Puzzle, answer: str) -> float:
        return 1.0 if answer.strip() == puzzle.key else 0.0


BUILTIN: Mapping[str, Callable[[Mapping[str, Any] | None], SmallFamily]] = {
    name: partial(SmallFamily, name) for name in MAKERS
}
"""The families of this module: safe, cheap and without dependencies, so they may run in any process."""
