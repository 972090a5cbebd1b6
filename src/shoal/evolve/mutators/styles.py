"""All styles, and the one that has no ideas, as control.

A writer returns a program in Redcode with constants drawn anew; a fragment is a piece of one.
"""

from __future__ import annotations

import random

from shoal.corewar import Settings
from shoal.evolve.mutators.bombers import BOMBER, CLEAR, VAMPIRE
from shoal.evolve.mutators.scanners import QUICKSCAN, SCANNER
from shoal.evolve.mutators.style import Style, anywhere, nearby, taste
from shoal.evolve.mutators.survivors import IMP, REPLICATOR

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

STYLES = (BOMBER, REPLICATOR, SCANNER, IMP, CLEAR, VAMPIRE, QUICKSCAN, RANDOM)
