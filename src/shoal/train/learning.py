"""Absorbing a turn: own and chosen foreign groups become one step of learning, with a line that says so."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence

import msgspec

from shoal.errors import TrainError
from shoal.node import Own, Turn
from shoal.policy.advantage import advantages, is_informative
from shoal.policy.base import LearningGroup, Learnt, Sampled
from shoal.policy.pool import Entry
from shoal.policy.selection import adapt, kind_of_task
from shoal.tasks.scoring import rewards as rewards_of
from shoal.train.settings import NodePlan, TrainSettings
from shoal.train.steps import Answer, Evaluated, OwnGroup, Request, Sample, SampledGroups
from shoal.train.train_state import Figures, Gathered, Happened, TrainState

SMOOTHING = 0.1
"""Weight of a new group in the moving mean of a family's reward."""


class Learner:
    """Changes a trainer's state; depends on nothing but its arguments; `processor_time` is for the
    notes only."""

    def __init__(
        self, settings: TrainSettings, plan: NodePlan, processor_time: Callable[[], float] = time.process_time
    ) -> None:
        self._processor_time = processor_time
        self._settings = settings
        self._plan = plan

    def absorbed(self, state: TrainState) -> int:
        """The last turn that was."""
        return state.figures.last.turn if state.figures.last is not None else 0

    def absorb(self, state: TrainState, turn: Turn, own: Own[Request, Answer]) -> TrainState:
        began = self._processor_time()
        figures, gathered = state.figures, state.gathered
        state.gathered = Gathered()
        if isinstance(own.request, Sample):
            figures.counter = own.request.counter + len(own.request.families)
        if isinstance(own.answer, SampledGroups):
            happened = self._learn(state, turn, own.answer, gathered, began)
        elif isinstance(own.answer, Evaluated):
            figures.evaluated = figures.step
            happened = self._evaluated(turn, figures, own.answer, gathered)
        else:
            self._fail(figures, own.missed)
            said = f"step {figures.step + 1}: nothing was sampled: {own.missed}"
            happened = Happened(turn.number, figures.step, "missed", said=said)
        figures.last = happened
        return state

    def _evaluated(self, turn: Turn, figures: Figures, answer: Evaluated, gathered: Gathered) -> Happened:
        total = sum(one.total for one in answer.families.values())
        reward = sum(one.reward for one in answer.families.values())
        said = f"step {figures.step}: held-out reward {reward / total if total else 0.0:.3f} on {total} tasks"
        return Happened(
            turn.number,
            figures.step,
            "evaluation",
            seen=gathered.seen,
            dropped=dict(gathered.dropped),
            held_out=answer.families,
            cpu=answer.cpu,
            said=said,
        )

    def _learn(
        self, state: TrainState, turn: Turn, answer: SampledGroups, gathered: Gathered, began: float
    ) -> Happened:
        figures = state.figures
        figures.step += 1
        own = [(one, rewards_of(one.scores, self._settings.reward)) for one in answer.groups]
        informative = [one for one in own if is_informative(one[1])]
        trained = informative if self._settings.filter_own else own
        learnt, trouble = self._take_step(state, trained, gathered.chosen)
        if trouble or (self._plan.local and not own):
            self._fail(figures, trouble or _most_common(answer.refused))
        else:
            figures.failed = 0
        self._credit(state, turn, gathered.chosen)
        families: dict[str, tuple[float, int]] = {}
        for group, rewards in own:
            total, count = families.get(group.task.family, (0.0, 0))
            families[group.task.family] = (total + sum(rewards), count + len(rewards))
            self._remember(figures, group.task.family, sum(rewards) / len(rewards))
        oldest = max((figures.step - 1 - entry.step for entry in gathered.chosen), default=0)
        if self._settings.adaptive:
            total_groups = self._plan.local + self._plan.external
            own_share = len(informative) / len(own) if own else None
            foreign_share = gathered.found / gathered.verified if gathered.verified else None
            figures.external = adapt(figures.external, total_groups, own_share, foreign_share)
            figures.local = total_groups - figures.external
        external = [reward for entry in gathered.chosen for reward in entry.rewards or ()]
        local = [reward for _, rewards in own for reward in rewards]
        happened = Happened(
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
            verified=gathered.verified,
            found=gathered.found,
            used=len(gathered.chosen),
            oldest=oldest,
            used_authors=tuple(entry.author for entry in gathered.chosen),
            dropped=dict(sorted(gathered.dropped.items())),
            refused=dict(sorted((gathered.refused + _counter(answer.refused)).items())),
            loss=None if learnt is None else learnt.loss,
            gradient_norm=None if learnt is None else learnt.gradient_norm,
            trained_tokens=0 if learnt is None else learnt.tokens,
            left_out=0 if learnt is None else learnt.dropped,
            parts={} if learnt is None else learnt.parts,
            tokens=answer.tokens,
            cpu=answer.cpu + self._processor_time() - began,
        )
        return _with_line(happened, trouble)

    def _take_step(
        self,
        state: TrainState,
        own: Sequence[tuple[OwnGroup, tuple[float, ...]]],
        chosen: Sequence[Entry],
    ) -> tuple[Learnt | None, str]:
        """One step on all groups together; what went wrong, if anything did."""
        if self._plan.is_frozen or not (own or chosen):
            return None, ""
        rewards = [list(one) for _, one in own] + [list(entry.rewards or ()) for entry in chosen]
        scaled = advantages(rewards, self._settings.scale)
        groups = [
            LearningGroup(group.question, group.completions, advantage)
            for (group, _), advantage in zip(own, scaled, strict=False)
        ]
        groups += [
            LearningGroup(
                entry.group.question,
                [Sampled(one.text, one.finished, (), one.log_probs) for one in entry.group.completions],
                advantage,
                foreign=True,
                tokenizer=entry.group.tokenizer,
            )
            for entry, advantage in zip(chosen, scaled[len(own) :], strict=True)
        ]
        try:
            return state.policy.learn(groups, self._settings.learning, self._settings.temperature), ""
        except TrainError as error:
            return None, str(error)

    def _credit(self, state: TrainState, turn: Turn, chosen: Sequence[Entry]) -> None:
        """Used; and useful where the group does better than this node's own lately."""
        figures = state.figures
        for entry in chosen:
            assert entry.rewards is not None
            received = entry.received()
            turn.credit(received, "used")
            mean = sum(entry.rewards) / len(entry.rewards)
            if mean > figures.recent.get(entry.group.task.family, 0.0):
                turn.credit(received, "useful")
            kind = kind_of_task(entry)
            figures.uses[kind] = figures.uses.get(kind, 0) + 1
            state.pool.remove(entry)

    def _remember(self, figures: Figures, family: str, reward: float) -> None:
        before = figures.recent.get(family)
        figures.recent[family] = reward if before is None else before + SMOOTHING * (reward - before)

    def _fail(self, figures: Figures, why: str) -> None:
        figures.failed += 1
        figures.trouble = why


def _with_line(happened: Happened, trouble: str) -> Happened:
    """The line that explains a step."""
    parts = [
        f"{happened.own} own ({happened.own_informative} informative)",
        f"{happened.seen} seen",
        f"{happened.verified} verified",
        f"{happened.found} informative",
        f"{happened.used} used",
    ]
    line = f"step {happened.step}: " + ", ".join(parts)
    if happened.used:
        line += f", oldest {happened.oldest} steps"
    if happened.reward_local is not None:
        line += f"; reward {happened.reward_local:.3f}"
    lost = {**happened.dropped}
    for reason, count in happened.refused.items():
        lost[reason] = lost.get(reason, 0) + count
    if lost:
        line += "; dropped: " + ", ".join(f"{count} {reason}" for reason, count in lost.items())
    if trouble:
        line += f"; no step was taken: {trouble}"
    return msgspec.structs.replace(happened, said=line)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _most_common(refused: dict[str, int]) -> str:
    reasons = sorted(refused, key=lambda reason: (-refused[reason], reason))
    return f"no task could be posed: {reasons[0]}" if reasons else "no task could be posed"


def _counter(counts: dict[str, int]) -> Counter[str]:
    return Counter(counts)
