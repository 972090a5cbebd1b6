"""The nodes of a run as processes: started, watched by their journals, ended with their parent.

Nothing is asked of a child but its orders; what it does is read from its journal, as anybody could. A child
that fails or is killed is reported and stops nobody else.
"""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import msgspec

from shoal.evolve.child import Orders
from shoal.evolve.lockstep import Report
from shoal.evolve.network import Network
from shoal.evolve.search_state import Happened
from shoal.evolve.seat import NodeProgress
from shoal.evolve.settings import EvolveSettings
from shoal.node import Stop
from shoal.runs import Follower, Ledger, RunFolder
from shoal.runs.records import Answered, Asked, Missed, Note, TurnBegun, content_of
from shoal.swarm import Identity

LOOK_EVERY = 0.1
GRACE = 45.0
"""Seconds for children to end by themselves: calls under way are paid for."""
OPEN_SWARM = "shoal"
MOST_TROUBLE = 500


class Watcher:
    """Where a node stands, from the records that its journal has gained since the last look."""

    def __init__(self, settings: EvolveSettings, index: int, journal: Path) -> None:
        self._rounds = settings.rounds
        self._name = settings.node_names()[index]
        self._model = settings.models[index]
        self._follower = Follower(journal)
        self._ledger = Ledger()
        self._last: Happened | None = None
        self._decode = msgspec.json.Decoder(Happened).decode

    def look(self, *, ended: bool = False, trouble: str = "") -> NodeProgress:
        for record in self._follower.poll():
            match content_of(record):
                case Asked(turn=turn, reserve=reserve):
                    self._ledger.ask(turn, reserve)
                case Answered(turn=turn, cost=cost) | Missed(turn=turn, cost=cost):
                    self._ledger.answer(turn, cost)
                case TurnBegun(turn=turn):
                    self._ledger.settle(turn)
                case Note(note=note):
                    self._last = self._decode(note)
        calls, last = self._ledger.spent.get("calls", 0), self._last
        if last is None:
            return NodeProgress(self._name, self._model, 0, calls, ended=ended, trouble=trouble)
        shown = min(last.round + 1, self._rounds)
        return NodeProgress(self._name, self._model, shown, calls, last.cells, last.best, ended, trouble)


@dataclass
class Child:
    process: subprocess.Popen[bytes]
    said: IO[bytes]
    watcher: Watcher
    stopping: bool = False

    def progress(self) -> NodeProgress:
        code = self.process.poll()
        return self.watcher.look(ended=code == 0 and not self.stopping, trouble=self._trouble(code))

    def _trouble(self, code: int | None) -> str:
        if not code:
            return ""
        if code < 0:
            return f"its process was ended by {signal.Signals(-code).name}; `shoal resume` goes on"
        self.said.seek(0)
        lines = self.said.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:MOST_TROUBLE] if lines else f"its process ended with code {code}"


def run_processes(
    settings: EvolveSettings, run: RunFolder, stop: Stop, report: Report, network: Network
) -> list[NodeProgress]:
    """Runs all nodes until they have ended or `stop` is requested; where each of them stands then."""
    children: list[Child] = []
    try:
        children += [_start(settings, run, orders) for orders in _orders(settings, run, network)]
        while any(child.process.poll() is None for child in children) and not stop.requested:
            report([child.progress() for child in children])
            time.sleep(LOOK_EVERY)
        _end(children)
        return [child.progress() for child in children]
    finally:
        for child in children:
            child.process.kill()
            child.process.wait()
            child.said.close()


def _orders(settings: EvolveSettings, run: RunFolder, network: Network) -> list[Orders]:
    names = settings.node_names()
    keys = []
    for name in names:
        run.node_folder(name).mkdir(exist_ok=True)
        keys.append(run.node_folder(name) / "identity.key")
    if network.key is not None and len(names) == 1:
        keys = [Path(network.key)]
    members = tuple(Identity.load_or_create(key).node_id for key in keys)
    if network.is_private:
        swarm = "run-" + hashlib.sha256("".join(members).encode()).hexdigest()[:16]
        return [
            Orders(str(run.path), index, str(key), swarm, network, members) for index, key in enumerate(keys)
        ]
    swarm = network.swarm or OPEN_SWARM
    inner = tuple(
        address.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]") for address in network.listen
    )
    through_the_first = msgspec.structs.replace(
        network, listen=(), advertise=(), join=(*network.join, *inner)
    )
    return [
        Orders(str(run.path), index, str(key), swarm, through_the_first if index else network)
        for index, key in enumerate(keys)
    ]


def _start(settings: EvolveSettings, run: RunFolder, orders: Orders) -> Child:
    said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with its child
    # A session of its own: an interrupt at the terminal comes to the parent, which stops the children.
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal.evolve.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=said,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(orders) + b"\n")
    process.stdin.flush()
    journal = run.journal_path(settings.node_names()[orders.index])
    return Child(process, said, Watcher(settings, orders.index, journal))


def _end(children: list[Child]) -> None:
    """Asks those that still run to stop, and waits for them."""
    for child in children:
        if child.process.poll() is None:
            child.stopping = True
            child.process.terminate()
    until = time.monotonic() + GRACE
    while any(child.process.poll() is None for child in children) and time.monotonic() < until:
        time.sleep(LOOK_EVERY)
