"""Scales, ticks and colours that the plots have in common.

Colours are names of CSS variables, so that one drawing fits light, dark and paper. Series differ by dashes
too, and cells by letters: nothing is told by colour alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from shoal.report.markup import Markup, element

COLOURS = 8
DASHES = ("", "7 3", "2 2", "9 3 2 3", "4 4", "1 3", "12 4", "6 2 1 2")
WIDTH = 420
"""Of a plot, in its own units: near a phone's width, so that its text is as large there as the page's."""


def colour(index: int) -> str:
    return f"var(--series-{index % COLOURS + 1})"


def dashes(index: int) -> str | None:
    """Shifted by one after each round of colours: series of the same colour have other dashes."""
    return DASHES[(index + index // COLOURS) % len(DASHES)] or None


@dataclass(frozen=True, slots=True)
class Scale:
    """Values from `low` to `high` onto places from `start` to `end`."""

    low: float
    high: float
    start: float
    end: float

    def __call__(self, value: float) -> float:
        if self.high == self.low:
            return (self.start + self.end) / 2
        return self.start + (value - self.low) / (self.high - self.low) * (self.end - self.start)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round numbers from below `low` to above `high`, evenly spaced, about `most` of them. Values that are
    all the same get some room on both sides."""
    if high - low <= 1e-9 * max(abs(low), abs(high), 1e-6):
        low, high = low - (abs(low) * 0.1 or 1), high + (abs(high) * 0.1 or 1)
    rough = (high - low) / max(1, most - 1)
    power = 10.0 ** math.floor(math.log10(rough))
    step = next((factor * power for factor in (1, 2, 2.5, 5, 10) if factor * power >= rough), 10 * power)
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [float(f"{count * step:.12g}") for count in range(first, last + 1)]


def number(value: float, digits: int | None = None) -> str:
    """With the given digits after the point, or as many as a tick needs; a real minus sign, but not for 0."""
    shown = f"{value:z,.{digits}f}" if digits is not None else f"{value:z,.10g}"
    return shown.replace("-", "−")


def span(values: Iterable[float]) -> tuple[float, float]:
    found = list(values)
    return (min(found), max(found)) if found else (0.0, 1.0)


def label(text: str, x: float, y: float, *, anchor: str = "start", class_: str = "") -> Markup:
    return element("text", text, x=x, y=y, text_anchor=anchor, class_=class_ or None)


def drawing(height: float, parts: Sequence[Markup], title: str, width: float = WIDTH) -> Markup:
    """An SVG that fills the width it is given; `title` is what a screen reader says."""
    return element(
        "svg",
        element("title", title),
        *parts,
        viewBox=f"0 0 {width:g} {height:g}",
        role="img",
        xmlns="http://www.w3.org/2000/svg",
    )


def figure(picture: Markup, heading: str, *below: Markup) -> Markup:
    return element("figure", element("figcaption", heading), picture, *below)


def legend(entries: Sequence[tuple[str, int]], *, letters: bool = False) -> Markup:
    """Names with the line (or the lettered square) that stands for them, as text that wraps."""
    items = []
    for name, index in entries:
        if letters:
            key = element("i", letter(index), class_="square", style=f"background:{colour(index)}")
        else:
            stroke = element(
                "line",
                x1=0,
                y1=5,
                x2=28,
                y2=5,
                stroke_dasharray=dashes(index),
                style=f"stroke:{colour(index)}",
            )
            key = element("svg", stroke, viewBox="0 0 28 10", class_="key", aria_hidden="true")
        items.append(element("li", key, " ", name))
    return element("ul", *items, class_="legend")


def letter(index: int) -> str:
    return chr(ord("A") + index % 26)
