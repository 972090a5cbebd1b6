"""What a round is made of: whom candidates meet, who enters the archive, how many calls begin it.

Pure functions of settings and course; nothing here depends on time, arrival order or the other nodes.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from shoal.evolve.archive import Archive
from shoal.evolve.domain import Candidate, Domain
from shoal.evolve.elite import Elite, Origin, better
from shoal.evolve.opponents import choose_opponents
from shoal.evolve.search_state import Course
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.steps import Close, Open, Program
from shoal.models import parse_spec
from shoal.runs import derive_integer

STARTER = "starter"
"""The model of programs that nobody's model wrote."""

MOST_VISITORS = 64
LEAST_REMEMBERED = 64


class RoundPlan:
    """How the rounds of a run are laid out for one domain."""

    def __init__(self, settings: EvolveSettings, domain: Domain) -> None:
        self.settings = settings
        self.domain = domain
        starters = domain.starters()
        self._parse = lru_cache(maxsize=512)(domain.parse)
        self._initial = [
            Program(candidate.digest, candidate.source, Origin(STARTER))
            for candidate in (self._parse(starters[name]) for name in settings.initial_opponents(domain))
        ]
        self.most_remembered = max(LEAST_REMEMBERED, settings.history)

    @property
    def seeds_visitors(self) -> bool:
        return self.settings.sharing in ("both", "seeds")

    @property
    def meets_visitors(self) -> bool:
        return self.settings.sharing in ("both", "opponents")

    def open(self, course: Course, seed: int) -> Open:
        """The next round with what is known now. Migrants come in the order of their authors' numbers."""
        settings = self.settings
        known = {program.digest for program in (*course.received, *course.champions)}
        visitors = []
        for migrant in sorted(course.waiting, key=lambda one: one.order)[-MOST_VISITORS:]:
            if migrant.program.digest not in known:
                known.add(migrant.program.digest)
                visitors.append(migrant)
        received = [*course.received, *(migrant.program for migrant in visitors)]
        opponents = self._opponents(course.champions, received if self.meets_visitors else ())
        entrants: dict[str, Program] = {}
        if settings.seed_opponents:
            entrants |= {program.digest: program for program in self._initial}
        history = settings.history
        if settings.seed_champions and history:
            entrants |= {program.digest: program for program in course.champions[-history:]}
        if self.seeds_visitors and history:
            entrants |= {program.digest: program for program in course.received[-history:]}
        battle_seed = derive_integer(seed, "battles", course.round, bits=31)
        return Open(course.round, battle_seed, opponents, tuple(entrants.values()), tuple(visitors))

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
