"""A network in virtual time: delay, loss, duplication, reordering, partitions, frozen nodes.

Time moves in small steps, ten milliseconds unless asked otherwise. Messages of one step arrive in the order
in which they were sent, every random choice comes from one seeded generator, and everything that happens
goes into a digest.
"""

from __future__ import annotations

import gc
import heapq
import random
from array import array
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from math import ceil
from typing import Protocol

from shoal.swarm.transport.base import MOST_MESSAGE_BYTES, TransportStats

STEPS_PER_SECOND = 100
START = 1_700_000_000.0
"""When virtual time begins, in seconds since 1970."""
INBOX_MESSAGES = 8192


@dataclass(frozen=True, slots=True)
class Link:
    """How messages travel: `delay` plus up to `jitter` seconds, each lost or doubled with some probability.
    A jitter above the time between messages reorders them."""

    delay: float = 0.02
    jitter: float = 0.02
    loss: float = 0.0
    duplication: float = 0.0


class Participant(Protocol):
    """Whatever lives in the network: a node or an adversary."""

    def wake(self, now: float) -> None:
        """Called when messages have arrived or the time it asked for has come."""

    def next_due(self) -> float:
        """When it wants to be woken even if nothing arrives."""


class SimTransport:
    """One participant's access to the simulated network."""

    __slots__ = (
        "_network", "collected", "group", "inbox", "number", "overflowed", "owner", "published", "refused",
        "reopened", "scheduled", "silent_until", "topics",
    )  # fmt: skip

    def __init__(self, network: Network, number: int) -> None:
        self._network = network
        self.number = number
        self.owner: Participant | None = None
        self.inbox: list[bytes] = []
        self.topics: frozenset[str] = frozenset()
        self.group = 0  # messages pass only between transports of one group
        self.silent_until = 0.0  # frozen until then
        self.scheduled = -1
        self.published = self.refused = self.collected = self.overflowed = self.reopened = 0

    def publish(self, topic: str, message: bytes) -> bool:
        if len(message) > MOST_MESSAGE_BYTES:
            self.refused += 1
            return False
        self.published += 1
        self._network.send(self, topic, message)
        return True

    def subscribe(self, topics: frozenset[str]) -> None:
        self._network.subscribe(self, topics)

    def collect(self, limit: int = 1024) -> list[bytes]:
        inbox = self.inbox
        if len(inbox) <= limit:
            self.inbox = []
        else:
            self.inbox = inbox[limit:]
            inbox = inbox[:limit]
        self.collected += len(inbox)
        return inbox

    def keep_bound(self) -> None:
        """The oldest messages go if there are too many."""
        surplus = len(self.inbox) - INBOX_MESSAGES
        if surplus > 0:
            del self.inbox[:surplus]
            self.overflowed += surplus

    def endpoints(self) -> Sequence[str]:
        return (f"sim/{self.number}",)

    def meet(self, neighbours: Sequence[str]) -> None:
        """The simulated network reaches everyone."""

    def reopen(self, neighbours: Sequence[str]) -> None:
        """Whatever was wrong with this participant's connection is over."""
        self.reopened += 1
        self._network.renew(self)

    def stats(self) -> TransportStats:
        arrived = self.collected + self.overflowed + len(self.inbox)
        return TransportStats(self.published, self.refused, arrived, self.overflowed, self.reopened)

    def close(self) -> None:
        self._network.remove(self)


