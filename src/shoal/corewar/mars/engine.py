"""The C engine behind a thin wall: encoded programs and positions in, arrays of numbers out.

Everything is checked before it crosses, so that no input can make the engine read or write outside its
memory. The interpreter lock is released during a call; a call keeps no state.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
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

LIBRARY = Path(__file__).parent / ("_engine.dll" if sys.platform == "win32" else "_engine.so")
ABI_VERSION = 2
MOST_EVENTS = 1 << 24
SLICES_PER_THREAD = 8  # so that a thread which got the short battles takes more of them
SHORT_CYCLES = 20_000_000  # of all warriors together: less than a second, not worth a thread

_RULES = np.dtype(
    [
        (name, np.uint32)
        for name in ("size", "cycles", "processes", "pspace", "stop_at_decision", "statistics")
    ]
    + [("abandon", np.uintp)]
)
_PROGRAM = np.dtype(
    [
        ("code", np.uintp),
        ("length", np.uint32),
        ("start", np.uint32),
        ("pin", np.int32),
        ("unused", np.uint32),
    ]
)
_BATTLE = np.dtype(
    [
        (name, np.uintp)
        for name in ("programs", "positions", "executed", "spawned", "processes", "coverage", "core")
    ]
    + [(name, np.uint32) for name in ("warriors", "rounds", "first_round", "unused")]
)


class EngineError(ShoalError):
    """The compiled engine is missing, of another version, or out of memory."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """Rounds of one battle: a row of positions per round, a column per warrior.

    The first mover is warrior `(first_round + row) % len(warriors)`: it changes every round.
    """

    warriors: tuple[Warrior, ...]
    positions: Numbers
    first_round: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class Counts:
    """What the engine counted, all of shape (rounds, warriors).

    `executed`: instructions, up to and with the one that killed the warrior or ended the round.
    `processes`: left at the end; 0 means dead. `spawned`: processes added by SPL. `coverage`: distinct
    addresses that a process was ever queued at (the start counts once it is queued again); None where
    statistics were off.
    """

    executed: Numbers
    processes: Numbers
    spawned: Numbers
    coverage: Numbers | None


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
    engine.shoal_build.restype = ctypes.c_char_p
    return engine


def build() -> str:
    """How the engine was compiled, in words."""
    text: bytes = library().shoal_build()
    return text.decode()


@lru_cache(maxsize=256)
def encode(code: tuple[Instruction, ...]) -> npt.NDArray[np.uint64]:
    """The cells of a program as the engine holds them."""
    if not all(len(i) == 6 and all(isinstance(number, int) for number in i) for i in code):
        raise ConfigError("a program holds something that is not an Instruction of whole numbers")
    try:
        rows = np.array(code, dtype=np.int32).reshape(-1, 6)
    except OverflowError:
        raise ConfigError("a program holds a number that is far out of range") from None
    cells = np.empty(len(rows), dtype=np.uint64)
    if library().shoal_encode(_address(rows), ctypes.c_uint32(len(rows)), _address(cells)):
        raise ConfigError("a program holds an opcode, modifier, mode or number that does not exist")
    cells.flags.writeable = False
    return cells


def decode(cells: npt.NDArray[np.uint64]) -> list[Instruction]:
    """The instructions of cells, the inverse of `encode`."""
    rows = np.empty((len(cells), 6), dtype=np.int32)
    library().shoal_decode(_address(cells), ctypes.c_uint32(len(cells)), _address(rows))
    return [
        Instruction(Opcode(op), Modifier(modifier), Mode(a_mode), a, Mode(b_mode), b)
        for op, modifier, a_mode, a, b_mode, b in rows.tolist()
    ]


def play(
    series: Sequence[Series], settings: Settings, *, statistics: bool = False, threads: int | None = None
) -> list[Counts]:
    """Plays every round of every series on `threads` threads (all cores by default).

    The result does not depend on the number of threads. Rounds of one series are spread over threads
    too, unless a warrior uses P-space, which carries knowledge from one round to the next.
    """
    for one in series:
        check_positions(one, settings)
    for warrior in {id(warrior): warrior for one in series for warrior in one.warriors}.values():
        check_warrior(warrior, settings)
    threads = threads if threads is not None else usable_cores()
    if threads < 1:
        raise ConfigError(f"threads is {threads}: give 1 or more")
    counts = [_allocate(one, statistics) for one in series]
    programs = [_programs(one) for one in series]
    rows: list[tuple[int, ...]] = []
    for one, count, program in zip(series, counts, programs, strict=True):
        rows.extend(_rows(one, count, program, _pieces(one, len(series), threads)))
    battles = np.array(rows, dtype=_BATTLE)
    slices = np.array_split(battles, max(1, min(len(battles), threads * SLICES_PER_THREAD)))
    work = sum(one.positions.size for one in series) * settings.cycles
    if work <= SHORT_CYCLES and (threads == 1 or len(slices) == 1):
        for part in slices:
            _play_slice(_rules(settings, statistics), part)
    else:
        _play_on_threads(slices, settings, statistics, threads)
    return counts


def _play_on_threads(
    slices: list[npt.NDArray[np.void]], settings: Settings, statistics: bool, threads: int
) -> None:
    """Plays the slices while this thread stays free for an interrupt, which ends all after their round."""
    abandon = np.zeros(1, dtype=np.int32)
    rules = _rules(settings, statistics, abandon)
    pool = ThreadPoolExecutor(min(threads, len(slices)))
    try:
        for _ in pool.map(lambda part: _play_slice(rules, part), slices):
            pass
    except BaseException:
        abandon[0] = 1
        raise
    finally:
        pool.shutdown(cancel_futures=True)


@dataclass(frozen=True, slots=True)
class Recorded:
    """What `record` saw: event words, the core and the queues as they were after the last step."""

    counts: Counts
    events: Numbers
    core: npt.NDArray[np.uint64]
    queues: tuple[tuple[int, ...], ...]


def record(
    one: Series,
    settings: Settings,
    *,
    steps: int | None = None,
    capacity: int = MOST_EVENTS,
    events_wanted: bool = True,
) -> Recorded:
    """Plays the only round of `one`, at most `steps` instructions, noting every event (recording.py)."""
    _check(one, settings)
    if len(one.positions) != 1:
        raise ConfigError(f"{len(one.positions)} rounds given to record: it takes exactly one")
    warriors = len(one.warriors)
    steps = settings.cycles * warriors if steps is None else steps
    if isinstance(steps, bool) or not isinstance(steps, int | np.integer) or not 0 <= steps < 1 << 63:
        raise ConfigError(f"steps is {steps!r}: give a whole number from 0")
    steps = min(int(steps), settings.cycles * warriors)
    counts, program = _allocate(one, False), _programs(one)
    core = np.empty(settings.core_size, dtype=np.uint64)
    queues = np.zeros((warriors, settings.processes), dtype=np.uint16)
    # An instruction notes at most: executed, three writes, and a spawn or two deaths.
    events = np.empty(min(capacity, 6 * steps) if events_wanted else 0, dtype=np.uint32)
    found = ctypes.c_uint64()
    battle = np.array(_rows(one, counts, program, 1, core), dtype=_BATTLE)
    _raise_for(
        library().shoal_record(
            _address(_rules(settings, False)),
            _address(battle),
            ctypes.c_uint64(steps),
            _address(events) if events_wanted else None,
            ctypes.c_uint64(len(events)),
            ctypes.byref(found),
            _address(queues),
        )
    )
    if events_wanted and found.value > len(events):
        raise ConfigError(
            f"the round has more than the {len(events)} events a recording holds: record fewer steps"
        )
    lists = tuple(tuple(queues[i, : counts.processes[0, i]].tolist()) for i in range(warriors))
    return Recorded(counts, events[: found.value].copy() if events_wanted else events, core, lists)


def final_core(one: Series, settings: Settings) -> list[Instruction]:
    """The core after the last round of `one`, played by the fast loops."""
    _check(one, settings)
    counts, program = _allocate(one, False), _programs(one)
    core = np.empty(settings.core_size, dtype=np.uint64)
    _play_slice(_rules(settings, False), np.array(_rows(one, counts, program, 1, core), dtype=_BATTLE))
    return decode(core)


def usable_cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


def check_warrior(warrior: Warrior, settings: Settings) -> None:
    """Raises ConfigError where a program cannot be loaded under `settings`."""
    if not isinstance(warrior.code, tuple) or not all(isinstance(i, Instruction) for i in warrior.code):
        raise ConfigError(f"{warrior.name!r} holds something else than a tuple of instructions as its code")
    if warrior.core_size != settings.core_size:
        raise ConfigError(
            f"{warrior.name!r} was assembled for core size {warrior.core_size}, the battle has "
            f"{settings.core_size}: assemble it with the settings of the battle"
        )
    if len(warrior) > settings.length:
        raise ConfigError(
            f"{warrior.name!r} has {len(warrior)} instructions, more than the {settings.length} allowed: "
            "shorten it or raise the length"
        )
    if not isinstance(warrior.start, int) or not 0 <= warrior.start < settings.core_size:
        raise ConfigError(
            f"{warrior.name!r} starts at {warrior.start}: give a number from 0 to {settings.core_size - 1}"
        )
    if any(not (0 <= i.a < settings.core_size and 0 <= i.b < settings.core_size) for i in warrior.code):
        raise ConfigError(
            f"{warrior.name!r} holds a number outside of the core: reduce it modulo the core size"
        )


def check_positions(one: Series, settings: Settings) -> None:
    """Raises ConfigError where a series has no legal number of warriors or positions outside the core."""
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


def _check(one: Series, settings: Settings) -> None:
    check_positions(one, settings)
    for warrior in one.warriors:
        check_warrior(warrior, settings)


def _address(array: npt.NDArray[np.generic]) -> ctypes.c_void_p:
    return ctypes.c_void_p(array.ctypes.data)


def _rules(
    settings: Settings, statistics: bool, abandon: npt.NDArray[np.int32] | None = None
) -> npt.NDArray[np.void]:
    return np.array(
        [
            (
                settings.core_size,
                settings.cycles,
                settings.processes,
                settings.pspace_size,
                settings.stop == "decision",
                statistics,
                0 if abandon is None else abandon.ctypes.data,
            )
        ],
        dtype=_RULES,
    )


@dataclass(frozen=True, slots=True)
class _Programs:
    """The engine's table of programs, and the cells that it points to, which it keeps alive."""

    table: npt.NDArray[np.void]
    cells: list[npt.NDArray[np.uint64]]


