"""The page around tables and plots: one file, no script, no request to anywhere.

The policy in its head forbids the browser to load anything, whatever a program's source may hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib.resources import files

from shoal.runs.markup import Markup, element, escaped

POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
MOST_SOURCE_CHARACTERS = 20_000


def page(title: str, parts: Sequence[Markup | None]) -> str:
    """A whole HTML document; parts that are None are left out."""
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", http_equiv="Content-Security-Policy", content=POLICY),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        element("style", Markup(files("shoal.report").joinpath("style.css").read_text("utf-8"))),
    )
    body = element("body", element("main", *(part for part in parts if part is not None)))
    return f"<!doctype html>\n{element('html', head, body, lang='en')}\n"


def header(kind: str, name: str, *below: Markup | str) -> Markup:
    told = (one if isinstance(one, Markup) else element("p", one) for one in below)
    return element("header", element("h1", kind), element("p", name, class_="lead"), *told)


def section(heading: str, *parts: Markup | None) -> Markup:
    return element("section", element("h2", heading), *(part for part in parts if part is not None))


def note(text: str) -> Markup:
    return element("p", text, class_="note")


def folded(summary: str, *parts: Markup) -> Markup:
    return element("details", element("summary", summary), *parts)


def figures(drawn: Sequence[Markup], class_: str = "figures") -> Markup:
    """Figures side by side where there is room."""
    return element("div", *drawn, class_=class_)


def bullets(lines: Sequence[str | Markup]) -> Markup:
    return element("ul", *(element("li", line) for line in lines))


def program(source: str) -> Markup:
    """A program as text: nothing in it is markup."""
    cut = len(source) > MOST_SOURCE_CHARACTERS
    shown = source[:MOST_SOURCE_CHARACTERS] + ("\n…" if cut else "")
    return element("pre", element("code", escaped(shown)))


def facts(values: Mapping[str, object]) -> Markup:
    """Names and values, one line each."""
    rows = [
        element("tr", element("th", name, scope="row"), element("td", element("code", _plain(value))))
        for name, value in values.items()
    ]
    return element("div", element("table", element("tbody", *rows), class_="facts"), class_="wide")


def how_it_was_run(settings: Mapping[str, object], versions: Mapping[str, str]) -> Markup:
    return section(
        "How it was run",
        folded("All settings", facts(settings)),
        folded("Installed versions", facts(versions)),
    )


def duration(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    if seconds < 5400:
        return f"{seconds / 60:.0f} min"
    return f"{seconds / 3600:.1f} h"


def _plain(value: object) -> str:
    if isinstance(value, list | tuple):
        return ", ".join(map(_plain, value))
    if isinstance(value, Mapping):
        return ", ".join(f"{key} = {_plain(entry)}" for key, entry in value.items())
    return "true" if value is True else "false" if value is False else str(value)
