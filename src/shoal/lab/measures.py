"""The numbers by which runs of a search are compared, each with what it means in words."""

from __future__ import annotations

from collections.abc import Callable

from shoal.lab.outcomes import Measure, effort, outcome
from shoal.runs.search import SearchPoint, SearchSummary


def _generality(summary: SearchSummary) -> float | None:
    return None if summary.held_out is None else summary.held_out.points_percent


def _valid(summary: SearchSummary) -> float | None:
    answers = sum(node.proposals for node in summary.nodes)
    return 100 * sum(node.valid for node in summary.nodes) / answers if answers else None


def _cost(summary: SearchSummary) -> float | None:
    return None if summary.microdollars is None else summary.microdollars / 1e6


MEASURES: tuple[Measure[SearchSummary], ...] = (
    Measure(
        outcome(
            "coverage_common",
            "common coverage",
            "Share of the cells that are filled when every elite is evaluated anew, fitness and measures, "
            "against one set of opponents that is the same for all arms.",
            "%",
            1,
        ),
        lambda summary: 100 * summary.coverage_common,
    ),
    Measure(
        outcome(
            "qd_score_common", "common QD-score", "Sum of the elites' fitness, evaluated in the same way."
        ),
        lambda summary: summary.qd_score_common,
    ),
    Measure(
        outcome("best_common", "best common fitness", "Greatest fitness, evaluated in the same way.", "", 3),
        lambda summary: summary.best_common,
    ),
    Measure(
        outcome(
            "generality",
            "generality",
            "Points of the program that is best by common fitness, alone against each held-out program: "
            "three for a win, one for a tie, in percent of the most. Without a held-out folder these are the "
            "starters, which the common opponents are drawn from: then it is no test on unseen programs.",
            "%",
            1,
        ),
        _generality,
    ),
    Measure(
        outcome(
            "coverage",
            "raw coverage",
            "Share of the cells that are filled, by what each node measured. The paper's number.",
            "%",
            1,
        ),
        lambda summary: 100 * summary.coverage,
    ),
    Measure(
        outcome(
            "qd_score",
            "raw QD-score",
            "Sum of fitness as each node measured it. Fitness grows with the number of opponents, and nodes "
            "that share have more of them: arms do not compare by it. The paper's number.",
        ),
        lambda summary: summary.qd_score,
    ),
    Measure(
        outcome(
            "best",
            "best raw fitness",
            "Greatest fitness as its node measured it. It grows in the same way.",
            "",
            3,
        ),
        lambda summary: summary.best,
    ),
    Measure(
        effort("valid", "valid", "Share of the models' answers that are programs.", "%", 1),
        _valid,
    ),
    Measure(effort("calls", "calls", "Calls of models, all nodes together."), lambda summary: summary.calls),
    Measure(effort("tokens", "tokens", "Tokens into and out of the models."), lambda summary: summary.tokens),
    Measure(
        effort("simulations", "simulations", "Rounds that the search played to evaluate programs."),
        lambda summary: summary.simulations,
    ),
    Measure(
        effort("shared", "shared", "What the nodes sent one another.", "kB", 1),
        lambda summary: summary.shared_bytes / 1000,
    ),
    Measure(effort("cost", "cost", "Price of the calls, where it is known.", "USD", 4), _cost),
)

CURVES: dict[str, Callable[[SearchPoint], float]] = {
    "coverage": lambda point: 100 * point.coverage,
    "qd_score": lambda point: point.qd_score,
}
