"""Running a crew from the command line: progress, a stop on Ctrl-C, the summary, the command that resumes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from shoal.cli.output import clean, note, print_json
from shoal.cli.progress import Column, ProgressDisplay, amount, clock, manner_of

if TYPE_CHECKING:
    from shoal.node.crew import Network
    from shoal.node.drive import Stop
    from shoal.node.standing import Standing

NOBODY_HEARD = 1
LEFT_DEAD = 1
NODE_FAILED = 2
INTERRUPTED = 130
LOOK_EVERY = 0.05
NOBODY = "nobody was heard (0 peers), so nobody received anything: try `shoal doctor --join ADDRESS`"

TRAFFIC = (
    Column("peers", "peer", "peers {}", 4, lambda node: str(node.traffic.peers)),
    Column("shared", "out", "{} shared", 5, lambda node: amount(node.traffic.shared)),
    Column("received", "in", "{} received", 3, lambda node: amount(node.traffic.received)),
    Column("rejected", "bad", "{} rejected", 6, lambda node: amount(node.traffic.rejected)),
    Column("used", "used", "{} used", 2, lambda node: amount(node.traffic.used)),
)


def _left(node: Standing) -> str:
    if node.trouble:
        return "failed"
    if node.down:
        return node.down
    return "done" if node.ended else clock(node.seconds_left)


LEFT = Column(
    "time left",
    "left",
    lambda value: value if value in ("done", "failed", "restarts") else f"{value} left",
    0,
    _left,
)


@dataclass(frozen=True)
class Terminal:
    """An application on the terminal: the columns of its progress, its summary in tables, whether a summary
    has anything to show, and the remarks that end a finished run, with the exit code that each means."""

    columns: tuple[Column, ...]
    print_summary: Callable[[Any, Path], None]
    has_results: Callable[[Any], bool]
    remarks: Callable[[Any, bool], list[tuple[str, int]]]


def tell_passed_over(nodes: Sequence[Any], items: str) -> None:
    """A line for each node that was sent items that it cannot check."""
    for node in nodes:
        if node.passed_over:
            told = ", ".join(f"{count} {clean(reason)}" for reason, count in sorted(node.passed_over.items()))
            print(f"{node.name} passed over {items} that it cannot check: {told}")


def new_folder(application: str) -> Path:
    """A new, empty folder in runs/, also if another run begins at the same moment."""
    name, number = time.strftime(f"{application}-%Y%m%d-%H%M%S"), 1
    while True:
        path = Path("runs") / (name if number == 1 else f"{name}-{number}")
        try:
            path.mkdir(parents=True)
            return path
        except FileExistsError:
            number += 1


def run_and_report(
    settings: Any, folder: Path, network: Network, *, in_process: bool, json: bool, quiet: bool
) -> None:
    """Runs with progress on standard error, and prints the summary, or with `quiet` the folder. Exits with 2
    if a node failed, with 130 if the run was stopped, and with 1 if a node was left dead or if the run only
    gave to others and heard none of them. The last lines are the reason of a failure and the command that
    resumes the run."""
    from shoal.applications import APPLICATIONS
    from shoal.node import Stop
    from shoal.node.running import run_crew

    application = APPLICATIONS[settings.application]
    terminal: Terminal = application.load("terminal")
    crew = application.load("crew")(settings)
    manner = manner_of(json=json, quiet=quiet)
    shown = ProgressDisplay(terminal.columns, manner, live=not crew.at_terminal)
    try:
        with Stop() as stop, shown as display, announcing_stop(stop, display.say):
            ended = run_crew(
                crew, folder, in_process=in_process, stop=stop, progress=display.show, network=network
            )
    except KeyboardInterrupt:
        if (folder / "config.toml").is_file():
            note(f"shoal: stopped. Go on with: shoal resume {folder}")
        raise
    summary = application.load("summarise")(folder)
    if json:
        import msgspec

        print_json(msgspec.to_builtins(summary))
    elif quiet:
        print(folder)
    elif ended == "finished" or terminal.has_results(summary):
        terminal.print_summary(summary, folder)
    code = _conclude(ended, stop, display, folder)
    unheard = not (network.is_private or in_process) and display.peers == 0
    for text, meaning in terminal.remarks(summary, unheard):
        if ended == "finished" or stop.requested:
            note(f"shoal: {text}")
            code = code or meaning
    if code:
        raise typer.Exit(code)


def _conclude(ended: str, stop: Stop, display: ProgressDisplay, folder: Path) -> int:
    if ended == "finished":
        return 0
    display.tell_troubles(again=True)
    note(f"shoal: {'stopped' if stop.requested else 'not finished'}. Go on with: shoal resume {folder}")
    if stop.requested:
        return INTERRUPTED
    return LEFT_DEAD if display.only_dead else NODE_FAILED


@contextmanager
def announcing_stop(stop: Stop, say: Callable[[str], object]) -> Iterator[None]:
    """Calls `say` once, from a thread of its own, as soon as a stop is requested; never after the end, and
    not if the first signal ends everything at once."""
    from shoal.node.drive import GRACE

    text = f"stopping: waiting up to {GRACE:.0f} s for calls under way; Ctrl-C again to stop at once"
    over = threading.Event()

    def watch() -> None:
        while not over.wait(LOOK_EVERY):
            if stop.requested:
                if not stop.at_once:
                    say(text)
                return

    watcher = threading.Thread(target=watch, daemon=True)
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()
