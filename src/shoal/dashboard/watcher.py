"""The one thread that reads journals. Everybody else looks at what it has folded, under its lock.

It reads in turns of a few hundredths of a second per node, so that all nodes of all runs show something
soon, however long their journals are, and a page is served while it reads. When there is nothing new it
looks at the sizes of the files a few times per second.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from shoal.dashboard.messages import Cursor, message
from shoal.dashboard.run_view import RunView

SLICE = 0.02
PAUSE = 0.25


class Watcher:
    def __init__(self, runs: Sequence[RunView]) -> None:
        self.runs = list(runs)
        self.lock = threading.Lock()
        self.failure = ""
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="shoal-dashboard-reader", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stop.set()
        if self._thread.is_alive():
            self._thread.join(5)

    def message(self, cursor: Cursor) -> dict[str, object] | None:
        with self.lock:
            return message(self.runs, cursor)

    def read_all(self, seconds: float | None = None) -> None:
        """Reads what is there now, without a thread; at most for so many seconds."""
        until = None if seconds is None else time.monotonic() + seconds
        self.round()
        while any(node.behind for run in self.runs for node in run.nodes.values()):
            if until is not None and time.monotonic() > until:
                break
            self.round()

    def round(self) -> bool:
        """One turn of each node; True if any record was read."""
        with self.lock:
            for run in self.runs:
                run.look()
        worked = False
        for node in [node for run in self.runs for node in run.nodes.values()]:
            if self._stop.is_set():
                break
            if node.behind:
                with self.lock:
                    worked |= node.advance(SLICE) > 0
                time.sleep(0)  # a lock that is taken again at once lets nobody else in
        return worked

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                worked = self.round()
            except Exception as error:
                # The page must say that it no longer follows, instead of looking alive and standing still.
                self.failure = f"{type(error).__name__}: {error}"[:300]
                return
            self._stop.wait(0.002 if worked else PAUSE)
