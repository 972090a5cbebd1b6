"""Changes of a program, one at a time; the result is always a program within its limits. Relative addresses
keep pointing at the same instructions most of the time, and now and then not, as with a careless
programmer."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.corewar import Instruction, Mode, Modifier, Opcode, Settings, assemble
from shoal.corewar.redcode.listing import signed
from shoal.evolve.mutators.styles import Style, nearby

RELINKED = 0.85
"""The share of moves that keep addresses right."""

_OPCODES = tuple(opcode for opcode in Opcode if opcode not in (Opcode.LDP, Opcode.STP, Opcode.CMP))


@dataclass
class Program:
    """Code that is changed in a style; `start` is an index of it."""

    code: list[Instruction]
    start: int
    style: Style
    settings: Settings
    rng: random.Random

    def edit(self) -> None:
        """One change, of a kind that the style likes; at least one instruction is left, at most the limit."""
        kinds = list(self.style.taste)
        kind = self.rng.choices(kinds, weights=[self.style.taste[name] for name in kinds])[0]
        CHANGES[kind](self)
        del self.code[self.settings.length :]
        self.start = min(self.start, len(self.code) - 1)

    def _change(self, index: int, **fields: Any) -> None:
        self.code[index] = self.code[index]._replace(**fields)

    def _index(self) -> int:
        return self.rng.randrange(len(self.code))

    def _constant(self) -> None:
        rng, settings = self.rng, self.settings
        index, side = self._index(), rng.choice("ab")
        old: int = getattr(self.code[index], side)
        way = rng.random()
        if way < 0.35:
            value = old + rng.choice((-5, -4, -2, -1, 1, 2, 4, 5))
        elif way < 0.75:
            value = self.style.constant(rng, settings)
        elif way < 0.85:
            value = nearby(rng, settings)
        elif way < 0.93:
            value = -old
        else:
            other = rng.choice(self.code)
            value = rng.choice((other.a, other.b))
        self._change(index, **{side: value % settings.core_size})

    def _mode(self) -> None:
        index, mode = self._index(), self.rng.choice(tuple(Mode))
        self._change(index, **{"a_mode" if self.rng.random() < 0.5 else "b_mode": mode})

    def _modifier(self) -> None:
        self._change(self._index(), modifier=self.rng.choice(tuple(Modifier)))

    def _opcode(self) -> None:
        self._change(self._index(), opcode=self.rng.choice(_OPCODES))

    def _insert(self) -> None:
        line = self.rng.choice(self._fragment()) if self.rng.random() < 0.6 else self._random()
        self._put(self.rng.randint(0, len(self.code)), [line])

    def _duplicate(self) -> None:
        index = self._index()
        self._put(index + 1, [self.code[index]])

    def _splice(self) -> None:
        """A fragment of the style somewhere in the program; sometimes execution begins with it."""
        fragment = self._fragment()
        place = self.start if self.rng.random() < 0.5 else self.rng.randint(0, len(self.code))
        before = len(self.code)
        self._put(place, fragment)
        if len(self.code) > before and self.rng.random() < 0.5:
            self.start = place

    def _delete(self) -> None:
        if len(self.code) == 1:
            return
        index = self._index()
        if self.rng.random() < RELINKED:
            self.code = relinked(self.code, lambda old: old - (old > index), self.settings)
        del self.code[index]
        self.start -= self.start > index

    def _swap(self) -> None:
        one, other = self._index(), self._index()
        self.code[one], self.code[other] = self.code[other], self.code[one]

    def _start(self) -> None:
        self.start = self._index()

    def _put(self, place: int, lines: list[Instruction]) -> None:
        """Inserts the lines before the instruction at `place`, or nothing if there is no room."""
        if len(self.code) + len(lines) > self.settings.length:
            return
        if self.rng.random() < RELINKED:
            self.code = relinked(self.code, lambda old: old + len(lines) * (old >= place), self.settings)
        self.code[place:place] = lines
        if self.start >= place:
            self.start += len(lines)

    def _fragment(self) -> list[Instruction]:
        size = self.settings.core_size
        roomy = Settings(core_size=size, length=min(100, size))
        return list(assemble(self.style.fragment(self.rng, self.settings), roomy).code)

    def _random(self) -> Instruction:
        """Any instruction; its addresses are near or as the style draws them."""
        rng, settings, modes = self.rng, self.settings, tuple(Mode)
        a, b = ((nearby if rng.random() < 0.5 else self.style.constant)(rng, settings) for _ in range(2))
        return Instruction(
            rng.choice(_OPCODES), rng.choice(tuple(Modifier)),
            rng.choice(modes), a % settings.core_size, rng.choice(modes), b % settings.core_size,
        )  # fmt: skip


CHANGES: dict[str, Callable[[Program], None]] = {
    "constant": Program._constant, "mode": Program._mode, "modifier": Program._modifier,
    "opcode": Program._opcode, "insert": Program._insert, "duplicate": Program._duplicate,
    "splice": Program._splice, "delete": Program._delete, "swap": Program._swap, "start": Program._start,
}  # fmt: skip


def relinked(code: list[Instruction], moved: Callable[[int], int], settings: Settings) -> list[Instruction]:
    """The code with every address that points into it pointing at the same instruction after the move."""
    size = settings.core_size

    def follow(index: int, mode: Mode, value: int) -> int:
        target = index + signed(value, size)
        if mode == Mode.IMMEDIATE or not 0 <= target < len(code):
            return value
        return (moved(target) - moved(index)) % size

    return [
        one._replace(a=follow(index, one.a_mode, one.a), b=follow(index, one.b_mode, one.b))
        for index, one in enumerate(code)
    ]
