"""The plan of a round: opponents, entrants, first calls. It does not depend on time or other nodes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest

from shoal.errors import ConfigError
from shoal.evolve.archive import Archive, Elite, better
from shoal.evolve.domain import Candidate, Domain
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.state import Course
from shoal.models import parse_spec
from shoal.runs import derive_integer
from shoal.runs.search import Close, Open, Origin, Program

STARTER = "starter"
"""The model of programs that nobody's model wrote."""

MOST_VISITORS = 64
LEAST_REMEMBERED = 64


class RoundPlan:
    def __init__(self, settings: EvolveSettings, domain: Domain) -> None:
        self.settings = settings
        self.domain = domain
        self._parse = lru_cache(maxsize=512)(domain.parse)
        self._initial = self._given(settings.initial_opponents(domain))
        self._starters = self._given(settings.starters)
        self.most_remembered = max(LEAST_REMEMBERED, settings.history)

    @property
    def seeds_visitors(self) -> bool:
        return self.settings.sharing in ("both", "seeds")

    @property
    def meets_visitors(self) -> bool:
        return self.settings.sharing in ("both", "opponents")

    def open(self, course: Course, seed: int, kept: Sequence[Elite] = ()) -> Open:
        """The next round as things stand. Migrants come in the order of their authors' numbers. `kept` elites
        are evaluated anew and stay: those of a gather round, which finds no others."""
        settings = self.settings
        known = {program.digest for program in (*course.received, *course.champions)}
        visitors = []
        for migrant in sorted(course.waiting, key=lambda one: one.order)[-MOST_VISITORS:]:
            if migrant.program.digest not in known:
                known.add(migrant.program.digest)
                visitors.append(migrant)
        received = [*course.received, *(migrant.program for migrant in visitors)]
        opponents = self._opponents(course.champions, received if self.meets_visitors else ())
        entrants = {elite.digest: Program(elite.digest, elite.source, elite.origin) for elite in kept}
        if settings.seed_opponents:
            entrants |= {program.digest: program for program in self._initial}
        entrants |= {program.digest: program for program in self._starters}
        history = settings.history
        if settings.seed_champions and history:
            entrants |= {program.digest: program for program in course.champions[-history:]}
        if self.seeds_visitors and history:
            entrants |= {program.digest: program for program in course.received[-history:]}
        battle_seed = derive_integer(seed, "battles", course.round, bits=31)
        return Open(course.round, battle_seed, opponents, tuple(entrants.values()), tuple(visitors))

    def _given(self, names: Sequence[str]) -> list[Program]:
        sources = self.settings.sources(self.domain)
        candidates = [self._parse(sources[name]) for name in names]
        return [Program(candidate.digest, candidate.source, Origin(STARTER)) for candidate in candidates]

    def close(self, course: Course, archive: Archive, seed: int) -> Close:
        """The best elites, to be tested on seeds that no candidate was chosen by."""
        ranked: list[Elite] = []
        for elite in archive:
            place = sum(better(other, elite, archive.evaluator) for other in ranked)
            ranked.insert(place, elite)
        finalists = tuple(
            Program(elite.digest, elite.source, elite.origin) for elite in ranked[: self.settings.finalists]
        )
        return Close(course.round, derive_integer(seed, "retest", course.round, bits=31), finalists)

    def warm_start(self, index: int, round_number: int) -> int:
        """Proposals from scratch that begin a round: few where it has few calls."""
        before = self.settings.calls_until(index, round_number - 1) if round_number else 0
        calls = self.settings.calls_until(index, round_number) - before
        return min(self.settings.warm_start, calls // 4)

    def most_calls(self, model: str) -> int:
        """Calls that one proposal may spend: a builtin model does not fail, so it needs no second attempt."""
        attempts = 1 if parse_spec(model).scheme == "builtin" else self.settings.attempts
        return attempts + self.settings.repair

    def _opponents(self, own: Sequence[Program], received: Sequence[Program]) -> tuple[Program, ...]:
        limits = [self.domain.opponent_limit, self.settings.most_opponents]
        limit = min((one for one in limits if one is not None), default=None)
        programs = {program.digest: program for program in (*self._initial, *own, *received)}
        chosen = choose_opponents(
            self._candidates(self._initial),
            self._candidates(own),
            self._candidates(received),
            history=self.settings.history,
            limit=limit if limit is None else max(limit, len(self._initial)),
        )
        return tuple(programs[candidate.digest] for candidate in chosen)

    def _candidates(self, programs: Sequence[Program]) -> list[Candidate]:
        return [self._parse(program.source) for program in programs]


def choose_opponents(
    initial: Sequence[Candidate],
    own: Sequence[Candidate] = (),
    received: Sequence[Candidate] = (),
    *,
    history: int | None = None,
    limit: int | None = None,
) -> list[Candidate]:
    """The initial opponents, then own and received champions in turn, the newest first, each program once, at
    most `limit`. `own` and `received` are given oldest first, and the last `history` of each count."""
    if history is not None and history < 0:
        raise ConfigError(f"history {history}: give 0 (no champions), a positive number, or none for all")
    chosen = {candidate.digest: candidate for candidate in initial}
    if limit is not None and len(chosen) > limit:
        raise ConfigError(f"{len(chosen)} initial opponents: there is room for {limit}: give fewer")
    newest_own, newest_received = (list(reversed(champions))[:history] for champions in (own, received))
    for pair in zip_longest(newest_own, newest_received):
        for champion in pair:
            if champion is not None and (limit is None or len(chosen) < limit):
                chosen.setdefault(champion.digest, champion)
    return list(chosen.values())
