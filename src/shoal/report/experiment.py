"""The report of an experiment: `report.html` and `results.md`, from `results.json` alone."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path

from shoal.files import write_whole
from shoal.report.page import (
    bullets,
    duration,
    facts,
    figures,
    folded,
    header,
    note,
    page,
    program,
    section,
)
from shoal.report.papers import inert, paper_markdown, paper_section
from shoal.report.plots import (
    arms_figure,
    chart_figure,
    differences_figure,
    fitness_figure,
    greatest_fitness,
    models_figure,
)
from shoal.runs.markup import Markup, element, number, table
from shoal.runs.results import (
    ArchiveMap,
    ArmResults,
    Difference,
    Estimate,
    Exhibit,
    Group,
    Metric,
    Results,
    read_results,
)

REPORT = "report.html"
TABLE = "results.md"


def write_report(folder: Path) -> Path:
    """Writes the page and the table beside the results, and returns the page's path."""
    results = read_results(folder)
    write_whole(folder / TABLE, markdown(results).encode())
    write_whole(folder / REPORT, experiment_page(results).encode())
    return folder / REPORT


def experiment_page(results: Results) -> str:
    """The page of a comparison of searches, or of a sweep over ways to share in training."""
    is_sweep = results.application == "train"
    outcomes = [metric for metric in results.metrics if metric.kind == "outcome"]
    efforts = [metric for metric in results.metrics if metric.kind == "effort"]
    compared = [one for one in outcomes if any(other.metric == one.name for other in results.differences)]
    ours = results.differences[0].ours if results.differences and not is_sweep else ""
    groups = [] if is_sweep else results.groups
    lines = [line[:1].upper() + line[1:] for line in results.sentences]
    charts = {chart.name: chart for chart in results.charts if not chart.beside_paper}
    drawn = [one for one in results.curves if one.chart in charts]
    series = {title: index for index, title in enumerate(dict.fromkeys(one.title for one in drawn))}
    curves = [
        chart_figure(chart, [one for one in drawn if one.chart == chart.name], series)
        for chart in charts.values()
    ]
    differences = [differences_figure(metric, results.differences) for metric in compared]
    chosen = (compared or outcomes) if is_sweep else outcomes
    arms = [arms_figure(metric, results.arms, groups, ours) for metric in chosen]
    plots = [
        _drawn("Differences, paired by seed", differences, _SIGNED if is_sweep else _DIFFERENCES),
        _drawn("Arms with their intervals", arms),
        _drawn("Along the way", curves, _TRAINING_CURVES if is_sweep else _CURVES),
    ]
    return page(
        results.title,
        [
            _header(results),
            section(
                "What it shows",
                bullets(lines or ["There is nothing to compare with yet."]),
                _verdicts(compared, results.differences),
                note(_CAUTION),
            ),
            section("What it does not show", bullets(_LIMITS)) if is_sweep else None,
            section(
                "Arms",
                _arms(outcomes, results.arms, groups),
                folded(
                    "What the numbers mean",
                    element(
                        "dl",
                        *(
                            part
                            for one in results.metrics
                            for part in (element("dt", one.title), element("dd", one.meaning))
                        ),
                    ),
                ),
                note(_BEST) if groups else None,
            ),
            *(reversed(plots) if is_sweep else plots),
            paper_section(results),
            _archives(results.maps) if results.maps else None,
            _best(results.best) if results.best is not None else None,
            section("Effort", _arms(efforts, results.arms)),
            _how_it_was_made(results),
        ],
    )


