"""A network in virtual time: delay, loss, duplication, reordering, partitions, frozen nodes.

Time moves in small steps of ten milliseconds by default. Messages of one step arrive in the order in which
they were sent, every random choice comes from one seeded generator, and every event goes into a digest.
"""

from __future__ import annotations

import gc
import heapq
import random
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from math import ceil
from typing import Protocol

from shoal.swarm.transport.base import MOST_MESSAGE_BYTES, TransportStats
from shoal.swarm.transport.queues import MOST_INCOMING

STEPS_PER_SECOND = 100
START = 1_700_000_000.0  # the beginning of virtual time, in seconds since 1970


@dataclass(frozen=True, slots=True)
class Link:
    """The way of messages: `delay` plus up to `jitter` seconds, each lost or doubled with some probability. A
    jitter above the time between messages reorders them."""

    delay: float = 0.02
    jitter: float = 0.02
    loss: float = 0.0
    duplication: float = 0.0


class Participant(Protocol):
    """A node or an adversary."""

    def wake(self, now: float) -> None:
        """Called when messages have arrived or the time it asked for has come."""

    def next_due(self) -> float:
        """The time of the next wake if nothing arrives."""


@dataclass(slots=True, eq=False)
class SimTransport:
    """One participant's access to the simulated network."""

    network: Network
    number: int
    group: int  # messages pass only between transports of one group
    owner: Participant | None = None
    incoming: list[bytes] = field(default_factory=list)
    topics: frozenset[str] = frozenset()
    silent_until: float = 0.0  # frozen until then
    scheduled: int = -1
    published: int = 0
    refused: int = 0
    collected: int = 0
    overflowed: int = 0
    reopened: int = 0

    def publish(self, topic: str, message: bytes) -> bool:
        if len(message) > MOST_MESSAGE_BYTES:
            self.refused += 1
            return False
        self.published += 1
        self.network.send(self, topic, message)
        return True

    def subscribe(self, topics: frozenset[str]) -> None:
        self.network.subscribe(self, topics)

    def collect(self, limit: int = 1024) -> list[bytes]:
        collected, self.incoming = self.incoming[:limit], self.incoming[limit:]
        self.collected += len(collected)
        return collected

    def keep_bound(self) -> None:
        """Drops the oldest messages if there are too many."""
        surplus = len(self.incoming) - MOST_INCOMING
        if surplus > 0:
            del self.incoming[:surplus]
            self.overflowed += surplus

    def endpoints(self) -> Sequence[str]:
        return (f"sim/{self.number}",)

    def meet(self, neighbours: Sequence[str]) -> None:
        """Does nothing: the simulated network reaches everyone."""

    def reopen(self, neighbours: Sequence[str]) -> None:
        """Ends any fault of this participant's connection."""
        self.reopened += 1
        self.network.renew(self)

    def stats(self) -> TransportStats:
        arrived = self.collected + self.overflowed + len(self.incoming)
        return TransportStats(self.published, self.refused, arrived, self.overflowed, self.reopened)

    def close(self) -> None:
        self.network.remove(self)


