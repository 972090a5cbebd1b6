"""The progress of a run: a table on a terminal, lines in a pipe, objects for programs.

Always on standard error: standard output is for the result. Names and troubles may come from strangers and
are cleaned of everything that a terminal could act upon.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import msgspec

from shoal.cli.output import clean, note

if TYPE_CHECKING:
    from shoal.node.standing import Progress, Standing

LINE_EVERY = 5.0
"""Seconds between two rounds of lines where there is no terminal."""
MOST_NODES = 32
"""Nodes that are shown one by one; of more, those that are still at work come first."""
MOST_TROUBLE = 600

Manner = Literal["people", "programs", "quiet"]
"""`people`: a table or lines; `programs`: one JSON object per node and line; `quiet`: nothing."""


class View:
    """A run as it goes on: a title for all of it, and columns for each node."""

    def __init__(self, columns: Sequence[Column]) -> None:
        self.columns = columns

    def doing(self, progress: Progress[Any]) -> str:
        if progress.making:
            models = ", ".join(f"{name} {100 * share:.0f}%" for name, share in progress.making.items())
            return f"making {models} (first use)"
        if waiting := next((node.waiting for node in progress.nodes if node.waiting), ""):
            return waiting
        of_all = f" of {progress.total}" if progress.total else ""
        return f"{progress.done}{of_all} {progress.unit}"

    def title(self, progress: Progress[Any]) -> str:
        from shoal.node.standing import longest_left

        left, passed = longest_left(progress.nodes), clock(progress.seconds)
        about = f", about {clock(left)} left" if left else ""
        is_over = progress.nodes and all(node.ended for node in progress.nodes)
        took = f"took {passed}" if is_over else f"{passed} so far{about}"
        return f"{clean(self.doing(progress), 500)}; {took}"

    def table(self, progress: Progress[Any], width: int) -> list[str]:
        """Title, headings, a line per node and one per trouble, none longer than `width`."""
        nodes, more = _shown(progress.nodes)
        lines = [clean(self.title(progress), width)]
        if nodes:
            names = [clean(node.name) for node in nodes]
            lines += ["", *fitted("node", names, self.columns, nodes, width)]
        if more:
            lines.append(clean(more, width))
        return lines + [clean(line, width) for line in troubles(nodes)]

    def lines(self, progress: Progress[Any]) -> list[str]:
        """The same in words, without the troubles."""
        nodes, more = _shown(progress.nodes)
        found = [self.title(progress)]
        for node in nodes:
            figures = ", ".join(column.phrase(node) for column in self.columns)
            found.append(f"  {clean(node.name)}: {figures}")
        return found + ([f"  {more}"] if more else [])

    def objects(self, progress: Progress[Any]) -> list[dict[str, Any]]:
        """One per node. Names are not cleaned: JSON escapes all characters beyond ASCII."""
        return [
            {
                "seconds": round(progress.seconds, 3),
                "node": node.name,
                "model": node.model,
                **node.figures(),
                **msgspec.structs.asdict(node.traffic),
                "seconds_left": node.seconds_left,
                "ended": node.ended,
                "trouble": node.trouble,
                "restarts": node.restarts,
                **({"waiting": node.waiting} if node.waiting else {}),
            }
            for node in progress.nodes
        ] or [{"seconds": round(progress.seconds, 3), "doing": self.doing(progress)}]


class ProgressDisplay:
    """A table that renews itself on a terminal, now and then some lines elsewhere. With `keep` the last table
    stays on the terminal. Without `live` a terminal gets lines too, as somebody types there. The last state
    is always printed, also after an interrupt."""

    def __init__(
        self,
        columns: Sequence[Column],
        manner: Manner = "people",
        *,
        keep: bool = False,
        live: bool = True,
    ) -> None:
        self.troubled: list[str] = []
        self.only_dead = False
        """All nodes with a trouble were left dead: none of them told about a failure of its own."""
        self._restarted: dict[str, int] = {}
        self._told: set[str] = set()
        self.peers = 0
        self._view = View(columns)
        self._manner = manner
        self._keep = keep
        self._may_redraw = live
        self._live: Any = None
        self._next_line = 0.0
        self._untold: Progress[Any] | None = None

    def __enter__(self) -> ProgressDisplay:
        if self._manner == "people" and self._may_redraw and sys.stderr.isatty():
            from rich.console import Console
            from rich.live import Live

            console = Console(stderr=True, highlight=False)
            self._live = Live(console=console, transient=not self._keep, redirect_stdout=False)
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live is not None:
            self._live.stop()
        elif self._untold is not None:
            self._tell(self._untold, with_troubles=False)  # the caller tells them last

    def show(self, progress: Progress[Any]) -> None:
        self.troubled = troubles(progress.nodes)
        self.only_dead = all(node.down == "dead" for node in progress.nodes if node.trouble)
        for node in progress.nodes:
            if node.restarts > self._restarted.get(node.name, 0):
                self._restarted[node.name] = node.restarts
                self.say(clean(node.restarted, MOST_TROUBLE))
        self.peers = max((node.traffic.peers for node in progress.nodes), default=0)
        if self._live is not None:
            from rich.text import Text

            # One column is left free: some terminals wrap a line that fills them.
            lines = self._view.table(progress, self._live.console.width - 1)
            text = Text("\n".join(lines), no_wrap=True, overflow="crop")
            text.stylize("bold", 0, len(lines[0]))
            self._live.update(text)
        elif progress.seconds >= self._next_line:
            self._tell(progress)
        else:
            self._untold = progress

    def say(self, text: str) -> None:
        """One line that stays, from any thread; an object for programs."""
        if self._live is not None:
            self._live.console.print(text, markup=False, highlight=False)
        elif self._manner == "people":
            print(f"{text}\n", end="", file=sys.stderr, flush=True)
        elif self._manner == "programs":
            print(f"{json.dumps({'doing': text})}\n", end="", file=sys.stderr, flush=True)

    def _tell(self, progress: Progress[Any], *, with_troubles: bool = True) -> None:
        self._next_line, self._untold = progress.seconds + LINE_EVERY, None
        if self._manner == "people":
            for line in self._view.lines(progress):
                print(line, file=sys.stderr)
            if with_troubles:
                self.tell_troubles()
        elif self._manner == "programs":
            for one in self._view.objects(progress):
                print(json.dumps(one), file=sys.stderr, flush=True)

    def tell_troubles(self, *, again: bool = False) -> None:
        """Prints the reasons why nodes stopped early, each once unless `again`."""
        for trouble in self.troubled:
            if again or trouble not in self._told:
                self._told.add(trouble)
                note(f"shoal: {trouble}")


def manner_of(*, json: bool, quiet: bool) -> Manner:
    return "quiet" if quiet else "programs" if json else "people"


def troubles(nodes: Sequence[Standing]) -> list[str]:
    """The reasons why nodes stopped early, one line each."""
    return [
        clean(f"{node.name} ({node.model}): {node.trouble}", MOST_TROUBLE) for node in nodes if node.trouble
    ]


def _shown(nodes: Sequence[Standing]) -> tuple[Sequence[Standing], str]:
    if len(nodes) <= MOST_NODES:
        return nodes, ""
    chosen = sorted(range(len(nodes)), key=lambda at: (nodes[at].ended, at))[:MOST_NODES]
    ended = sum(node.ended for node in nodes)
    return [nodes[at] for at in sorted(chosen)], (
        f"and {len(nodes) - MOST_NODES} more nodes; {ended} of all {len(nodes)} have ended"
    )


LEAST_NAME = 8
"""Least width of the first column, however narrow the terminal."""


class Column(NamedTuple):
    """A figure of a node. `short` stands in the heading where there is little room, `words` is the figure in
    a line of text, with `{}` for it. Columns of the greatest `rank` are left out first; 0 always stays."""

    heading: str
    short: str
    words: str | Callable[[str], str]
    rank: int
    value: Callable[[Any], str]

    def phrase(self, node: Any) -> str:
        value = self.value(node)
        return self.words.format(value) if isinstance(self.words, str) else self.words(value)


def fitted(
    first: str, names: Sequence[str], columns: Sequence[Column], nodes: Sequence[Any], width: int
) -> list[str]:
    """Lines of at most `width` characters: a heading, and one line per node. `names` stand under `first`, to
    the left; figures to the right. Texts are taken as they are: clean them before."""
    cells = [[column.value(node) for column in columns] for node in nodes]
    wanted = list(range(len(columns)))
    longest = max([len(first), *map(len, names)])
    for gap, short in ((2, False), (1, True)):
        headings = [column.short if short else column.heading for column in columns]
        widths = [
            max([len(heading), *(len(row[at]) for row in cells)]) for at, heading in enumerate(headings)
        ]
        if _total(longest, widths, wanted, gap) <= width:
            break
    while _total(longest, widths, wanted, gap) > width:
        least = max(wanted, key=lambda at: (columns[at].rank, at), default=None)
        if least is None or columns[least].rank == 0:
            break
        wanted.remove(least)
    longest = max(LEAST_NAME, min(longest, width - _total(0, widths, wanted, gap)))
    lines = []
    for name, row in [(first, headings), *zip(names, cells, strict=True)]:
        name = name if len(name) <= longest else name[: longest - 1] + "…"
        figures = (row[at].rjust(widths[at]) for at in wanted)
        lines.append((" " * gap).join([name.ljust(longest), *figures])[:width].rstrip())
    return lines


def _total(longest: int, widths: Sequence[int], wanted: Sequence[int], gap: int) -> int:
    return longest + sum(widths[at] + gap for at in wanted)


def number(value: float | None, digits: int = 2) -> str:
    """A dash for None."""
    return "-" if value is None else f"{value:.{digits}f}"


def rate(value: float | None) -> str:
    """With about three digits."""
    if value is None:
        return "-"
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 1 else f"{value:.2f}"


def amount(value: int) -> str:
    """12345 as 12.3k: a column keeps its width."""
    for size, letter in ((1_000_000_000, "G"), (1_000_000, "M"), (10_000, "k")):
        if value >= size:
            scaled = value / (1000 if letter == "k" else size)
            return f"{scaled:.1f}{letter}" if scaled < 100 else f"{scaled:.0f}{letter}"
    return str(value)


def share_of(spent: int, allowed: int | None) -> str:
    return amount(spent) if allowed is None else f"{amount(spent)}/{amount(allowed)}"


def clock(seconds: float | None) -> str:
    """Minutes and seconds, hours and minutes where there are hours."""
    if seconds is None:
        return "-"
    whole = round(seconds)
    if whole >= 3600:
        return f"{whole // 3600}h{whole % 3600 // 60:02}"
    return f"{whole // 60}:{whole % 60:02}"
