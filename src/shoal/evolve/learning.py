"""What a search learns from one turn: the only place where its state changes.

Everything here depends on the journaled values alone, so that replaying a journal gives the same state. Of
what another node sent, only the text counts, as the verifier found it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from shoal.evolve.archive import Archive
from shoal.evolve.champion import Champion
from shoal.evolve.domain import Domain
from shoal.evolve.elite import Elite, Evaluation, Origin, cell_of
from shoal.evolve.metrics import niche_novelty, qd_score
from shoal.evolve.rounds import RoundPlan
from shoal.evolve.search_state import Happened, Placed, Result, SearchState, Step, make_arena
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.steps import (
    Answer,
    Close,
    Closed,
    Drain,
    Evidence,
    Migrant,
    Open,
    Opened,
    Program,
    Propose,
    Proposed,
    Request,
)
from shoal.node import Judged, Own, Turn
from shoal.swarm import Received

FATAL = ("authentication", "refused setting", "cassette")
"""Failures of a model that trying again does not mend."""

PEER = "peer"
"""The model of programs that another node sent: what it says about their origin is a claim."""


@dataclass(frozen=True)
class Learner:
    """`absorb` for one node, whose own programs are `model`'s."""

    settings: EvolveSettings
    domain: Domain
    plan: RoundPlan
    model: str

    def absorb(
        self,
        state: SearchState,
        turn: Turn,
        own: Own[Request, Answer],
        judged: Sequence[Judged[Evidence]],
    ) -> SearchState:
        self._take_in(state, judged)
        state.course.turn = turn.number
        happened = self._learn(state, turn, own)
        state.course.last = msgspec.structs.replace(happened, evaluations=_evaluations(own.answer))
        return state

    def _learn(self, state: SearchState, turn: Turn, own: Own[Request, Answer]) -> Happened:
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
                state.course.phase = "open"
                return Happened(turn.number, request.round, step, visitors=len(state.course.waiting))
        # The steps of the round itself cost nothing and are simply asked again.
        return Happened(turn.number, request.round, step, "missed", said=own.missed)

    def _take_in(self, state: SearchState, judged: Sequence[Judged[Evidence]]) -> None:
        course = state.course
        known = {program.digest for program in (*course.received, *course.champions)}
        for one in judged:
            received, evidence = one.received, one.verdict.evidence
            if not one.verdict.accepted or evidence is None or evidence.digest in known:
                continue
            program = Program(evidence.digest, evidence.source, Origin(PEER, received.author))
            course.take_in(Migrant(program, received.author, received.epoch, received.seq))

    def _absorb_opening(self, state: SearchState, turn: Turn, request: Open, answer: Opened) -> Happened:
        """A fresh archive with everyone who may enter it. Visitors that made a difference earn credit."""
        course, before = state.course, state.archive
        course.phase, course.seed, course.proposals = "search", request.seed, 0
        course.opponents, course.seen = list(request.opponents), set()
        state.arena = make_arena(self.domain, course, self.settings.battles)
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
            received = _as_received(migrant, self.domain.name)
            if seeded or migrant.program.digest in opponents:
                turn.credit(received, "used")
                used += 1
            if made:
                turn.credit(received, "useful")
        visitors = [migrant.program for migrant in request.visitors]
        course.received = [*course.received, *visitors][-self.plan.most_remembered :]
        known = {program.digest for program in (*course.received, *course.champions)}
        course.waiting = [one for one in course.waiting if one.program.digest not in known]
        return self._happened(
            state, turn, request.round, "open", placed=tuple(placed), visitors=len(cells), used=used,
            novelty=niche_novelty(cells, before if before is not None else ()),
        )  # fmt: skip

    def _absorb_proposal(
        self, state: SearchState, turn: Turn, request: Propose, answer: Answer | None, missed: str
    ) -> Happened:
        course, archive = state.course, state.archive
        assert archive is not None
        course.proposals += 1
        if not isinstance(answer, Proposed):
            # A call that was lost with its process says nothing about the model.
            if not missed.startswith("lost"):
                self._note_failure(state, turn, missed, fatal=False)
            return self._happened(state, turn, request.round, "propose", "missed", said=missed)
        if answer.failed:
            # Its calls went into finding out which settings the endpoint refuses: the next one knows them.
            if answer.failed != "budget":
                self._note_failure(state, turn, answer.failure, fatal=answer.failed in FATAL)
            said = answer.failure
            return self._happened(state, turn, request.round, "propose", "failed", said=said)
        course.failed, course.fatal_turn, course.trouble = [], 0, ""
        if not answer.digest:
            said = answer.problem.partition("\n")[0]
            return self._happened(state, turn, request.round, "propose", "invalid", said=said)
        if answer.evaluation is None or answer.digest in course.seen:
            digest = answer.digest
            return self._happened(state, turn, request.round, "propose", "duplicate", digest=digest)
        course.seen.add(answer.digest)
        origin = Origin(self.model, turn.node, request.round, request.parent)
        elite = Elite(answer.digest, answer.source, (answer.evaluation,), origin)
        placement = archive.add(elite)
        return self._happened(
            state, turn, request.round, "propose", placement.status, digest=answer.digest,
            cell=placement.cell, fitness=answer.evaluation.fitness,
        )  # fmt: skip

    def _absorb_closing(self, state: SearchState, turn: Turn, request: Close, answer: Closed) -> Happened:
        """The finalist that does best on fresh seeds is the champion; equal ones are told apart by digest."""
        course = state.course
        tested = list(zip(request.finalists, answer.evaluations, strict=True))
        if tested:
            champion, evaluation = max(tested, key=lambda one: (one[1].fitness, one[0].digest))
            course.champions = [*course.champions, champion][-self.plan.most_remembered :]
            happened = self._happened(
                state, turn, request.round, "close", digest=champion.digest, fitness=evaluation.fitness,
                cell=cell_of(self.domain.axes, evaluation.measures),
            )  # fmt: skip
        else:
            happened = self._happened(state, turn, request.round, "close", said="the archive is empty")
        course.round += 1
        course.phase = "drain" if course.round < self.settings.rounds else "done"
        return happened

    def _place(
        self, archive: Archive, seen: set[str], program: Program, evaluation: Evaluation
    ) -> list[Placed]:
        seen.add(program.digest)
        placement = archive.add(Elite(program.digest, program.source, (evaluation,), program.origin))
        if placement.status not in ("new", "improved"):
            return []
        origin = program.origin
        return [Placed(placement.cell, evaluation.fitness, program.digest, origin.model, origin.node)]

    def _note_failure(self, state: SearchState, turn: Turn, trouble: str, *, fatal: bool) -> None:
        state.course.failed.append(turn.number)
        state.course.trouble = trouble
        if fatal:
            state.course.fatal_turn = turn.number

    def _happened(
        self,
        state: SearchState,
        turn: Turn,
        round_number: int,
        step: Step,
        result: Result = "",
        **more: Any,
    ) -> Happened:
        archive, arena = state.archive, state.arena
        assert archive is not None
        assert arena is not None
        best = archive.best
        return Happened(
            turn.number, round_number, step, result, cells=len(archive), warriors=arena.warriors,
            best=None if best is None else archive.fitness(best), qd_score=qd_score(archive), **more,
        )  # fmt: skip


def _evaluations(answer: Answer | None) -> int:
    """How many programs were evaluated for this answer."""
    if isinstance(answer, Opened | Closed):
        return len(answer.evaluations)
    return int(isinstance(answer, Proposed) and answer.evaluation is not None)


def _as_received(migrant: Migrant, domain: str) -> Received:
    """Enough of the item for the accounts, which go by its author."""
    champion = Champion(domain, migrant.program.source)
    return Received(migrant.author, "champion", champion, migrant.epoch, migrant.seq, 0, 0.0, 0.0, b"")
