"""Saying that a stop was understood, while calls under way are waited for."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from shoal.node.drive import Stop

LOOK_EVERY = 0.05


@contextmanager
def saying_that_it_stops(stop: Stop, say: Callable[[str], object]) -> Iterator[None]:
    """Calls `say` once, from a thread of its own, as soon as a stop is requested; never after the end. Not
    where the first signal ends all at once."""
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
