"""Changes of a program, one at a time. Whatever is changed, the result is a program within its limits.

Inserting and deleting keep relative addresses pointing at the same instructions most of the time; now and
then they do not, as a careless programmer would.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from shoal.corewar import Instruction, Mode, Modifier, Opcode, Settings, assemble
from shoal.corewar.redcode.listing import signed
from shoal.evolve.mutators.style import Style, nearby

RELINKED = 0.85
"""How often addresses are kept right when instructions move."""

_OPCODES = tuple(opcode for opcode in Opcode if opcode not in (Opcode.LDP, Opcode.STP, Opcode.CMP))


@dataclass
class Program:
    """Code that is being changed; `start` is an index of it."""

    code: list[Instruction]
    start: int


Change = Callable[[Program, Style, Settings, random.Random], None]


def edit(program: Program, style: Style, settings: Settings, rng: random.Random) -> None:
    """One change, of a kind that the style likes. There is always at least one instruction left, and
    never more than the settings allow."""
    kinds = list(style.taste)
    kind = rng.choices(kinds, weights=[style.taste[name] for name in kinds])[0]
    CHANGES[kind](program, style, settings, rng)
    del program.code[settings.length :]
    program.start = min(program.start, len(program.code) - 1)


def _constant(program: Program, style: Style, settings: Settings, rng: random.Random) -> None:
    index, side = rng.randrange(len(program.code)), rng.choice("ab")
    instruction = program.code[index]
    old = instruction.a if side == "a" else instruction.b
    way = rng.random()
    if way < 0.35:
        value = old + rng.choice((-5, -4, -2, -1, 1, 2, 4, 5))
    elif way < 0.75:
        value = style.constant(rng, settings)
    elif way < 0.85:
        value = nearby(rng, settings)
    elif way < 0.93:
        value = -old
    else:
        other = rng.choice(program.code)
        value = rng.choice((other.a, other.b))
    value %= settings.core_size
    program.code[index] = instruction._replace(a=value) if side == "a" else instruction._replace(b=value)


def _mode(program: Program, style: Style, settings: Settings, rng: random.Random) -> None:
    index, mode = rng.randrange(len(program.code)), rng.choice(tuple(Mode))
    instruction = program.code[index]
    changed = instruction._replace(a_mode=mode) if rng.random() < 0.5 else instruction._replace(b_mode=mode)
    program.code[index] = changed


def _modifier(program: Program, style: Style, settings: Settings, rng: random.Random) -> None:
    index = rng.randrange(len(program.code))
    program.code[index] = program.code[index]._replace(modifier=rng.choice(tuple(Modifier)))


def _opcode(program: Program, style: Style, settings: Settings, rng: random.Random) -> None:
    index = rng.randrange(len(program.code))
    program.code[index] = program.code[index]._replace(opcode=rng.choice(_OPCODES))


def _insert(program: Program, style: Style, settings: Settings, rng: random.Random) -> None:
    line = (
        rng.choice(_fragment(style, settings, rng)) if rng.random() < 0.6 else _random(style, settings, rng)
    )
    _put(program, rng.randint(0, len(program.code)), [line], settings, rng)


def _duplicate(program: Program, style: Style, settings: Settings, rng: random.Random) -> None:
    index = rng.randrange(len(program.code))
    _put(program, index + 1, [program.code[index]], settings, rng)


def _splice(program: Program, style: Style, settings: Settings, rng: random.Random) -> None:
    """A fragment of the style somewhere in the program; sometimes execution begins with it."""
    fragment = _fragment(style, settings, rng)
    place = program.start if rng.random() < 0.5 else rng.randint(0, len(program.code))
    before = len(program.code)
    _put(program, place, fragment, settings, rng)
    if len(program.code) > before and rng.random() < 0.5:
        program.start = place


def _delete(program: Program, style: Style, settings: Settings, rng: random.Random) -> None:
    if len(program.code) == 1:
        return
    index = rng.randrange(len(program.code))
    if rng.random() < RELINKED:
        program.code = _relinked(program.code, lambda old: old - (old > index), settings)
    del program.code[index]
    program.start -= program.start > index


def _swap(program: Program, style: Style, settings: Settings, rng: random.Random) -> None:
    one, other = rng.randrange(len(program.code)), rng.randrange(len(program.code))
    program.code[one], program.code[other] = program.code[other], program.code[one]


def _start(program: Program, style: Style, settings: Settings, rng: random.Random) -> None:
    program.start = rng.randrange(len(program.code))


CHANGES: dict[str, Change] = {
    "constant": _constant, "mode": _mode, "modifier": _modifier, "opcode": _opcode, "insert": _insert,
    "duplicate": _duplicate, "splice": _splice, "delete": _delete, "swap": _swap, "start": _start,
}  # fmt: skip


def _put(
    program: Program, place: int, lines: list[Instruction], settings: Settings, rng: random.Random
) -> None:
    """Inserts the lines before the instruction at `place`, or nothing if there is no room."""
    if len(program.code) + len(lines) > settings.length:
        return
    if rng.random() < RELINKED:
        program.code = _relinked(program.code, lambda old: old + len(lines) * (old >= place), settings)
    program.code[place:place] = lines
    if program.start >= place:
        program.start += len(lines)


def _relinked(code: list[Instruction], moved: Callable[[int], int], settings: Settings) -> list[Instruction]:
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


def _fragment(style: Style, settings: Settings, rng: random.Random) -> list[Instruction]:
    roomy = Settings(core_size=settings.core_size, length=min(100, settings.core_size))
    return list(assemble(style.fragment(rng, settings), roomy).code)


def _random(style: Style, settings: Settings, rng: random.Random) -> Instruction:
    """Any instruction; its addresses are near or as the style draws them."""
    a, b = ((nearby if rng.random() < 0.5 else style.constant)(rng, settings) for _ in range(2))
    modes = tuple(Mode)
    return Instruction(
        rng.choice(_OPCODES), rng.choice(tuple(Modifier)),
        rng.choice(modes), a % settings.core_size, rng.choice(modes), b % settings.core_size,
    )  # fmt: skip
