"""The nodes of a run as processes: watched by their journals, ended with their parent, none stops another."""

from __future__ import annotations

import hashlib
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Generic

import msgspec

from shoal.node.child import Orders, serve
from shoal.node.crew import Crew, Network, Report, Watcher
from shoal.node.drive import Stop
from shoal.node.standing import StandingOf
from shoal.runs import RunFolder
from shoal.swarm import Identity
from shoal.swarm.presence import PRESENCE, peers_seen

LOOK_EVERY = 0.1
GRACE = 45.0
"""Seconds for children to end by themselves: calls under way are paid for."""
OPEN_SWARM = "shoal"
MOST_TROUBLE = 500


@dataclass
class Child(Generic[StandingOf]):
    process: subprocess.Popen[bytes]
    said: IO[bytes]
    watcher: Watcher[StandingOf]
    presence: Path
    wait_for: int
    stopping: bool = False

    def standing(self) -> StandingOf:
        code = self.process.poll()
        found = self.watcher.look(ended=code == 0 and not self.stopping, trouble=self._trouble(code))
        return found if code is not None else _waiting(found, self.presence, self.wait_for)

    def _trouble(self, code: int | None) -> str:
        if not code:
            return ""
        if code < 0:
            return f"its process was ended by {signal.Signals(-code).name}; `shoal resume` goes on"
        self.said.seek(0)
        lines = self.said.read().decode("utf-8", "replace").strip().splitlines()
        return lines[-1][:MOST_TROUBLE] if lines else f"its process ended with code {code}"


def run_processes(
    crew: Crew[StandingOf], run: RunFolder, stop: Stop, report: Report[StandingOf], network: Network
) -> list[StandingOf]:
    """Runs all nodes until they have ended or `stop` is requested, and returns their standings."""
    children: list[Child[StandingOf]] = []
    try:
        children += [_start(crew, run, orders) for orders in _orders(crew, run, network)]
        while any(child.process.poll() is None for child in children) and not stop.requested:
            report(lambda: [child.standing() for child in children])
            time.sleep(LOOK_EVERY)
        _end(children)
        return [child.standing() for child in children]
    finally:
        for child in children:
            child.process.kill()
            child.process.wait()
            child.said.close()


def run_here(
    crew: Crew[StandingOf], run: RunFolder, stop: Stop, report: Report[StandingOf], network: Network
) -> list[StandingOf]:
    """The one node of a crew in this process, over the network. It waits for a person at the terminal, so the
    first signal ends it, and it reports between questions only."""
    (orders,) = _orders(crew, run, network)
    watcher = crew.watch(0, run.journal_path(crew.names[0]))
    stop.at_once = True
    if crew.shares and network.wait_for:
        presence = run.node_folder(crew.names[0]) / PRESENCE
        report(lambda: [_waiting(watcher.look(), presence, network.wait_for)])
    try:
        trouble = serve(crew, orders, stop, lambda: report(lambda: [watcher.look()]))
    except KeyboardInterrupt:
        if not stop.requested:
            raise
        trouble = ""
    return [watcher.look(ended=not stop.requested, trouble=trouble)]


def _orders(crew: Crew[StandingOf], run: RunFolder, network: Network) -> list[Orders]:
    keys, spare_key = [], ""
    for name in crew.names:
        run.node_folder(name).mkdir(exist_ok=True)
        keys.append(run.node_folder(name) / "identity.key")
    if len(keys) == 1 and network.key is not None:
        keys = [Path(network.key)]
    elif len(keys) == 1 and network.is_private and not keys[0].exists():
        # Not the file that later decides whether a resumed run speaks for the machine.
        keys = [keys[0].with_name("private.key")]
    elif len(keys) == 1 and network.machine_key is not None and not keys[0].exists():
        # The node itself finds out whether another one has the machine's identity, by claiming it: anything
        # found out here may be otherwise a moment later.
        keys, spare_key = [Path(network.machine_key)], str(keys[0])
    name = f"{type(crew).__module__}:{type(crew).__qualname__}"
    members = tuple(Identity.load_or_create(key).node_id for key in keys)
    swarm, others = network.swarm or OPEN_SWARM, network
    if network.is_private:
        swarm, spare_key = "run-" + hashlib.sha256("".join(members).encode()).hexdigest()[:16], ""
    else:
        members = ()
        inner = [
            address.replace("0.0.0.0", "127.0.0.1").replace("[::]", "[::1]") for address in network.listen
        ]
        # The other nodes reach the swarm through the first one.
        others = msgspec.structs.replace(network, listen=(), advertise=(), join=(*network.join, *inner))
    return [
        Orders(name, str(run.path), index, str(key), swarm, others if index else network, members, spare_key)
        for index, key in enumerate(keys)
    ]


def _waiting(found: StandingOf, presence: Path, wait_for: int) -> StandingOf:
    """The standing, with a note if the node has heard too few peers for its first turn."""
    heard = peers_seen(presence)
    if heard >= wait_for:
        return found
    peers = "1 peer" if wait_for == 1 else f"{wait_for} peers"
    return msgspec.structs.replace(found, waiting=f"waiting for {peers}, {heard} heard so far")


def _start(crew: Crew[StandingOf], run: RunFolder, orders: Orders) -> Child[StandingOf]:
    said = tempfile.TemporaryFile()  # noqa: SIM115 - closed with its child
    # A session of its own: an interrupt at the terminal comes to the parent, which stops the children.
    process = subprocess.Popen(
        [sys.executable, "-m", "shoal.node.child"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=said,
        start_new_session=True,
    )
    assert process.stdin is not None
    process.stdin.write(msgspec.json.encode(orders) + b"\n")
    process.stdin.flush()
    name, wait_for = crew.names[orders.index], orders.network.wait_for if crew.shares else 0
    watcher = crew.watch(orders.index, run.journal_path(name))
    return Child(process, said, watcher, run.node_folder(name) / PRESENCE, wait_for)


def _end(children: list[Child[StandingOf]]) -> None:
    """Asks the children that still run to stop, and waits for them."""
    for child in children:
        if child.process.poll() is None:
            child.stopping = True
            child.process.terminate()
    until = time.monotonic() + GRACE
    while any(child.process.poll() is None for child in children) and time.monotonic() < until:
        time.sleep(LOOK_EVERY)
