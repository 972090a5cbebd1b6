"""A style: how it begins, what it puts into programs, and how it likes to change them.

A writer returns a program in Redcode with constants drawn anew; a fragment is a piece of one.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import MappingProxyType

from shoal.corewar import Settings

Writer = Callable[[random.Random, Settings], str]
Number = Callable[[random.Random, Settings], int]

EVEN: Mapping[str, int] = MappingProxyType(
    {"constant": 8, "mode": 3, "modifier": 2, "opcode": 2, "insert": 3, "delete": 3, "duplicate": 2,
     "swap": 2, "start": 1, "splice": 4}
)  # fmt: skip
"""The usual weights of the kinds of change."""


@dataclass(frozen=True)
class Style:
    """`writers` make whole programs, `fragments` a few instructions to splice in (both Redcode), `constant`
    draws a number as this style uses it, `taste` weighs the kinds of change, and `boldness` is the
    probability of one change more."""

    name: str
    writers: tuple[Writer, ...]
    fragments: tuple[Writer, ...]
    constant: Number
    taste: Mapping[str, int]
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
    for count in [points] if points else rng.sample((3, 5, 7, 9, 11, 13), 6):
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
    decoy = f"dat >{rng.randint(1, 99)}, 1"
    return rng.choice(("dat #0, #0", "dat <2667, <1", "spl 0, 0", "spl #0, 0", "jmp 0, <-1", decoy))


# ---- random: no ideas, as control ----

_OPCODE_NAMES = "DAT MOV MOV MOV ADD SUB MUL DIV MOD JMP JMZ JMN DJN SEQ SNE SLT SPL SPL NOP".split()
_MODIFIER_NAMES = "A B AB BA F X I I".split()


def _random_line(rng: random.Random, settings: Settings) -> str:
    a, b = ((nearby if rng.random() < 0.7 else anywhere)(rng, settings) for _ in range(2))
    name = f"{rng.choice(_OPCODE_NAMES)}.{rng.choice(_MODIFIER_NAMES)}"
    return f"        {name} {rng.choice('#$*@{<}>')}{a}, {rng.choice('#$*@{<}>')}{b}"


def _random_program(rng: random.Random, settings: Settings) -> str:
    return "\n".join(_random_line(rng, settings) for _ in range(rng.randint(2, 16))) + "\n        end\n"


RANDOM = Style(
    "random", (_random_program,), (_random_line,), anywhere, taste(mode=6, modifier=6, opcode=6), 0.6
)
