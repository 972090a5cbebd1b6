"""Random warriors that reach the corners which hand-written programs miss."""

from __future__ import annotations

import random

import numpy as np

from shoal.corewar.instruction import Instruction, Mode, Modifier, Opcode
from shoal.corewar.mars.binding import Battle, Series, battle_table, check, decode, play_table, rules_table
from shoal.corewar.settings import Settings
from shoal.corewar.warrior import Warrior

FREQUENT = (Opcode.MOV, Opcode.MOV, Opcode.MOV, Opcode.SPL, Opcode.SPL, Opcode.DJN, Opcode.JMP)
WITHOUT_PSPACE = tuple(opcode for opcode in Opcode if opcode not in (Opcode.LDP, Opcode.STP))


def random_number(rng: random.Random, core_size: int) -> int:
    kind = rng.random()
    if kind < 0.7:
        number = rng.randint(-8, 8)
    elif kind < 0.9:
        number = rng.randrange(core_size)
    else:
        half = core_size // 2
        number = rng.choice((0, 1, -1, half - 1, half, 1 - half))
    return number % core_size


def random_instruction(rng: random.Random, core_size: int, *, pspace: bool = False) -> Instruction:
    if pspace and rng.random() < 0.3:
        opcode = rng.choice((Opcode.LDP, Opcode.STP))
    else:
        opcode = rng.choice(FREQUENT) if rng.random() < 0.4 else rng.choice(WITHOUT_PSPACE)
    return Instruction(
        opcode,
        rng.choice(list(Modifier)),
        rng.choice(list(Mode)),
        random_number(rng, core_size),
        rng.choice(list(Mode)),
        random_number(rng, core_size),
    )


def random_warrior(
    rng: random.Random, core_size: int = 8000, *, most: int = 29, pspace: bool = False, number: int = 0
) -> Warrior:
    """From 2 to `most` instructions of every opcode, modifier and mode, with mostly small numbers."""
    code = tuple(
        random_instruction(rng, core_size, pspace=pspace) for _ in range(rng.randint(min(2, most), most))
    )
    pin = rng.choice((None, None, 1, 2, -1, 2**32 + 1)) if pspace else None
    return Warrior(
        code, rng.randrange(len(code)), pin, name=f"Random {number}", author="Generator", core_size=core_size
    )


def final_core(series: Series, settings: Settings) -> list[Instruction]:
    """The core after the last round of a series, played by the fast loops."""
    check([series], settings)
    core = np.empty(settings.core_size, dtype=np.uint64)
    battle = Battle(series, core=core)
    play_table(rules_table(settings), battle_table(battle.rows()))
    return decode(core)