class Network:
    """Everyone's links and the queue of what is under way."""

    def __init__(self, seed: int, link: Link | None = None, steps_per_second: int = STEPS_PER_SECOND) -> None:
        """Longer steps make large swarms faster: a node then takes in more messages at once."""
        self.now = START
        self._rate = steps_per_second
        self.link = link or Link()
        self.links: dict[tuple[int, int], Link] = {}  # exceptions, by the numbers of sender and receiver
        # What a participant's `reopen` ends. (sender, receiver): pushes are lost, directed messages pass.
        self.deaf: set[tuple[int, int]] = set()
        # Nothing it sends arrives, and it gets nothing but the pushes of those named.
        self.half_dead: dict[int, frozenset[int]] = {}
        self.deliveries = 0
        self.lost = 0
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
        transport = SimTransport(self, self._opened)
        transport.group = group
        self._opened += 1
        return transport

    def attach(self, transport: SimTransport, owner: Participant) -> None:
        transport.owner = owner
        self._schedule(transport, owner.next_due())

    def remove(self, transport: SimTransport) -> None:
        """Cuts a participant off for good; what is under way to it is lost."""
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
        """Stops a participant for a while; messages pile up in its inbox, whose oldest are lost."""
        transport.silent_until = self.now + seconds
        self.note(7, transport.number)
        self._schedule(transport, transport.silent_until)

    def break_connection(self, transport: SimTransport, hears: Iterable[SimTransport] = ()) -> None:
        """Leaves a participant with a half-dead connection, as a failed reconnect does, until it reopens it:
        it is heard by nobody, hears the pushes of a few, and gets no answers."""
        self.half_dead[transport.number] = frozenset(other.number for other in hears)
        self.note(8, transport.number)

    def renew(self, transport: SimTransport) -> None:
        """A participant has a new connection."""
        self.half_dead.pop(transport.number, None)
        self.deaf = {pair for pair in self.deaf if pair[1] != transport.number}
        self.note(5, transport.number)

    def note(self, event: int, *numbers: int) -> None:
        """Adds something that happened to the digest of the run."""
        self._trace.append(event)
        self._trace.extend(numbers)

    def digest(self) -> str:
        """A hash of everything that has happened so far."""
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
            # All arrive in the same step whatever is drawn, as is usual with long steps.
            self._queue(first).append((reached, message))
        else:
            chance = self._rng.random
            for receiver in reached:
                self._deliver(link.delay + link.jitter * chance(), receiver, message)

    def _send_each(
        self, sender: SimTransport, topic: str, message: bytes, receivers: Iterable[SimTransport]
    ) -> None:
        """Where links differ or lose messages."""
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
                self.lost += 1
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
        """Lets `until` seconds of virtual time, counted from its beginning, come to pass."""
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
        self._hash.update(self._trace.tobytes())
        self._trace = array("q")

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
                    receiver.inbox.append(message)
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
            self._hash.update(self._trace.tobytes())
            self._trace = array("q")

    def _wake(self, transport: SimTransport) -> None:
        if transport.owner is None:
            return
        if transport.silent_until > self.now:
            self._schedule(transport, transport.silent_until)
            return
        transport.owner.wake(self.now)
        # The owner may have been replaced or removed by what it did.
        if transport.owner is not None:
            due = self.now if transport.inbox else transport.owner.next_due()
            self._schedule(transport, due)

    def _schedule(self, transport: SimTransport, when: float) -> None:
        step = self._arrival(when - self.now)
        if transport.scheduled == -1 or step < transport.scheduled or transport.scheduled <= self._step:
            transport.scheduled = step
            timers = self._timers.get(step)
            if timers is None:
                timers = self._timers[step] = []
                if step not in self._messages:
                    heapq.heappush(self._steps, step)
            timers.append(transport)

    def _arrival(self, delay: float) -> int:
        """The step in which something happens that is due in so many seconds; never the present one."""
        return max(self._step + 1, ceil((self.now + delay - START) * self._rate - 1e-6))

    def _queue(self, step: int) -> list[tuple[Iterable[SimTransport], bytes]]:
        """What arrives in a step, in the order in which it was sent."""
        messages = self._messages.get(step)
        if messages is None:
            messages = self._messages[step] = []
            if step not in self._timers:
                heapq.heappush(self._steps, step)
        return messages

    def _deliver(self, delay: float, receiver: SimTransport, message: bytes) -> None:
        self._queue(self._arrival(delay)).append(((receiver,), message))
