"""What makes a style: how it begins, what it puts into programs, and how it likes to change them."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from shoal.corewar import Settings

Writer = Callable[[random.Random, Settings], str]
Number = Callable[[random.Random, Settings], int]

EVEN: Mapping[str, int] = MappingProxyType(
    {"constant": 8, "mode": 3, "modifier": 2, "opcode": 2, "insert": 3, "delete": 3, "duplicate": 2,
     "swap": 2, "start": 1, "splice": 4}
)  # fmt: skip
"""How often each kind of change is chosen by a style without a taste of its own."""


@dataclass(frozen=True)
class Style:
    """`writers` make whole programs, `fragments` a few instructions to splice in (both Redcode), `constant`
    draws a number as this style uses it, `taste` weighs the kinds of change, and `boldness` is the
    probability of one change more."""

    name: str
    writers: tuple[Writer, ...]
    fragments: tuple[Writer, ...]
    constant: Number
    taste: Mapping[str, int] = field(default_factory=lambda: EVEN)
    boldness: float = 0.45

    def new(self, rng: random.Random, settings: Settings) -> str:
        return rng.choice(self.writers)(rng, settings)

    def fragment(self, rng: random.Random, settings: Settings) -> str:
        return rng.choice(self.fragments)(rng, settings)


def anywhere(rng: random.Random, settings: Settings) -> int:
    """Any distance in the core."""
    return rng.randrange(settings.core_size)


def nearby(rng: random.Random, settings: Settings) -> int:
    """A small distance, forwards or backwards."""
    return rng.randint(-12, 12) % settings.core_size


def step(rng: random.Random, settings: Settings, spacing: int | None = None) -> int:
    """A step whose multiples hit every `spacing`-th cell of the core; a few cells if not given."""
    size = settings.core_size
    wanted = spacing or rng.choice((1, 2, 4, 5, 8, 10))
    reached = math.gcd(wanted, size)
    for _ in range(64):
        drawn = rng.randrange(max(1, size // 20), max(2, size - size // 20)) // reached * reached
        if drawn and math.gcd(drawn, size) == reached:
            return drawn
    return max(1, reached)


def imp_step(rng: random.Random, settings: Settings, points: int | None = None) -> int:
    """The distance d of an imp ring: points * d = 1 more than a multiple of the core size."""
    size = settings.core_size
    wanted = [points] if points else rng.sample((3, 5, 7, 9, 11, 13), 6)
    for count in wanted:
        if math.gcd(count, size) == 1:
            return pow(count, -1, size)
    return 1


def taste(**more: int) -> dict[str, int]:
    """The even taste with some kinds of change made more or less frequent."""
    return {**EVEN, **more}


def repeat(line: str, times: int) -> str:
    """The same line several times, for use in a program."""
    return "\n".join([line] * times)


def bomb(rng: random.Random) -> str:
    """Something to throw."""
    return rng.choice(
        (
            "dat #0, #0",
            "dat <2667, <1",
            "spl 0, 0",
            "spl #0, 0",
            "jmp 0, <-1",
            f"dat >{rng.randint(1, 99)}, 1",
        )
    )
