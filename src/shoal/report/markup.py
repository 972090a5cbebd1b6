"""HTML and SVG that is safe by construction: a plain `str` is text and gets escaped, only `Markup` is not.

Program sources and names come from strangers. They reach a page through `element` and nothing else, so none
of them can become a tag, an attribute or an address.
"""

from __future__ import annotations

import html
from collections.abc import Iterable

Attribute = str | float | int | None
VOID = {"br", "circle", "col", "hr", "line", "meta", "path", "polygon", "polyline", "rect"}


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


def element(name: str, /, *children: Markup | str, **attributes: Attribute) -> Markup:
    """`element("p", "a < b", class_="note")`. Underscores in names of attributes stand for dashes; an
    attribute that is None is left out."""
    shown = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(_plain(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID and not children:
        return Markup(f"<{name}{shown}/>")
    return Markup(f"<{name}{shown}>{joined(children)}</{name}>")


def joined(parts: Iterable[Markup | str], between: str = "") -> Markup:
    return Markup(between.join(part if isinstance(part, Markup) else escaped(part) for part in parts))


def escaped(text: str) -> Markup:
    """Text as it is to be read: control characters, which a page cannot show, become a dot."""
    shown = "".join("·" if (ord(c) < 0x20 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0 else c for c in text)
    return Markup(html.escape(shown.encode("utf-8", "replace").decode()))


def _plain(value: str | float | int | None) -> str:
    # Coordinates to a tenth of a pixel: shorter files, the same picture.
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else str(value)
