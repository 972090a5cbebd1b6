"""The Red-Queen search as the five functions of a node. A round opens a fresh archive with own and received
champions, proposes programs until its calls are spent, tests the best elites again on fresh seeds, and shares
the winner. Nobody waits for anybody. With nothing received it is the search of a single node, bit for bit. A
sender's claims never enter: the text is parsed, evaluated and placed here."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.errors import CandidateError
from shoal.evolve import state as states
from shoal.evolve.domain import Domain
from shoal.evolve.placer import Placer
from shoal.evolve.rounds import RoundPlan
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.state import Course, SearchState
from shoal.evolve.staying import stay
from shoal.node import GiveUp, Judged, Own, Proposal, Rest, Turn, Verdict
from shoal.runs import Ledger
from shoal.runs.search import (
    MOST_CHAMPION_BYTES,
    MOST_MODEL,
    Champion,
    Drain,
    Program,
    Propose,
    SearchAnswer,
    SearchEvidence,
    SearchNote,
    SearchRequest,
    SentChampion,
)
from shoal.swarm import Kind, Kinds, Received

Costs = Callable[[Propose], Mapping[str, int]]
"""The most that one call of a proposal may cost."""


class Searcher:
    """One node's search, the `index`-th of the run."""

    name = "evolve"
    kinds = Kinds([Kind("champion", Champion, MOST_CHAMPION_BYTES, "latest", SentChampion)])
    request_type: Any = SearchRequest
    answer_type: Any = SearchAnswer
    evidence_type = SearchEvidence

    def __init__(self, settings: EvolveSettings, index: int, domain: Domain, costs: Costs) -> None:
        self.settings = settings
        self.index = index
        self.model = settings.models[index]
        self.domain = domain
        self.plan = RoundPlan(settings, domain)
        self._placer = Placer(settings, domain, self.plan, self.model)
        self._costs = costs

    def initial_state(self) -> SearchState:
        return SearchState()

    # The next request.

    def produce(self, state: SearchState, turn: Turn) -> Proposal[SearchRequest] | GiveUp | Rest | None:
        course = state.course
        under_way = turn.number - 1 - course.turn
        if course.phase == "done":
            return None if under_way else stay(self.settings, course, turn)
        if len(course.failed) >= self.settings.give_up_after or course.fatal_turn:
            return GiveUp(course.trouble)
        is_own = course.round < self.settings.rounds
        if is_own and course.phase == "search" and not self._round_is_over(state, turn.ledger):
            proposal = self._propose(state, turn, course.proposals + under_way)
            # Where tokens or money have run out, the round is closed all the same.
            if turn.ledger.fits(proposal.reserve):
                return proposal
        if under_way:
            return None
        if course.phase == "drain":
            return Proposal(Drain(course.round))
        if course.phase == "open":
            return Proposal(self.plan.open(course, turn.seed, () if is_own else tuple(state.archive or ())))
        assert state.archive is not None
        return Proposal(self.plan.close(course, state.archive, turn.seed))

    def _calls_left(self, course: Course, ledger: Ledger) -> int:
        taken = ledger.spent.get("calls", 0) + ledger.reserved.get("calls", 0)
        each = self.settings.calls_per_round
        # Calls that a round leaves go to the next one, unless each round has a number of its own.
        return (
            self.settings.calls_until(self.index, course.round) - taken
            if each is None
            else each - (taken - course.calls_before)
        )

    def _is_good_enough(self, state: SearchState) -> bool:
        settings, course, archive, arena = self.settings, state.course, state.archive, state.arena
        if archive is None or arena is None or archive.best is None:
            return False
        best = archive.fitness(archive.best)
        # Fitness grows with the number of players. DRQ leaves that out, and a mere tie, 1, ends its rounds.
        if settings.early_stop is not None and best > settings.early_stop * (len(arena.opponents) + 1):
            return True
        # Its first iteration is always made: the programs of the warm start, and one more.
        first = self.plan.warm_start(self.index, course.round) + 1
        return (
            settings.early_stop_fitness is not None
            and course.proposals >= first
            and best > settings.early_stop_fitness
        )

    def _round_is_over(self, state: SearchState, ledger: Ledger) -> bool:
        if self._is_good_enough(state):
            return True
        # Calls under way may give some back, so `produce` lets a round end only once nothing is.
        return self._calls_left(state.course, ledger) <= 0

    def _propose(self, state: SearchState, turn: Turn, number: int) -> Proposal[SearchRequest]:
        """The `number`-th proposal of the round, counted from 0."""
        settings, archive, course = self.settings, state.archive, state.course
        assert archive is not None
        seed = turn.random("sampling").getrandbits(62)
        calls = min(self.plan.most_calls(self.model), self._calls_left(course, turn.ledger))
        is_new = turn.random("operator").random() < settings.new_share
        warm = number < self.plan.warm_start(self.index, course.round)
        if warm or is_new or settings.fresh_only or not len(archive):
            request = Propose(course.round, "new", seed, calls)
        else:
            parent = archive.sample(turn.random("parent"))
            evaluation = archive.evaluation(parent) if settings.informed else None
            request = Propose(course.round, "mutate", seed, calls, parent.digest, parent.source, evaluation)
        each = self._costs(request)
        return Proposal(request, {measure: calls * amount for measure, amount in each.items()}, each)

    # The swarm.

    def share(
        self, state: SearchState, turn: Turn, fresh: Own[SearchRequest, SearchAnswer] | None
    ) -> Iterable[Champion]:
        """The champion, once its round is closed."""
        last = state.course.last
        closed = last is not None and last.step == "close" and last.turn == turn.number
        if fresh is None and last is not None and closed and last.digest:
            champion = state.course.champions[-1]
            yield self._champion(champion, last.round, last.fitness or 0.0)

    def share_again(self, state: SearchState) -> Iterable[Champion]:
        for champion in state.course.champions[-1:]:
            yield self._champion(champion, champion.origin.round)

    def _champion(self, program: Program, round_number: int, fitness: float = 0.0) -> Champion:
        model = program.origin.model[:MOST_MODEL]
        return Champion(self.domain.name, program.source, round_number, model, fitness)

    def restarted(self, state: SearchState) -> SearchState:
        """Forgives the failures of the model in earlier processes. The time since then is no time of work."""
        state.course.forgive()
        state.course.moved_at = None
        return state

    def gather(
        self, state: SearchState, turn: Turn, arrived: Sequence[Received[Champion]]
    ) -> Generator[Sequence[Received[Champion]], Sequence[Verdict[SearchEvidence]], None]:
        yield arrived

    def verify(
        self, state: SearchState, turn: Turn, batch: Sequence[Received[Champion]]
    ) -> Sequence[Verdict[SearchEvidence]]:
        """Each must be a program. It is evaluated when the next round is opened."""
        return [self._check(received.item) for received in batch]

    def _check(self, champion: Champion) -> Verdict[SearchEvidence]:
        if champion.domain != self.domain.name:
            return Verdict(False, "another domain", passed_over=True)
        try:
            candidate = self.domain.parse(champion.source)
        except CandidateError:
            return Verdict(False, "not a program")
        return Verdict(True, evidence=SearchEvidence(candidate.digest, self.domain.plain(candidate)))

    # The archive.

    def absorb(
        self,
        state: SearchState,
        turn: Turn,
        own: Own[SearchRequest, SearchAnswer],
        judged: Sequence[Judged[SearchEvidence]],
    ) -> SearchState:
        return self._placer.absorb(state, turn, own, judged)

    def explain(self, state: SearchState, turn: Turn) -> SearchNote | None:
        return state.course.last

    def snapshot(self, state: SearchState, folder: Path) -> None:
        states.save(state, folder)

    def restore(self, folder: Path) -> SearchState:
        return states.restore(folder, self.domain, self.settings.repeats)
