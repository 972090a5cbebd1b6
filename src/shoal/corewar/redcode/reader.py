"""From bytes to lines of code: comments, information lines, and the markers around a program.

Text before a `;redcode` line is ignored, a second `;redcode` line ends the source. Any bytes can be read:
each byte is one character, shown as UTF-8 again where it is UTF-8.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from shoal.corewar.redcode.limits import LINE_LENGTH, LONG_LINE_LENGTH

DEFAULT_NAME = "Unknown"
DEFAULT_AUTHOR = "Anonymous"
WHITE_SPACE = " \t\f\v"

_INFORMATION = re.compile(r"[ \t\f\v]*;[ \t\f\v]*([A-Za-z_][A-Za-z0-9_]*)[ \t\f\v]*(.*)", re.DOTALL)
_LISTING_HEADER = re.compile(r'Program "(.*)" \(length [0-9]+\) by "(.*)"[ \t]*\Z')


@dataclass(frozen=True, slots=True)
class Line:
    """A line of code or an assertion, without its comment. `source` is the physical line (the first one if
    lines were joined), `offset` the column (from 0) at which `text` begins in it."""

    number: int
    text: str
    source: str
    offset: int = 0
    is_assertion: bool = False


class Place(NamedTuple):
    """A column of a line, from 1."""

    line: Line
    column: int


@dataclass(slots=True)
class Source:
    lines: list[Line] = field(default_factory=list)
    name: str = DEFAULT_NAME
    author: str = DEFAULT_AUTHOR
    strategy: list[str] = field(default_factory=list)


def readable(text: str) -> str:
    """Text of a source as its author saw it: UTF-8 if it is UTF-8, Latin-1 otherwise."""
    try:
        return text if text.isascii() else text.encode("latin-1").decode("utf-8")
    except UnicodeError:
        return text


def as_characters(source: str | bytes) -> str:
    """One character for each byte of the source."""
    raw = source.encode("utf-8", "surrogatepass") if isinstance(source, str) else bytes(source)
    return raw.decode("latin-1")


def read(text: str, *, split_long_lines: bool = True) -> Source:
    """The code and the information lines of a source. The header of a listing (`Program "name" (length n) by
    "author"`) is understood in the first line, so that a listing can be assembled again."""
    source = Source()
    markers = header_line = 0
    beginning = True
    for number, offset, piece, physical in _pieces(text, split_long_lines):
        if beginning and piece.strip(WHITE_SPACE):
            beginning = False
            # All of the line, however long the names in it are.
            if header := _LISTING_HEADER.match(_cut(physical)):
                source.name, source.author = readable(header[1]), readable(header[2])
                header_line = number
        if number == header_line:
            continue
        code, _, _ = piece.partition(";")
        if code.strip(WHITE_SPACE):
            source.lines.append(Line(number, code, physical, offset))
        elif match := _INFORMATION.match(piece):
            word, rest = match[1].lower(), match[2]
            if word == "redcode":
                markers += 1
                if markers > 1:
                    break
                source.lines.clear()
            elif word == "name":
                source.name = readable(rest) or DEFAULT_NAME
            elif word == "author":
                source.author = readable(rest) or DEFAULT_AUTHOR
            elif word == "strategy":
                source.strategy.append(readable(rest))
            elif word == "assert":
                condition, _, _ = rest.partition(";")
                source.lines.append(Line(number, condition, physical, offset + match.start(2), True))
    return source


def _pieces(text: str, split: bool) -> Iterator[tuple[int, int, str, str]]:
    """(line number, offset, text, first physical line); a backslash at the end joins the next line."""
    size = LINE_LENGTH if split else LONG_LINE_LENGTH
    joined: tuple[int, int, str, str] | None = None
    for number, physical in enumerate(text.split("\n"), 1):
        for offset in range(0, max(1, len(physical)), size):
            first, at, before, source = joined or (number, offset, "", physical)
            piece = before + _cut(physical[offset : offset + size])
            joined = None
            if piece.endswith("\\") and len(piece) < LONG_LINE_LENGTH:
                joined = (first, at, piece[:-1], source)
            else:
                yield first, at, piece, source
    if joined is not None:
        yield joined


def _cut(piece: str) -> str:
    """A carriage return or a zero byte ends a line: the rest of it is not read."""
    return piece.partition("\r")[0].partition("\0")[0]
