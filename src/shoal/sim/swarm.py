"""A simulated swarm: nodes with the exchange of the field, their applications, and a script of faults."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Any, Protocol

import msgspec

from shoal.node.node import Node
from shoal.runs.journal import MemoryJournal
from shoal.sim.network import START, STEPS_PER_SECOND, Link, Network, SimTransport
from shoal.swarm.accounts import Accounts
from shoal.swarm.authors import Received
from shoal.swarm.codec import Codec, Contents
from shoal.swarm.exchange import Exchange
from shoal.swarm.frame import Bundle, Frame
from shoal.swarm.identity import Identity
from shoal.swarm.kinds import Kind, Kinds
from shoal.swarm.membership import Membership
from shoal.swarm.rejection import Rejection
from shoal.swarm.settings import ExchangeSettings

AnyNode = Node[Any, Any, Any, Any]
MakeNode = Callable[[MemoryJournal, Exchange, float], AnyNode]

NEVER = 1e15


class Note(msgspec.Struct, array_like=True, frozen=True):
    """The item that simulated nodes share in their log; `text` starts with the name of its sender."""

    text: str


class Best(msgspec.Struct, array_like=True, frozen=True):
    """The item that simulated nodes share as their register."""

    text: str


def sim_kinds() -> Kinds:
    return Kinds([Kind("note", Note, 16 << 10, "log"), Kind("best", Best, 16 << 10, "latest")])


class SharedCodec(Codec):
    """One codec for all simulated nodes: a frame is taken apart and its signature checked once for all. Each
    node still decides for itself about age, replay, quotas and budgets."""

    def __init__(self, membership: Membership, kinds: Kinds, compress: bool, most: int) -> None:
        super().__init__(membership, kinds, compress)
        self._most = most
        self._read: dict[bytes, Frame | Bundle | Rejection] = {}

    def read(self, message: bytes) -> Frame | Bundle | Rejection:
        known = self._read.get(message)
        if known is None:
            known = super().read(message)
            if isinstance(known, Bundle):
                return known  # for one receiver only
            self._read[message] = known
            if len(self._read) > self._most:
                del self._read[next(iter(self._read))]
        return known

    def contents(self, frame: Frame) -> Contents | Rejection:
        if frame.contents is None:
            frame.contents = super().contents(frame)
        return frame.contents

    def single(
        self, frame: Frame, kind: str, decoder: msgspec.msgpack.Decoder[Any]
    ) -> msgspec.Struct | Rejection:
        if frame.control is None:
            frame.control = super().single(frame, kind, decoder)
        return frame.control


class Application(Protocol):
    """The program on a node. It names the time at which it wants to act, and may use the exchange then."""

    def act(self, exchange: Exchange, now: float) -> float:
        """Acts, and returns when to be called again."""


@dataclass(slots=True)
class SharingApplication:
    """Shares a note every `interval` seconds from `begin` to `end`, gathers, and verifies texts of nodes."""

    name: str
    interval: float = 1.0
    size: int = 200
    begin: float = 0.0
    end: float = 1e12
    keep: bool = True
    limit: int | None = None
    count: int = 0
    gathered: dict[tuple[str, int, int, int], str] = field(default_factory=dict)
    foreign: int = 0

    def act(self, exchange: Exchange, now: float) -> float:
        if now < START + self.begin:
            return START + self.begin
        if now < START + self.end:
            self.count += 1
            text = f"{self.name} {self.count} "
            exchange.share(Note(text + "." * (self.size - len(text))))
        for received in exchange.gather(self.limit):
            self.foreign += 1
            self.check(exchange, received)
            if self.keep and isinstance(received.item, Note):
                key = (received.author, received.epoch, received.seq, received.index)
                self.gathered[key] = received.item.text.rstrip(".")
        return now + self.interval

    def check(self, exchange: Exchange, received: Received[Any]) -> None:
        """The application's own check of an item."""
        if isinstance(received.item, Note) and received.item.text.startswith("node "):
            exchange.credit(received.author, received.place, "verified")
        else:
            exchange.credit(received.author, received.place, "rejected", "not a note of a node")


