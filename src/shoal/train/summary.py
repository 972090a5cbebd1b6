"""A training run in numbers, from its folder alone; works on runs that are not finished.

Three rewards are told apart. *Local* is the mean over a node's own completions. *Held-out* is pass@1 on tasks
that are the same for all runs. *Cumulative*, the SAPO paper's, adds up the mean over everything that each
step trained on. It is biased: foreign groups are kept only if one of their completions is right.
"""

from __future__ import annotations

import statistics
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from itertools import accumulate
from pathlib import Path

from shoal.runs import RunFolder, load_settings, read
from shoal.runs.records import Note, Shared, Started, Stopped, content_of, decode_payload, reads_run, refusing
from shoal.runs.training import Cost, Spreading, TrainNodeSummary, TrainNote, TrainSummary
from shoal.train.rollouts import ROLLOUTS
from shoal.train.settings import NodePlan, TrainSettings

RECENT = 10
"""Steps whose mean is a node's present local reward."""
LEVELS = (0.1, 0.25, 0.5, 0.75, 0.9)
"""Held-out rewards whose cost is told."""
SWING, LEAST_SWING = 0.25, 0.01


@dataclass
class NodeHistory:
    """The turns of a node, from its journal. `ended` says why the newest process stopped; "": it goes on."""

    turns: list[TrainNote] = field(default_factory=list)
    shared: int = 0
    ended: str = ""

    @property
    def steps(self) -> list[TrainNote]:
        return [turn for turn in self.turns if turn.kind == "step"]

    @property
    def evaluations(self) -> list[TrainNote]:
        return [turn for turn in self.turns if turn.kind == "evaluation"]


def read_history(journal: Path) -> NodeHistory:
    """Works on journals that are being written, and without one."""
    history = NodeHistory()
    for record in read(journal) if journal.exists() else ():
        with refusing(journal, record):
            match content_of(record):
                case Note(note=note):
                    history.turns.append(decode_payload(note, TrainNote, "the note"))
                case Shared(items=items):
                    history.shared += sum(item.kind == ROLLOUTS.name and not item.refused for item in items)
                case Stopped(reason=reason):
                    history.ended = reason
                case Started():
                    history.ended = ""
    return history


@reads_run
def summarise(folder: Path) -> TrainSummary:
    settings = load_settings(TrainSettings, folder)
    run = RunFolder.look(folder)
    plans = [settings.of(index) for index in range(settings.nodes)]
    histories = [read_history(run.journal_path(plan.name)) for plan in plans]
    nodes = [_node(settings, plan, history) for plan, history in zip(plans, histories, strict=True)]
    training = [node for node in nodes if node.trains]
    return TrainSummary(
        "train",
        all(
            bool(history.ended) and (node.steps >= settings.steps or bool(plan.prepared))
            for plan, node, history in zip(plans, nodes, histories, strict=True)
        ),
        settings.seed,
        nodes,
        _mean([node.reward_held_out for node in training]),
        _mean([node.reward_held_out_first for node in training]),
        _mean([node.reward_local for node in training]),
        sum(node.reward_cumulative for node in training),
        sum(node.tokens for node in nodes),
        round(sum(node.cpu for node in nodes), 3),
        _mean([node.oscillation for node in training]),
        max((node.largest_fall for node in training if node.largest_fall is not None), default=None),
        spreading([history for history, plan in zip(histories, plans, strict=True) if not plan.is_frozen]),
    )


def outcome(folder: Path, cache: Path | None, goes_on: Callable[[float], bool]) -> TrainSummary:
    """The summary alone: a training has nothing to do after it."""
    return summarise(folder)


