"""SAPO (Swarm sAmpling Policy Optimization) as the five functions of a node.

A step samples completions of own tasks, shares them, takes in the groups of others, verifies foreign groups
until it has enough informative ones, and learns from own and foreign groups together. Nobody waits for
anybody. With nothing gathered it is GRPO on a single node, bit for bit. A sender's claims never enter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from shoal.node import GiveUp, Proposal, Rest, Turn, Verdict
from shoal.policy.advantage import is_informative
from shoal.policy.base import Policy
from shoal.policy.pool import Pool
from shoal.policy.selection import filter_of, walk
from shoal.runs.judging import JudgeQuestion
from shoal.runs.moments import moment
from shoal.runs.training import (
    MOST_MODEL,
    AnswerJudges,
    Completion,
    Evaluate,
    JudgesAnswered,
    RolloutGroup,
    Sample,
    SampledGroups,
    TrainAnswer,
    TrainEvidence,
    TrainNote,
    TrainRequest,
)
from shoal.swarm import Received
from shoal.tasks.verifier import SLOW, STOPPED, Problem, Scored, Scoring, Verifier, rewards as rewards_of
from shoal.train import answering, state as states
from shoal.train.learner import Learner, OwnTurn
from shoal.train.rollouts import ROLLOUTS, PooledGroup, ReceivedGroup, pooled, task_seed
from shoal.train.settings import TrainSettings
from shoal.train.state import Figures, Gathered, TrainState

MOST_SLOW = 3
"""Groups that took too long, after which a step verifies no more: others' tasks may not hold it up."""
VERIFY_SECONDS = 10.0
"""The time that a step may verify; groups that were drawn but not verified wait for another step."""
NO_TIME = "no time left in this step"
NOT_ACCEPTED = "family is not accepted"
SHUNNED_STEPS = 20
MOST_SHUNNED = 4096
TOOK_TOO_LONG = "author took too long"
GIVE_UP_AFTER = 3
"""Turns in a row without a result, after which the node stops."""

Verdicts = Sequence[Verdict[TrainEvidence]]