class Network:
    """Everyone's links, and the messages under way."""

    def __init__(self, seed: int, link: Link | None = None, steps_per_second: int = STEPS_PER_SECOND) -> None:
        """Longer steps make large swarms faster: a node then takes in more messages at once."""
        self.now = START
        self._rate = steps_per_second
        self.link = link or Link()
        self.links: dict[tuple[int, int], Link] = {}  # exceptions, by the numbers of sender and receiver
        # Two faults that a participant's `reopen` ends. (sender, receiver): pushes are lost, pulls pass.
        self.deaf: set[tuple[int, int]] = set()
        # Nothing that it sends arrives, and it gets only the pushes of those named.
        self.half_dead: dict[int, frozenset[int]] = {}
        self.deliveries = 0
        self._rng = random.Random(f"network {seed}")
        self._step = 0
        self._opened = 0
        self._messages: dict[int, list[tuple[Iterable[SimTransport], bytes]]] = {}
        self._timers: dict[int, list[SimTransport]] = {}
        self._steps: list[int] = []
        self._subscribers: dict[str, dict[SimTransport, None]] = {}
        self._trace = array("q")
        self._hash = blake2b(digest_size=16)

    def open(self, group: int = 0) -> SimTransport:
        """Access for a new participant, which is then given to `attach`."""
        self._opened += 1
        return SimTransport(self, self._opened - 1, group)

    def attach(self, transport: SimTransport, owner: Participant) -> None:
        transport.owner = owner
        self._schedule(transport, owner.next_due())

    def remove(self, transport: SimTransport) -> None:
        """Cuts a participant off for good; messages under way to it are lost."""
        self.subscribe(transport, frozenset())
        transport.owner = None
        self.note(4, transport.number)

    def subscribe(self, transport: SimTransport, topics: frozenset[str]) -> None:
        for topic in sorted(transport.topics - topics):
            del self._subscribers[topic][transport]
        for topic in sorted(topics - transport.topics):
            self._subscribers.setdefault(topic, {})[transport] = None
        transport.topics = topics

    def partition(self, groups: Mapping[SimTransport, int]) -> None:
        """Splits the network; transports not named stay in their group. All in one group: healed."""
        for transport, group in groups.items():
            transport.group = group
            self.note(6, transport.number, group)

    def freeze(self, transport: SimTransport, seconds: float) -> None:
        """Stops a participant for a while; messages pile up, and the oldest are lost."""
        transport.silent_until = self.now + seconds
        self.note(7, transport.number)
        self._schedule(transport, transport.silent_until)

    def break_connection(self, transport: SimTransport, hears: Iterable[SimTransport] = ()) -> None:
        """Leaves a participant with a half-dead connection until it reopens it, as a failed reconnect does:
        nobody hears it, it hears the pushes of a few, and it gets no answers."""
        self.half_dead[transport.number] = frozenset(other.number for other in hears)
        self.note(8, transport.number)

    def renew(self, transport: SimTransport) -> None:
        """A participant has a new connection."""
        self.half_dead.pop(transport.number, None)
        self.deaf = {pair for pair in self.deaf if pair[1] != transport.number}
        self.note(5, transport.number)

    def note(self, event: int, *numbers: int) -> None:
        """Adds an event to the digest of the run."""
        self._trace.append(event)
        self._trace.extend(numbers)

    def digest(self) -> str:
        """A hash of all events so far."""
        self._hash.update(self._trace.tobytes())
        self._trace = array("q")
        return self._hash.hexdigest()

    def send(self, sender: SimTransport, topic: str, message: bytes) -> None:
        content = blake2b(topic.encode() + b"\0" + message, digest_size=8).digest()
        self.note(1, self._step, sender.number, int.from_bytes(content, "big", signed=True))
        receivers = self._subscribers.get(topic)
        if not receivers:
            return
        link = self.link
        group = sender.group
        if self.links or self.deaf or self.half_dead or link.loss or link.duplication:
            self._send_each(sender, topic, message, receivers)
            return
        reached = [other for other in receivers if other.group == group and other is not sender]
        first, last = self._arrival(link.delay), self._arrival(link.delay + link.jitter)
        if first == last:
            # All arrive in the same step whatever is drawn, as usual with long steps.
            self._queue(first, reached, message)
        else:
            chance = self._rng.random
            for receiver in reached:
                self._deliver(link.delay + link.jitter * chance(), receiver, message)

    def _send_each(
        self, sender: SimTransport, topic: str, message: bytes, receivers: Iterable[SimTransport]
    ) -> None:
        """Draws each message's fate, for links that differ or lose messages."""
        chance = self._rng.random
        directed = topic.startswith("to/")
        for receiver in receivers:
            if receiver is sender or receiver.group != sender.group:
                continue
            pair = (sender.number, receiver.number)
            link = self.links.get(pair, self.link) if self.links else self.link
            if (
                (pair in self.deaf and not directed)
                or (self.half_dead and self._swallowed(sender, receiver, directed))
                or (link.loss and chance() < link.loss)
            ):
                continue
            self._deliver(link.delay + link.jitter * chance(), receiver, message)
            if link.duplication and chance() < link.duplication:
                self._deliver(link.delay + link.jitter * chance(), receiver, message)

    def _swallowed(self, sender: SimTransport, receiver: SimTransport, directed: bool) -> bool:
        hears = self.half_dead.get(receiver.number)
        return sender.number in self.half_dead or (
            hears is not None and (directed or sender.number not in hears)
        )

    def run(self, until: float) -> None:
        """Runs to `until` seconds of virtual time, counted from its beginning."""
        last = round(until * self._rate)
        steps = self._steps
        # Thousands of nodes are millions of long-lived objects and no cycles among the short-lived ones:
        # searching them for garbage again and again would take half of the time.
        collecting = gc.isenabled()
        gc.disable()
        try:
            while steps and steps[0] <= last:
                step = heapq.heappop(steps)
                self._step = step
                self.now = START + step / self._rate
                self._perform(step)
        finally:
            if collecting:
                gc.enable()
        self._step = last
        self.now = START + last / self._rate
        self.digest()

    @property
    def elapsed(self) -> float:
        """Virtual seconds since the beginning."""
        return self._step / self._rate

    def _perform(self, step: int) -> None:
        woken: dict[SimTransport, None] = {}
        trace = self._trace
        before = len(trace)
        for receivers, message in self._messages.pop(step, ()):
            for receiver in receivers:
                if receiver.owner is not None:
                    receiver.incoming.append(message)
                    trace.append(receiver.number)
                    woken[receiver] = None
        for transport in woken:
            transport.keep_bound()
        self.deliveries += len(trace) - before
        for transport in self._timers.pop(step, ()):
            if transport.scheduled == step:
                transport.scheduled = -1
                woken[transport] = None
        for transport in woken:
            self._wake(transport)
        if len(self._trace) > 1 << 16:
            self.digest()

    def _wake(self, transport: SimTransport) -> None:
        if transport.owner is None:
            return
        if transport.silent_until > self.now:
            self._schedule(transport, transport.silent_until)
            return
        transport.owner.wake(self.now)
        # Its actions may have replaced or removed the owner.
        if transport.owner is not None:
            due = self.now if transport.incoming else transport.owner.next_due()
            self._schedule(transport, due)

    def _schedule(self, transport: SimTransport, when: float) -> None:
        step = self._arrival(when - self.now)
        if transport.scheduled == -1 or step < transport.scheduled or transport.scheduled <= self._step:
            transport.scheduled = step
            self._expect(step)
            self._timers.setdefault(step, []).append(transport)

    def _arrival(self, delay: float) -> int:
        """The step that lies this many seconds ahead; never the present one."""
        return max(self._step + 1, ceil((self.now + delay - START) * self._rate - 1e-6))

    def _expect(self, step: int) -> None:
        if step not in self._messages and step not in self._timers:
            heapq.heappush(self._steps, step)

    def _queue(self, step: int, receivers: Iterable[SimTransport], message: bytes) -> None:
        """Messages of a step arrive in the order in which they were sent."""
        self._expect(step)
        self._messages.setdefault(step, []).append((receivers, message))

    def _deliver(self, delay: float, receiver: SimTransport, message: bytes) -> None:
        self._queue(self._arrival(delay), (receiver,), message)