class LoopApplication:
    """A node of the one loop with a turn every `interval` seconds; a restart makes it from its journal."""

    def __init__(self, make: MakeNode, interval: float) -> None:
        self.journal = MemoryJournal()
        self.node: AnyNode | None = None
        self.restarts = -1
        self._make = make
        self._interval = interval
        self._exchange: Exchange | None = None

    def act(self, exchange: Exchange, now: float) -> float:
        if self.node is None or exchange is not self._exchange:
            self.node = self._make(self.journal, exchange, now)
            self._exchange = exchange
            self.restarts += 1
        return NEVER if self.node.advance(now) == "finished" else now + self._interval


@dataclass(slots=True)
class SimNode:
    """One node: woken by messages, by its exchange and by its application. `ahead`: seconds by which its
    clock is wrong; a script may change it at any moment."""

    identity: Identity
    transport: SimTransport
    exchange: Exchange
    application: Application
    act_at: float
    ahead: float = 0.0

    def wake(self, now: float) -> None:
        now += self.ahead
        self.exchange.tick(now)
        if now >= self.act_at:
            self.act_at = self.application.act(self.exchange, now)
            # Items that were just shared go out now if frames are not to wait for more.
            if self.exchange.next_due() <= now:
                self.exchange.tick(now)

    def next_due(self) -> float:
        return min(self.exchange.next_due(), self.act_at) - self.ahead


class SimSwarm:
    """Nodes in a network. `applications(i)` makes the application of node i."""

    def __init__(
        self,
        nodes: int,
        seed: int,
        *,
        settings: ExchangeSettings | None = None,
        link: Link | None = None,
        applications: Callable[[int], Application] | None = None,
        kinds: Kinds | None = None,
        steps_per_second: int = STEPS_PER_SECOND,
    ) -> None:
        self.seed = seed
        self.settings = settings or ExchangeSettings(flush_seconds=0.0)
        self.kinds = kinds or sim_kinds()
        membership = Membership(self.settings.swarm, self.settings.secret, self.settings.allow)
        self.codec = SharedCodec(membership, self.kinds, self.settings.compress, most=max(4096, 8 * nodes))
        self.network = Network(seed, link, steps_per_second)
        self.nodes: list[SimNode] = []
        self._applications = applications or (lambda number: SharingApplication(f"node {number}"))
        self._script: list[tuple[float, int, Callable[[], None]]] = []
        for _ in range(nodes):
            self.join()

    def identity(self, label: str) -> Identity:
        """A key that depends on the seed and a label only."""
        return Identity(blake2b(f"{self.seed} {label}".encode(), digest_size=32).digest())

    def join(self) -> SimNode:
        """One more node, now."""
        number = len(self.nodes)
        node = self._start(self.identity(f"node {number}"), self._applications(number), number, None)
        self.nodes.append(node)
        return node

    def kill(self, node: SimNode) -> None:
        node.transport.close()

    def restart(self, node: SimNode, accounts: Accounts | None = None) -> SimNode:
        """The same key, a new start; all that the node held in memory is gone, except for its accounts."""
        number = self.nodes.index(node)
        if accounts is None:
            accounts = Accounts(self.settings.authors)
            accounts.epoch = node.exchange.epoch
        fresh = self._start(node.identity, node.application, number, accounts)
        self.nodes[number] = fresh
        return fresh

    def at(self, second: float, action: Callable[[], None]) -> None:
        """Has an action done at that second of virtual time."""
        self._script.append((second, len(self._script), action))
        self._script.sort(key=lambda entry: entry[:2])

    def run(self, until: float) -> None:
        """Runs to that second of virtual time, with the actions of the script on the way."""
        while self._script and self._script[0][0] <= until:
            second, _, action = self._script.pop(0)
            self.network.run(second)
            action()
        self.network.run(until)

    def digest(self) -> str:
        return self.network.digest()

    def _start(
        self, identity: Identity, application: Application, number: int, accounts: Accounts | None
    ) -> SimNode:
        transport = self.network.open()
        now = self.network.now
        rng = random.Random(f"exchange {self.seed} {number} {int(now * 1e6)}")
        kinds, settings, codec = self.kinds, self.settings, self.codec
        exchange = Exchange(
            identity, transport, kinds, settings, now=now, rng=rng, accounts=accounts, codec=codec
        )
        node = SimNode(identity, transport, exchange, application, now + rng.uniform(0.0, 1.0))
        self.network.attach(transport, node)
        return node
