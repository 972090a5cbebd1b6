"""Schedules: swarms of honest nodes with faults drawn from a seed, and the check that their books are right.

Nodes share in bursts, up to far more than their quota. Links delay, lose, double and reorder; nodes freeze,
are cut off and restarted, and their clocks step. Whatever happens, no honest node is booked for exceeding its
quota, and the counts of every account add up to what the nodes themselves have seen.
"""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import dataclass, field
from functools import partial

from shoal.errors import ShareRefused
from shoal.sim.network import START, Link
from shoal.sim.swarm import Best, Note, SimNode, SimSwarm
from shoal.swarm.accounts import Accounts
from shoal.swarm.exchange import Exchange
from shoal.swarm.rejection import Rejection
from shoal.swarm.settings import ExchangeSettings

SETTLE = 30.0
WOBBLES = 30


@dataclass(slots=True)
class BurstingApplication:
    """Shares bursts of notes, and a register now and then, until `end`. It counts what it shared itself, and
    what it was handed, over all starts of its node."""

    name: str
    rng: random.Random
    end: float
    largest: int
    registers: bool
    shared: int = 0
    registered: int = 0
    handed: Counter[str] = field(default_factory=Counter)

    def act(self, exchange: Exchange, now: float) -> float:
        if now < START + self.end:
            for _ in range(self.rng.randrange(self.largest)):
                text = f"{self.name} {self.shared}" + "." * self.rng.choice((0, 0, 900))
                try:
                    exchange.share(Note(text if self.rng.random() < 0.9 else "the same"))
                except ShareRefused:
                    break
                self.shared += 1
            if self.registers and self.rng.random() < 0.3:
                exchange.share(Best(f"{self.name} {now}"))
                self.registered += 1
        limit = self.rng.choice((None, None, 5)) if now < START + self.end else None
        for received in exchange.gather(limit):
            self.handed[received.author] += 1
            honest = self.rng.random() < 0.9
            exchange.credit(received.author, received.place, "verified" if honest else "rejected")
        return now + self.rng.uniform(0.1, 2.0)


@dataclass(frozen=True, slots=True)
class Books:
    """The result of a schedule. `faults` are sentences about what does not add up. Of `pairs` of nodes, those
    are `whole` in which everything that one shared has come to the other, or waits at the one to be sent."""

    seed: int
    faults: tuple[str, ...]
    pairs: int
    whole: int
    shared: int
    refused: int


def play(seed: int) -> Books:
    """One schedule, checked at its end."""
    rng = random.Random(f"schedule {seed}")
    seconds = rng.uniform(8.0, 75.0)
    delay, jitter = rng.uniform(0, 0.5), rng.choice((0.0, 0.2, 3.0))
    link = Link(delay, jitter, rng.choice((0.0, 0.0, 0.1, 0.5)), rng.choice((0.0, 0.2)))
    settings = ExchangeSettings(
        flush_seconds=rng.choice((0.0, 0.2)),
        frames_per_second=rng.choice((0.5, 1.0, 5.0)),
        frames_burst=rng.choice((3, 10, 40)),
        bytes_per_minute=rng.choice((20_000, 200_000, 4 << 20)),
        control_per_second=rng.choice((1.5, 4.0)),
        control_burst=rng.choice((5, 12, 40)),
        outbox_items=rng.choice((16, 200)),
        inbox_items=rng.choice((20, 4096)),
        inbox_author_items=rng.choice((10, 256)),
        probation_items=rng.choice((1, 4, 10**9)),
    )
    count, largest, registers = rng.randrange(2, 5), rng.choice((2, 10, 80)), rng.random() < 0.5
    swarm = SimSwarm(
        count,
        seed,
        settings=settings,
        link=link,
        applications=lambda number: BurstingApplication(
            f"node {number}", random.Random(f"{seed} {number}"), seconds, largest, registers
        ),
        steps_per_second=20,
    )
    restarted: set[int] = set()
    for _ in range(rng.randrange(6)):
        _harm(swarm, rng, rng.uniform(1.0, seconds), restarted)
    swarm.run(seconds)
    swarm.network.link = Link()
    swarm.network.partition({node.transport: 0 for node in swarm.nodes})
    for node in swarm.nodes:
        node.ahead = 0.0
    swarm.run(seconds + SETTLE)
    return _books(swarm, seed, restarted)


