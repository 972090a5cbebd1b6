"""The numbers by which runs of a training swarm are compared, each with what it means in words.

Rewards are in percent of the most. Nodes that only contribute are left out of everything that is learnt.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from shoal.lab.outcomes import Measure, effort, outcome
from shoal.lab.tables import Points, mean_points
from shoal.runs.training import TrainNodeSummary, TrainSummary
from shoal.train.summary import LEVELS, smoothed

SMOOTHED_SHARE, LEAST_SMOOTHED = 20, 5
"""Local and batch rewards are drawn as moving means over a twentieth of the steps, at least five."""


def trained(summary: TrainSummary) -> list[TrainNodeSummary]:
    return [node for node in summary.nodes if node.trains]


def _percent(value: float | None) -> float | None:
    return None if value is None else 100 * value


def _rise(summary: TrainSummary) -> float | None:
    if summary.reward_held_out is None or summary.reward_held_out_first is None:
        return None
    return 100 * (summary.reward_held_out - summary.reward_held_out_first)


def _per_step(reward: Callable[[TrainNodeSummary], float]) -> Callable[[TrainSummary], float | None]:
    def mean(summary: TrainSummary) -> float | None:
        steps = sum(node.steps for node in trained(summary))
        return 100 * sum(map(reward, trained(summary))) / steps if steps else None

    return mean


def _share(
    part: Callable[[TrainNodeSummary], int], whole: Callable[[TrainNodeSummary], int]
) -> Callable[[TrainSummary], float | None]:
    def share(summary: TrainSummary) -> float | None:
        total = sum(map(whole, summary.nodes))
        return 100 * sum(map(part, summary.nodes)) / total if total else None

    return share


def _tokens_to(level: float) -> Callable[[TrainSummary], float | None]:
    def tokens(summary: TrainSummary) -> float | None:
        found = [[cost.tokens for cost in node.costs if cost.reward == level] for node in trained(summary)]
        return statistics.fmean(one[0] for one in found) if found and all(found) else None

    return tokens


MEASURES: tuple[Measure[TrainSummary], ...] = (
    Measure(
        outcome(
            "held_out",
            "held-out reward",
            "Greedy answers to tasks that are the same for all nodes, steps and arms, at the end, mean over "
            "nodes. Nothing is trained on them: this is what arms compare by.",
            "%",
            1,
        ),
        lambda summary: _percent(summary.reward_held_out),
    ),
    Measure(
        outcome("held_out_rise", "held-out rise", "The same less what it was before the first step.", "%", 1),
        _rise,
    ),
    Measure(
        outcome(
            "local_end",
            "final local reward",
            "Mean over a node's own completions of its last 10 steps. No filter touches it.",
            "%",
            1,
        ),
        lambda summary: _percent(summary.reward_local),
    ),
    Measure(
        outcome("local_mean", "mean local reward", "The same over all steps of the run.", "%", 1),
        _per_step(lambda node: node.reward_local_cumulative),
    ),
    Measure(
        outcome(
            "largest_fall",
            "largest fall",
            "How far the held-out reward of some node fell at most below what it had been: forgetting.",
            "points",
            1,
            "less",
        ),
        lambda summary: _percent(summary.largest_fall),
    ),
    Measure(
        outcome(
            "oscillation",
            "oscillation",
            "Standard deviation of the smoothed local reward over the second half of a run, mean over nodes. "
            "A mean over fewer own groups is noisier, so it grows as I falls: compare 4/4 with 4/0.",
            "points",
            2,
            "less",
        ),
        lambda summary: _percent(summary.oscillation),
    ),
    Measure(
        outcome(
            "cumulative",
            "cumulative reward (biased)",
            "The paper's number: over nodes and steps, the sum of the mean reward of own and foreign groups. "
            "Foreign groups are kept only if some of their completions are right and some wrong, which lifts "
            "it before anything is learnt, and it grows with the number of steps: more is not called better.",
            "",
            1,
            "",
        ),
        lambda summary: summary.reward_cumulative,
    ),
    Measure(
        outcome(
            "batch_mean",
            "mean batch reward (biased)",
            "The same per node and step.",
            "%",
            1,
            "",
        ),
        _per_step(lambda node: node.reward_cumulative),
    ),
    Measure(
        outcome(
            "cumulative_local",
            "cumulative local reward",
            "Over nodes and steps, the sum of the mean reward of own completions. It grows with the number "
            "of steps.",
            "",
            1,
        ),
        lambda summary: sum(node.reward_local_cumulative for node in trained(summary)),
    ),
    Measure(
        outcome(
            "spreading_delay",
            "spreading delay",
            "Median of the steps from the first node that solved a held-out task to each other node that "
            "came to solve it. Those that never did are not in it.",
            "steps",
            1,
            "less",
        ),
        lambda summary: summary.spreading.median_delay,
    ),
    Measure(
        outcome(
            "spreading_reach",
            "spreading reach",
            "Share of the held-out tasks that some node solved, and not all at once, which every node solved "
            "at some time.",
            "%",
            1,
        ),
        lambda summary: _percent(summary.spreading.reached_all),
    ),
    Measure(
        effort("tokens", "tokens", "Tokens generated for training, all nodes together."),
        lambda summary: summary.tokens,
    ),
    Measure(
        effort("own_groups", "own groups", "Groups of completions that the nodes sampled."),
        lambda summary: sum(node.own_groups for node in summary.nodes),
    ),
    Measure(
        effort(
            "own_informative",
            "informative own groups",
            "Share of own groups with both right and wrong completions; from others nothing can be learnt.",
            "%",
            1,
        ),
        _share(lambda node: node.own_informative, lambda node: node.own_groups),
    ),
    Measure(
        effort("foreign_used", "foreign groups used", "Groups of others that were trained on."),
        lambda summary: sum(node.foreign_used for node in summary.nodes),
    ),
    Measure(
        effort(
            "foreign_informative",
            "informative foreign groups",
            "Share of the foreign groups that were verified and could be learnt from.",
            "%",
            1,
        ),
        _share(lambda node: node.foreign_informative, lambda node: node.foreign_verified),
    ),
    Measure(
        effort("cpu", "processor time", "Of all nodes; as measured, so it differs from run to run.", "s", 1),
        lambda summary: summary.cpu,
    ),
    *(
        Measure(
            effort(
                f"tokens_to_{100 * level:.0f}",
                f"tokens to {100 * level:.0f} %",
                "Tokens that a node had generated when an evaluation first showed this held-out reward, mean "
                "over nodes; only of runs in which all nodes came to it, so few runs count against an arm.",
                "",
                0,
                "less",
            ),
            _tokens_to(level),
        )
        for level in LEVELS
    ),
)


def over_nodes(
    summary: TrainSummary, points: Callable[[TrainNodeSummary], Sequence[tuple[int, float]]]
) -> Points:
    """A curve of all training nodes: the mean at each step, in percent."""
    runs = [[(float(step), 100 * value) for step, value in points(node)] for node in trained(summary)]
    return mean_points([run for run in runs if run])


def held_out_curve(summary: TrainSummary) -> Points:
    return over_nodes(summary, lambda node: node.curve_held_out)


def local_curve(summary: TrainSummary) -> Points:
    return _smooth(over_nodes(summary, lambda node: node.curve_local))


def batch_curve(summary: TrainSummary) -> Points:
    return _smooth(over_nodes(summary, lambda node: node.curve_batch))


def held_out_by_completions(summary: TrainSummary, group: int) -> Points:
    """The held-out curve along what was generated: the completions of all nodes up to each step."""
    steps = max((node.steps for node in summary.nodes), default=0)
    if not steps:
        return []
    per_step = sum(node.own_groups for node in summary.nodes) * group / steps
    return [(step * per_step, value) for step, value in held_out_curve(summary)]


def _smooth(points: Points) -> Points:
    window = max(LEAST_SMOOTHED, len(points) // SMOOTHED_SHARE)
    values = smoothed([value for _, value in points], window)
    return [(step, value) for (step, _), value in zip(points, values, strict=True)]