_CAUTION = (
    "Means and 95 % intervals over seeds (bootstrap, widened for few seeds); differences are paired by seed. "
    "No correction is made for looking at several of them: where there is no difference at all, about one in "
    "twenty will look like one."
)
_BEST = (
    "The best arm of a family is chosen for each number on its own and after the fact, which favours it: to "
    "beat it is more than to beat an arm that was named before."
)
_DIFFERENCES = (
    "Right of the line is more. A full dot is a difference whose interval leaves out zero, a hollow one a "
    "difference that cannot be told from chance."
)
_SIGNED = _DIFFERENCES.replace("more.", "more, which is worse for falls and oscillation.")
_CURVES = (
    "Archives as the nodes measured them at the time (raw), merged over nodes; bands are 95 % intervals over "
    "seeds. A new round begins with a fresh archive, so lines may fall."
)
_TRAINING_CURVES = (
    "Means over the nodes that learn; bands are 95 % intervals over seeds. Local and batch rewards are "
    "moving means over a twentieth of the steps, and over at least five."
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
_EVALUATION = {
    "common": "evaluated anew against the opponents that all arms have in common",
    "raw": "as each node measured them; numbers of different opponents do not compare",
}


def _header(results: Results) -> Markup:
    runs = sum(len(arm.runs) for arm in results.arms)
    sessions = results.made.sessions
    wall = duration(sum(session.seconds for session in sessions))
    told = (
        f"{len(results.arms)} arms × {len(results.seeds)} seeds, {runs} runs finished; wall time {wall}"
        + (f" in {len(sessions)} sessions" if len(sessions) > 1 else "")
        + (f"; begun {sessions[0].started_at}" if sessions else "")
    )
    warnings = [f"{one.arm}, seed {one.seed} failed: {one.message}" for one in results.failures]
    if results.missing:
        warnings.insert(0, f"{_missing(results.missing)}. The same command goes on with the rest.")
    warning = [element("div", bullets(warnings), class_="warning", role="alert")] if warnings else []
    return header("Shoal experiment", results.title, told, *warning)


def _drawn(heading: str, drawn: Sequence[Markup | None], told: str = "") -> Markup | None:
    """A section with figures; none if there is nothing to draw."""
    found = [one for one in drawn if one is not None]
    return section(heading, note(told) if told else None, figures(found)) if found else None


def _arms(metrics: Sequence[Metric], arms: Sequence[ArmResults], groups: Sequence[Group] = ()) -> Markup:
    """One row per arm, then per group; the interval stands below each mean."""
    heads = [
        element("th", one.title, element("small", one.unit) if one.unit else "", scope="col")
        for one in metrics
    ]
    members: list[ArmResults | Group] = [*arms, *groups]
    rows: list[list[Markup | str]] = [
        [one.title, str(len(one.runs)) if isinstance(one, ArmResults) else ""]
        + [_cell(one.estimates.get(metric.name), metric) for metric in metrics]
        for one in members
    ]
    return table(["arm", "runs", *heads], rows, shaded_from=len(arms))


def _cell(estimate: Estimate | None, metric: Metric) -> Markup:
    if estimate is None:
        return element("td", "–")
    mean = number(estimate.value, metric.digits)
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return element("td", mean)
    interval = f"{number(estimate.low, metric.digits)} to {number(estimate.high, metric.digits)}"
    return element("td", mean, element("small", interval))


def _verdicts(metrics: Sequence[Metric], differences: Sequence[Difference]) -> Markup | None:
    """The differences that can be shown: one row per pair of ours and another, one column per metric. An arm
    that is ours in all of them stands in the heading alone."""
    if not metrics:
        return None
    found = {(one.ours, one.against, one.metric): one for one in differences}
    pairs = list(dict.fromkeys((one.ours, one.against) for one in differences))
    one_is_ours = len({ours for ours, _ in pairs}) == 1
    rows: list[list[Markup | str]] = [
        [against if one_is_ours else f"{ours} − {against}"]
        + [_verdict(found.get((ours, against, metric.name)), metric) for metric in metrics]
        for ours, against in pairs
    ]
    heading = f"{pairs[0][0]} against" if one_is_ours else "difference"
    return table([heading, *(metric.title for metric in metrics)], rows)


def _verdict(one: Difference | None, metric: Metric) -> Markup:
    if one is None:
        return element("td", "–")
    judged = one.judgement(metric)
    word = judged or (one.verdict if one.is_shown else "none shown" if one.difference.runs > 1 else "–")
    chance = f"ours is greater in {100 * one.superiority:.0f} % of pairs"
    numbers = element("small", one.difference.shown(metric.digits, signed=True))
    return element("td", word, numbers, class_=judged or None, title=chance)


def _archives(maps: Sequence[ArchiveMap]) -> Markup:
    names = sorted({cell.model for one in maps for cell in one.cells})
    models = {model: index for index, model in enumerate(names)}
    drawn: dict[str, list[Markup]] = {}
    for evaluation in dict.fromkeys(one.evaluation for one in maps):
        chosen = [one for one in maps if one.evaluation == evaluation]
        greatest = greatest_fitness(chosen)
        drawn[evaluation] = [fitness_figure(one, greatest) for one in chosen]
    (first, found), *others = drawn.items()
    mixed = [one for one in maps if len(one.models) > 1 and one.evaluation == first]
    holders = [models_figure(one, models) for one in mixed]
    return section(
        f"Archives of seed {maps[0].seed}",
        note(f"Fitness of the elites, {_EVALUATION[first]}."),
        figures(found, "figures small"),
        figures(holders, "figures small") if holders else None,
        *(
            folded(f"The same archives, {_EVALUATION[evaluation]}", figures(more, "figures small"))
            for evaluation, more in others
        ),
    )


def _best(best: Exhibit) -> Markup:
    told = f"From {best.arm}, seed {best.seed}; fitness {best.fitness:.3f} against the common opponents."
    contest = best.contest
    against = contest and (
        f"Against {contest.opponents} held-out programs ({contest.name}): {contest.wins} won, {contest.ties} "
        f"tied, {contest.losses} lost; {contest.points_percent:.1f} % of all points."
    )
    parts = (element("p", told), element("p", against) if against else None, program(best.source))
    return section("The best program", *parts)


def _how_it_was_made(results: Results) -> Markup:
    sessions = results.made.sessions
    commands = [
        element(
            "li",
            element("code", shlex.join(one.command)),
            f" at {one.started_at}, {duration(one.seconds)}, {one.workers} runs at a time",
        )
        for one in sessions
    ]
    versions = [", ".join(f"{name} {version}" for name, version in one.versions.items()) for one in sessions]
    took = duration(results.made.run_seconds)
    return section(
        "How it was made",
        element("ul", *commands),
        element("p", f"Seeds {', '.join(map(str, results.seeds))}."),
        element("p", f"All runs together took {took} of their processes' time."),
        bullets(list(dict.fromkeys(versions))),
        folded("Settings that all arms have in common", facts(results.settings)),
    )


def markdown(results: Results) -> str:
    """Title, sentences and tables for pasting. Text from outside is kept from being Markdown or HTML."""
    lines = [f"# {inert(results.title)}", ""]
    lines += [f"- {inert(sentence)}" for sentence in results.sentences]
    if results.missing:
        lines += [f"- {_missing(results.missing)}."]
    for kind in ("outcome", "effort"):
        metrics = [metric for metric in results.metrics if metric.kind == kind]
        if not metrics:
            continue
        titles = " | ".join(metric.heading for metric in metrics)
        lines += ["", f"| arm | runs | {titles} |", f"| --- |{' ---: |' * (len(metrics) + 1)}"]
        for one in [*results.arms, *(results.groups if kind == "outcome" else ())]:
            runs = str(len(one.runs)) if isinstance(one, ArmResults) else ""
            found = [(one.estimates.get(metric.name), metric.digits) for metric in metrics]
            cells = " | ".join("–" if of is None else of.shown(digits) for of, digits in found)
            lines.append(f"| {inert(one.title)} | {runs} | {cells} |")
    lines += ["", f"Means and 95 % bootstrap intervals over seeds {_seeds(results.seeds)}."]
    if results.beside is not None:
        lines += ["", *paper_markdown(results)]
    return "\n".join(lines) + "\n"


def _missing(count: int) -> str:
    return "1 run is missing" if count == 1 else f"{count} runs are missing"


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))
