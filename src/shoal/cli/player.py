"""Playing a recorded round on a terminal, with keys where there is a keyboard to read."""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import groupby
from time import monotonic, sleep
from typing import TYPE_CHECKING

from shoal.cli.output import clean
from shoal.cli.replay import Replay, colour, letter, state

if TYPE_CHECKING:
    from rich.text import Text

FRAMES_PER_SECOND = 20
ROUND_SECONDS = 20
KEYS = "space pause   → step   ← back   + - speed   q quit"
LINES_AROUND_MAP = 3
ARROWS = {b"\x1b[C": "right", b"\x1bOC": "right", b"\x1b[D": "left", b"\x1bOD": "left"}


def play(replay: Replay, speed: float | None) -> None:
    """Shows the round from its beginning, `speed` instructions per second (a round takes some 20 s by
    default). With a keyboard it waits at the end for q; without one it ends by itself."""
    from rich.console import Console
    from rich.live import Live

    console = Console(highlight=False)
    rate = speed if speed is not None else max(50.0, replay.steps / ROUND_SECONDS)
    place, paused = 0.0, False
    with _keyboard() as keyboard, Live(console=console, screen=True, auto_refresh=False) as live:
        then = monotonic()
        while True:
            key = _key(keyboard, 1 / FRAMES_PER_SECOND)
            now = monotonic()
            if not paused:
                place = min(place + rate * (now - then), replay.steps)
            then = now
            if key == "q":
                return
            if key == " ":
                paused = not paused
            elif key in ("n", "right"):
                paused, place = True, min(int(place) + 1, replay.steps)
            elif key in ("p", "left"):
                paused, place = True, max(int(place) - 1, 0)
            elif key in ("+", "="):
                rate *= 2
            elif key == "-":
                rate = max(rate / 2, 1)
            replay.seek(int(place))
            width, height = console.size
            live.update(frame(replay, width, height, paused=paused, rate=rate), refresh=True)
            if keyboard is None and replay.step == replay.steps:
                return


def frame(replay: Replay, width: int, height: int, *, paused: bool, rate: float) -> Text:
    """One picture for a terminal of this size: a line per warrior, the map, a line of keys."""
    from rich.text import Text

    names = replay.recording.names
    shown = min(len(names), max(1, height // 4))
    picture = Text(no_wrap=True, overflow="crop")
    for index, count in list(enumerate(replay.processes()))[:shown]:
        picture.append(f"{letter(index)} {clean(names[index])}: {state(count)}\n", style=colour(index))
    core = replay.map(max(width, 1), max(1, height - shown - LINES_AROUND_MAP))
    owners = iter(core.owners.tolist())
    for row in core.rows:
        for style, run in groupby(zip(row, owners), key=_style):  # noqa: B905 - the rows share the owners
            picture.append("".join(character for character, _ in run), style=style)
        picture.append("\n")
    pace = "end" if replay.step == replay.steps else "paused" if paused else f"{rate:.0f} per second"
    picture.append(f"step {replay.step} of {replay.steps}, cycle {replay.cycle}, {pace}\n")
    picture.append(KEYS, style="dim")
    return picture


def _style(cell: tuple[str, int]) -> str:
    character, owner = cell
    if owner < 0:
        return "dim"
    return f"{colour(owner)} reverse" if character.isupper() else colour(owner)


@contextmanager
def _keyboard() -> Iterator[int | None]:
    """The descriptor to read keys from, one by one and unseen; the terminal is restored in any case."""
    try:
        import termios
        import tty

        descriptor = sys.stdin.fileno()
        before = termios.tcgetattr(descriptor)
    except (ImportError, OSError, ValueError, termios.error):
        yield None
        return
    try:
        tty.setcbreak(descriptor)
        yield descriptor
    finally:
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)


def _key(keyboard: int | None, seconds: float) -> str:
    """The next key within the time, by name; "" where there was none."""
    if keyboard is None:
        sleep(seconds)
        return ""
    if not select.select([keyboard], [], [], seconds)[0]:
        return ""
    pressed = os.read(keyboard, 1)  # one at a time, so that quick typing is not lost
    if not pressed:
        return "q"  # the terminal has gone
    while pressed in (b"\x1b", b"\x1b[", b"\x1bO") and select.select([keyboard], [], [], 0)[0]:
        pressed += os.read(keyboard, 1)
    return ARROWS.get(pressed, pressed.decode("latin-1"))
