"""SAPO (Swarm sAmpling Policy Optimization) as the five functions of a node: produce, share, gather, verify,
absorb.

A step samples completions of own tasks, shares them, takes in what others shared, verifies foreign groups
until it has enough informative ones, and learns from own and foreign groups together. Nobody waits for
anybody. With nothing gathered it is GRPO on a single node, bit for bit.

What a sender claims never enters: the task is made anew here from its name, and scored here.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

from shoal.node import Judged, Own, Proposal, Turn, Verdict
from shoal.policy.advantage import is_informative
from shoal.policy.base import Policy
from shoal.policy.pool import Entry, Order, Pool, order_of
from shoal.policy.selection import walk
from shoal.runs import Ledger
from shoal.swarm import Received
from shoal.tasks.scoring import rewards as rewards_of
from shoal.tasks.verifier import SLOW, STOPPED, Problem, Refused, Scored, Scoring, Verifier
from shoal.train import train_state
from shoal.train.learning import Learner
from shoal.train.rollouts import Completion, RolloutGroup, rollout_kinds, task_seed
from shoal.train.settings import TrainSettings
from shoal.train.steps import Answer, Evaluate, Evidence, OwnGroup, Request, Sample, SampledGroups
from shoal.train.train_state import Figures, Gathered, Happened, TrainState

MOST_SLOW = 3
"""Groups that took too long, and a step verifies no more: others' tasks may not hold it up."""
VERIFY_SECONDS = 10.0
"""How long a step may verify; what was drawn and not verified then waits for another step."""
NO_TIME = "no time left in this step"
SHUNNED_STEPS = 20
MOST_SHUNNED = 4096
TOOK_TOO_LONG = "author took too long"
GIVE_UP_AFTER = 3
"""Turns in a row that come to nothing, and the node stops."""


