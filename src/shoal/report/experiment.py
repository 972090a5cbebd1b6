"""The report of an experiment: `report.html` and `results.md`, from `results.json` alone."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from shoal.report.experiment_parts import CAUTION, charts, header, how_it_was_made, optional
from shoal.report.heatmap import fitness_figure, greatest_fitness, models_figure
from shoal.report.markup import Markup, element
from shoal.report.page import bullets, folded, page, program, section, side_by_side
from shoal.report.sweep import sweep_page
from shoal.report.tables import html_table, markdown, meanings, verdict_table
from shoal.report.whiskers import arms_figure, differences_figure
from shoal.runs.files import write_whole
from shoal.runs.results import ArchiveMap, Exhibit, Results, read_results

REPORT = "report.html"
TABLE = "results.md"


def write_report(folder: Path) -> Path:
    """Writes the page and the table beside the results, and returns the page's path."""
    results = read_results(folder)
    write_whole(folder / TABLE, markdown(results).encode())
    write_whole(folder / REPORT, experiment_page(results).encode())
    return folder / REPORT


def experiment_page(results: Results) -> str:
    """The page of whatever the runs of the experiment were."""
    return sweep_page(results) if results.application == "train" else _comparison_page(results)


def _comparison_page(results: Results) -> str:
    outcomes = [metric for metric in results.metrics if metric.kind == "outcome"]
    efforts = [metric for metric in results.metrics if metric.kind == "effort"]
    by_metric = {
        metric.name: [one for one in results.differences if one.metric == metric.name] for metric in outcomes
    }
    ours = results.differences[0].ours if results.differences else ""
    return page(
        results.title,
        [
            header(results),
            section(
                "What it shows",
                bullets(
                    [line[:1].upper() + line[1:] for line in results.sentences]
                    or ["There is nothing to compare with yet."]
                ),
                verdict_table(outcomes, results.differences),
                element("p", CAUTION, class_="note"),
            ),
            section(
                "Arms",
                html_table(outcomes, results.arms, results.groups),
                folded("What the numbers mean", meanings(results.metrics)),
                element("p", _BEST, class_="note") if results.groups else None,
            ),
            *optional(
                "Differences, paired by seed",
                [differences_figure(metric, by_metric[metric.name]) for metric in outcomes],
                _DIFFERENCES,
            ),
            *optional(
                "Arms with their intervals",
                [arms_figure(metric, results.arms, results.groups, ours) for metric in outcomes],
            ),
            *optional("Along the way", charts(results), _CURVES),
            *_archives(results.maps),
            *_best(results.best),
            section("Effort", html_table(efforts, results.arms)),
            how_it_was_made(results),
        ],
    )


_BEST = (
    "The best arm of a family is chosen for each number on its own and after the fact, which favours it: to "
    "beat it is more than to beat an arm that was named before."
)
_DIFFERENCES = (
    "Right of the line is more. A full dot is a difference whose interval leaves out zero, a hollow one a "
    "difference that cannot be told from chance."
)
_CURVES = (
    "Archives as the nodes measured them at the time (raw), merged over nodes; bands are 95 % intervals over "
    "seeds. A new round begins with a fresh archive, so lines may fall."
)


def _archives(maps: Sequence[ArchiveMap]) -> list[Markup]:
    if not maps:
        return []
    models = {
        model: index for index, model in enumerate(sorted({cell.model for one in maps for cell in one.cells}))
    }
    drawn: dict[str, list[Markup]] = {}
    for evaluation in dict.fromkeys(one.evaluation for one in maps):
        chosen = [one for one in maps if one.evaluation == evaluation]
        greatest = greatest_fitness(chosen)
        drawn[evaluation] = [fitness_figure(one, greatest) for one in chosen]
    mixed = [one for one in maps if len(one.models) > 1]
    holders = [models_figure(one, models) for one in mixed if one.evaluation == maps[0].evaluation]
    return [
        section(
            f"Archives of seed {maps[0].seed}",
            element("p", f"Fitness of the elites, {_EVALUATION[maps[0].evaluation]}.", class_="note"),
            side_by_side(drawn[maps[0].evaluation], "figures small"),
            side_by_side(holders, "figures small") if holders else None,
            *(
                folded(
                    f"The same archives, {_EVALUATION[evaluation]}", side_by_side(figures, "figures small")
                )
                for evaluation, figures in drawn.items()
                if evaluation != maps[0].evaluation
            ),
        )
    ]


_EVALUATION = {
    "common": "evaluated anew against the opponents that all arms have in common",
    "raw": "as each node measured them; numbers of different opponents do not compare",
}


def _best(best: Exhibit | None) -> list[Markup]:
    if best is None:
        return []
    told = f"From {best.arm}, seed {best.seed}; fitness {best.fitness:.3f} against the common opponents."
    contest = best.contest
    against = contest and (
        f"Against {contest.opponents} held-out programs ({contest.name}): {contest.wins} won, {contest.ties} "
        f"tied, {contest.losses} lost; {contest.points_percent:.1f} % of all points."
    )
    return [
        section(
            "The best program",
            element("p", told),
            element("p", against) if against else None,
            program(best.source),
        )
    ]
