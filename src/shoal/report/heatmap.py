"""Archives as grids: how fit the elite of each cell is, and whose it is.

Two axes are drawn as a grid, the first one upward and the second one across; an archive with another number
of axes is told in words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from shoal.report.drawing import Scale, colour, drawing, figure, label, legend, letter, number
from shoal.report.markup import Markup, element
from shoal.runs.results import ArchiveMap
from shoal.runs.search import Axis, Placed

WIDTH, LEFT, TOP, RIGHT, BOTTOM = 330, 74, 6, 6, 50
FAINTEST = 0.10
DARK_FROM = 0.55
"""The share of full colour from which text on it is drawn in the colour of the page."""


def bin_label(axis: Axis, index: int) -> str:
    """The values of a bin: "<1", "1–10", "≥10k"."""
    if index == 0:
        return f"<{_short(axis.edges[0])}"
    if index == len(axis.edges):
        return f"≥{_short(axis.edges[-1])}"
    return f"{_short(axis.edges[index - 1])}–{_short(axis.edges[index])}"


def fitness_figure(archive: ArchiveMap, greatest: float) -> Markup:
    """Colour from 0 to `greatest`, which maps that are looked at side by side have in common."""
    scale = Scale(0.0, max(greatest, 1e-9), FAINTEST, 1.0)

    def paint(cell: Placed) -> tuple[str, str, float]:
        return number(cell.fitness, 2), "var(--heat)", min(1.0, max(FAINTEST, scale(cell.fitness)))

    return figure(_grid(archive, paint), f"{archive.title}: {_filled(archive)}")


def models_figure(archive: ArchiveMap, models: Mapping[str, int]) -> Markup:
    """Which model's program is in each cell; `models` numbers them."""

    def paint(cell: Placed) -> tuple[str, str, float]:
        return letter(models[cell.model]), colour(models[cell.model]), 1.0

    counts = {model: sum(cell.model == model for cell in archive.cells) for model in models}
    entries = [(f"{model or 'unknown'}: {count}", models[model]) for model, count in counts.items() if count]
    return figure(
        _grid(archive, paint), f"{archive.title}: who filled which cell", legend(entries, letters=True)
    )


def _filled(archive: ArchiveMap) -> str:
    capacity = 1
    for axis in archive.axes:
        capacity *= len(axis.edges) + 1
    return f"{len(archive.cells)} of {capacity} cells"


def _grid(archive: ArchiveMap, paint: Callable[[Placed], tuple[str, str, float]]) -> Markup:
    if len(archive.axes) != 2:
        return element("p", f"An archive with {len(archive.axes)} axes is not drawn.")
    upward, across = archive.axes
    columns, rows = len(across.edges) + 1, len(upward.edges) + 1
    wide, high = (WIDTH - LEFT - RIGHT) / columns, 32
    height = TOP + high * rows + BOTTOM
    parts = []
    for row in range(rows):
        y = TOP + high * (rows - 1 - row)
        parts.append(label(bin_label(upward, row), LEFT - 6, y + high / 2 + 4, anchor="end", class_="tick"))
        parts += [
            element("rect", x=LEFT + wide * column, y=y, width=wide - 1.5, height=high - 1.5, class_="empty")
            for column in range(columns)
        ]
    for column in range(columns):
        x, low = LEFT + wide * (column + 0.5), TOP + high * rows
        parts.append(label(bin_label(across, column), x, low + 14, anchor="middle", class_="bin"))
    for cell in archive.cells:
        text, fill, strength = paint(cell)
        row, column = cell.cell
        x, y = LEFT + wide * column, TOP + high * (rows - 1 - row)
        style = f"fill:{fill};fill-opacity:{strength:.2f}"
        parts.append(element("rect", x=x, y=y, width=wide - 1.5, height=high - 1.5, style=style))
        class_ = "on-dark" if strength >= DARK_FROM else "value"
        parts.append(label(text, x + wide / 2 - 1, y + high / 2 + 4, anchor="middle", class_=class_))
    middle = LEFT + wide * columns / 2
    parts.append(label(across.measure, middle, height - 14, anchor="middle", class_="axis"))
    centre = TOP + high * rows / 2
    parts.append(
        element(
            "text",
            upward.measure,
            x=12,
            y=centre,
            text_anchor="middle",
            transform=f"rotate(-90 12 {centre:g})",
            class_="axis",
        )
    )
    return drawing(height, parts, f"{archive.title}: {upward.measure} by {across.measure}", WIDTH)


def greatest_fitness(archives: Sequence[ArchiveMap]) -> float:
    return max((cell.fitness for archive in archives for cell in archive.cells), default=0.0)


def _short(value: float) -> str:
    return f"{value / 1000:g}k" if value >= 1000 else f"{value:g}"
