"""The wall around the C engine: the compiled library, the tables it reads, and the checks before a call.

Everything is checked before it crosses, so that no input can make the engine read or write outside its
memory. The interpreter lock is released during a call; a call keeps no state.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Sequence
from ctypes import c_int64, c_uint32, c_uint64, c_void_p
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

import numpy as np
import numpy.typing as npt

from shoal.corewar.instruction import Instruction, Mode, Modifier, Opcode
from shoal.corewar.settings import MAX_WARRIORS, Settings
from shoal.corewar.warrior import Warrior
from shoal.errors import DISTRIBUTION, ConfigError, ShoalError

Numbers = npt.NDArray[np.uint32]
Cells = npt.NDArray[np.uint64]
Structs = npt.NDArray[np.void]

LIBRARY = Path(__file__).parent / ("_engine.dll" if sys.platform == "win32" else "_engine.so")
ABI_VERSION = 2

_ARGUMENTS = {
    "shoal_encode": (c_void_p, c_uint32, c_void_p),
    "shoal_decode": (c_void_p, c_uint32, c_void_p),
    "shoal_play": (c_void_p, c_void_p, c_uint64),
    "shoal_record": (c_void_p, c_void_p, c_uint64, c_void_p, c_uint64, c_void_p, c_void_p),
    "shoal_place_random": (c_uint32, c_uint32, c_uint32, c_uint64, c_uint64, c_uint64, c_void_p),
    "shoal_place_pmars": (c_uint32, c_uint32, c_uint32, c_uint64, c_int64, c_void_p),
}

# The structs of engine.c: unsigned 32-bit numbers and pointers in their order.
_U4, _POINTER = np.uint32, np.uintp
_RULES = np.dtype(
    [(name, _U4) for name in ("size", "cycles", "processes", "pspace", "stop_at_decision", "statistics")]
    + [("abandon", _POINTER)]
)
_PROGRAM = np.dtype([("code", _POINTER), ("length", _U4), ("start", _U4), ("pin", np.int32), ("unused", _U4)])
_ARRAYS = ("programs", "positions", "executed", "spawned", "processes", "coverage", "core")
_BATTLE = np.dtype(
    [(name, _POINTER) for name in _ARRAYS]
    + [(name, _U4) for name in ("warriors", "rounds", "first_round", "unused")]
)


class EngineError(ShoalError):
    """The compiled engine is missing, of another version, or out of memory."""


@cache
def library() -> ctypes.CDLL:
    """The compiled engine; raises EngineError with the remedy where it cannot be used."""
    try:
        engine = ctypes.CDLL(str(LIBRARY))
    except OSError as error:
        raise EngineError(
            f"the compiled Core War engine cannot be loaded from {LIBRARY} ({error}): "
            f"install it again with a C compiler present (pip install --force-reinstall {DISTRIBUTION})"
        ) from error
    version = engine.shoal_abi_version()
    if version != ABI_VERSION:
        raise EngineError(
            f"the compiled Core War engine has interface {version}, this version of shoal needs "
            f"{ABI_VERSION}: install shoal again so that it is compiled anew"
        )
    for name, arguments in _ARGUMENTS.items():
        getattr(engine, name).argtypes = arguments
    engine.shoal_build.restype = ctypes.c_char_p
    return engine


def build() -> str:
    """The compiler and the dispatch of the engine, in words."""
    text: bytes = library().shoal_build()
    return text.decode()


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Rounds of one battle: a row of positions per round, a column per warrior. The first mover is warrior
    `(first_round + row) % len(warriors)`: it changes every round."""

    warriors: tuple[Warrior, ...]
    positions: Numbers
    first_round: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """The engine's counts, all of shape (rounds, warriors). `executed`: instructions, including the one that
    killed the warrior or ended the round. `processes`: left at the end; 0 means dead. `spawned`: processes
    added by SPL. `coverage`: distinct addresses that a process was ever queued at (the start counts once it
    is queued again); None where statistics were off."""

    executed: Numbers
    processes: Numbers
    spawned: Numbers
    coverage: Numbers | None


def check(series: Sequence[Series], settings: Settings) -> None:
    """Raises ConfigError where a program cannot be loaded under `settings`, or a position is not usable."""
    for one in series:
        _check_positions(one, settings)
    for warrior in {id(warrior): warrior for one in series for warrior in one.warriors}.values():
        _check_warrior(warrior, settings)


def _check_warrior(warrior: Warrior, settings: Settings) -> None:
    name, size = repr(warrior.name), settings.core_size
    if not isinstance(warrior.code, tuple) or not all(isinstance(i, Instruction) for i in warrior.code):
        raise ConfigError(f"the code of {name} is not a tuple of instructions")
    if warrior.core_size != size:
        raise ConfigError(
            f"{name} was assembled for core size {warrior.core_size}, the battle has {size}: assemble it "
            "with the settings of the battle"
        )
    if len(warrior) > settings.length:
        raise ConfigError(
            f"{name} has {len(warrior)} instructions, more than the {settings.length} allowed: "
            "shorten it or raise the length"
        )
    if not isinstance(warrior.start, int) or not 0 <= warrior.start < size:
        raise ConfigError(f"{name} starts at {warrior.start}: give a number from 0 to {size - 1}")
    if any(not (0 <= i.a < size and 0 <= i.b < size) for i in warrior.code):
        raise ConfigError(f"{name} holds a number outside of the core: reduce it modulo the core size")