def _harm(swarm: SimSwarm, rng: random.Random, second: float, restarted: set[int]) -> None:
    """Puts one fault into the script."""
    victim, lasting = rng.randrange(len(swarm.nodes)), rng.uniform(0.5, 15.0)
    fault = rng.choice(("freeze", "cut", "restart", "step", "wobble"))
    step = rng.choice((-400.0, -90.0, -2.0, 2.0, 90.0, 400.0))
    if fault == "restart":
        restarted.add(victim)

    def strike() -> None:
        node = swarm.nodes[victim]
        if fault == "freeze":
            swarm.network.freeze(node.transport, lasting)
        elif fault == "cut":
            swarm.network.partition({node.transport: 1 + victim})
        elif fault == "step":
            _step(swarm, victim, step)
        elif fault == "wobble":
            for turn in range(WOBBLES):
                ahead = 80.0 if turn % 2 == 0 else -80.0
                swarm.at(second + 0.4 * turn, partial(_step, swarm, victim, ahead))
        else:
            swarm.kill(node)
            swarm.restart(node, Accounts.decode(node.exchange.accounts.encode(), swarm.settings.authors))

    swarm.at(second, strike)
    if fault == "cut":
        swarm.at(second + lasting, lambda: swarm.network.partition({swarm.nodes[victim].transport: 0}))


def _step(swarm: SimSwarm, victim: int, seconds: float) -> None:
    swarm.nodes[victim].ahead += seconds


def _books(swarm: SimSwarm, seed: int, restarted: set[int]) -> Books:
    faults: list[str] = []
    pairs = whole = shared = refused = 0
    for place, receiver in enumerate(swarm.nodes):
        for other, author in enumerate(swarm.nodes):
            account = receiver.exchange.accounts.get(author.identity.node_id)
            if account is None or place == other:
                continue
            pairs += 1
            pair = f"node {place} about node {other}"
            shared += account.shared
            refused += sum((account.refused or {}).values())
            faults += [f"{pair}: {fault}" for fault in _wrong(receiver, author)]
            told = _application(author)
            if not restarted and account.shared > told.shared + told.registered:
                faults.append(f"{pair}: {account.shared} of {told.shared} + {told.registered} shared")
            left = author.exchange.figures()["unsent items"]
            whole += account.missing == left and (bool(restarted) or account.shared >= told.shared)
    return Books(seed, tuple(faults), pairs, whole, shared, refused)


def _wrong(receiver: SimNode, author: SimNode) -> list[str]:
    """What does not add up in the account of one node with another."""
    node = author.identity.node_id
    account, exchange = receiver.exchange.accounts.of(node), receiver.exchange
    found: list[str] = []
    if "quota" in (account.rejected or {}):
        found.append("booked for its quota")
    if exchange.tally.rejected[Rejection.MUTED]:
        found.append("somebody was muted")
    refused = account.refused or {}
    if account.shared != account.received + account.waiting + sum(refused.values()) + account.missing:
        found.append("the sum is wrong")
    if min(account.received, account.waiting, account.missing, *refused.values()) < 0:
        found.append(f"a negative number: {account}")
    if account.received != _application(receiver).handed[node]:
        found.append(f"received {account.received}, handed out {_application(receiver).handed[node]}")
    if account.waiting != exchange.waiting(node):
        found.append(f"waiting {account.waiting}, in the inbox {exchange.waiting(node)}")
    return found


def _application(node: SimNode) -> BurstingApplication:
    assert isinstance(node.application, BurstingApplication)
    return node.application
