"""What the pages of all experiments have in common, from `Results` alone."""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from shoal.report.curves import chart_figure
from shoal.report.markup import Markup, element
from shoal.report.page import bullets, duration, facts, folded, section, side_by_side
from shoal.report.tables import missing_runs
from shoal.runs.results import Results

CAUTION = (
    "Means and 95 % intervals over seeds (bootstrap, widened for few seeds); differences are paired by seed. "
    "No correction is made for looking at several of them: where there is no difference at all, about one in "
    "twenty will look like one."
)


def header(results: Results) -> Markup:
    runs = sum(len(arm.runs) for arm in results.arms)
    sessions = results.made.sessions
    wall = sum(session.seconds for session in sessions)
    told = (
        f"{len(results.arms)} arms × {len(results.seeds)} seeds, {runs} runs finished; wall time "
        f"{duration(wall)}{f' in {len(sessions)} sessions' if len(sessions) > 1 else ''}"
        + (f"; begun {sessions[0].started_at}" if sessions else "")
    )
    warnings = [f"{one.arm}, seed {one.seed} failed: {one.message}" for one in results.failures]
    if results.missing:
        warnings.insert(0, f"{missing_runs(results.missing)}. The same command goes on with the rest.")
    return element(
        "header",
        element("h1", "Shoal experiment"),
        element("p", results.title, class_="lead"),
        element("p", told),
        element("div", bullets(warnings), class_="warning", role="alert") if warnings else "",
    )


def optional(heading: str, figures: Sequence[Markup | None], note: str = "") -> list[Markup]:
    drawn = [one for one in figures if one is not None]
    if not drawn:
        return []
    return [section(heading, element("p", note, class_="note") if note else None, side_by_side(drawn))]


def charts(results: Results) -> list[Markup]:
    series = {title: index for index, title in enumerate(dict.fromkeys(one.title for one in results.curves))}
    return [
        chart_figure(chart, [one for one in results.curves if one.chart == chart.name], series)
        for chart in results.charts
    ]


def how_it_was_made(results: Results) -> Markup:
    sessions = [
        element(
            "li",
            element("code", shlex.join(session.command)),
            f" at {session.started_at}, {duration(session.seconds)}, {session.workers} runs at a time",
        )
        for session in results.made.sessions
    ]
    versions: list[str] = []
    for session in results.made.sessions:
        line = ", ".join(f"{name} {version}" for name, version in session.versions.items())
        if line not in versions:
            versions.append(line)
    return section(
        "How it was made",
        element("ul", *sessions),
        element("p", f"Seeds {', '.join(map(str, results.seeds))}."),
        element(
            "p", f"All runs together took {duration(results.made.run_seconds)} of their processes' time."
        ),
        bullets(versions),
        folded("Settings that all arms have in common", facts(results.settings)),
    )
