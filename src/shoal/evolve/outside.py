"""The outside of a search: the model writes and the domain evaluates, in one thread per request, so that
calls wait beside each other and a compiled engine plays on all cores. The answer carries the evaluation, so
nothing is played again on resume."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import msgspec

from shoal.evolve.asking import Asker, Written
from shoal.evolve.domain import Candidate, Domain
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.state import Arena, SearchState
from shoal.node import Call, Reply, Threads
from shoal.runs.search import (
    Close,
    Closed,
    Drain,
    Drained,
    Evaluation,
    Open,
    Opened,
    Program,
    Propose,
    Proposed,
    SearchAnswer,
    SearchRequest,
)

CORES = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1

EVALUATIONS = threading.BoundedSemaphore(CORES + 1)
"""Evaluations at a time in this process: one more than cores, as one usually waits for the interpreter."""


Job = Callable[[], Reply[SearchAnswer]]


class SearchOutside(Threads[Job, SearchAnswer]):
    def __init__(self, settings: EvolveSettings, domain: Domain, asker: Asker) -> None:
        super().__init__(lambda job: job())
        self._settings = settings
        self._domain = domain
        self._asker = asker

    def begin(self, call: Call, state: SearchState, request: SearchRequest, now: float) -> None:  # type: ignore[override]
        super().begin(call, None, self._job(call, state, request), now)

    def answer(self, state: SearchState, request: SearchRequest) -> Reply[SearchAnswer]:
        """The same at once, in this thread, for simulated nodes."""
        return self._job(Call(0, 0), state, request)()

    def _job(self, call: Call, state: SearchState, request: SearchRequest) -> Job:
        """The request with the parts of the state that it needs, taken while the state stands still."""
        seen = frozenset(state.course.seen) if isinstance(request, Propose) else frozenset()
        return partial(self._work, call, request, state.arena, seen)

    def _work(
        self, call: Call, request: SearchRequest, arena: Arena | None, seen: frozenset[str]
    ) -> Reply[SearchAnswer]:
        if isinstance(request, Drain):
            return Reply(Drained(), {})
        if isinstance(request, Open):
            opponents = tuple(self._domain.parse(program.source) for program in request.opponents)
            programs = [*request.entrants, *(migrant.program for migrant in request.visitors)]
            found = self._evaluate(programs, opponents, request.seed, self._settings.repeats)
            return Reply(Opened(found), {})
        assert arena is not None
        if isinstance(request, Close):
            opponents, repeats = arena.opponents, self._settings.retest_repeats
            return Reply(Closed(self._evaluate(request.finalists, opponents, request.seed, repeats)), {})
        written = self._asker.ask(request, self._feedback(request, arena), call.spend)
        spent = written.spent
        cost = {"calls": spent.calls, "tokens": spent.tokens, "microdollars": spent.microdollars}
        return Reply(self._proposed(written, arena, seen), cost)

    def _proposed(self, written: Written, arena: Arena, seen: frozenset[str]) -> Proposed:
        """The answer with its cost and the evaluation of its program, unless that was seen before."""
        candidate, text = written.candidate, written.answer.text
        proposed = msgspec.structs.replace(
            written.answer, calls=written.spent.calls, tokens=written.spent.tokens
        )
        if candidate is None:
            return proposed
        evaluation = None
        if candidate.digest not in seen:
            evaluation = self._evaluate_one(candidate, arena.opponents, arena.seed, arena.repeats)
        return msgspec.structs.replace(
            proposed,
            digest=candidate.digest,
            source=candidate.source,
            evaluation=evaluation,
            text="" if text == candidate.source else text,
        )

    def _feedback(self, request: Propose, arena: Arena) -> str | None:
        """The informed mode's words about the parent: its score, and the opponents it does not beat alone."""
        if request.parent_evaluation is None:
            return None
        parent = self._domain.parse(request.parent_source)
        with EVALUATIONS:
            (duels,) = self._domain.duel(
                [parent], arena.opponents, seed=arena.seed, rounds=min(4, arena.repeats)
            )
        named = [(f"opponent {number}", duel) for number, duel in enumerate(duels, start=1)]
        return self._domain.feedback(request.parent_evaluation, named)

    def _evaluate(
        self, programs: Sequence[Program], opponents: Sequence[Candidate], seed: int, repeats: int
    ) -> tuple[Evaluation, ...]:
        """Several programs beside each other."""

        def evaluate(program: Program) -> Evaluation:
            return self._evaluate_one(self._domain.parse(program.source), opponents, seed, repeats)

        with ThreadPoolExecutor(CORES) as pool:
            return tuple(pool.map(evaluate, programs))

    def _evaluate_one(
        self, candidate: Candidate, opponents: Sequence[Candidate], seed: int, repeats: int
    ) -> Evaluation:
        with EVALUATIONS:
            (evaluation,) = self._domain.evaluate([candidate], opponents, seed=seed, rounds=repeats)
        return evaluation