def _check_positions(one: Series, settings: Settings) -> None:
    warriors, positions = len(one.warriors), one.positions
    if not 1 <= warriors <= MAX_WARRIORS:
        raise ConfigError(f"{warriors} warriors: a battle takes from 1 to {MAX_WARRIORS}")
    if positions.ndim != 2 or positions.shape[1] != warriors:
        raise ConfigError(
            f"positions have shape {positions.shape}: give one row per round with {warriors} numbers"
        )
    if positions.dtype != np.uint32 or not positions.flags.c_contiguous:
        raise ConfigError(f"positions are of type {positions.dtype}: give a contiguous array of uint32")
    if positions.size and int(positions.max()) >= settings.core_size:
        raise ConfigError(
            f"position {int(positions.max())} is outside of the core: "
            f"give numbers from 0 to {settings.core_size - 1}"
        )


@lru_cache(maxsize=256)
def encode(code: tuple[Instruction, ...]) -> Cells:
    """The cells of a program as the engine holds them."""
    if not all(len(i) == 6 and all(isinstance(number, int) for number in i) for i in code):
        raise ConfigError("a program holds something that is not an Instruction of whole numbers")
    try:
        rows = np.array(code, dtype=np.int32).reshape(-1, 6)
    except OverflowError:
        raise ConfigError("a program holds a number that is far out of range") from None
    cells = np.empty(len(rows), dtype=np.uint64)
    if library().shoal_encode(rows.ctypes.data, len(rows), cells.ctypes.data):
        raise ConfigError("a program holds an opcode, modifier, mode or number that does not exist")
    cells.flags.writeable = False
    return cells


def decode(cells: Cells) -> list[Instruction]:
    """The instructions of cells, the inverse of `encode`."""
    rows = np.empty((len(cells), 6), dtype=np.int32)
    library().shoal_decode(cells.ctypes.data, len(cells), rows.ctypes.data)
    return [
        Instruction(Opcode(op), Modifier(modifier), Mode(a_mode), a, Mode(b_mode), b)
        for op, modifier, a_mode, a, b_mode, b in rows.tolist()
    ]


def rules_table(
    settings: Settings, statistics: bool = False, abandon: npt.NDArray[np.int32] | None = None
) -> Structs:
    """The rules of a call. The engine gives up after the current round once `abandon` is not 0."""
    sizes = (settings.core_size, settings.cycles, settings.processes, settings.pspace_size)
    pointer = 0 if abandon is None else abandon.ctypes.data
    return np.array([(*sizes, settings.stop == "decision", statistics, pointer)], dtype=_RULES)


class Battle:
    """A checked series ready for the engine. Keeps the memory alive that the engine writes to."""

    def __init__(self, series: Series, *, statistics: bool = False, core: Cells | None = None) -> None:
        shape = series.positions.shape
        executed, processes, spawned = (np.zeros(shape, dtype=np.uint32) for _ in range(3))
        coverage = np.zeros(shape, dtype=np.uint32) if statistics else None
        self.counts = Counts(executed, processes, spawned, coverage)
        self.series, self._core = series, core
        self._cells = [encode(warrior.code) for warrior in series.warriors]
        # A PIN may be any 64-bit number; all that counts is who shares one, so they are numbered.
        numbers: dict[int | None, int] = {None: -1}
        programs = [
            (code.ctypes.data, len(code), warrior.start, numbers.setdefault(warrior.pin, len(numbers)), 0)
            for code, warrior in zip(self._cells, series.warriors, strict=True)
        ]
        self._programs = np.array(programs, dtype=_PROGRAM)

    def rows(self, parts: int = 1) -> list[tuple[int, ...]]:
        """Rows of a `battle_table`, the rounds cut into so many parts."""
        rounds, warriors = self.series.positions.shape
        counts = (self.counts.executed, self.counts.spawned, self.counts.processes, self.counts.coverage)
        arrays = [0 if a is None else a.ctypes.data for a in (self.series.positions, *counts)]
        programs, core = self._programs.ctypes.data, 0 if self._core is None else self._core.ctypes.data
        rows = []
        for part in range(parts):
            first, last = rounds * part // parts, rounds * (part + 1) // parts
            moved = [address and address + 4 * first * warriors for address in arrays]
            mover = (self.series.first_round + first) % warriors
            rows.append((programs, *moved, core, warriors, last - first, mover, 0))
        return rows


def battle_table(rows: Sequence[tuple[int, ...]]) -> Structs:
    return np.array(rows, dtype=_BATTLE)


def play_table(rules: Structs, battles: Structs) -> None:
    """Plays every round of a table of battles, in this thread."""
    if len(battles):
        raise_for(library().shoal_play(rules.ctypes.data, battles.ctypes.data, len(battles)))


def raise_for(code: int) -> None:
    if code == 1:
        raise EngineError(
            "the engine got no memory for these settings: use fewer processes or a smaller core"
        )
    if code:
        raise ConfigError("the engine refused these numbers: a program or a position is out of its range")
