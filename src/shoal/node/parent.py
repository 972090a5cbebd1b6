"""A node's process, seen from its parent: started, watched, and started again from its journal if it dies.

A restart mends whatever came from outside of the node: kill -9, a lack of memory, a crash of the interpreter,
an exception that nobody foresaw. A failure that the node itself tells about (a key that is wrong, a disk that
is full) would only come again, so it is reported and not restarted. Nothing that a process does raises here.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Generic

import msgspec

from shoal.errors import RunError
from shoal.node.child import CRASHED, FAILED, STOPPED, Orders
from shoal.node.crew import Crew
from shoal.node.standing import StandingOf, note_waiting
from shoal.runs import RunFolder, read
from shoal.swarm.presence import PRESENCE

DELAYS = (1.0, 5.0, 20.0)
"""Seconds before the first, second and third restart. A node whose process dies once more is left dead."""
HEALTHY_SECONDS = 600.0
"""A process that got on with its node's work for so long has earned all restarts back."""
MOST_TROUBLE = 500
MOST_SAID = 8192


class Restarts:
    """Counts the restarts of one node; `number` is that of the next or last one."""

    def __init__(self) -> None:
        self.number = 0

    def delay(self, ran: float, *, worked: bool) -> float | None:
        """The wait before a process that died after `ran` seconds is started again; None: never.
        `worked`: the node got on meanwhile."""
        if worked and ran >= HEALTHY_SECONDS:
            self.number = 0
        if self.number >= len(DELAYS):
            return None
        self.number += 1
        return DELAYS[self.number - 1]


class Child(Generic[StandingOf]):
    """One node of a run, and the process that it has at the moment, if any."""

    def __init__(self, crew: Crew[StandingOf], run: RunFolder, orders: Orders) -> None:
        self._orders = orders
        self._name = crew.names[orders.index]
        self._shares = crew.shares
        self._journal = run.journal_path(self._name)
        self._presence = run.node_folder(self._name) / PRESENCE
        self._watcher = crew.watch(orders.index, self._journal)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115 - closed by `close`
        self._process: subprocess.Popen[bytes] | None = None
        self._start_at: float | None = 0.0
        self._started_at, self._work_before = 0.0, (0, 0.0)
        self._restarts = Restarts()
        self._restarted, self._times = "", 0
        self._death = self._trouble = ""
        self._ended = self._stopping = self._is_dead = False

    @property
    def is_over(self) -> bool:
        """It has no process and gets none any more."""
        return self._process is None and self._start_at is None

    def tend(self, now: float) -> None:
        """Notices the end of the process, and starts one when that is due. `now` never goes back."""
        if self._process is not None:
            code = _end_of(self._process)
            if code is not None:
                _close_orders(self._process)
                self._process = None
                self._take_end(code, now)
        elif self._start_at is not None and now >= self._start_at:
            self._start(now)

    def stop(self) -> None:
        """Asks the process to end; no other one is started."""
        self._stopping, self._start_at = True, None
        if self._process is not None:
            self._process.terminate()

    def close(self) -> None:
        """Ends the process at once, if it still runs."""
        if self._process is not None:
            _kill_group(self._process)
            self._process.kill()
            self._process.wait()
            _close_orders(self._process)
        self._said.close()

    def standing(self) -> StandingOf:
        found = self._watcher.look(ended=self._ended, trouble=self._trouble)
        down = "dead" if self._is_dead else "" if self._start_at is None else "restarts"
        found = msgspec.structs.replace(found, restarts=self._times, restarted=self._restarted, down=down)
        if self._process is None or not self._shares:
            return found
        return note_waiting(found, self._presence, self._orders.network.wait_for)

    def _start(self, now: float) -> None:
        self._start_at, self._started_at = None, now
        self._work_before = self._work()
        if self._death:
            self._orders = _orders_of_restart(self._orders, self._journal)
            source = " from its journal" if self._journal.exists() else ""
            number = f"{self._restarts.number} of {len(DELAYS)}"
            self._restarted = f"{self._name} {self._death}; started again{source} ({number})"
            self._times += 1
        self._said.seek(0)
        self._said.truncate()
        try:
            # A session of its own: an interrupt at the terminal comes to this process, which asks it to end.
            self._process = subprocess.Popen(
                [sys.executable, "-m", "shoal.node.child"],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=self._said,
                start_new_session=True,
            )
        except OSError as error:  # no memory for one more process, for instance
            self._take_death(f"could not be started: {error.strerror or error}", now)
            return
        assert self._process.stdin is not None
        with contextlib.suppress(OSError):  # dead already, which `tend` notices
            self._process.stdin.write(msgspec.json.encode(self._orders) + b"\n")
            self._process.stdin.flush()

    def _take_end(self, code: int, now: float) -> None:
        said = self._last_words()
        if code == 0:
            self._ended = True
        elif code == FAILED:
            self._trouble = said or f"its process ended with code {code}"
        elif self._stopping and code in (STOPPED, -signal.SIGTERM):
            pass
        elif code < 0:
            self._take_death(f"was ended by {_name_of(-code)}", now)
        elif code in (CRASHED, STOPPED) and said:
            self._take_death(f"was ended by {said}", now)
        else:
            self._take_death(f"ended with code {code}", now)

    def _take_death(self, death: str, now: float) -> None:
        self._death = death
        if self._stopping:
            self._trouble = f"its process {death}; `shoal resume` goes on"
            return
        worked = self._work() != self._work_before
        delay = self._restarts.delay(now - self._started_at, worked=worked)
        if delay is not None:
            self._start_at = now + delay
        else:
            self._is_dead = True
            self._trouble = (
                f"its process {death} and is left dead after {len(DELAYS)} restarts; `shoal resume` goes on"
            )

    def _work(self) -> tuple[int, float]:
        found = self._watcher.look()
        return found.work, found.done

    def _last_words(self) -> str:
        self._said.seek(max(0, self._said.seek(0, os.SEEK_END) - MOST_SAID))
        lines = self._said.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:MOST_TROUBLE] if lines else ""


def _orders_of_restart(orders: Orders, journal: Path) -> Orders:
    """The orders for a process that takes over from an earlier one of the same run. The node keeps its
    identity, and it waits for peers before its first turn only: later they may be done and gone."""
    key, spare_key, network = orders.key, orders.spare_key, orders.network
    if spare_key and Path(spare_key).exists():
        key, spare_key = spare_key, ""
    if network.wait_for and journal.exists():
        with contextlib.suppress(RunError):  # the node will tell about a journal that cannot be read
            if any(record.kind == "turn" for record in read(journal)):
                network = msgspec.structs.replace(network, wait_for=0)
    return msgspec.structs.replace(orders, key=key, spare_key=spare_key, network=network)


def _end_of(process: subprocess.Popen[bytes]) -> int | None:
    """The exit code of a process that has ended. The programs that it ran end then, too."""
    if sys.platform != "darwin":
        with contextlib.suppress(ChildProcessError):
            if os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
                return None
            _kill_group(process)  # before `poll` frees its number, which others could get
    return process.poll()


def _kill_group(process: subprocess.Popen[bytes]) -> None:
    """Ends a process of ours that nobody has waited for yet, and all others of its group."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _close_orders(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None:
        with contextlib.suppress(OSError):  # orders that a dead process never read
            process.stdin.close()


def _name_of(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
