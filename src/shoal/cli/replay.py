"""A recorded round that can be moved to any of its steps, and drawn as a map of letters.

`letter(0)` is a, and so on. In the map a letter tells who touched the cells last, a capital letter where a
warrior has just executed, and a dot cells that nobody touched. Colour repeats the letters.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from shoal.corewar.recording import NOBODY, Event, Recording

LETTERS = "abcdefghijklmnopqrstuvwxyz"
UNTOUCHED = "."
COLOURS = ("bright_cyan", "bright_red", "bright_yellow", "bright_green", "bright_magenta", "bright_blue")


def letter(warrior: int) -> str:
    """Warriors beyond the 26th use the letters again."""
    return LETTERS[warrior % len(LETTERS)]


def state(processes: int) -> str:
    return "dead" if not processes else "1 process" if processes == 1 else f"{processes} processes"


def colour(warrior: int) -> str:
    return COLOURS[warrior % len(COLOURS)]


@dataclass(frozen=True, slots=True)
class Map:
    """Rows of characters; `owners` has a warrior or NOBODY for each. A character stands for `cells`."""

    rows: tuple[str, ...]
    owners: npt.NDArray[np.int16]
    cells: int


class Replay:
    """The state of a recording after `step` instructions, from 0 to `steps`."""

    def __init__(self, recording: Recording) -> None:
        self.recording = recording
        self.steps = recording.steps
        self.step = 0
        self._owners = recording.owners()
        self._applied = 0
        self._touching = (recording.kind == Event.EXECUTE) | (recording.kind == Event.WRITE)

    def seek(self, step: int) -> None:
        """Moves to a step; a number beyond either end means that end."""
        step = min(max(step, 0), self.steps)
        end = int(np.searchsorted(self.recording.step, step))
        if end < self._applied:
            self._owners, self._applied = self.recording.owners(), 0
        part = slice(self._applied, end)
        chosen = self._touching[part]
        self._owners[self.recording.address[part][chosen]] = self.recording.warrior[part][chosen]
        self._applied, self.step = end, step

    @property
    def cycle(self) -> int:
        """Cycles begun so far."""
        return int(self.recording.cycle[: self._applied].max()) + 1 if self._applied else 0

    def processes(self) -> list[int]:
        """Processes of each warrior; 0 for a dead one."""
        kinds, warriors = self.recording.kind[: self._applied], self.recording.warrior[: self._applied]
        counts = []
        for index in range(len(self.recording.names)):
            own = kinds[warriors == index]
            if bool((own == Event.WARRIOR_DIES).any()):
                counts.append(0)
                continue
            born, died = (int((own == kind).sum()) for kind in (Event.SPAWN, Event.PROCESS_DIES))
            counts.append(1 + born - died)
        return counts

    def last_executed(self) -> dict[int, int]:
        """The address that each warrior executed last."""
        # A living warrior moves once per cycle, so its last move is among the last few events.
        recent = slice(max(0, self._applied - 8 * len(self.recording.names)), self._applied)
        executed = self.recording.kind[recent] == Event.EXECUTE
        warriors = self.recording.warrior[recent][executed].tolist()
        return dict(zip(warriors, self.recording.address[recent][executed].tolist(), strict=True))

    def map(self, columns: int, rows: int) -> Map:
        """The core in at most `rows` lines of `columns` characters. A character shows who touched the
        most of its cells; a small part of the core stays visible only where nobody else is."""
        size = self.recording.settings.core_size
        cells = -(-size // (columns * rows))
        characters = -(-size // cells)
        counts = np.zeros((characters, len(self.recording.names)), dtype=np.int32)
        touched = np.flatnonzero(self._owners != NOBODY)
        np.add.at(counts, (touched // cells, self._owners[touched]), 1)
        owners = np.where(counts.any(axis=1), counts.argmax(axis=1), NOBODY).astype(np.int16)
        text = [UNTOUCHED if owner == NOBODY else letter(owner) for owner in owners.tolist()]
        for warrior, address in self.last_executed().items():
            text[address // cells] = letter(warrior).upper()
            owners[address // cells] = warrior
        lines = tuple("".join(text[start : start + columns]) for start in range(0, characters, columns))
        return Map(lines, owners, cells)

    def outcome(self) -> str:
        """The end of the recorded round in words; letters stand for the warriors."""
        deaths = self.recording.deaths()
        living = [letter(index) for index in range(len(self.recording.names)) if index not in deaths]
        died = [f"{letter(warrior)} died in cycle {cycle}" for warrior, cycle in sorted(deaths.items())]
        cycles = int(self.recording.cycle.max()) + 1 if self.steps else 0
        alive = f"alive at the end, after {cycles} cycles: {' '.join(living) or 'nobody'}"
        return "; ".join([*died, alive])
