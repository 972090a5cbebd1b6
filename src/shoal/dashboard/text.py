"""Foreign text for a page: bounded, and without characters that could hide or reorder what it says.

The page shows it as text only (`textContent`); what is done here is for people's eyes and for the memory.
"""

from __future__ import annotations

import re

LINE = 300
SOURCE = 64 << 10
"""Most characters of a line for people, and of a program."""

# Control characters but tab and line feed, line separators, direction overrides, lone surrogates.
_STRANGE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def shown(text: str, most: int = LINE) -> str:
    """`text` with at most `most` characters (and how many there were more) and every control character made
    visible: an escape is shown as ␛, what has no picture as �."""
    extra = len(text) - most
    if extra > 0:
        text = text[:most]
    text = _STRANGE.sub(_picture, text)
    return f"{text}… ({extra} more characters)" if extra > 0 else text


def shown_line(text: str, most: int = LINE) -> str:
    """The same on one line."""
    return shown(text[: most + 1].replace("\n", "⏎").replace("\t", " ") + text[most + 1 :], most)


def _picture(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else "�"
