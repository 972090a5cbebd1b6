"""The nodes of a run as processes: watched by their journals, started again if they die, ended with their
parent; none stops another."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import msgspec

from shoal.node.child import Orders, serve
from shoal.node.crew import Crew, Network, Report
from shoal.node.drive import Stop
from shoal.node.parent import Child
from shoal.node.standing import StandingOf, note_waiting
from shoal.runs import RunFolder
from shoal.swarm import Identity
from shoal.swarm.presence import PRESENCE

LOOK_EVERY = 0.1
GRACE = 45.0
"""Seconds for children to end by themselves: calls under way are paid for."""
OPEN_SWARM = "shoal"


def run_processes(
    crew: Crew[StandingOf], run: RunFolder, stop: Stop, report: Report[StandingOf], network: Network
) -> list[StandingOf]:
    """Runs all nodes until they have ended or `stop` is requested, and returns their standings."""
    children = [Child(crew, run, orders) for orders in _orders(crew, run, network)]
    try:
        while not stop.requested and _tend(children):
            report(lambda: [child.standing() for child in children])
            time.sleep(LOOK_EVERY)
        _end(children)
        return [child.standing() for child in children]
    finally:
        for child in children:
            child.close()


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
        report(lambda: [note_waiting(watcher.look(), presence, network.wait_for)])
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


def _tend(children: list[Child[StandingOf]]) -> bool:
    """Whether any of them has a process or is to get one."""
    for child in children:
        child.tend(time.monotonic())
    return not all(child.is_over for child in children)


def _end(children: list[Child[StandingOf]]) -> None:
    """Asks the processes that still run to end, and waits for them."""
    for child in children:
        child.stop()
    until = time.monotonic() + GRACE
    while _tend(children) and time.monotonic() < until:
        time.sleep(LOOK_EVERY)
