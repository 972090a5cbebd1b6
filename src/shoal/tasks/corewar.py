"""`corewar:beat`: write a warrior that beats this one.

The seed draws the opponent from the starter warriors, or from those of the settings, and changes it lightly.
An answer is assembled and fights it; one that does not assemble scores 0. The points share s is (wins + tie x
ties) / rounds. The score is 1 if s reaches `threshold`, else 0.9 s: only raw rewards show the way.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

from shoal.corewar import (
    AssemblyError,
    Settings,
    Warrior,
    assemble,
    disassemble,
    fight_all,
    hill,
    starter_names,
    starter_source,
)
from shoal.errors import TaskError
from shoal.tasks.family import FamilySettings, Number, Puzzle, hint, read_settings, show

MOST_ANSWER = 8192
MOST_OPPONENTS = 8
MOST_CYCLES = 1_600_000
"""Cycles of all rounds of one answer: 20 ms of the engine at worst."""
HILLS = ("94nop", "94", "tiny", "nano")
RIGHT, NEARLY = 1.0, 0.9

RULES = """\
Core War: two programs, written in Redcode, run in turns, one instruction each, in a circular memory of \
{size} cells. A process that executes DAT dies; SPL starts another process. Whoever has no process left \
loses; who is alone before {cycles} cycles are over wins. Addresses are relative to the instruction; your \
program has at most {length} instructions and is placed anywhere."""


class BeatWarrior:
    """Settings: `rounds`, `tie` (points for a tie), `threshold`, `mutations` (numbers of the opponent that
    are changed), `hill`, `opponents` (names of starters, or Redcode), `parent` (Redcode to start from) and
    `all` (1: fight every opponent, and show all; 0: one, drawn by the seed)."""

    name = "corewar:beat"
    version = "1"
    safe = True
    most_answer = MOST_ANSWER
    whole_text = True

    def __init__(self, parameters: Mapping[str, Any] | None = None) -> None:
        given = dict(parameters or {})
        texts = {name: given.pop(name) for name in ("hill", "opponents", "parent") if name in given}
        numbers = read_settings(self.name, given, _NUMBERS)
        rules = texts.get("hill", HILLS[0])
        if rules not in HILLS:
            raise TaskError(f"task {self.name}: hill is {show(rules)}: give one of {', '.join(HILLS)}")
        self._settings: Settings = hill(rules)
        opponents = _texts("opponents", texts.get("opponents", []))
        (parent,) = _texts("parent", [texts.get("parent", "")])
        self._opponents = [_opponent(text, self._settings) for text in opponents] or _starters(self._settings)
        if not self._opponents:
            raise TaskError(f"task {self.name}: no starter warrior fits hill {rules}: give opponents")
        self._parent = _assembled("parent", parent, self._settings) if parent else None
        chosen = {"hill": rules, "opponents": opponents, "parent": parent}
        self.parameters: Mapping[str, Any] = numbers | chosen
        fights = len(self._opponents) if numbers["all"] else 1
        if fights > MOST_OPPONENTS or fights * numbers["rounds"] * self._settings.cycles > MOST_CYCLES:
            found = f"task {self.name}: {numbers['rounds']} rounds of {fights} battles are more than"
            raise TaskError(f"{found} {MOST_CYCLES} cycles, or {MOST_OPPONENTS} battles: take fewer")

    def pose(self, seed: int) -> Puzzle:
        rng = random.Random(seed)
        chosen = self._opponents if self.parameters["all"] else [rng.choice(self._opponents)]
        opponents = [_mutated(warrior, self.parameters["mutations"], rng) for warrior in chosen]
        key = (tuple(opponents), rng.getrandbits(32))
        return Puzzle(self._question(opponents), key)

    def score(self, puzzle: Puzzle, answer: str) -> float:
        opponents, seed = puzzle.key
        try:
            warrior = assemble(_without_fences(answer), self._settings, lenient=True)
        except AssemblyError:
            return 0.0
        rounds, tie = self.parameters["rounds"], self.parameters["tie"]
        pairs = [[warrior, opponent] for opponent in opponents]
        results = fight_all(pairs, self._settings, rounds, seed=seed, threads=1)
        standings = [result.standings()[0] for result in results]
        points = sum(standing.wins + tie * standing.ties for standing in standings)
        share = points / (rounds * len(standings))
        return RIGHT if share >= self.parameters["threshold"] else NEARLY * float(share)

    def _question(self, opponents: list[Warrior]) -> str:
        here = self._settings
        rules = RULES.format(size=here.core_size, cycles=here.cycles, length=here.length)
        parts = [rules, f"\nWrite a warrior that beats {'this one' if len(opponents) == 1 else 'these'}:"]
        parts += [shown(opponent) for opponent in opponents]
        if self._parent is not None:
            parts += ["Start from this one:", shown(self._parent)]
        parts.append("Answer with the Redcode of your warrior between <answer> and </answer>.")
        return "\n".join(parts)


_NUMBERS: FamilySettings = {
    "rounds": Number(10, 1, 100),
    "tie": Number(0.5, 0.0, 1.0),
    "threshold": Number(0.75, 0.01, 1.0),
    "mutations": Number(1, 0, 16),
    "all": Number(0, 0, 1),
}


def shown(warrior: Warrior) -> str:
    """The bare program: comments of its author are shown to nobody's model."""
    return "\n".join(line for line in disassemble(warrior).splitlines() if not line.startswith(";"))


def _texts(where: str, value: Any) -> list[str]:
    if not isinstance(value, list | tuple) or not all(isinstance(text, str) for text in value):
        raise TaskError(f"task corewar:beat: {where} is {show(value)}: give Redcode, or starters' names")
    if len(value) > MOST_OPPONENTS:
        raise TaskError(f"task corewar:beat: {len(value)} opponents, at most {MOST_OPPONENTS} are allowed")
    return list(value)


def _opponent(text: str, settings: Settings) -> Warrior:
    if len(text.split()) == 1:
        if text not in starter_names():
            found = f"no starter is called {show(text)}{hint(text, starter_names())}"
            raise TaskError(f"task corewar:beat: {found}; give an opponent of your own as Redcode")
        text = starter_source(text)
    return _assembled("opponents", text, settings)


def _assembled(where: str, source: str, settings: Settings) -> Warrior:
    try:
        return assemble(source, settings, lenient=True)
    except AssemblyError as error:
        raise TaskError(f"task corewar:beat: {where}: {error}") from None


@lru_cache(maxsize=len(HILLS))
def _starters(settings: Settings) -> list[Warrior]:
    found = []
    for name in starter_names():
        with suppress(AssemblyError):
            found.append(assemble(starter_source(name), settings))
    return found


def _mutated(warrior: Warrior, mutations: int, rng: random.Random) -> Warrior:
    """The same program with some of its numbers moved a little."""
    code = list(warrior.code)
    for _ in range(mutations):
        place = rng.randrange(len(code))
        field = rng.choice(("a", "b"))
        moved = (getattr(code[place], field) + rng.choice((-2, -1, 1, 2))) % warrior.core_size
        code[place] = code[place]._replace(**{field: moved})
    return dataclasses.replace(warrior, code=tuple(code))


def _without_fences(answer: str) -> str:
    lines = answer.strip().splitlines()
    for end in (0, -1):
        if lines and lines[end].startswith("```"):
            del lines[end]
    return "\n".join(lines) + "\n"
