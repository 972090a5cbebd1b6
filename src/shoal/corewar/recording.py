"""A recorded round: every execution, write, spawn and death, for replaying and drawing.

Recording is done by a loop of its own in the engine, so that rounds which are not recorded pay nothing.
An event is one 32-bit word: kind in bits 24-31, warrior in bits 16-23, address in bits 0-15. A full
round of two warriors takes about 2 MB, and the stored form is deflated.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shoal.corewar.battle import as_positions
from shoal.corewar.instruction import Instruction
from shoal.corewar.mars import engine
from shoal.corewar.mars.engine import Numbers, Series
from shoal.corewar.mars.placement import random_positions
from shoal.corewar.settings import Settings
from shoal.corewar.warrior import Warrior
from shoal.errors import ConfigError, RunError

MAGIC = b"shoal-recording-1\n"
MOST_HEADER_BYTES = 1 << 20
MOST_STORED_BYTES = MOST_HEADER_BYTES + 1 + 4 * engine.MOST_EVENTS
NOBODY = -1


class Event(IntEnum):
    EXECUTE = 0
    WRITE = 1
    SPAWN = 2
    PROCESS_DIES = 3
    WARRIOR_DIES = 4


@dataclass(frozen=True, eq=False)
class Recording:
    """The events of one round, in the order in which they happened."""

    settings: Settings
    names: tuple[str, ...]
    positions: tuple[int, ...]
    lengths: tuple[int, ...]
    first_mover: int
    events: Numbers

    @cached_property
    def kind(self) -> npt.NDArray[np.uint8]:
        return (self.events >> 24).astype(np.uint8)

    @cached_property
    def warrior(self) -> npt.NDArray[np.uint8]:
        return (self.events >> 16 & 0xFF).astype(np.uint8)

    @cached_property
    def address(self) -> npt.NDArray[np.uint16]:
        return (self.events & 0xFFFF).astype(np.uint16)

    @cached_property
    def cycle(self) -> npt.NDArray[np.int64]:
        """The cycle of each event, from 0: a warrior executes exactly one instruction per cycle."""
        cycle = np.zeros(len(self.events), dtype=np.int64)
        for index in range(len(self.names)):
            own = self.warrior == index
            cycle[own] = np.cumsum(self.kind[own] == Event.EXECUTE) - 1
        return cycle

    @cached_property
    def step(self) -> npt.NDArray[np.int64]:
        """The number of each event's instruction within the round, from 0."""
        return np.cumsum(self.kind == Event.EXECUTE) - 1

    @property
    def steps(self) -> int:
        """Instructions executed."""
        return int(np.count_nonzero(self.kind == Event.EXECUTE))

    def select(self, kind: Event) -> npt.NDArray[np.int64]:
        """Rows of (cycle, warrior, address) of all events of one kind."""
        chosen = self.kind == kind
        return np.stack(
            [
                self.cycle[chosen],
                self.warrior[chosen].astype(np.int64),
                self.address[chosen].astype(np.int64),
            ],
            axis=1,
        )

    def deaths(self) -> dict[int, int]:
        """The cycle in which each warrior that died did so."""
        return {int(warrior): int(cycle) for cycle, warrior, _ in self.select(Event.WARRIOR_DIES)}

    def owners(self) -> npt.NDArray[np.int16]:
        """Who last wrote or executed each cell before the first step: the warrior loaded there."""
        owners = np.full(self.settings.core_size, NOBODY, dtype=np.int16)
        for index, (position, length) in enumerate(zip(self.positions, self.lengths, strict=True)):
            owners[(position + np.arange(length)) % self.settings.core_size] = index
        return owners

    def frames(self, every: int) -> Iterator[tuple[int, npt.NDArray[np.int16]]]:
        """(cycles done, who touched each cell last) before the round, then after each `every` cycles and
        at the end. The array is the same object each time, brought up to date."""
        if every < 1:
            raise ConfigError(f"a frame every {every} cycles: give 1 or more")
        owners = self.owners()
        yield 0, owners
        touching = (self.kind == Event.EXECUTE) | (self.kind == Event.WRITE)
        cycles = int(self.cycle.max()) + 1 if len(self.events) else 0
        # Warriors move in turn, so cycles never run backwards over the events by more than one.
        bounds = np.searchsorted(np.maximum.accumulate(self.cycle), np.arange(every, cycles + every, every))
        start = 0
        for number, end in enumerate(bounds, start=1):
            part = slice(start, int(end))
            chosen = touching[part]
            owners[self.address[part][chosen]] = self.warrior[part][chosen]
            start = int(end)
            yield min(number * every, cycles), owners

    def to_bytes(self) -> bytes:
        """The stored form; `from_bytes` reads it back."""
        header = {
            "settings": asdict(self.settings),
            "names": self.names,
            "positions": self.positions,
            "lengths": self.lengths,
            "first_mover": self.first_mover,
        }
        line = json.dumps(header).encode()
        if len(line) > MOST_HEADER_BYTES:
            raise RunError(
                f"the names of the warriors take {len(line)} bytes: shorten them to store the recording"
            )
        body = line + b"\n" + self.events.astype("<u4").tobytes()
        return MAGIC + zlib.compress(body, 6)

    @classmethod
    def from_bytes(cls, data: bytes) -> Recording:
        """Reads a stored recording; RunError where the bytes are not one."""
        try:
            if not data.startswith(MAGIC):
                raise ValueError("it does not begin as one")
            unpack = zlib.decompressobj()
            body = unpack.decompress(data[len(MAGIC) :], MOST_STORED_BYTES)
            if not unpack.eof or unpack.unused_data:
                raise ValueError(f"it is cut off, or larger than {MOST_STORED_BYTES} bytes")
            line, newline, words = body.partition(b"\n")
            if not newline or len(line) > MOST_HEADER_BYTES or len(words) % 4:
                raise ValueError("its header or its events are damaged")
            header = json.loads(line)
            recording = cls(
                Settings(**header["settings"]),
                tuple(str(name) for name in header["names"]),
                tuple(int(position) for position in header["positions"]),
                tuple(int(length) for length in header["lengths"]),
                int(header["first_mover"]),
                np.frombuffer(words, dtype="<u4").astype(np.uint32),
            )
            recording._check()
            return recording
        except (
            ValueError,
            TypeError,
            KeyError,
            AttributeError,
            RecursionError,
            OverflowError,
            zlib.error,
            ConfigError,
        ) as error:
            raise RunError(f"not a recording of a round: {error}") from error

    def _check(self) -> None:
        warriors, size = len(self.names), self.settings.core_size
        if not 0 <= self.first_mover < warriors:
            raise ValueError("its first mover is none of its warriors")
        if not 1 <= warriors <= 64 or len(self.positions) != warriors or len(self.lengths) != warriors:
            raise ValueError("its warriors and positions do not fit together")
        if not all(0 <= position < size for position in self.positions):
            raise ValueError("a position is outside of the core")
        if not all(0 <= length <= size for length in self.lengths):
            raise ValueError("a warrior is longer than the core")
        if len(self.events) and (
            int(self.kind.max()) > max(Event)
            or int(self.warrior.max()) >= warriors
            or int(self.address.max()) >= size
        ):
            raise ValueError("an event names a kind, a warrior or an address that does not exist")


