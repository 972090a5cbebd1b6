"""A recorded round: every execution, write, spawn and death, for replaying and drawing.

An event is one 32-bit word: kind in bits 24-31, warrior in bits 16-23, address in bits 0-15. A full round of
two warriors takes about 2 MB, and the stored form is deflated.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import IntEnum
from functools import cached_property

import numpy as np
import numpy.typing as npt

from shoal.corewar.battle import as_positions
from shoal.corewar.instruction import Instruction
from shoal.corewar.mars import engine
from shoal.corewar.mars.binding import Numbers, Series, decode
from shoal.corewar.mars.placement import random_positions
from shoal.corewar.settings import MAX_WARRIORS, Settings, whole_number
from shoal.corewar.warrior import Warrior
from shoal.errors import ConfigError, RunError

MAGIC = b"shoal-recording-1\n"
MOST_HEADER_BYTES = 1 << 20
MOST_STORED_BYTES = MOST_HEADER_BYTES + 1 + 4 * engine.MOST_EVENTS
NOBODY = -1
# Errors by which Python answers a header that somebody made up.
_DAMAGE = (ValueError, TypeError, KeyError, AttributeError, RecursionError, OverflowError)


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
        columns = (self.cycle, self.warrior, self.address)
        return np.stack([column[self.kind == kind].astype(np.int64) for column in columns], axis=1)

    def deaths(self) -> dict[int, int]:
        """The cycle in which each dead warrior died."""
        return {int(warrior): int(cycle) for cycle, warrior, _ in self.select(Event.WARRIOR_DIES)}

    def owners(self) -> npt.NDArray[np.int16]:
        """The warrior that is loaded in each cell before the first step, or NOBODY."""
        owners = np.full(self.settings.core_size, NOBODY, dtype=np.int16)
        for index, (position, length) in enumerate(zip(self.positions, self.lengths, strict=True)):
            owners[(position + np.arange(length)) % self.settings.core_size] = index
        return owners

    def to_bytes(self) -> bytes:
        """The stored form; `from_bytes` reads it back."""
        names = ("names", "positions", "lengths", "first_mover")
        header = {"settings": asdict(self.settings)} | {name: getattr(self, name) for name in names}
        line = json.dumps(header).encode()
        if len(line) > MOST_HEADER_BYTES:
            raise RunError(
                f"the names of the warriors take {len(line)} bytes: shorten them to store the recording"
            )
        return MAGIC + zlib.compress(line + b"\n" + self.events.astype("<u4").tobytes(), 6)

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
        except (*_DAMAGE, zlib.error, ConfigError) as error:
            raise RunError(f"not a recording of a round: {error}") from error

    def _check(self) -> None:
        warriors, size = len(self.names), self.settings.core_size
        if not 0 <= self.first_mover < warriors:
            raise ValueError("its first mover is none of its warriors")
        if not len(self.positions) == len(self.lengths) == warriors <= MAX_WARRIORS:
            raise ValueError("its warriors and positions do not fit together")
        if not all(0 <= position < size for position in self.positions):
            raise ValueError("a position is outside of the core")
        if not all(0 <= length <= size for length in self.lengths):
            raise ValueError("a warrior is longer than the core")
        most = ((self.kind, len(Event)), (self.warrior, warriors), (self.address, size))
        if any(len(column) and int(column.max()) >= bound for column, bound in most):
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
    P-space begins empty, as in the first round of a battle. `steps` limits the instructions played."""
    series = _series(warriors, settings, seed, round_number, positions)
    found = engine.record(series, settings, steps=steps)
    return Recording(
        settings,
        tuple(warrior.name for warrior in warriors),
        tuple(int(place) for place in series.positions[0]),
        tuple(len(warrior) for warrior in warriors),
        series.first_round % len(warriors),
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
    return Snapshot(decode(found.core), found.queues, tuple(int(count) for count in found.counts.executed[0]))


def _series(
    warriors: Sequence[Warrior],
    settings: Settings,
    seed: int,
    round_number: int,
    positions: Sequence[int] | None,
) -> Series:
    first_round = whole_number("round_number", round_number, 0)
    if positions is None:
        places = random_positions(settings, len(warriors), 1, seed, first_round=first_round)
    else:
        places = as_positions([positions])
    return Series(tuple(warriors), places, first_round)
