"""The page of a sweep: how much to share when nodes train together, from `Results` alone."""

from __future__ import annotations

from shoal.report.experiment_parts import CAUTION, charts, header, how_it_was_made, optional
from shoal.report.markup import element
from shoal.report.page import bullets, folded, page, section
from shoal.report.tables import html_table, meanings, verdict_table
from shoal.report.whiskers import arms_figure, differences_figure
from shoal.runs.results import Results


def sweep_page(results: Results) -> str:
    """A whole HTML document."""
    outcomes = [metric for metric in results.metrics if metric.kind == "outcome"]
    efforts = [metric for metric in results.metrics if metric.kind == "effort"]
    compared = [
        metric for metric in outcomes if any(one.metric == metric.name for one in results.differences)
    ]
    lines = [line[:1].upper() + line[1:] for line in results.sentences]
    return page(
        results.title,
        [
            header(results),
            section(
                "What it shows",
                bullets(lines or ["There is nothing to compare with yet."]),
                verdict_table(compared, results.differences),
                element("p", CAUTION, class_="note"),
            ),
            section("What it does not show", bullets(_LIMITS)),
            section(
                "Arms",
                html_table(outcomes, results.arms),
                folded("What the numbers mean", meanings(results.metrics)),
            ),
            *optional("Along the way", charts(results), _CURVES),
            *optional(
                "Arms with their intervals",
                [arms_figure(metric, results.arms, []) for metric in compared or outcomes],
            ),
            *optional(
                "Differences, paired by seed",
                [
                    differences_figure(
                        metric, [one for one in results.differences if one.metric == metric.name]
                    )
                    for metric in compared
                ],
                _DIFFERENCES,
            ),
            section("Effort", html_table(efforts, results.arms)),
            how_it_was_made(results),
        ],
    )


_LIMITS = (
    "Batch reward and its sum, the cumulative reward, are what the paper reports. They are biased: a foreign "
    "group is trained on only if some of its completions are right and some wrong, so sharing lifts them "
    "from the first step on, with nothing learnt. Held-out and local reward do not have this bias.",
    "I/J samples I groups per step, so sharing arms generate less. Arms “with the completions of” another "
    "are equal in that and not in steps; the others are equal in steps and not in completions.",
    "Oscillation is that of a mean over I own groups. Fewer of them are noisier even if the model does not "
    "move, so sharing arms differ from 8/0 in it for that reason alone; the arm without foreign groups and "
    "with the same I tells how much.",
    "A step takes up to J foreign groups. Where fewer informative ones were to be had it trained on fewer.",
    "Where nodes have different tasks, each is tested on its own: these two arms compare with each other and "
    "not with the rest.",
    "Where no difference can be shown there may be one that more seeds or steps would show.",
)
_CURVES = (
    "Means over the nodes that learn; bands are 95 % intervals over seeds. Local and batch rewards are "
    "moving means over a twentieth of the steps, and over at least five."
)
_DIFFERENCES = (
    "Right of the line is more, which is worse for falls and oscillation. A full dot is a difference whose "
    "interval leaves out zero, a hollow one a difference that cannot be told from chance."
)