class Trainer(Learner):
    """One node's training, the `index`-th of the run. `author` is the node's id; `epoch` names this start of
    it. `prepared`: the number of groups that were written before, which are sent out instead of new ones.
    """

    name = "train"
    request_type: Any = TrainRequest
    answer_type: Any = TrainAnswer
    evidence_type = TrainEvidence

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
        super().__init__(settings, settings.of(index), processor_time)
        self.kinds = answering.kinds_of(settings, ROLLOUTS)
        self._asks = bool(settings.judges) and not self.plan.is_frozen
        self.author = author
        self.epoch = epoch
        self.verifier = verifier
        self._open_policy = open_policy
        self._prepared = prepared
        self._clock = clock
        self._accepted = frozenset(settings.accept)
        self._is_useful = filter_of(settings.selection, settings.least_spread)
        self._verifying = (0, 0.0)  # a turn, and how many seconds it has verified for; no part of the state

    def initial_state(self) -> TrainState:
        figures = Figures(self.plan.local, self.plan.external)
        return TrainState(self._open_policy(), figures, Pool(self.settings.pool))

    # The next request.

    def produce(self, state: TrainState, turn: Turn) -> Proposal[TrainRequest] | GiveUp | Rest | None:
        proposal = self._propose(state, turn)
        until = self.settings.until
        if proposal is None and until and self.settings.sharing != "off":
            # Its steps are done: others can still fetch what it shared, and what it holds of others.
            end = moment(until, turn.began)
            return Rest(end) if turn.now < end else None
        return proposal

    def _propose(self, state: TrainState, turn: Turn) -> Proposal[TrainRequest] | GiveUp | None:
        figures = state.figures
        if turn.number - 1 != (figures.last.turn if figures.last is not None else 0):
            return None  # one turn at a time: a step learns before the next one samples
        if figures.failed >= GIVE_UP_AFTER:
            return GiveUp(figures.trouble)
        if self._must_evaluate(figures):
            return Proposal(Evaluate(figures.step))
        if self._must_answer(figures):
            seed = turn.random("judge").getrandbits(61)
            return Proposal(AnswerJudges(figures.step, figures.judging.pending, seed))
        if figures.step >= self.settings.steps:
            return None
        turn = answering.in_training(turn, figures.judging)
        families = tuple(turn.random("tasks").choices(self.plan.tasks, k=figures.local))
        if self._prepared is not None:
            families = ("prepared",) * min(figures.local, self._prepared - figures.counter)
            if not families:
                return None
        seed = turn.random("sampling").getrandbits(62)
        request = Sample(figures.step + 1, self.epoch, figures.counter, families, seed)
        if turn.ledger.fits(reserve := self.reserve(figures)):
            return Proposal(request, reserve)
        # Tokens have run out: one evaluation at the end shows where that led to.
        is_known = figures.evaluated == figures.step or not self.settings.evaluate_every
        return None if is_known or self.plan.is_frozen else Proposal(Evaluate(figures.step))

    def _must_answer(self, figures: Figures) -> bool:
        return bool(figures.judging.pending) and not self._must_evaluate(figures)

    def _must_evaluate(self, figures: Figures) -> bool:
        every = self.settings.evaluate_every
        if not every or self.plan.is_frozen or figures.evaluated == figures.step:
            return False
        return figures.step % every == 0 or figures.step >= self.settings.steps

    # The swarm.

    def share(self, state: TrainState, turn: Turn, fresh: OwnTurn | None) -> Iterable[msgspec.Struct]:
        """The groups just sampled, or answers to judges; after a step the request for a question. Groups of
        an earlier start of this node stay here: receivers would take them for another's."""
        figures, judging = state.figures, state.figures.judging
        stepped = fresh is None and figures.last is not None and figures.last.kind == "step"
        if stepped and self._asks and judging.asks_at == turn.now:
            leaves = self.leaves(figures, turn)
            yield answering.request(self.settings, self.plan, judging, figures.step, leaves=leaves)
        if fresh is not None and isinstance(fresh.request, AnswerJudges):
            if isinstance(fresh.answer, JudgesAnswered):
                yield from answering.answers(fresh.request, fresh.answer)
            return
        if fresh is None or self.settings.sharing == "off":
            return
        if not isinstance(fresh.request, Sample) or fresh.request.epoch != self.epoch:
            return
        if not isinstance(fresh.answer, SampledGroups):
            return
        groups = list(fresh.answer.groups)
        if self.settings.sharing == "informative":
            rewards = [rewards_of(one.scores, self.settings.reward) for one in groups]
            least = self.settings.least_spread
            groups = [one for one, found in zip(groups, rewards, strict=True) if is_informative(found, least)]
        elif self.settings.sharing == "sample" and groups:
            groups = [answering.in_training(turn, judging).random("share").choice(groups)]
        send, temperature = self.settings.send_log_probs, self.settings.temperature
        model = self.plan.model[:MOST_MODEL]
        for group in groups:
            texts = [(one.text, one.finished, one.log_probs if send else ()) for one in group.completions]
            written, tokenizer = tuple([Completion(*text) for text in texts]), state.policy.tokenizer
            yield RolloutGroup(group.task, group.question, written, model, tokenizer, temperature)

    def gather(
        self, state: TrainState, turn: Turn, arrived: Sequence[ReceivedGroup]
    ) -> Generator[Sequence[ReceivedGroup], Verdicts, None]:
        """Puts everything into the pool, unverified; then walks through it and verifies the drawn groups."""
        figures, pool = state.figures, state.pool
        learns = not (self._must_evaluate(figures) or self._must_answer(figures) or self.plan.is_frozen)
        arrived = self._take_questions(figures, turn.now, arrived)
        state.gathered = gathered = Gathered(seen=len(arrived))
        figures.shunned = {name: until for name, until in figures.shunned.items() if until > figures.step}
        self._take_in(state, arrived)
        if not learns:
            return
        rng = answering.in_training(turn, figures.judging).random("selection")
        budget = self.settings.verify_budget
        path = walk(
            self.settings.selection,
            pool,
            figures.external,
            budget,
            rng,
            figures.uses,
            self.settings.least_spread,
        )
        slow = 0
        try:
            batch = next(path)
            while True:
                welcome = [group for group in batch if group.author not in figures.shunned]
                verdicts = (yield [group.item for group in welcome]) if welcome else ()
                for group, verdict in zip(welcome, verdicts, strict=True):
                    if group.author not in figures.shunned:  # by an earlier verdict of this batch
                        slow += self._take_verdict(state, group, verdict)
                if slow >= MOST_SLOW:
                    known = [one for one in pool if one.rewards is not None and self._is_useful(one.rewards)]
                    gathered.chosen = known[: figures.external]
                    return
                batch = path.send([group.rewards for group in batch])
        except StopIteration as end:
            gathered.chosen = end.value

    def _take_questions(
        self, figures: Figures, now: float, arrived: Sequence[Received[Any]]
    ) -> Sequence[ReceivedGroup]:
        """Keeps what judges ask, and returns the rollout groups."""
        if not self.settings.judges:
            return arrived
        questions = [one for one in arrived if isinstance(one.item, JudgeQuestion)]
        if self._asks:
            answering.take_in(figures.judging, self.settings, self.plan, questions, figures.step, now)
        return [one for one in arrived if isinstance(one.item, RolloutGroup)]

    def _take_in(self, state: TrainState, arrived: Sequence[ReceivedGroup]) -> None:
        figures, pool, dropped = state.figures, state.pool, state.gathered.dropped
        welcome = [one for one in arrived if one.author not in figures.shunned]
        groups = [one for one in welcome if len(one.item.completions) > 1]
        dropped[TOOK_TOO_LONG] += len(arrived) - len(welcome)
        dropped["single completion"] += len(welcome) - len(groups)
        dropped += pool.take_in([pooled(one, figures.step) for one in groups])
        dropped["stale"] += pool.drop_stale(figures.step)
        state.gathered.dropped = +dropped

    def _take_verdict(self, state: TrainState, group: PooledGroup, verdict: Verdict[TrainEvidence]) -> int:
        """Notes the rewards of a group, or removes it; returns how far that is from holding up the step."""
        if verdict.accepted and verdict.evidence is not None:
            group.rewards = verdict.evidence.rewards
            if not self._is_useful(group.rewards):
                state.pool.remove(group)
            return 0
        reason = verdict.reason.partition(":")[0]
        if reason == NO_TIME:
            return MOST_SLOW
        state.pool.remove(group)
        if reason not in (SLOW, STOPPED):
            return 0
        self._shun(state, group.author)
        return 1

    def _shun(self, state: TrainState, author: str) -> None:
        """Leaves an author whose group took too long alone for a while: a step's time is not theirs."""
        figures = state.figures
        figures.shunned[author] = figures.step + SHUNNED_STEPS
        while len(figures.shunned) > MOST_SHUNNED:
            del figures.shunned[next(iter(figures.shunned))]
        if dropped := state.pool.forget(author):
            state.gathered.dropped[TOOK_TOO_LONG] += dropped

    def verify(self, state: TrainState, turn: Turn, batch: Sequence[ReceivedGroup]) -> Verdicts:
        """Makes the tasks anew, compares the questions, scores the completions: nothing else counts."""
        number, seconds = self._verifying
        spent = seconds if number == turn.number else 0.0
        if spent > VERIFY_SECONDS:
            return [Verdict(False, NO_TIME, passed_over=True)] * len(batch)
        asked = [self._scoring(received) for received in batch]
        began = self._clock()
        scored = iter(self.verifier.score([one for one in asked if one is not None]))
        self._verifying = (turn.number, spent + self._clock() - began)
        verdicts: list[Verdict[TrainEvidence]] = []
        for one in asked:
            result = None if one is None else next(scored)
            if isinstance(result, Scored):
                rewards = rewards_of(result.scores, self.settings.reward)
                verdicts.append(Verdict(True, evidence=TrainEvidence(rewards)))
            elif result is None:
                verdicts.append(Verdict(False, NOT_ACCEPTED, passed_over=True))
            else:
                verdicts.append(Verdict(False, result.reason, passed_over=result.uncheckable))
        return verdicts

    def _scoring(self, received: ReceivedGroup) -> Scoring | None:
        """The question to the verifier about a foreign group; None if its family is not accepted."""
        group = received.item
        task = group.task
        if self._accepted and task.family not in self._accepted:
            return None
        seed = task_seed(received.author, received.epoch, task.counter)
        problem = Problem(task.family, task.version, task.parameters, seed)
        texts = tuple([one.text for one in group.completions])
        return Scoring(problem, texts, group.question, within=self.settings.answers)

    # The journal and the checkpoints; `absorb` is the learner's.

    def explain(self, state: TrainState, turn: Turn) -> TrainNote | None:
        return state.figures.last

    def snapshot(self, state: TrainState, folder: Path) -> None:
        states.save(state, folder)

    def restore(self, folder: Path) -> TrainState:
        return states.restore(folder, self._open_policy(), self.settings.pool)
