"""The one thread that reads journals. Everybody else looks at its views, under its lock.

It reads in turns of a few hundredths of a second per node, so that all nodes of all runs show something soon,
however long their journals are. Idle, it looks at the sizes of the files a few times per second, and for new
runs every few seconds.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from shoal.dashboard.bounds import shown_line
from shoal.dashboard.messages import Cursor, message
from shoal.dashboard.run_view import RunView
from shoal.errors import RunError, ShoalError
from shoal.runs.listing import find_runs

SLICE = 0.02
PAUSE = 0.25
LOOK_FOR_RUNS = 2.0
MOST_RUNS = 32
MOST_NOTICES = 8


class Watcher:
    """Reads `runs`, and the runs in `folders`, new ones included, each opened by `open_run`. At most
    `MOST_RUNS` in all; `notices` tell how many are left out, and which cannot be opened."""

    def __init__(
        self,
        runs: Sequence[RunView] = (),
        folders: Sequence[Path] = (),
        open_run: Callable[[Path], RunView] = RunView,
    ) -> None:
        self.runs = list(runs)[:MOST_RUNS]
        self.lock = threading.Lock()
        self.failure = ""
        self.notices: list[str] = []
        self._folders = folders
        self._open_run = open_run
        self._left_out = len(runs) - len(self.runs)
        self._opened = {run.folder.path for run in runs}
        self._unreadable: dict[Path, str] = {}
        self._looked_at = 0.0
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
            return message(self.runs, cursor, self.notices)

    def read_all(self) -> None:
        """Reads all that is there now, without a thread."""
        self.round()
        while any(node.behind for run in self.runs for node in run.nodes.values()):
            self.round()

    def round(self) -> bool:
        """One turn of each node; True if any record was read."""
        if time.monotonic() >= self._looked_at + LOOK_FOR_RUNS:
            self.look_for_runs()
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

    def look_for_runs(self) -> None:
        """Opens new runs in the folders. Runs are only ever added: pages know them by their numbers."""
        self._looked_at = time.monotonic()
        left_out, found = self._left_out, list[Path]()
        for folder in self._folders:
            with contextlib.suppress(RunError):  # the folder may be gone by now; its runs stay
                found += find_runs(folder.absolute())
        for path in found:
            if path in self._opened or path in self._unreadable:
                continue
            if len(self.runs) >= MOST_RUNS:
                left_out += 1
                continue
            try:
                run = self._open_run(path)
            except ShoalError as error:
                self._unreadable[path] = shown_line(str(error))
                continue
            with self.lock:
                self.runs.append(run)
            self._opened.add(path)
        told = list(self._unreadable.values())
        if len(told) > MOST_NOTICES:
            told[MOST_NOTICES:] = [f"{len(told) - MOST_NOTICES} more that cannot be opened"]
        if left_out:
            runs = "1 more run is" if left_out == 1 else f"{left_out} more runs are"
            told.append(f"{runs} not shown: {MOST_RUNS} are the most")
        self.notices = told

    def _work(self) -> None:
        while not self._stop.is_set():
            try:
                worked = self.round()
            except Exception as error:
                # The page must say that it no longer follows, instead of looking alive and standing still.
                self.failure = f"{type(error).__name__}: {error}"[:300]
                return
            self._stop.wait(0.002 if worked else PAUSE)
