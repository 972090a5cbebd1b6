"""Draws sentences from a GBNF grammar: as much of the form as `redcode.gbnf` uses, and nothing is skipped."""

from __future__ import annotations

import random
import re

_PIECE = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.)*)"|\[((?:[^\]\\]|\\.)*)\]|([a-z][a-z-]*)|(\{(\d+)(?:,(\d+))?\})|([()|?*+]))'
)


def rules_of(grammar: str) -> dict[str, str]:
    lines = [line for line in grammar.splitlines() if line.strip() and not line.startswith("#")]
    return {name.strip(): body for name, body in (line.split("::=") for line in lines)}


def draw(rules: dict[str, str], rng: random.Random, rule: str = "root") -> str:
    text, rest = _alternatives(rules[rule], rules, rng)
    assert not rest.strip(), f"{rule}: {rest!r} was not understood"
    return text


def _alternatives(body: str, rules: dict[str, str], rng: random.Random) -> tuple[str, str]:
    choices: list[list[tuple[str, str, int, int]]] = [[]]
    while (piece := _PIECE.match(body)) and piece.group(7) != ")":
        text, characters, name, counted, least, most, sign = piece.groups()
        body = body[piece.end() :]
        if sign == "|":
            choices.append([])
        elif sign == "(":
            before = body
            _, body = _alternatives(body, rules, random.Random(0))
            choices[-1].append(("group", before, 1, 1))
            body = body.lstrip()[1:]
        elif sign or counted:
            kind, value, _, _ = choices[-1].pop()
            limits = {"?": (0, 1), "*": (0, 4), "+": (1, 4)}.get(sign or "")
            low, high = limits or (int(least), int(most or least))
            choices[-1].append((kind, value, low, high))
        else:
            kind, value = (
                ("text", text)
                if text is not None
                else ("set", characters)
                if characters is not None
                else ("rule", name)
            )
            choices[-1].append((kind, value, 1, 1))
    written = ""
    for kind, value, low, high in rng.choice(choices):
        for _ in range(rng.randint(low, high)):
            written += _written(kind, value, rules, rng)
    return written, body


def _written(kind: str, value: str, rules: dict[str, str], rng: random.Random) -> str:
    if kind == "text":
        return value.replace("\\n", "\n").replace('\\"', '"')
    if kind == "rule":
        return draw(rules, rng, value)
    if kind == "group":
        return _alternatives(value, rules, rng)[0]
    characters = re.sub(r"(.)-(.)", lambda m: "".join(map(chr, range(ord(m[1]), ord(m[2]) + 1))), value)
    return rng.choice(characters)
