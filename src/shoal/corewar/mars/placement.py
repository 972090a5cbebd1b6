"""The places of the warriors in each round: at random from a seed, as pMARS places them, or in all ways.

Every function returns an array with one row per round and one column per warrior, the first warrior
always at 0: the core is a ring, so only the differences matter.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.corewar.instruction import Opcode
from shoal.corewar.mars.binding import Numbers, library
from shoal.corewar.settings import Settings
from shoal.corewar.warrior import Warrior
from shoal.errors import ConfigError

MOST_FIXED_POSITION = 1 << 30
MOST_ROUNDS = 100_000_000


def random_positions(
    settings: Settings, warriors: int, rounds: int, seed: int, *, first_round: int = 0
) -> Numbers:
    """Every legal arrangement is equally likely; a row depends on (seed, its round) and nothing else."""
    if not -(1 << 63) <= seed < 1 << 64 or first_round < 0:
        raise ConfigError(
            f"seed {seed}, round {first_round}: give a seed of at most 64 bits and a round from 0"
        )
    return _placed("shoal_place_random", settings, warriors, rounds, first_round, int(seed) % (1 << 64))


def pmars_positions(settings: Settings, warriors: int, rounds: int, seed: int) -> Numbers:
    """The places that pMARS chooses when its generator starts at `seed` (see the two functions below)."""
    return _placed("shoal_place_pmars", settings, warriors, rounds, seed)


def _placed(function: str, settings: Settings, warriors: int, rounds: int, *numbers: int) -> Numbers:
    settings.check_room_for(warriors)
    if not 0 <= rounds <= MOST_ROUNDS:
        raise ConfigError(f"{rounds} rounds: give from 0 to {MOST_ROUNDS}")
    positions = np.zeros((rounds, warriors), dtype=np.uint32)
    distance = max(1, settings.distance)  # two warriors never begin in the same cell
    place = getattr(library(), function)
    place(settings.core_size, distance, warriors, int(rounds), *numbers, positions.ctypes.data)
    return positions


def pmars_fixed_seed(settings: Settings, position: int) -> int:
    """The seed that pMARS's option -F gives; a number beyond the last possible position is one too."""
    if not settings.distance <= position <= MOST_FIXED_POSITION:
        raise ConfigError(
            f"fixed position {position}: give a number from {settings.distance} (the distance) "
            f"to {MOST_FIXED_POSITION}"
        )
    return position - settings.distance


# pMARS's checksum numbers opcodes in this order. Its numbers of the modes, here in the order of `Mode`, have
# 0x80 added where the A-field is the pointer.
_CHECKSUM_OPCODES = "MOV ADD SUB MUL DIV MOD JMZ JMN DJN CMP SLT SPL DAT JMP SEQ SNE NOP LDP STP".split()
_CHECKSUM_MODES = (0, 1, 0x82, 2, 0x83, 3, 0x84, 4)


def pmars_series_seed(warriors: Sequence[Warrior]) -> int:
    """The seed that pMARS's option -f gives: it depends on the programs only."""
    fields: list[int] = []
    for i in (i for warrior in warriors for i in warrior.code):
        opcode = _CHECKSUM_OPCODES.index(Opcode(i.opcode).name) << 3 | i.modifier
        fields += (opcode, _CHECKSUM_MODES[i.a_mode], _CHECKSUM_MODES[i.b_mode], i.a, i.b)
    return 16807 * sum(field ^ index for index, field in enumerate(fields)) % 0x7FFFFFFF


def all_positions(settings: Settings) -> Numbers:
    """Every place of the second of two warriors once with each of them moving first (pMARS's -P)."""
    settings.check_room_for(2)
    places = np.arange(settings.distance, settings.core_size - settings.distance + 1, dtype=np.uint32)
    positions = np.zeros((2 * len(places), 2), dtype=np.uint32)
    positions[:, 1] = np.repeat(places, 2)
    return positions
