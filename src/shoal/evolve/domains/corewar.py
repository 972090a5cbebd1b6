"""Core War as a domain: fitness, measures and rules of the DRQ paper. A candidate stands with all opponents
in one battle, over rounds with places drawn from a seed that all candidates share. Fitness is its mean share
of the points: 1 is an even share. Foreign programs run in the compiled engine and nowhere else."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple
from functools import cached_property, lru_cache
from typing import Annotated, Any, Self

import msgspec

from shoal.corewar import (
    Result,
    Settings,
    Warrior,
    assemble,
    disassemble,
    fight_all,
    hill,
    starter_names,
    starter_source,
)
from shoal.corewar.settings import MAX_CORE_SIZE, MAX_CYCLES, MAX_PROCESSES, MAX_WARRIORS
from shoal.errors import AssemblyError, CandidateError, ConfigError, DomainError
from shoal.evolve.domain import Candidate, Domain, Operator, Outcome
from shoal.evolve.metrics import Duel
from shoal.evolve.mutators import builtin_mutators
from shoal.evolve.prompts import Prompts, load_prompts, load_template, redcode_grammar
from shoal.runs.config import convert
from shoal.runs.search import Axis, Evaluation, Words

SPAWNED = Axis("spawned", (1, 10, 100, 1000, 10_000))
COVERAGE = Axis("coverage", (10, 100, 500, 1000, 4000))
LENGTH = Axis("length", (5, 12, 20, 35, 60))
OPCODES = Axis("opcodes", (4, 6, 8, 10, 14))
"""DRQ's axes: processes spawned, addresses executed; program length and different opcodes instead."""
AXES = {axis.measure: axis for axis in (SPAWNED, COVERAGE, LENGTH, OPCODES)}
RULES = ("core_size", "cycles", "processes", "length", "distance")
"""The options that are the engine's settings."""

MOST_EDGES = 99

MAX_DUELS_AT_ONCE = 4096
"""Battles handed to the engine in one call, which bounds the memory of the results."""
MOST_REMEMBERED = 1024
MOST_REMEMBERED_CHARACTERS = 8192
"""Parsed programs that are kept, and the longest of them: 8 MB of text at most."""

_CODE = re.compile(
    r"(?:[a-z_]\w*:?\s+){0,2}?"
    r"(?:(?:dat|mov|add|sub|mul|div|mod|jmp|jmz|jmn|djn|cmp|seq|sne|slt|spl|nop|ldp|stp)(?:\.\w{1,2})?(?![\w.])"
    r"|equ\s|for\s|rof\b|org\s|pin\s|end\b)",
    re.IGNORECASE,
)
_PROSE = re.compile(r"[a-z]{2,}[.!?]?\s+[a-z]{2,}|[.!?]\s*$", re.IGNORECASE)
"""Two words beside each other, or the end of a sentence: not found behind an instruction."""
_LABEL = re.compile(r"[A-Za-z_]\w*:?\s*$")


class CoreWarOptions(msgspec.Struct, frozen=True, kw_only=True):
    """`[options]` of a search in Core War: rules and grid, DRQ's by default."""

    core_size: Annotated[int, msgspec.Meta(ge=1, le=MAX_CORE_SIZE)] = 8000  # addresses of the core
    cycles: Annotated[int, msgspec.Meta(ge=1, le=MAX_CYCLES)] = 80_000  # most cycles of a battle
    processes: Annotated[int, msgspec.Meta(ge=1, le=MAX_PROCESSES)] = 8000  # most processes of one warrior
    length: Annotated[int, msgspec.Meta(ge=0, le=MAX_CORE_SIZE)] = 100  # most instructions of a warrior
    # Least distance between two warriors at the start.
    distance: Annotated[int, msgspec.Meta(ge=0, le=MAX_CORE_SIZE)] = 100
    axes: tuple[str, ...] = ("spawned", "coverage")  # measures that span the archive; also length, opcodes
    # Bin edges of an axis by its measure, in place of DRQ's: bin k holds edges[k-1] <= value < edges[k].
    edges: dict[str, tuple[float, ...]] = {}
    lenient: bool = False  # accepts a little more of what models write, which other assemblers refuse
    brief: bool = False  # explains Redcode to models in 150 tokens instead of 2,300


