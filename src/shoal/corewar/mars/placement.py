"""Where the warriors stand in each round: at random from a seed, as pMARS places them, or all ways.

Every function returns an array with one row per round and one column per warrior, the first warrior
always at 0: the core is a ring, so only the differences matter.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence

import numpy as np

from shoal.corewar.instruction import Mode, Opcode
from shoal.corewar.mars.engine import Numbers, library
from shoal.corewar.settings import Settings
from shoal.corewar.warrior import Warrior
from shoal.errors import ConfigError

MOST_FIXED_POSITION = 1 << 30
MOST_ROUNDS = 100_000_000


def random_positions(
    settings: Settings, warriors: int, rounds: int, seed: int, *, first_round: int = 0
) -> Numbers:
    """Every legal arrangement is equally likely; a row depends on (seed, its round) and nothing else."""
    positions = _room(settings, warriors, rounds)
    if not -(1 << 63) <= seed < 1 << 64 or first_round < 0:
        raise ConfigError(
            f"seed {seed}, round {first_round}: give a seed of at most 64 bits and a round from 0"
        )
    library().shoal_place_random(
        *_sizes(settings, warriors),
        ctypes.c_uint64(rounds),
        ctypes.c_uint64(first_round),
        ctypes.c_uint64(int(seed) & 0xFFFFFFFFFFFFFFFF),
        ctypes.c_void_p(positions.ctypes.data),
    )
    return positions


def pmars_positions(settings: Settings, warriors: int, rounds: int, seed: int) -> Numbers:
    """The places that pMARS chooses when its generator starts at `seed` (see the two functions below)."""
    positions = _room(settings, warriors, rounds)
    library().shoal_place_pmars(
        *_sizes(settings, warriors),
        ctypes.c_uint64(rounds),
        ctypes.c_int64(seed),
        ctypes.c_void_p(positions.ctypes.data),
    )
    return positions


def pmars_fixed_seed(settings: Settings, position: int) -> int:
    """The seed that pMARS's option -F gives: its number is the second warrior's first position.

    As in pMARS, a number beyond the last possible position is a seed too.
    """
    if not settings.distance <= position <= MOST_FIXED_POSITION:
        raise ConfigError(
            f"fixed position {position}: give a number from {settings.distance} (the distance) "
            f"to {MOST_FIXED_POSITION}"
        )
    return position - settings.distance


# The numbers that enter pMARS's checksum: its own order of opcodes, and of modes without and with the
# A-field as pointer.
_CHECKSUM_OPCODE = {
    name: number
    for number, name in enumerate(
        "MOV ADD SUB MUL DIV MOD JMZ JMN DJN CMP SLT SPL DAT JMP SEQ SNE NOP LDP STP".split()
    )
}
_CHECKSUM_MODE = {
    Mode.IMMEDIATE: 0,
    Mode.DIRECT: 1,
    Mode.B_INDIRECT: 2,
    Mode.B_DECREMENT: 3,
    Mode.B_INCREMENT: 4,
    Mode.A_INDIRECT: 0x80 | 2,
    Mode.A_DECREMENT: 0x80 | 3,
    Mode.A_INCREMENT: 0x80 | 4,
}


def pmars_series_seed(warriors: Sequence[Warrior]) -> int:
    """The seed that pMARS's option -f gives: it depends on the programs only."""
    total = 0
    index = 0
    for warrior in warriors:
        for i in warrior.code:
            opcode = _CHECKSUM_OPCODE[Opcode(i.opcode).name] << 3 | i.modifier
            for field in (opcode, _CHECKSUM_MODE[i.a_mode], _CHECKSUM_MODE[i.b_mode], i.a, i.b):
                total += field ^ index
                index += 1
    return 16807 * total % 0x7FFFFFFF


def all_positions(settings: Settings) -> Numbers:
    """Every place of the second of two warriors once with each of them moving first (pMARS's -P)."""
    settings.check_room_for(2)
    places = np.arange(settings.distance, settings.core_size - settings.distance + 1, dtype=np.uint32)
    positions = np.zeros((2 * len(places), 2), dtype=np.uint32)
    positions[:, 1] = np.repeat(places, 2)
    return positions


def _room(settings: Settings, warriors: int, rounds: int) -> Numbers:
    settings.check_room_for(warriors)
    if not 0 <= rounds <= MOST_ROUNDS:
        raise ConfigError(f"{rounds} rounds: give from 0 to {MOST_ROUNDS}")
    return np.zeros((rounds, warriors), dtype=np.uint32)


def _sizes(settings: Settings, warriors: int) -> tuple[ctypes.c_uint32, ctypes.c_uint32, ctypes.c_uint32]:
    distance = max(1, settings.distance)  # two warriors never begin in the same cell
    return ctypes.c_uint32(settings.core_size), ctypes.c_uint32(distance), ctypes.c_uint32(warriors)
