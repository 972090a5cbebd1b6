"""Where a search stands, while it runs."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from shoal.cli.output import clean, note

if TYPE_CHECKING:
    from shoal.evolve.running import Progress

LINE_EVERY = 5.0
"""Seconds between two lines where there is no terminal."""


class ProgressDisplay:
    """A table that renews itself on a terminal, now and then a line elsewhere; always standard error."""

    def __init__(self) -> None:
        self.troubled: list[str] = []
        self._live: Any = None
        self._next_line = 0.0

    def __enter__(self) -> ProgressDisplay:
        if sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            self._live = Live(console=Console(stderr=True, highlight=False), transient=True)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()

    def show(self, progress: Progress) -> None:
        self.troubled = [
            f"{node.name} ({node.model}): {node.trouble}" for node in progress.nodes if node.trouble
        ]
        if self._live is not None:
            self._live.update(self._table(progress))
        elif progress.seconds >= self._next_line:
            self._next_line = progress.seconds + LINE_EVERY
            nodes = ", ".join(f"{node.name} round {node.round}" for node in progress.nodes)
            note(f"{progress.seconds:4.0f} s: {progress.calls} of {progress.budget} calls; {nodes}")

    def _table(self, progress: Progress) -> Any:
        from rich.box import SIMPLE_HEAD
        from rich.table import Table
        from rich.text import Text

        title = f"{progress.calls} of {progress.budget} calls, {progress.seconds:.0f} s"
        table = Table(box=SIMPLE_HEAD, pad_edge=False, title=title, title_justify="left")
        for heading in ("node", "round", "calls", "cells", "best", ""):
            table.add_column(heading, justify="left" if heading in ("node", "") else "right")
        for node in progress.nodes:
            state = node.trouble or ("done" if node.ended else "")
            best = "-" if node.best is None else f"{node.best:.2f}"
            texts = (node.name, str(node.round), str(node.calls), str(node.cells), best, clean(state, 80))
            table.add_row(*map(Text, texts))
        return table
