"""Words of the language, and cutting a line into them."""

from __future__ import annotations

import re
from typing import NamedTuple

from shoal.corewar.instruction import Mode, Modifier, Opcode

OPCODES = {opcode.name: opcode for opcode in Opcode}
MODIFIERS = {modifier.name: modifier for modifier in Modifier}
MODES = {mode.symbol: mode for mode in Mode}
DIRECTIVES = frozenset(("EQU", "FOR", "ROF", "ORG", "END", "PIN"))
KEYWORDS = DIRECTIVES | OPCODES.keys()
CURRENT_LINE = "CURLINE"


class Token(NamedTuple):
    """A piece of a line. `name` is empty unless it is a name; names joined by `&` are one token.

    `spaced` says that white space follows, `column` counts from 0 within the line's text.
    """

    text: str
    name: str
    spaced: bool
    column: int


GAP = Token(" ", "", False, 0)
"""Stands where a substituted name was followed by white space."""

_NAME = "[A-Za-z_][A-Za-z0-9_]*"
_TOKEN = re.compile(rf"[ \t\f\v]*(?:(({_NAME}(?:&{_NAME})*):?)|([0-9]+|&&|[^ \t\f\v]))([ \t\f\v]*)")
_RESOLVED_TOKEN = re.compile(rf"({_NAME})|([0-9]+)|(&&|\|\||[^ \t\f\v])")


def tokens(text: str) -> list[Token]:
    """A line of source cut into tokens; a colon directly behind a name belongs to it."""
    return [
        Token(
            match[1] or match[3],
            match[2] or "",
            match[4] != "",
            match.start(1) if match[1] else match.start(3),
        )
        for match in _TOKEN.finditer(text)
    ]


def resolved_tokens(text: str) -> list[tuple[str, str, str]]:
    """An expanded operand field cut into (name, number, other), two of which are empty."""
    return _RESOLVED_TOKEN.findall(text)
