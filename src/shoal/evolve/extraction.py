"""The program within a model's answer: in prose, thoughts, fences, HTML entities or nothing at all, and cut
off in the middle. `extract_programs` returns the likely readings, best first; the domain's parser tells which
is a program. Time and memory are linear in the first ANSWER_SIZE characters."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

ANSWER_SIZE = 1 << 18
BLOCKS = 64
"""Fenced blocks looked at, the last ones of an answer."""

_FENCE = re.compile(r"^[ \t>]*(`{3,}|~{3,})(.*)$")
_THOUGHT = re.compile(r"<(/?)(think|thinking|thought|reasoning|reflection)>", re.IGNORECASE)
_ENTITY = re.compile(r"&(lt|gt|amp|quot|apos|nbsp|commat|num|#\d{1,5}|#x[0-9a-fA-F]{1,4});")
_NAMED = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'", "nbsp": " ", "commat": "@", "num": "#"}
_NUMBERED = re.compile(r"^\s*\d{1,4}\s*[:.|)]\s*")
_MARKED = re.compile(r"^\s{0,3}(?:>\s|[-*+]\s+(?=\S))")
_LOOKALIKES = str.maketrans(
    {"\u00a0": " ", "\u2007": " ", "\u202f": " ", "\u3000": " ", "\u2212": "-", "\u2010": "-", "\u2011": "-",
     "\u2012": "-", "\u2013": "-", "\uff0c": ",", "\uff03": "#", "\uff04": "$", "\uff20": "@", "\ufeff": None,
     "\u200b": None, "\u200c": None, "\u200d": None, "\u2060": None, "\x00": None}
)  # fmt: skip


class _Block(NamedTuple):
    lines: list[str]
    closed: bool


def extract_program(text: str, looks_like_code: Callable[[str], bool] | None = None) -> str:
    """The likeliest program of an answer, "" if there is none."""
    programs = extract_programs(text, looks_like_code)
    return programs[0] if programs else ""


def extract_programs(text: str, looks_like_code: Callable[[str], bool] | None = None) -> list[str]:
    """The likely programs, best first, none twice; `looks_like_code` tells code from prose by one line."""
    is_code = looks_like_code or (lambda line: bool(line.strip()))
    outside = without_thoughts(clean(text[:ANSWER_SIZE]))
    blocks, rest = _split(outside.split("\n"))
    readings: list[str] = []
    unmarked = [_Block(_unmarked(block.lines, is_code), block.closed) for block in blocks]
    for block in _ranked(unmarked, is_code):
        readings.append(_joined(block.lines))
        if not block.closed:
            readings.append(_joined(block.lines[:-1]))  # a truncated answer ends in half a line
    for run in _runs(rest, is_code):
        readings += [_joined(run), _joined(run[:-1])]
    return list(dict.fromkeys(reading for reading in readings if reading.strip()))


def clean(text: str) -> str:
    """One kind of line end, no invisible characters, typographic signs as ASCII, entities resolved."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").replace("\u2028", "\n").translate(_LOOKALIKES)
    return _ENTITY.sub(_resolve, text) if "&" in text else text


def without_thoughts(text: str) -> str:
    """The text outside of <think> blocks. An end without a beginning ends a thought of the prompt; a thought
    that never ends hides nothing, since the program may be inside."""
    kept: list[str] = []
    position = depth = 0
    opened = 0
    for tag in _THOUGHT.finditer(text):
        if tag.group(1):
            if depth == 0:
                kept.clear()
            depth = max(0, depth - 1)
            position = tag.end()
        else:
            if depth == 0:
                kept.append(text[position : tag.start()])
                opened = tag.end()
            depth += 1
    kept.append(text[opened:] if depth else text[position:])
    return "\n".join(kept)


def _resolve(match: re.Match[str]) -> str:
    name = match.group(1)
    if name in _NAMED:
        return _NAMED[name]
    code = int(name[2:], 16) if name[1] in "xX" else int(name[1:])
    return chr(code) if 32 <= code < 127 else " "


def _split(lines: list[str]) -> tuple[list[_Block], list[str]]:
    blocks: list[_Block] = []
    rest: list[str] = []
    inside: list[str] | None = None
    mark = ""
    for line in lines:
        fence = _FENCE.match(line)
        if inside is None:
            if fence is None:
                rest.append(line)
            elif fence.group(2).rstrip().endswith("```"):  # a whole block in one line
                blocks.append(_Block([fence.group(2).rstrip().rstrip("`")], True))
            else:
                inside, mark = [], fence.group(1)
                rest.append("")
        elif fence is not None and fence.group(1)[0] == mark[0]:
            blocks.append(_Block(inside, True))
            # With words behind it, it is a new fence without an end of the old one.
            inside, mark = ([], fence.group(1)) if fence.group(2).strip() else (None, mark)
        else:
            body, tick, after = line.partition("```")
            if tick and not after.strip():  # the closing fence at the end of a line of code
                blocks.append(_Block([*inside, body], True))
                inside = None
            else:
                inside.append(line)
    if inside is not None:
        blocks.append(_Block(inside, False))
    return blocks[-BLOCKS:], rest


def _ranked(blocks: Sequence[_Block], is_code: Callable[[str], bool]) -> list[_Block]:
    """Of the blocks that are at least half as long as the longest the last comes first: models show the
    old program before the new one, and explain the new one with short excerpts after it."""
    sizes = [sum(map(is_code, block.lines)) for block in blocks]
    longest = max(sizes, default=0)
    order = sorted(
        (index for index, size in enumerate(sizes) if size),
        key=lambda index: (2 * sizes[index] >= longest, index),
        reverse=True,
    )
    return [blocks[index] for index in order]


def _runs(lines: Sequence[str], is_code: Callable[[str], bool]) -> list[list[str]]:
    """Stretches of code lines outside of fences, the longest first. Up to two empty lines may lie between."""
    runs: list[list[str]] = [[]]
    empty = 0
    for line in lines:
        bare = _unmarked_line(line, is_code)
        if bare is not None:
            runs[-1] += [*[""] * empty, bare]
            empty = 0
        elif line.strip() or empty == 2:
            runs.append([])
            empty = 0
        elif runs[-1]:
            empty += 1
    return sorted((run for run in runs if run), key=len, reverse=True)


def _unmarked(lines: Sequence[str], is_code: Callable[[str], bool]) -> list[str]:
    """Lines of a block, without the numbers or signs that stand in front of all of them."""
    code = [line for line in lines if line.strip()]
    for sign in (_NUMBERED, _MARKED):
        if (
            code
            and all(sign.match(line) for line in code)
            and any(is_code(sign.sub("", line)) for line in code)
        ):
            return [sign.sub("", line) for line in lines]
    return list(lines)


def _unmarked_line(line: str, is_code: Callable[[str], bool]) -> str | None:
    """The line if it is code, without list signs, numbers and back ticks; None if it is not."""
    for bare in (line, _NUMBERED.sub("", line), _MARKED.sub("", line)):
        stripped = bare.strip().strip("`")
        if is_code(stripped):
            return bare.replace("`", "")
    return None


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(line.rstrip() for line in lines).strip("\n") + "\n"