def record(
    warriors: Sequence[Warrior],
    settings: Settings = Settings(),
    *,
    seed: int = 0,
    round_number: int = 0,
    positions: Sequence[int] | None = None,
    steps: int | None = None,
) -> Recording:
    """Records one round of the battle that `fight` plays with the same seed: its round `round_number`.

    P-space begins empty, as in the first round of a battle. `steps` limits the instructions played.
    """
    series = _series(warriors, settings, seed, round_number, positions)
    found = engine.record(series, settings, steps=steps)
    return Recording(
        settings,
        tuple(warrior.name for warrior in warriors),
        tuple(int(place) for place in series.positions[0]),
        tuple(len(warrior) for warrior in warriors),
        int(round_number) % len(warriors),
        found.events,
    )


@dataclass(frozen=True, slots=True)
class Snapshot:
    """A round after some steps: the whole core, and each warrior's processes, next first."""

    core: list[Instruction]
    queues: tuple[tuple[int, ...], ...]
    executed: tuple[int, ...]


def snapshot(
    warriors: Sequence[Warrior],
    settings: Settings = Settings(),
    *,
    steps: int,
    seed: int = 0,
    round_number: int = 0,
    positions: Sequence[int] | None = None,
) -> Snapshot:
    """The round that `record` records, as it stands after `steps` instructions."""
    series = _series(warriors, settings, seed, round_number, positions)
    found = engine.record(series, settings, steps=steps, events_wanted=False)
    return Snapshot(
        engine.decode(found.core), found.queues, tuple(int(count) for count in found.counts.executed[0])
    )


def _series(
    warriors: Sequence[Warrior],
    settings: Settings,
    seed: int,
    round_number: int,
    positions: Sequence[int] | None,
) -> Series:
    if isinstance(round_number, bool) or not isinstance(round_number, int | np.integer) or round_number < 0:
        raise ConfigError(f"round_number is {round_number!r}: give a whole number from 0")
    if positions is None:
        places = random_positions(settings, len(warriors), 1, seed, first_round=int(round_number))
    else:
        places = as_positions([positions])
    return Series(tuple(warriors), places, int(round_number))