class CoreWar(Domain):
    """Core War under `settings`, by default DRQ's. `lenient` accepts a little more of what models write,
    which other assemblers refuse. `threads` limits the engine. `brief` explains the language in few words."""

    name = "corewar"
    words = Words(
        program="warrior",
        programs="warriors",
        plays="battles",
        suffix=".red",
        command="shoal show {run} --best > best.red && shoal battle best.red @paper -r 100",
    )
    views = ("replay",)

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        axes: Sequence[Axis] = (SPAWNED, COVERAGE),
        lenient: bool = False,
        threads: int | None = None,
        brief: bool = False,
    ) -> None:
        self.settings = settings or hill("drq")
        if self.settings.stop != "play-on":
            raise ConfigError(
                'the share of a warrior is only exact if battles play on: use hill("drq"), or stop="play-on"'
            )
        self.axes = tuple(axes)
        self.lenient = lenient
        self.brief = brief
        self.threads = threads
        # Opponents and champions are parsed again each round, by every node; assembling them costs more than
        # a short battle.
        self._parsed = lru_cache(MOST_REMEMBERED)(self._parse)

    @classmethod
    def from_options(cls, options: Mapping[str, Any], *, threads: int | None = None) -> Self:
        chosen = convert(CoreWarOptions, options, source="config", path="options")
        unknown = [name for name in chosen.axes if name not in AXES]
        if unknown or not chosen.axes or len(set(chosen.axes)) < len(chosen.axes):
            wrong = f"no axis is called {unknown[0]!r}" if unknown else "name one axis or more, each once"
            raise ConfigError(f"options.axes: {wrong}: known are {', '.join(AXES)}")
        rules = Settings(**{name: getattr(chosen, name) for name in RULES}, stop="play-on")
        axes = [_axis(name, chosen) for name in chosen.axes]
        if strange := sorted(set(chosen.edges) - set(AXES)):
            raise ConfigError(
                f"options.edges: no axis is called {strange[0][:80]!r}: known are {', '.join(AXES)}"
            )
        return cls(rules, axes=axes, lenient=chosen.lenient, threads=threads, brief=chosen.brief)

    @property
    def options(self) -> Mapping[str, Any]:
        rules = {name: getattr(self.settings, name) for name in RULES}
        axes = [axis.measure for axis in self.axes]
        edges = {one.measure: list(one.edges) for one in self.axes if one != AXES.get(one.measure)}
        own = {"edges": edges} if edges else {}
        return {**rules, "axes": axes, "lenient": self.lenient, "brief": self.brief, **own}

    @property
    def opponent_limit(self) -> int:  # type: ignore[override]
        """As many as can stand `distance` apart in the core together with the candidate."""
        room = self.settings.core_size // max(1, self.settings.distance)
        return max(0, min(MAX_WARRIORS, room) - 1)

    @property
    def rules(self) -> str:
        return repr(astuple(self.settings))

    @cached_property
    def operators(self) -> Mapping[str, Operator]:
        return builtin_mutators(self.settings)

    @cached_property
    def prompts(self) -> Prompts:
        prompts = load_prompts("corewar")
        return (
            msgspec.structs.replace(prompts, system=load_template("corewar-brief")) if self.brief else prompts
        )

    @property
    def grammar(self) -> str:
        return redcode_grammar()

    def starters(self) -> Mapping[str, str]:
        """The starter warriors that assemble under these settings."""
        found = {}
        for name in starter_names():
            with contextlib.suppress(AssemblyError):
                assemble(starter_source(name), self.settings)
                found[name] = starter_source(name)
        return found

    @property
    def first_opponents(self) -> tuple[str, ...]:
        """DRQ's: the imp alone."""
        return ("imp",)

    def parse(self, text: str) -> Candidate:
        return self._parsed(text) if len(text) <= MOST_REMEMBERED_CHARACTERS else self._parse(text)

    def _parse(self, text: str) -> Candidate:
        try:
            warrior = assemble(text, self.settings, lenient=self.lenient)
        except AssemblyError as error:
            raise CandidateError(str(error)) from error
        return Candidate(text, warrior.canonical, warrior)

    def play(
        self, candidates: Sequence[Candidate], opponents: Sequence[Candidate], *, seed: int, rounds: int
    ) -> list[Outcome]:
        others = [_warrior(opponent) for opponent in opponents]
        warriors = [_warrior(candidate) for candidate in candidates]
        battles = [[warrior, *others] for warrior in warriors]
        outcomes: list[Outcome] = []
        results = self._fight(battles, seed, rounds, statistics=True)
        for warrior, result in zip(warriors, results, strict=True):
            measures = {
                "spawned": float(result.spawned[:, 0].mean()),
                "coverage": float(result.coverage[:, 0].mean()),
                "length": float(len(warrior)),
                "opcodes": float(len({instruction.opcode for instruction in warrior.code})),
            }
            outcomes.append(Outcome(result.share[:, 0].tolist(), measures))
        return outcomes

    def _fight(
        self, battles: Sequence[Sequence[Warrior]], seed: int, rounds: int, statistics: bool = False
    ) -> Iterator[Result]:
        for begin in range(0, len(battles), MAX_DUELS_AT_ONCE):
            yield from fight_all(
                battles[begin : begin + MAX_DUELS_AT_ONCE],
                self.settings, rounds, seed=seed, statistics=statistics, threads=self.threads,
            )  # fmt: skip

    def duel(
        self, candidates: Sequence[Candidate], opponents: Sequence[Candidate], *, seed: int, rounds: int
    ) -> list[list[Duel]]:
        """One-on-one battles; the scores are both sides' mean shares, which add up to 2 unless both die."""
        battles = [[_warrior(one), _warrior(other)] for one in candidates for other in opponents]
        met = [other.digest for other in opponents] * len(candidates)
        shares = (result.share.mean(axis=0).tolist() for result in self._fight(battles, seed, rounds))
        duels = [Duel(digest, own, theirs, rounds) for digest, (own, theirs) in zip(met, shares, strict=True)]
        size = len(opponents)
        return [duels[index * size : (index + 1) * size] for index in range(len(candidates))]

    def looks_like_code(self, line: str) -> bool:
        text = line.strip()
        body = text.partition(";")[0]
        if not body:
            return bool(text)
        found = _CODE.match(body)
        if found is None:
            return bool(_LABEL.match(body)) and len(body) < 40
        return not _PROSE.search(body, found.end())

    def plain(self, candidate: Candidate) -> str:
        """The load file: no comments, labels, names or strategy lines."""
        warrior = _warrior(candidate)
        lines = disassemble(warrior).splitlines()
        return "\n".join(line for line in lines if not line.startswith(";")) + "\n"

    def show(self, candidate: Candidate, evaluation: Evaluation | None = None) -> str:
        warrior = _warrior(candidate)
        name = " ".join("".join(c if c.isprintable() else " " for c in warrior.name[:60]).split())
        lines = [f"{name}: {len(warrior)} instructions, {candidate.digest[:12]}"]
        if evaluation is not None:
            measures = ", ".join(f"{key} {value:g}" for key, value in sorted(evaluation.measures.items()))
            lines.append(f"share {evaluation.mean:.3f} ± {evaluation.standard_error:.3f}; {measures}")
        code = [line for line in self.plain(candidate).splitlines() if line.strip()]
        return "\n".join([*lines, *code[:16], *(["…"] if len(code) > 16 else [])])

    def feedback(self, evaluation: Evaluation, duels: Sequence[tuple[str, Duel]] = ()) -> str:
        lines = [
            f"Its share of the points is {evaluation.mean:.2f} (1.00 is an even share, more is better); it "
            f"spawned {evaluation.measures['spawned']:.0f} processes and executed "
            f"{evaluation.measures['coverage']:.0f} different cells."
        ]
        lines += [
            f"- alone against {name}: {duel.outcome}, {duel.own:.2f} to {duel.other:.2f}"
            for name, duel in duels
            if duel.outcome != "win"
        ]
        return "\n".join(lines)


def _axis(name: str, options: CoreWarOptions) -> Axis:
    if name not in options.edges:
        return AXES[name]
    if len(options.edges[name]) > MOST_EDGES:
        raise ConfigError(
            f"options.edges.{name}: {len(options.edges[name])} edges: give {MOST_EDGES} at most"
        )
    try:
        return Axis(name, options.edges[name])
    except ConfigError as error:
        raise ConfigError(f"options.edges.{name}: {error}") from error


def _warrior(candidate: Candidate) -> Warrior:
    if not isinstance(candidate.program, Warrior):
        raise DomainError("this candidate was not parsed by the Core War domain")
    return candidate.program