class Trainer:
    """One node's training, the `index`-th of the run. `attach` must be called before it is driven.

    `author` is the node's id; `epoch` names this start of it, as receivers see it. `prepared`: the number of
    groups that were written before, which are sent out instead of new ones.
    """

    name = "train"
    kinds = rollout_kinds()
    request_type: Any = Request
    answer_type: Any = Answer
    evidence_type = Evidence

    def __init__(
        self,
        settings: TrainSettings,
        index: int,
        *,
        author: str,
        epoch: int,
        verifier: Verifier,
        open_policy: Callable[[], Policy],
        prepared: int | None = None,
        processor_time: Callable[[], float] = time.process_time,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._prepared = prepared
        self.settings = settings
        self.plan = settings.of(index)
        self.author = author
        self.epoch = epoch
        self.verifier = verifier
        self._open_policy = open_policy
        self._learner = Learner(settings, self.plan, processor_time)
        self._ledger = Ledger()
        self._accepted = frozenset(settings.accept)

    def attach(self, ledger: Ledger) -> None:
        """Gives it the node's ledger, from which `produce` sees what is left."""
        self._ledger = ledger

    def initial_state(self) -> TrainState:
        figures = Figures(self.plan.local, self.plan.external)
        return TrainState(self._open_policy(), figures, Pool(self.settings.pool))

    # What to do next.

    def produce(self, state: TrainState, turn: Turn) -> Proposal[Request] | None:
        if turn.number - 1 != self._learner.absorbed(state) or self.trouble(state):
            return None
        figures = state.figures
        if self._must_evaluate(figures):
            return Proposal(Evaluate(figures.step))
        if figures.step >= self.settings.steps:
            return None
        families = tuple(turn.random("tasks").choices(self.plan.tasks, k=figures.local))
        if self._prepared is not None:
            families = ("prepared",) * min(figures.local, self._prepared - figures.counter)
            if not families:
                return None
        seed = turn.random("sampling").getrandbits(62)
        request = Sample(figures.step + 1, self.epoch, figures.counter, families, seed)
        proposal: Proposal[Request] = Proposal(request, {"tokens": self._most_tokens(figures)})
        if self._ledger.fits(proposal.reserve):
            return proposal
        # Tokens have run out: the last thing to know is where that led to.
        is_known = figures.evaluated == figures.step or not self.settings.evaluate_every
        return None if is_known or self.plan.is_frozen else Proposal(Evaluate(figures.step))

    def trouble(self, state: TrainState) -> str:
        """Why the node gives up, or nothing."""
        return state.figures.trouble if state.figures.failed >= GIVE_UP_AFTER else ""

    def _most_tokens(self, figures: Figures) -> int:
        return figures.local * self.plan.group * self.settings.max_new_tokens

    def _must_evaluate(self, figures: Figures) -> bool:
        every = self.settings.evaluate_every
        if not every or self.plan.is_frozen or figures.evaluated == figures.step:
            return False
        return figures.step % every == 0 or figures.step >= self.settings.steps

    # The swarm.

    def share(
        self, state: TrainState, turn: Turn, fresh: Own[Request, Answer] | None
    ) -> Iterable[RolloutGroup]:
        """The groups just sampled. Those that were asked for under an earlier start of this node would be
        another author's to a receiver, so they stay here."""
        if fresh is None or not isinstance(fresh.request, Sample) or fresh.request.epoch != self.epoch:
            return
        if not isinstance(fresh.answer, SampledGroups):
            return
        groups = list(fresh.answer.groups)
        if self.settings.sharing == "informative":
            groups = [one for one in groups if is_informative(rewards_of(one.scores, self.settings.reward))]
        elif self.settings.sharing == "sample" and groups:
            groups = [turn.random("share").choice(groups)]
        for group in groups:
            yield self._to_send(group, state.policy)

    def _to_send(self, group: OwnGroup, policy: Policy) -> RolloutGroup:
        send = self.settings.send_log_probs
        return RolloutGroup(
            group.task,
            group.question,
            tuple(
                Completion(one.text, one.finished, one.log_probs if send else ()) for one in group.completions
            ),
            self.plan.model,
            policy.tokenizer,
            self.settings.temperature,
        )

    def gather(
        self, state: TrainState, turn: Turn, arrived: Sequence[Received]
    ) -> Generator[Received, Verdict[Evidence], None]:
        """Everything into the pool, unverified; then a walk through the pool that verifies what it draws."""
        figures, pool = state.figures, state.pool
        state.gathered = gathered = Gathered(seen=len(arrived))
        figures.shunned = {name: until for name, until in figures.shunned.items() if until > figures.step}
        welcome = [one for one in arrived if one.author not in figures.shunned]
        if len(welcome) < len(arrived):
            gathered.dropped[TOOK_TOO_LONG] += len(arrived) - len(welcome)
        gathered.dropped += pool.take_in(welcome, figures.step)
        if stale := pool.drop_stale(figures.step):
            gathered.dropped["stale"] += stale
        if self._must_evaluate(figures) or self.plan.is_frozen:
            return
        path = walk(
            self.settings.selection,
            pool,
            figures.external,
            self.settings.verify_budget,
            turn.random("selection"),
            figures.uses,
        )
        try:
            entries = next(path)
            while True:
                gathered.ahead = {
                    entry.order: entry.received() for entry in entries if entry.author not in figures.shunned
                }
                rewards: list[tuple[float, ...] | None] = []
                for entry in entries:
                    if entry.author in figures.shunned:
                        rewards.append(None)
                        continue
                    verdict = yield gathered.ahead[entry.order]
                    rewards.append(self._take_verdict(state, entry, verdict))
                if gathered.slow >= MOST_SLOW:
                    known = [one for one in pool if one.rewards is not None and is_informative(one.rewards)]
                    gathered.chosen = known[: figures.external]
                    return
                entries = path.send(rewards)
        except StopIteration as end:
            gathered.chosen = end.value

    def _take_verdict(
        self, state: TrainState, entry: Entry, verdict: Verdict[Evidence]
    ) -> tuple[float, ...] | None:
        pool, gathered = state.pool, state.gathered
        gathered.verified += 1
        if not verdict.accepted or verdict.evidence is None:
            reason = verdict.reason.partition(":")[0]
            gathered.refused[reason] += 1
            if reason == NO_TIME:
                gathered.slow = MOST_SLOW
                return None
            pool.remove(entry)
            if reason in (SLOW, STOPPED):
                self._shun(state, entry.author)
            return None
        entry.rewards = verdict.evidence.rewards
        if is_informative(entry.rewards):
            gathered.found += 1
        else:
            pool.remove(entry)
        return entry.rewards

    def _shun(self, state: TrainState, author: str) -> None:
        """Nothing more of an author whose group took too long, for a while: a step's time is not theirs."""
        figures, gathered = state.figures, state.gathered
        gathered.slow += 1
        figures.shunned[author] = figures.step + SHUNNED_STEPS
        while len(figures.shunned) > MOST_SHUNNED:
            del figures.shunned[next(iter(figures.shunned))]
        if dropped := state.pool.forget(author):
            gathered.dropped[TOOK_TOO_LONG] += dropped

    def verify(self, state: TrainState, turn: Turn, received: Received) -> Verdict[Evidence]:
        """Makes the task anew, compares the question, scores the completions: nothing else counts."""
        gathered, name = state.gathered, order_of(received)
        if name not in gathered.verdicts:
            if gathered.seconds > VERIFY_SECONDS:
                return Verdict(False, NO_TIME)
            gathered.verdicts = self._verdicts(
                gathered, gathered.ahead.values() if name in gathered.ahead else [received]
            )
        return gathered.verdicts.pop(name)

    def _verdicts(self, gathered: Gathered, received: Iterable[Received]) -> dict[Order, Verdict[Evidence]]:
        asked = {order_of(one): self._scoring(one) for one in received}
        began = self._clock()
        scored = iter(self.verifier.score([one for one in asked.values() if one is not None]))
        gathered.seconds += self._clock() - began
        return {
            name: Verdict(False, "family is not accepted") if one is None else self._verdict(next(scored))
            for name, one in asked.items()
        }

    def _verdict(self, result: Scored | Refused) -> Verdict[Evidence]:
        if not isinstance(result, Scored):
            return Verdict(False, result.reason)
        return Verdict(True, evidence=Evidence(rewards_of(result.scores, self.settings.reward)))

    def _scoring(self, received: Received) -> Scoring | None:
        """What to ask about a foreign group; None where its family is not accepted."""
        group = received.item
        assert isinstance(group, RolloutGroup)
        task = group.task
        if self._accepted and task.family not in self._accepted:
            return None
        problem = Problem(
            task.family,
            task.version,
            task.parameters,
            task_seed(received.author, received.epoch, task.counter),
        )
        texts = tuple([one.text for one in group.completions])
        return Scoring(problem, texts, group.question, within=self.settings.answers)

    # What is learnt.

    def absorb(
        self,
        state: TrainState,
        turn: Turn,
        own: Own[Request, Answer],
        judged: Sequence[Judged[Evidence]],
    ) -> TrainState:
        return self._learner.absorb(state, turn, own)

    def explain(self, state: TrainState, turn: Turn) -> Happened | None:
        return state.figures.last

    def snapshot(self, state: TrainState, folder: Path) -> None:
        train_state.save(state, folder)

    def restore(self, folder: Path) -> TrainState:
        return train_state.restore(folder, self._open_policy(), self.settings.pool)
