"""Absorbing a turn: own and chosen foreign groups become one step of learning, with a line that says so."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from shoal.errors import TrainError
from shoal.node import Judged, Own, Turn
from shoal.policy.advantage import advantages, is_informative
from shoal.policy.base import LearningGroup, Learnt
from shoal.policy.selection import adapt
from shoal.runs.training import (
    AnswerJudges,
    Evaluated,
    JudgesAnswered,
    OwnGroup,
    Sample,
    Sampled,
    SampledGroups,
    TrainAnswer,
    TrainEvidence,
    TrainNote,
    TrainRequest,
)
from shoal.tasks.verifier import rewards as rewards_of
from shoal.train import answering
from shoal.train.rollouts import PooledGroup
from shoal.train.settings import NodePlan, TrainSettings
from shoal.train.state import Figures, Gathered, TrainState

OwnTurn = Own[TrainRequest, TrainAnswer]
Verified = Sequence[Judged[TrainEvidence]]
Rewarded = Sequence[tuple[OwnGroup, tuple[float, ...]]]

SMOOTHING = 0.1
"""Weight of a new group in the moving mean of a family's reward."""


class Learner:
    """The learning half of a trainer: deterministic; `processor_time` is for the notes only."""

    def __init__(self, settings: TrainSettings, plan: NodePlan, processor_time: Callable[[], float]) -> None:
        self.settings = settings
        self.plan = plan
        self._processor_time = processor_time

    def absorb(self, state: TrainState, turn: Turn, own: OwnTurn, judged: Verified) -> TrainState:
        began = self._processor_time()
        figures = state.figures
        if isinstance(own.request, Sample):
            figures.counter = own.request.counter + len(own.request.families)
        if isinstance(own.answer, SampledGroups):
            figures.last = self._learn(state, turn, own.answer, judged, began)
            if self.settings.judges and isinstance(own.request, Sample):
                leaves = self.leaves(figures, turn)
                answering.step_taken(figures.judging, own.request.epoch, turn.now, leaves=leaves)
        elif isinstance(own.answer, Evaluated):
            figures.evaluated = figures.step
            figures.last = self._evaluated(turn, figures, own.answer, state.gathered)
        elif isinstance(own.request, AnswerJudges):
            said = answering.absorb(figures.judging, own)
            cpu = own.answer.cpu if isinstance(own.answer, JudgesAnswered) else 0.0
            note = TrainNote(turn.number, figures.step, "judged", cpu=cpu, said=said)
            figures.last = _with_arrivals(note, state.gathered)
        else:
            figures.failed, figures.trouble = figures.failed + 1, own.missed
            said = f"step {figures.step + 1}: nothing was sampled: {own.missed}"
            figures.last = TrainNote(turn.number, figures.step, "missed", said=said)
        state.gathered = Gathered()
        return state

    def leaves(self, figures: Figures, turn: Turn) -> bool:
        """Whether the step that was taken is the last one."""
        return figures.step >= self.settings.steps or not turn.ledger.fits(self.reserve(figures))

    def reserve(self, figures: Figures) -> dict[str, int]:
        """The most tokens that the next step may generate."""
        return {"tokens": figures.local * self.plan.group * self.settings.max_new_tokens}

    def _evaluated(self, turn: Turn, figures: Figures, answer: Evaluated, gathered: Gathered) -> TrainNote:
        total = sum(one.total for one in answer.families.values())
        reward = sum(one.reward for one in answer.families.values())
        said = f"step {figures.step}: held-out reward {reward / total if total else 0.0:.3f} on {total} tasks"
        note = TrainNote(turn.number, figures.step, "evaluation", held_out=answer.families, cpu=answer.cpu)
        return msgspec.structs.replace(_with_arrivals(note, gathered), said=said)

    def _learn(
        self, state: TrainState, turn: Turn, answer: SampledGroups, judged: Verified, began: float
    ) -> TrainNote:
        figures, gathered = state.figures, state.gathered
        figures.step += 1
        own = [(one, rewards_of(one.scores, self.settings.reward)) for one in answer.groups]
        least = self.settings.least_spread
        informative = [one for one in own if is_informative(one[1], least)]
        trained = informative if self.settings.filter_own else own
        learnt, trouble = self._take_step(state, trained, gathered.chosen)
        if trouble or (self.plan.local and not own):
            reasons = sorted(answer.refused.items(), key=lambda one: (-one[1], one[0]))
            posing = ": ".join(["no task could be posed", *[reason for reason, _ in reasons[:1]]])
            figures.failed, figures.trouble = figures.failed + 1, trouble or posing
        else:
            figures.failed = 0
        self._credit(state, turn, gathered.chosen)
        families: dict[str, tuple[float, int]] = {}
        for group, rewards in own:
            total, count = families.get(group.task.family, (0.0, 0))
            families[group.task.family] = (total + sum(rewards), count + len(rewards))
            mean = sum(rewards) / len(rewards)
            before = figures.recent.get(group.task.family, mean)
            figures.recent[group.task.family] = before + SMOOTHING * (mean - before)
        oldest = max((figures.step - 1 - group.step for group in gathered.chosen), default=0)
        evidence = [one.verdict.evidence for one in judged if one.verdict.accepted]
        found = sum(one is not None and is_informative(one.rewards, least) for one in evidence)
        refused = Counter(answer.refused)
        passed_over = Counter[str]()
        for one in judged:
            if not one.verdict.accepted:
                counted = passed_over if one.verdict.passed_over else refused
                counted[one.verdict.reason.partition(":")[0]] += 1
        verified = len(judged) - passed_over.total()
        if self.settings.adaptive:
            total_groups = self.plan.local + self.plan.external
            own_share = len(informative) / len(own) if own else None
            foreign_share = found / verified if verified else None
            figures.external = adapt(figures.external, total_groups, own_share, foreign_share)
            figures.local = total_groups - figures.external
        external = [reward for group in gathered.chosen for reward in group.rewards or ()]
        local = [reward for _, rewards in own for reward in rewards]
        note = TrainNote(
            turn.number,
            figures.step,
            "step",
            own=len(own),
            own_informative=len(informative),
            reward_local=_mean(local),
            reward_external=_mean(external),
            reward_batch=_mean([reward for _, rewards in trained for reward in rewards] + external),
            families=families,
            seen=gathered.seen,
            pool=len(state.pool),
            verified=verified,
            found=found,
            used=len(gathered.chosen),
            oldest=oldest,
            used_authors=tuple(group.author for group in gathered.chosen),
            dropped=dict(sorted(gathered.dropped.items())),
            refused=dict(sorted(refused.items())),
            passed_over=dict(sorted(passed_over.items())),
            loss=None if learnt is None else learnt.loss,
            gradient_norm=None if learnt is None else learnt.gradient_norm,
            trained_tokens=0 if learnt is None else learnt.tokens,
            left_out=0 if learnt is None else learnt.dropped,
            parts={} if learnt is None else learnt.parts,
            tokens=answer.tokens,
            cpu=answer.cpu + self._processor_time() - began,
        )
        return _with_line(note, trouble)

    def _take_step(
        self, state: TrainState, own: Rewarded, chosen: Sequence[PooledGroup]
    ) -> tuple[Learnt | None, str]:
        """One step on all groups together, or the reason why there was none."""
        if self.plan.is_frozen or not (own or chosen):
            return None, ""
        rewards = [list(one) for _, one in own] + [list(group.rewards or ()) for group in chosen]
        scaled = advantages(rewards, self.settings.scale, self.settings.advantage_epsilon)
        groups = [
            LearningGroup(group.question, group.completions, advantage)
            for (group, _), advantage in zip(own, scaled, strict=False)
        ]
        groups += [
            LearningGroup(
                one.item.item.question,
                [Sampled(text.text, text.finished, (), text.log_probs) for text in one.item.item.completions],
                advantage,
                foreign=True,
                tokenizer=one.item.item.tokenizer,
            )
            for one, advantage in zip(chosen, scaled[len(own) :], strict=True)
        ]
        try:
            return state.policy.learn(groups, self.settings.learning, self.settings.temperature), ""
        except TrainError as error:
            return None, str(error)

    def _credit(self, state: TrainState, turn: Turn, chosen: Sequence[PooledGroup]) -> None:
        """Credits authors: a group was used; it was useful if it does better than this node's own lately."""
        figures = state.figures
        for group in chosen:
            assert group.rewards is not None
            received = group.item
            turn.credit(received.author, received.place, "used")
            mean = sum(group.rewards) / len(group.rewards)
            if mean > figures.recent.get(received.item.task.family, 0.0):
                turn.credit(received.author, received.place, "useful")
            figures.uses[group.topic] = figures.uses.get(group.topic, 0) + 1
            state.pool.remove(group)


def _with_arrivals(note: TrainNote, gathered: Gathered) -> TrainNote:
    """The note of a turn that learnt nothing, with the groups that arrived meanwhile."""
    return msgspec.structs.replace(note, seen=gathered.seen, dropped=dict(gathered.dropped))


def _with_line(note: TrainNote, trouble: str) -> TrainNote:
    line = (
        f"step {note.step}: {note.own} own ({note.own_informative} informative), {note.seen} seen, "
        f"{note.verified} verified, {note.found} informative, {note.used} used"
    )
    if note.used:
        line += f", oldest {note.oldest} steps"
    if note.reward_local is not None:
        line += f"; reward {note.reward_local:.3f}"
    lost = Counter(note.dropped)
    lost.update(note.refused)
    if lost:
        line += "; dropped: " + ", ".join(f"{count} {reason}" for reason, count in lost.items())
    if note.passed_over:
        told = ", ".join(f"{count} {reason}" for reason, count in note.passed_over.items())
        line += f"; passed over: {told}"
    if trouble:
        line += f"; no step was taken: {trouble}"
    return msgspec.structs.replace(note, said=line)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None
