"""The Red-Queen search as the five functions of a node: produce, share, gather, verify, absorb.

A round takes in the champions that have arrived, opens a fresh archive with them and with own champions,
proposes programs until the round's calls are spent, tests the best elites again on fresh seeds, and shares
the winner. Nobody waits for anybody. With nothing received it is the search of a single node, bit for bit.

What a sender claims never enters: the text is assembled here, evaluated here, and placed by that alone.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from shoal.errors import CandidateError
from shoal.evolve import search_state
from shoal.evolve.champion import Champion, champion_kinds
from shoal.evolve.domain import Domain
from shoal.evolve.learning import Learner
from shoal.evolve.rounds import RoundPlan
from shoal.evolve.search_state import Happened, SearchState
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.steps import Answer, Drain, Evidence, Propose, Request
from shoal.node import Judged, Own, Proposal, Turn, Verdict
from shoal.runs import Ledger
from shoal.swarm import Received

Costs = Callable[[Propose], Mapping[str, int]]
"""What a proposal may cost at most."""


class Searcher:
    """One node's search, the `index`-th of the run. `attach` must be called before it is driven."""

    name = "evolve"
    kinds = champion_kinds()
    request_type: Any = Request
    answer_type: Any = Answer
    evidence_type = Evidence

    def __init__(self, settings: EvolveSettings, index: int, domain: Domain, costs: Costs) -> None:
        self.settings = settings
        self.index = index
        self.model = settings.models[index]
        self.domain = domain
        self.plan = RoundPlan(settings, domain)
        self._learner = Learner(settings, domain, self.plan, self.model)
        self._costs = costs
        self._ledger = Ledger()
        self._resumed_at = 0

    def attach(self, ledger: Ledger, turns: int) -> None:
        """Gives it the node's ledger, from which `produce` sees what is left, and forgives the failures of
        earlier processes. Neither is part of the state: `produce` is never called again on resume."""
        self._ledger = ledger
        self._resumed_at = turns

    def initial_state(self) -> SearchState:
        return SearchState()

    # What to do next.

    def produce(self, state: SearchState, turn: Turn) -> Proposal[Request] | None:
        course = state.course
        under_way = turn.number - 1 - course.turn
        if course.phase == "done" or self.trouble(state):
            return None
        if course.phase == "search" and not self._round_is_over(state):
            proposal = self._propose(state, turn, course.proposals + under_way)
            # Where tokens or money have run out, the round is closed all the same.
            if self._ledger.fits(proposal.reserve):
                return proposal
        if under_way:
            return None
        if course.phase == "drain":
            return Proposal(Drain(course.round))
        if course.phase == "open":
            return Proposal(self.plan.open(course, turn.seed))
        assert state.archive is not None
        return Proposal(self.plan.close(course, state.archive, turn.seed))

    def calls_left(self, round_number: int) -> int:
        """Calls that this round may still begin."""
        ledger = self._ledger
        taken = ledger.spent.get("calls", 0) + ledger.reserved.get("calls", 0)
        return self.settings.calls_until(self.index, round_number) - taken

    def trouble(self, state: SearchState) -> str:
        """Why the node gives up, or nothing: its model failed for good, or too often in a row."""
        course = state.course
        failed = [turn for turn in course.failed if turn > self._resumed_at]
        if len(failed) >= self.settings.give_up_after or course.fatal_turn > self._resumed_at:
            return course.trouble
        return ""

    def _round_is_over(self, state: SearchState) -> bool:
        stop, archive, arena = self.settings.early_stop, state.archive, state.arena
        if stop is not None and archive is not None and arena is not None and archive.best is not None:
            # Fitness grows with the number of warriors. DRQ leaves that out, and a mere tie ends its rounds.
            is_enough = archive.fitness(archive.best) > stop * arena.warriors
            if is_enough:
                return True
        # What is under way may give calls back, so `produce` lets a round end only once nothing is.
        return self.calls_left(state.course.round) <= 0

    def _propose(self, state: SearchState, turn: Turn, number: int) -> Proposal[Request]:
        """The `number`-th proposal of the round, counted from 0."""
        settings, archive, course = self.settings, state.archive, state.course
        assert archive is not None
        seed = turn.random("sampling").getrandbits(62)
        calls = min(self.plan.most_calls(self.model), self.calls_left(course.round))
        is_new = turn.random("operator").random() < settings.new_share
        warm = number < self.plan.warm_start(self.index, course.round)
        if warm or is_new or settings.fresh_only or not len(archive):
            request = Propose(course.round, "new", seed, calls)
        else:
            parent = archive.sample(turn.random("parent"))
            evaluation = archive.evaluation(parent) if settings.informed else None
            request = Propose(course.round, "mutate", seed, calls, parent.digest, parent.source, evaluation)
        return Proposal(request, dict(self._costs(request)))

    # The swarm.

    def share(self, state: SearchState, turn: Turn, fresh: Own[Request, Answer] | None) -> Iterable[Champion]:
        last, champions = state.course.last, state.course.champions
        closed = last is not None and last.step == "close" and last.turn == turn.number
        if fresh is None and last is not None and closed and last.digest:
            champion = champions[-1]
            yield Champion(
                self.domain.name, champion.source, last.round, champion.origin.model, last.fitness or 0.0
            )

    def gather(
        self, state: SearchState, turn: Turn, arrived: Sequence[Received]
    ) -> Generator[Received, Verdict[Evidence], None]:
        for received in arrived:  # noqa: UP028 - a list cannot take the verdicts
            yield received

    def verify(self, state: SearchState, turn: Turn, received: Received) -> Verdict[Evidence]:
        """Whether it is a program. How it does is found when the next round is opened."""
        champion = received.item
        assert isinstance(champion, Champion)
        if champion.domain != self.domain.name:
            return Verdict(False, "another domain")
        try:
            candidate = self.domain.parse(champion.source)
        except CandidateError:
            return Verdict(False, "not a program")
        return Verdict(True, evidence=Evidence(candidate.digest, self.domain.plain(candidate)))

    # What is learnt.

    def absorb(
        self,
        state: SearchState,
        turn: Turn,
        own: Own[Request, Answer],
        judged: Sequence[Judged[Evidence]],
    ) -> SearchState:
        return self._learner.absorb(state, turn, own, judged)

    def explain(self, state: SearchState, turn: Turn) -> Happened | None:
        return state.course.last

    def snapshot(self, state: SearchState, folder: Path) -> None:
        search_state.save(state, folder)

    def restore(self, folder: Path) -> SearchState:
        return search_state.restore(folder, self.domain, self.settings.battles)
