"""Placing: the result of a turn changes the archive and the course, and nothing else does. Everything depends
on journaled values alone, so that a replay gives the same state. Of an item of another node only the text
counts, as the verifier found it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import msgspec

from shoal.evolve.archive import Archive, Elite, cell_of
from shoal.evolve.domain import Domain
from shoal.evolve.metrics import niche_novelty, qd_score
from shoal.evolve.rounds import RoundPlan
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.state import SearchState, make_arena
from shoal.node import Judged, Own, Turn
from shoal.runs.search import (
    Close,
    Closed,
    Drain,
    Evaluation,
    Migrant,
    Open,
    Opened,
    Origin,
    Placed,
    Program,
    Propose,
    Proposed,
    Result,
    SearchAnswer,
    SearchEvidence,
    SearchNote,
    SearchRequest,
    Step,
)
from shoal.swarm import Place

FATAL = ("authentication", "refused setting", "cassette")
"""Failures of a model that trying again does not mend."""

PEER = "peer"
"""The model of programs that another node sent: its word about their origin is a claim."""


@dataclass(frozen=True)
class Placer:
    """`absorb` for one node, whose own programs are `model`'s."""

    settings: EvolveSettings
    domain: Domain
    plan: RoundPlan
    model: str

    def absorb(
        self,
        state: SearchState,
        turn: Turn,
        own: Own[SearchRequest, SearchAnswer],
        judged: Sequence[Judged[SearchEvidence]],
    ) -> SearchState:
        self._take_in(state, judged)
        state.course.turn = turn.number
        if state.course.round < self.settings.rounds:
            state.course.work(turn.now)
        note = self._learn(state, turn, own)
        state.course.last = msgspec.structs.replace(note, evaluations=_evaluations(own.answer))
        return state

    def _learn(self, state: SearchState, turn: Turn, own: Own[SearchRequest, SearchAnswer]) -> SearchNote:
        request, answer = own.request, own.answer
        if isinstance(request, Propose):
            return self._absorb_proposal(state, turn, request, answer, own.missed)
        if isinstance(request, Open) and isinstance(answer, Opened):
            return self._absorb_opening(state, turn, request, answer)
        if isinstance(request, Close) and isinstance(answer, Closed):
            return self._absorb_closing(state, turn, request, answer)
        step: Step = "open" if isinstance(request, Open) else "close"
        if isinstance(request, Drain):
            step = "drain"
            if answer is not None:
                is_own = state.course.round < self.settings.rounds
                if not is_own:
                    state.course.heard_at = turn.now
                # A gather round that brought nothing new ends here.
                state.course.phase = "open" if is_own or state.course.waiting else "done"
                return SearchNote(turn.number, request.round, step, visitors=len(state.course.waiting))
        # The steps of the round itself cost nothing and are simply asked again.
        return SearchNote(turn.number, request.round, step, "missed", said=own.missed)

    def _take_in(self, state: SearchState, judged: Sequence[Judged[SearchEvidence]]) -> None:
        course = state.course
        known = {program.digest for program in (*course.received, *course.champions)}
        for one in judged:
            received, evidence = one.received, one.verdict.evidence
            if not one.verdict.accepted or evidence is None or evidence.digest in known:
                continue
            program = Program(evidence.digest, evidence.source, Origin(PEER, received.author))
            course.take_in(Migrant(program, received.author, received.epoch, received.seq, received.index))

    def _absorb_opening(self, state: SearchState, turn: Turn, request: Open, answer: Opened) -> SearchNote:
        """A fresh archive with everyone who may enter it. Visitors that made a difference earn credit."""
        course, before = state.course, state.archive
        course.phase, course.seed, course.proposals = "search", request.seed, 0
        course.calls_before = turn.ledger.spent.get("calls", 0)
        course.opponents, course.seen = list(request.opponents), set()
        state.arena = make_arena(self.domain, course, self.settings.repeats)
        archive = state.archive = Archive(self.domain.axes, state.arena.evaluator)
        placed: list[Placed] = []
        residents = len(request.entrants)
        for program, evaluation in zip(request.entrants, answer.evaluations[:residents], strict=True):
            placed += self._place(archive, course.seen, program, evaluation)
        cells = []
        opponents, used = {opponent.digest for opponent in request.opponents}, 0
        for migrant, evaluation in zip(request.visitors, answer.evaluations[residents:], strict=True):
            cells.append(cell_of(self.domain.axes, evaluation.measures))
            seeded = self.plan.seeds_visitors
            made = self._place(archive, course.seen, migrant.program, evaluation) if seeded else []
            placed += made
            place = Place("champion", migrant.epoch, migrant.seq, migrant.index)
            if seeded or migrant.program.digest in opponents:
                turn.credit(migrant.author, place, "used")
                used += 1
            if made:
                turn.credit(migrant.author, place, "useful")
        visitors = [migrant.program for migrant in request.visitors]
        course.received = [*course.received, *visitors][-self.plan.most_remembered :]
        known = {program.digest for program in (*course.received, *course.champions)}
        course.waiting = [one for one in course.waiting if one.program.digest not in known]
        return self._note(
            state, turn, request.round, "open", placed=tuple(placed), visitors=len(cells), used=used,
            novelty=niche_novelty(cells, before),
        )  # fmt: skip

    def _absorb_proposal(
        self, state: SearchState, turn: Turn, request: Propose, answer: SearchAnswer | None, missed: str
    ) -> SearchNote:
        course, archive = state.course, state.archive
        assert archive is not None
        note = partial(self._note, state, turn, request.round, "propose")
        course.proposals += 1
        if not isinstance(answer, Proposed):
            # A call that was lost with its process says nothing about the model.
            if not missed.startswith("lost"):
                course.fail(turn.number, missed)
            return note("missed", said=missed)
        if answer.failed:
            # Its calls found out which settings the endpoint refuses: the next proposal knows them.
            if answer.failed != "budget":
                course.fail(turn.number, answer.failure, fatal=answer.failed in FATAL)
            return note("failed", said=answer.failure)
        course.forgive()
        if not answer.digest:
            return note("invalid", said=answer.problem.partition("\n")[0])
        if answer.evaluation is None or answer.digest in course.seen:
            return note("duplicate", digest=answer.digest)
        course.seen.add(answer.digest)
        origin = Origin(self.model, turn.node, request.round, request.parent)
        placement = archive.add(Elite(answer.digest, answer.source, (answer.evaluation,), origin))
        fitness = answer.evaluation.fitness
        return note(placement.status, digest=answer.digest, cell=placement.cell, fitness=fitness)

    def _absorb_closing(self, state: SearchState, turn: Turn, request: Close, answer: Closed) -> SearchNote:
        """The finalist that does best on fresh seeds is the champion; equal ones are told apart by digest."""
        course = state.course
        tested = list(zip(request.finalists, answer.evaluations, strict=True))
        said: dict[str, Any] = {"said": "the archive is empty"}
        if tested:
            champion, evaluation = max(tested, key=lambda one: (one[1].fitness, one[0].digest))
            course.champions = [*course.champions, champion][-self.plan.most_remembered :]
            cell = cell_of(self.domain.axes, evaluation.measures)
            said = {"digest": champion.digest, "fitness": evaluation.fitness, "cell": cell}
        course.round += 1
        course.phase = "drain" if course.round < self.settings.rounds else "done"
        return self._note(state, turn, request.round, "close", **said)

    def _place(
        self, archive: Archive, seen: set[str], program: Program, evaluation: Evaluation
    ) -> list[Placed]:
        seen.add(program.digest)
        placement = archive.add(Elite(program.digest, program.source, (evaluation,), program.origin))
        if placement.status not in ("new", "improved"):
            return []
        origin = program.origin
        return [Placed(placement.cell, evaluation.fitness, program.digest, origin.model, origin.node)]

    def _note(
        self,
        state: SearchState,
        turn: Turn,
        round_number: int,
        step: Step,
        result: Result = "",
        **more: Any,
    ) -> SearchNote:
        archive, arena = state.archive, state.arena
        assert archive is not None
        assert arena is not None
        best = archive.best
        return SearchNote(
            turn.number, round_number, step, result, cells=len(archive), opponents=len(arena.opponents),
            best=None if best is None else archive.fitness(best), qd_score=qd_score(archive), **more,
        )  # fmt: skip


def _evaluations(answer: SearchAnswer | None) -> int:
    if isinstance(answer, Opened | Closed):
        return len(answer.evaluations)
    return int(isinstance(answer, Proposed) and answer.evaluation is not None)