def _programs(one: Series) -> _Programs:
    cells = [encode(warrior.code) for warrior in one.warriors]
    # A PIN may be any 64-bit number; what counts is who shares one, so they are numbered.
    numbers: dict[int | None, int] = {None: -1}
    rows = [
        (code.ctypes.data, len(code), warrior.start, numbers.setdefault(warrior.pin, len(numbers)), 0)
        for code, warrior in zip(cells, one.warriors, strict=True)
    ]
    return _Programs(np.array(rows, dtype=_PROGRAM), cells)


def _allocate(one: Series, statistics: bool) -> Counts:
    shape = one.positions.shape
    executed, processes, spawned = (np.zeros(shape, dtype=np.uint32) for _ in range(3))
    return Counts(executed, processes, spawned, np.zeros(shape, dtype=np.uint32) if statistics else None)


def _uses_pspace(one: Series) -> bool:
    return any(i.opcode in (Opcode.LDP, Opcode.STP) for warrior in one.warriors for i in warrior.code)


def _pieces(one: Series, series: int, threads: int) -> int:
    """Into how many parts the rounds of a series are cut, so that all threads have work."""
    rounds = len(one.positions)
    if threads == 1 or rounds < 2 or _uses_pspace(one):
        return 1
    return min(rounds, max(1, -(-threads * SLICES_PER_THREAD // series)))


def _rows(
    one: Series,
    counts: Counts,
    programs: _Programs,
    pieces: int,
    core: npt.NDArray[np.uint64] | None = None,
) -> list[tuple[int, ...]]:
    warriors, rounds = len(one.warriors), len(one.positions)
    rows: list[tuple[int, ...]] = []
    for piece in range(pieces):
        first, last = rounds * piece // pieces, rounds * (piece + 1) // pieces
        offset = first * warriors * 4
        rows.append(
            (
                programs.table.ctypes.data,
                one.positions.ctypes.data + offset,
                counts.executed.ctypes.data + offset,
                counts.spawned.ctypes.data + offset,
                counts.processes.ctypes.data + offset,
                0 if counts.coverage is None else counts.coverage.ctypes.data + offset,
                0 if core is None else core.ctypes.data,
                warriors,
                last - first,
                (one.first_round + first) % warriors,
                0,
            )
        )
    return rows


def _play_slice(rules: npt.NDArray[np.void], battles: npt.NDArray[np.void]) -> None:
    if len(battles):
        _raise_for(library().shoal_play(_address(rules), _address(battles), ctypes.c_uint64(len(battles))))


def _raise_for(code: int) -> None:
    if code == 1:
        raise EngineError(
            "the engine got no memory for these settings: use fewer processes or a smaller core"
        )
    if code:
        raise ConfigError("the engine refused these numbers: a program or a position is out of its range")
