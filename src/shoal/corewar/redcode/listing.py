"""Writing a warrior down: as pMARS lists it, and as a complete source."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.corewar.settings import Standard
from shoal.corewar.warrior import Warrior


def listing(warrior: Warrior, *, standard: Standard = "94") -> str:
    """The load file exactly as pMARS prints it; with "88" as it does under ICWS'88 rules. The form has no
    place for a PIN nor for a start outside of the program, and pMARS itself refuses the header line when it
    reads it again: `assemble` understands it. `disassemble` keeps everything. Line breaks and zero bytes in a
    name, which no source can give it, become spaces."""
    name, author = _one_line(warrior.name), _one_line(warrior.author)
    lines = [f'Program "{name}" (length {len(warrior)}) by "{author}"', ""]
    starts_inside = warrior.start < len(warrior)
    if starts_inside and standard != "88":
        lines.append("       ORG      START")
    lines += [f"{line}     " for line in _code(warrior, standard)]
    if starts_inside and standard == "88":
        lines.append("       END      START")
    return "\n".join([*lines, "", ""])


def disassemble(warrior: Warrior) -> str:
    """A source of the warrior that every '94 assembler takes. Assembling it under a core of the same size
    gives an equal warrior, provided that name, author and strategy are text that a comment line can hold: not
    empty, no line breaks or zero bytes, no space in front, no backslash at the end (it would join the next
    line, so a space follows it), and at most 240 bytes."""
    lines = [";redcode-94", f";name {_comment(warrior.name)}", f";author {_comment(warrior.author)}"]
    lines += [f";strategy {_comment(line)}" for line in warrior.strategy.split("\n") if warrior.strategy]
    lines.append(f";assert CORESIZE == {warrior.core_size}")
    inside = warrior.start < len(warrior)
    lines.append(f"       ORG    {'START' if inside else warrior.start}")
    if warrior.pin is not None:
        lines.append(f"       PIN    {warrior.pin}")
    return "\n".join([*lines, *_code(warrior, "94"), "       END", ""])


def signed(value: int, core_size: int) -> int:
    """A number of the core with a sign: up to half the core forward, the rest backward."""
    return value - core_size if value > core_size // 2 else value


def _code(warrior: Warrior, standard: Standard) -> Iterator[str]:
    for index, (opcode, modifier, a_mode, a, b_mode, b) in enumerate(warrior.code):
        label = "START" if index == warrior.start else ""
        name = opcode.name if standard == "88" else f"{opcode.name}.{modifier.name}"
        a, b = signed(a, warrior.core_size), signed(b, warrior.core_size)
        yield f"{label:<7}{name:<6} {a_mode.symbol}{a:>6}, {b_mode.symbol}{b:>6}"


def _comment(text: str) -> str:
    text = _one_line(text)
    return text + " " if text.endswith("\\") else text


def _one_line(text: str) -> str:
    return "".join(" " if character in "\n\r\0" else character for character in text)
