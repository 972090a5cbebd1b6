"""HTML and SVG that is safe by construction: a plain `str` is text and gets escaped, only `Markup` is not.
Texts of strangers reach a page through `element` alone, so none can become a tag, an attribute or an
address."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence

from shoal.runs.foreign import visible

Attribute = str | float | int | None
VOID = {"br", "circle", "col", "hr", "line", "meta", "path", "polygon", "polyline", "rect"}


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def element(name: str, /, *children: Markup | str, **attributes: Attribute) -> Markup:
    """`element("p", "a < b", class_="note")`. Underscores become dashes; None leaves an attribute out."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(visible(_plain(value)))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID and not children:
        return Markup(f"<{name}{shown}/>")
    return Markup(f"<{name}{shown}>{joined(children)}</{name}>")


def table(
    headings: Sequence[Markup | str], rows: Iterable[Sequence[Markup | str]], shaded_from: int | None = None
) -> Markup:
    """A table that scrolls sideways where it is too wide. A `str` is the text of a cell, a `Markup` the cell
    itself; the first text of a row is its heading. Rows from `shaded_from` on are set apart."""
    head = [one if isinstance(one, Markup) else element("th", one, scope="col") for one in headings]
    body = [
        element(
            "tr",
            element("th", first, scope="row"),
            *(one if isinstance(one, Markup) else element("td", one) for one in rest),
            class_=None if shaded_from is None or place < shaded_from else "group",
        )
        for place, (first, *rest) in enumerate(rows)
    ]
    whole = element("table", element("thead", element("tr", *head)), element("tbody", *body))
    return element("div", whole, class_="wide", tabindex=0)


def joined(parts: Iterable[Markup | str], between: str = "") -> Markup:
    return Markup(between.join(part if isinstance(part, Markup) else escaped(part) for part in parts))


def escaped(text: str) -> Markup:
    """Text as it is to be read, every character of it visible."""
    return Markup(html.escape(visible(text)))


def number(value: float, digits: int | None = None) -> str:
    """With the given digits after the point, or as many as it needs; a real minus sign, but not for 0."""
    shown = f"{value:z,.{digits}f}" if digits is not None else f"{value:z,.10g}"
    return shown.replace("-", "−")


def with_sign(value: float, digits: int) -> str:
    """A difference: with a plus sign where it is more, and none where it rounds to 0."""
    text = number(value, digits)
    return f"+{text}" if value > 0 and text.strip("0.") else text


def _plain(value: str | float | int | None) -> str:
    # Coordinates to a tenth of a pixel: shorter files, the same picture.
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
