"""Redcode without a language model: operators that each know one style of playing, and one that knows none.

    source = builtin_mutators()["bomber"]("new", None, random.Random(1))

They stand in for models with different priors, cost nothing, and are deterministic from the generator they
are given. They write ICWS'94 without P-space.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from shoal.corewar import (
    Instruction,
    Mode,
    Modifier,
    Opcode,
    Settings,
    Warrior,
    assemble,
    disassemble,
)
from shoal.corewar.redcode.listing import signed
from shoal.errors import AssemblyError, ConfigError
from shoal.evolve.mutators.styles import STYLES, Style, nearby

__all__ = ["STYLES", "Mutator", "builtin_mutators"]

ATTEMPTS = 8
"""Tries to make a mutation that differs from its parent."""
RELINKED = 0.85
"""The share of moves that keep addresses right."""

_OPCODES = tuple(opcode for opcode in Opcode if opcode not in (Opcode.LDP, Opcode.STP, Opcode.CMP))


class Mutator:
    """One style as an operator. Its text assembles; a mutation differs unless chance undid it eight times."""

    def __init__(self, style: Style, settings: Settings) -> None:
        if settings.standard == "88":
            raise ConfigError("the builtin mutators write ICWS'94: choose a '94 hill, or a model")
        self.style = style
        self.settings = settings

    @property
    def name(self) -> str:
        return self.style.name

    def __call__(self, task: Literal["new", "mutate"], parent_source: str | None, rng: random.Random) -> str:
        """A new program, or a changed parent; a parent that does not assemble gives a new program."""
        parent = self._assembled(parent_source) if task == "mutate" and parent_source is not None else None
        if parent is None:
            return self._new(rng)
        for _ in range(ATTEMPTS):
            child = self._child(parent, rng)
            if child.digest != parent.digest:
                break
        return disassemble(child)

    def _new(self, rng: random.Random) -> str:
        head = f";redcode-94\n;name {self.name} {rng.getrandbits(20):05x}\n"
        source = head + self.style.new(rng, self.settings)
        if self._assembled(source) is not None:
            return source
        # Only on hills with short programs: the style's first part, as long as is allowed.
        size = self.settings.core_size
        roomy = assemble(source, Settings(core_size=size, length=min(100, size)))
        return disassemble(self._warrior(self._program(roomy, rng)))

    def _child(self, parent: Warrior, rng: random.Random) -> Warrior:
        program = self._program(parent, rng)
        edits = 1
        while edits < 6 and rng.random() < self.style.boldness:
            edits += 1
        for _ in range(edits):
            program.edit()
        return self._warrior(program)

    def _program(self, warrior: Warrior, rng: random.Random) -> Program:
        code = list(warrior.code[: self.settings.length])
        return Program(code, min(warrior.start, len(code) - 1), self.style, self.settings, rng)

    def _warrior(self, program: Program) -> Warrior:
        name, size = f"{self.name} {program.rng.getrandbits(20):05x}", self.settings.core_size
        return Warrior(tuple(program.code), program.start, name=name, author="Shoal", core_size=size)

    def _assembled(self, source: str) -> Warrior | None:
        for lenient in (False, True):
            try:
                return assemble(source, self.settings, lenient=lenient)
            except AssemblyError:
                continue
        return None


def builtin_mutators(settings: Settings = Settings()) -> Mapping[str, Mutator]:
    """All of them by name, for programs under `settings`."""
    return {style.name: Mutator(style, settings) for style in STYLES}


@dataclass
class Program:
    """Code that is changed in a style; `start` is an index of it. Relative addresses keep pointing at the
    same instructions most of the time, and now and then not, as with a careless programmer."""

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