def _node(settings: TrainSettings, plan: NodePlan, history: NodeHistory) -> TrainNodeSummary:
    steps, evaluations = history.steps, history.evaluations
    held_out = [(turn.step, turn.reward_held_out or 0.0) for turn in evaluations]
    local = [(turn.step, turn.reward_local) for turn in steps if turn.reward_local is not None]
    batch = [(turn.step, turn.reward_batch) for turn in steps if turn.reward_batch is not None]
    external = [turn.reward_external for turn in steps if turn.reward_external is not None]
    last = evaluations[-1].held_out if evaluations else {}
    return TrainNodeSummary(
        name=plan.name,
        model=plan.model,
        trains=not plan.is_frozen,
        tasks=plan.tasks,
        steps=steps[-1].step if steps else 0,
        reward_local=_mean([reward for _, reward in local[-RECENT:]]),
        reward_held_out=held_out[-1][1] if held_out else None,
        reward_held_out_first=held_out[0][1] if held_out else None,
        reward_external=_mean(external[-RECENT:]),
        reward_cumulative=sum(reward for _, reward in batch),
        reward_local_cumulative=sum(reward for _, reward in local),
        own_groups=sum(turn.own for turn in steps),
        own_informative=sum(turn.own_informative for turn in steps),
        shared_groups=history.shared,
        foreign_seen=sum(turn.seen for turn in history.turns),
        foreign_verified=sum(turn.verified for turn in steps),
        foreign_informative=sum(turn.found for turn in steps),
        foreign_used=sum(turn.used for turn in steps),
        oldest_used=max((turn.oldest for turn in steps), default=0),
        dropped=_total(turn.dropped for turn in history.turns),
        refused=_total(turn.refused for turn in steps),
        passed_over=_total(turn.passed_over for turn in steps),
        tokens=sum(turn.tokens for turn in steps),
        trained_tokens=sum(turn.trained_tokens for turn in steps),
        cpu=round(sum(turn.cpu for turn in history.turns), 3),
        oscillation=oscillation([reward for _, reward in local]),
        largest_fall=largest_fall([reward for _, reward in held_out]),
        costs=costs(history.turns),
        families={name: right.reward / right.total for name, right in last.items() if right.total},
        curve_local=local,
        curve_held_out=held_out,
        curve_batch=batch,
        ended=history.ended,
        last=steps[-1].said if steps else history.turns[-1].said if history.turns else "",
    )


def smoothed(values: Sequence[float], window: int) -> list[float]:
    return [statistics.fmean(values[max(0, place - window + 1) : place + 1]) for place in range(len(values))]


def oscillation(values: Sequence[float]) -> float | None:
    """None below ten steps."""
    if len(values) < 10:
        return None
    curve = smoothed(values, window_of(len(values)))
    return statistics.pstdev(curve[len(curve) // 2 :])


def swings(values: Sequence[float]) -> list[float]:
    """Learnt, forgotten and learnt again: the falls of the smoothed curve, each by more than `SWING` of the
    peak before it and by more than `LEAST_SWING`, of which at least half was regained. The first values,
    which smooth over fewer, do not count."""
    window = window_of(len(values))
    curve = smoothed(values, window)[window - 1 :]
    found: list[float] = []
    peak, trough = curve[0] if curve else 0.0, None
    for value in curve:
        if trough is None:
            peak = max(peak, value)
            trough = value if peak - value > max(SWING * peak, LEAST_SWING) else None
        elif value < trough:
            trough = value
        elif value >= (peak + trough) / 2:
            found.append(peak - trough)
            peak, trough = value, None
    return found


def window_of(steps: int) -> int:
    """The steps of a moving mean: a twentieth of all, at least five. At the paper's 2,000 that is its 100."""
    return max(5, steps // 20)


def largest_fall(values: Sequence[float]) -> float | None:
    best = accumulate(values, max)
    return max(one - value for one, value in zip(best, values, strict=True)) if len(values) > 1 else None


def costs(turns: Sequence[TrainNote]) -> list[Cost]:
    """The cost of each of `LEVELS` that was reached."""
    found: list[Cost] = []
    tokens, cpu = 0, 0.0
    for turn in turns:
        if turn.kind == "step":
            tokens += turn.tokens
            cpu += turn.cpu
        elif turn.kind == "evaluation":
            reward = turn.reward_held_out or 0.0
            while len(found) < len(LEVELS) and reward >= LEVELS[len(found)]:
                found.append(Cost(LEVELS[len(found)], turn.step, tokens, round(cpu, 3)))
    return found


def spreading(histories: Sequence[NodeHistory]) -> Spreading:
    """Over the nodes that were evaluated on the same families."""
    first: dict[tuple[str, int], dict[int, int]] = {}
    for node, history in enumerate(histories):
        for turn in history.evaluations:
            for family, right in turn.held_out.items():
                for number in right.solved:
                    first.setdefault((family, number), {}).setdefault(node, turn.step)
    delays: list[int] = []
    tasks = reached = 0
    for steps in first.values():
        solved = sorted(steps.values())
        everywhere = len(solved) == len(histories)
        if len(histories) < 2 or (everywhere and solved[0] == solved[-1]):
            continue
        tasks += 1
        reached += everywhere
        delays += [step - solved[0] for step in solved[1:]]
    return Spreading(tasks, statistics.median(delays) if delays else None, reached / tasks if tasks else None)


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None


def _total(counts: Iterable[dict[str, int]]) -> dict[str, int]:
    return dict(sorted(sum(map(Counter, counts), Counter()).items()))
