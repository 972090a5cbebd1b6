"""Foreign text for people's eyes. A name, a program or an answer may be a stranger's: shown, it must not act
on the terminal or the page, hide anything, or change the order of the text around it."""

from __future__ import annotations

import re

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f"  # control characters but tab and line feed
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # those that turn the direction of others
    "\u2028\u2029"  # ends of lines that few programs know; below: without width, and fillers
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufeff\uffa0"
    "\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
    "\ud800-\udfff]"  # halves of characters
)
_MARKS = "\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
STACKED = re.compile(f"(?<=[{_MARKS}]{{4}})[{_MARKS}]+")
"""Marks over one letter, from the fifth on: more of them cover the lines above and below."""


def visible(text: str) -> str:
    """The same number of characters, each of them to be seen: an escape is ␛, one without a picture �."""
    return STACKED.sub(_pictures, UNSEEN.sub(_pictures, text))


def _pictures(match: re.Match[str]) -> str:
    return "".join(map(_picture, match[0]))


def _picture(character: str) -> str:
    code = ord(character)
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else "�"
