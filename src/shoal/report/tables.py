"""The table of an experiment, for the page and as Markdown for pasting."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.report.drawing import number
from shoal.report.markup import Markup, element
from shoal.runs.results import ArmResults, Difference, Estimate, Group, Metric, Results


def html_table(metrics: Sequence[Metric], arms: Sequence[ArmResults], groups: Sequence[Group] = ()) -> Markup:
    """One row per arm, then per group; the interval stands below each mean."""
    head = [element("th", "arm", scope="col"), element("th", "runs", scope="col")]
    head += [
        element("th", metric.title, element("small", metric.unit) if metric.unit else "", scope="col")
        for metric in metrics
    ]
    rows = [
        element(
            "tr",
            element("th", one.title, scope="row"),
            element("td", str(len(one.runs)) if isinstance(one, ArmResults) else ""),
            *(_cell(one.estimates.get(metric.name), metric) for metric in metrics),
            class_="group" if isinstance(one, Group) else None,
        )
        for one in _rows(arms, groups)
    ]
    table = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
    return element("div", table, class_="wide", tabindex=0)


def _rows(arms: Sequence[ArmResults], groups: Sequence[Group]) -> list[ArmResults | Group]:
    return [*arms, *groups]


def _cell(estimate: Estimate | None, metric: Metric) -> Markup:
    if estimate is None:
        return element("td", "–")
    mean = number(estimate.value, metric.digits)
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return element("td", mean)
    interval = f"{number(estimate.low, metric.digits)} to {number(estimate.high, metric.digits)}"
    return element("td", mean, element("small", interval))


def verdict_table(metrics: Sequence[Metric], differences: Sequence[Difference]) -> Markup | None:
    """Which differences can be shown: one row per pair, one column per metric."""
    told = [metric for metric in metrics if any(one.metric == metric.name for one in differences)]
    if not told:
        return None
    heading, names = pair_names(differences)
    found = {(one.ours, one.against, one.metric): one for one in differences}
    head = [element("th", heading, scope="col")]
    head += [element("th", metric.title, scope="col") for metric in told]
    rows = [
        element(
            "tr",
            element("th", name, scope="row"),
            *(_verdict_cell(found.get((*pair, metric.name)), metric) for metric in told),
        )
        for pair, name in names.items()
    ]
    table = element("table", element("thead", element("tr", *head)), element("tbody", *rows))
    return element("div", table, class_="wide", tabindex=0)


def pair_names(differences: Sequence[Difference]) -> tuple[str, dict[tuple[str, str], str]]:
    """A heading, and what each pair of ours and another is called below it. An arm that is ours in all of
    them stands in the heading alone."""
    pairs = list(dict.fromkeys((one.ours, one.against) for one in differences))
    if len({ours for ours, _ in pairs}) == 1:
        return f"{pairs[0][0]} against", {pair: pair[1] for pair in pairs}
    return "difference", {pair: f"{pair[0]} − {pair[1]}" for pair in pairs}


def _verdict_cell(one: Difference | None, metric: Metric) -> Markup:
    if one is None:
        return element("td", "–")
    if one.verdict not in ("greater", "less"):
        word, class_ = ("none shown" if one.difference.runs > 1 else "–"), None
    elif not metric.better:
        word, class_ = one.verdict, None
    else:
        word = class_ = "better" if one.verdict == metric.better else "worse"
    chance = f"ours is greater in {100 * one.superiority:.0f} % of pairs"
    numbers = signed(one.difference, metric)
    return element("td", word, element("small", numbers), class_=class_, title=chance)


def signed(estimate: Estimate, metric: Metric) -> str:
    """A difference with its interval, like "+1.5 [0.2, 2.8]"."""
    text = number(estimate.value, metric.digits)
    text = f"+{text}" if estimate.value > 0 and text.strip("0.") else text
    if estimate.low is None or estimate.high is None:
        return text
    return f"{text} [{number(estimate.low, metric.digits)}, {number(estimate.high, metric.digits)}]"


def meanings(metrics: Sequence[Metric]) -> Markup:
    return element(
        "dl", *(part for one in metrics for part in (element("dt", one.title), element("dd", one.meaning)))
    )


def markdown(results: Results) -> str:
    """Title, sentences and tables. What comes from outside is kept from being Markdown or HTML."""
    lines = [f"# {_inert(results.title)}", ""]
    lines += [f"- {_inert(sentence)}" for sentence in results.sentences]
    if results.missing:
        lines += [f"- {missing_runs(results.missing)}."]
    for kind in ("outcome", "effort"):
        metrics = [metric for metric in results.metrics if metric.kind == kind]
        if not metrics:
            continue
        titles = [f"{metric.title}{f' ({metric.unit})' if metric.unit else ''}" for metric in metrics]
        lines += ["", f"| arm | runs | {' | '.join(titles)} |", f"| --- |{' ---: |' * (len(metrics) + 1)}"]
        for one in _rows(results.arms, results.groups if kind == "outcome" else ()):
            runs = str(len(one.runs)) if isinstance(one, ArmResults) else ""
            cells = [_markdown_cell(one.estimates.get(metric.name), metric) for metric in metrics]
            lines.append(f"| {_inert(one.title)} | {runs} | {' | '.join(cells)} |")
    lines += ["", f"Means and 95 % bootstrap intervals over seeds {_seeds(results.seeds)}."]
    return "\n".join(lines) + "\n"


def missing_runs(count: int) -> str:
    return "1 run is missing" if count == 1 else f"{count} runs are missing"


def _markdown_cell(estimate: Estimate | None, metric: Metric) -> str:
    if estimate is None:
        return "–"
    mean = number(estimate.value, metric.digits)
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return mean
    return f"{mean} [{number(estimate.low, metric.digits)}, {number(estimate.high, metric.digits)}]"


def _seeds(seeds: Sequence[int]) -> str:
    if len(seeds) > 1 and list(seeds) == list(range(seeds[0], seeds[0] + len(seeds))):
        return f"{seeds[0]} to {seeds[-1]}"
    return ", ".join(map(str, seeds))


def _inert(text: str) -> str:
    line = " ".join("".join(c if c.isprintable() else " " for c in text).split())
    return "".join(f"\\{c}" if c in "\\`*[]<>|#" else c for c in line)
