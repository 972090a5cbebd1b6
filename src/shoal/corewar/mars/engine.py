"""Playing on the C engine: batches of battles on threads, and single rounds that are recorded."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np

from shoal.corewar.instruction import Opcode
from shoal.corewar.mars import binding
from shoal.corewar.mars.binding import Battle, Cells, Counts, Numbers, Series, Structs
from shoal.corewar.settings import Settings, whole_number
from shoal.errors import ConfigError

MOST_EVENTS = 1 << 24
PARTS_PER_THREAD = 8  # so that a thread which got the short battles takes more of them
SHORT_CYCLES = 20_000_000  # of all warriors together: less than a second, not worth a thread


def play(
    series: Sequence[Series], settings: Settings, *, statistics: bool = False, threads: int | None = None
) -> list[Counts]:
    """Plays every round of every series on `threads` threads (all cores by default), with the same result for
    any number. P-space carries knowledge from round to round: its rounds stay on one thread."""
    binding.check(series, settings)
    threads = threads if threads is not None else usable_cores()
    if threads < 1:
        raise ConfigError(f"threads is {threads}: give 1 or more")
    battles = [Battle(one, statistics=statistics) for one in series]
    rows: list[tuple[int, ...]] = []
    for battle in battles:
        rows += battle.rows(_parts(battle.series, len(series), threads))
    parts = np.array_split(binding.battle_table(rows), max(1, min(len(rows), threads * PARTS_PER_THREAD)))
    work = sum(one.positions.size for one in series) * settings.cycles
    if work <= SHORT_CYCLES and (threads == 1 or len(parts) == 1):
        for part in parts:
            binding.play_table(binding.rules_table(settings, statistics), part)
    else:
        _play_on_threads(parts, settings, statistics, threads)
    return [battle.counts for battle in battles]


def _play_on_threads(parts: list[Structs], settings: Settings, statistics: bool, threads: int) -> None:
    """Plays while this thread stays free for an interrupt, which ends all others after their round."""
    abandon = np.zeros(1, dtype=np.int32)
    rules = binding.rules_table(settings, statistics, abandon)
    pool = ThreadPoolExecutor(min(threads, len(parts)))
    try:
        for _ in pool.map(lambda part: binding.play_table(rules, part), parts):
            pass
    except BaseException:
        abandon[0] = 1
        raise
    finally:
        pool.shutdown(cancel_futures=True)


def _parts(one: Series, series: int, threads: int) -> int:
    """The number of parts into which the rounds of a series are cut, so that all threads have work."""
    rounds = len(one.positions)
    private = (Opcode.LDP, Opcode.STP)
    if threads == 1 or rounds < 2 or any(i.opcode in private for w in one.warriors for i in w.code):
        return 1
    return min(rounds, max(1, -(-threads * PARTS_PER_THREAD // series)))


def usable_cores() -> int:
    """Cores that this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS and Windows
        return os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Recorded:
    """A recorded round: event words, and the core and the queues as they were after the last step."""

    counts: Counts
    events: Numbers
    core: Cells
    queues: tuple[tuple[int, ...], ...]


def record(
    one: Series, settings: Settings, *, steps: int | None = None, events_wanted: bool = True
) -> Recorded:
    """Plays the only round of `one`, at most `steps` instructions, noting every event (recording.py)."""
    binding.check([one], settings)
    if len(one.positions) != 1:
        raise ConfigError(f"{len(one.positions)} rounds given to record: it takes exactly one")
    warriors = len(one.warriors)
    all_steps = settings.cycles * warriors
    steps = all_steps if steps is None else min(whole_number("steps", steps, 0, (1 << 63) - 1), all_steps)
    core = np.empty(settings.core_size, dtype=np.uint64)
    battle = Battle(one, core=core)
    rules, table = binding.rules_table(settings), binding.battle_table(battle.rows())
    queues = np.zeros((warriors, settings.processes), dtype=np.uint16)
    # An instruction notes at most: executed, three writes, and a spawn or two deaths.
    events = np.empty(min(MOST_EVENTS, 6 * steps) if events_wanted else 0, dtype=np.uint32)
    found = ctypes.c_uint64()
    played = (rules.ctypes.data, table.ctypes.data, steps)
    noted = (events.ctypes.data if events_wanted else None, len(events), ctypes.byref(found))
    binding.raise_for(binding.library().shoal_record(*played, *noted, queues.ctypes.data))
    if events_wanted and found.value > len(events):
        raise ConfigError(
            f"the round has more than the {len(events)} events a recording holds: record fewer steps"
        )
    lists = tuple(tuple(queues[i, : battle.counts.processes[0, i]].tolist()) for i in range(warriors))
    return Recorded(battle.counts, events[: found.value].copy() if events_wanted else events, core, lists)
