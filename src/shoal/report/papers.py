"""The section of an experiment's page, and the part of its table for pasting, that stand beside the paper."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from shoal.report.page import bullets, figures, folded, note, section
from shoal.report.plots import chart_figure
from shoal.runs.markup import Markup, element, table
from shoal.runs.papers import BesidePaper, PaperCell, PaperColumn, PaperTable
from shoal.runs.results import Chart, Curve, Results

MOST_DEPARTURES = 6
"""Lines of the warning; more are folded."""
_KEY = (
    "Ours is the mean ± the standard deviation (n − 1) over seeds; the paper's number stands below it. “≈” "
    "was read off the paper's figure by eye."
)
_SECOND_HAND = (
    "Numbers of the DEI paper are second-hand, as full readings of it by others report them. Where they do "
    "not tell a number, it is “not found”."
)


def paper_section(results: Results) -> Markup | None:
    """Departures, tables and figures; None for results that were written before there were any."""
    beside = results.beside
    if beside is None:
        return None
    seeds = len(results.seeds)
    drawn = [chart for chart in results.charts if chart.beside_paper]
    names = {chart.name for chart in drawn}
    titles = dict.fromkeys(one.title for one in results.curves if one.chart in names)
    series = {title: place for place, title in enumerate(titles)}
    return section(
        f"Beside the {beside.paper} paper",
        _warning(beside),
        note(f"{_KEY} {_SECOND_HAND if beside.paper == 'DEI' else ''}".strip()),
        *(_table(beside, one, seeds) for one in beside.tables),
        _held_out(beside),
        element("h3", "By round" if beside.paper == "DEI" else "By step") if drawn else None,
        *dict.fromkeys(note(chart.told) for chart in drawn),
        figures([_figure(beside, chart, results.curves, series) for chart in drawn]) if drawn else None,
    )


def _warning(beside: BesidePaper) -> Markup:
    if not beside.departures:
        return note(f"These runs keep every choice of the {beside.paper} paper that Shoal has a setting for.")
    first, more = beside.departures[:MOST_DEPARTURES], beside.departures[MOST_DEPARTURES:]
    count = (
        "one published choice"
        if len(beside.departures) == 1
        else f"{len(beside.departures)} published choices"
    )
    told = element(
        "p",
        element("strong", "This is not the paper's experiment."),
        f" It does not follow {count}, so numbers beside each other may differ for these reasons:",
    )
    rest = folded(f"{len(more)} more", bullets(more)) if more else None
    return element("div", told, bullets(first), *([rest] if rest else []), class_="warning", role="note")


def _held_out(beside: BesidePaper) -> Markup | None:
    """The names of the programs that champions met. They come from a folder of the user's."""
    if beside.held_out is None:
        return None
    names = element("p", ", ".join(beside.held_out.programs))
    return folded(f"The {len(beside.held_out.programs)} programs of the held-out set", names)


def source_of(beside: BesidePaper, source: str) -> str:
    """ "DEI, Table 3", or that the paper has no such thing."""
    return f"{beside.paper}, {source}" if source else f"not in the {beside.paper} paper"


def _table(beside: BesidePaper, one: PaperTable, seeds: int) -> Markup:
    heads = [
        element("th", column.title, element("small", column.unit) if column.unit else "", scope="col")
        for column in one.columns
    ]
    rows: list[list[Markup | str]] = [
        [
            row.title,
            *(_cell(cell, column, seeds) for cell, column in zip(row.cells, one.columns, strict=True)),
        ]
        for row in one.rows
    ]
    of_paper = next((place for place, row in enumerate(one.rows) if row.of_paper), None)
    source = source_of(beside, one.source)
    parts = [table(["", *heads], rows, shaded_from=of_paper), *map(note, one.notes)]
    if one.folded:
        return folded(f"{one.title} ({source})", *parts)
    return element("div", element("h3", one.title, element("small", f" {source}")), *parts)


def _cell(cell: PaperCell, column: PaperColumn, seeds: int) -> Markup:
    ours = "–" if cell.ours is None else cell.ours.shown(column.digits, signed=column.signed)
    parts: list[Markup | str] = [ours]
    if cell.ours is not None and cell.ours.count < seeds:
        parts.append(element("small", f"of {cell.ours.count}"))
    if told := _published(cell, column):
        parts.append(element("small", told, class_="paper"))
    return element("td", *parts, class_="spread")


def _published(cell: PaperCell, column: PaperColumn) -> str:
    if cell.paper is None:
        return f"paper: {cell.note}" if cell.note else ""
    return f"paper {cell.paper.shown(column.digits, signed=column.signed)}"


def _figure(beside: BesidePaper, chart: Chart, curves: Sequence[Curve], series: Mapping[str, int]) -> Markup:
    members = [one for one in curves if one.chart == chart.name]
    return chart_figure(chart, members, series, source=source_of(beside, chart.source))


def paper_markdown(results: Results) -> Iterator[str]:
    """Lines for pasting, in plain text; the caller makes text from outside harmless."""
    beside = results.beside
    if beside is None:
        return
    yield f"## Beside the {beside.paper} paper"
    yield ""
    if beside.departures:
        yield "This is not the paper's experiment. These published choices are not followed:"
        yield ""
        yield from (f"- {inert(line)}" for line in beside.departures)
        yield ""
    yield f"{_KEY.replace('stands below it', 'stands in brackets')}"
    for one in beside.tables:
        yield ""
        yield f"### {inert(one.title)} ({inert(source_of(beside, one.source))})"
        yield ""
        heads = [f"{column.title} ({column.unit})" if column.unit else column.title for column in one.columns]
        yield f"| | {' | '.join(map(inert, heads))} |"
        yield f"| --- |{' ---: |' * len(heads)}"
        for row in one.rows:
            cells = [_plain(cell, column) for cell, column in zip(row.cells, one.columns, strict=True)]
            yield f"| {inert(row.title)} | {' | '.join(cells)} |"
        yield ""
        yield from (f"- {inert(line)}" for line in one.notes)


def _plain(cell: PaperCell, column: PaperColumn) -> str:
    ours = "–" if cell.ours is None else cell.ours.shown(column.digits, signed=column.signed)
    told = _published(cell, column)
    return f"{ours} ({inert(told)})" if told else ours


def inert(text: str) -> str:
    """Text that is kept from being Markdown or HTML."""
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return "".join(f"\\{c}" if c in "\\`*[]<>|#" else c for c in line)
