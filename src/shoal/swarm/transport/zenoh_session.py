"""One Zenoh session: its configuration, its publishers and subscribers, and its health.

Any call into Zenoh may raise; nothing in `Session` does, and failures are counted. A panic in Zenoh's core
arrives as a `BaseException` that is no `Exception`, so those are caught too.
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import zenoh

from shoal.swarm.transport.base import MOST_MESSAGE_BYTES
from shoal.swarm.transport.neighbours import Draw
from shoal.swarm.transport.queues import OutgoingQueue
from shoal.swarm.transport.tls import TlsFiles

LEASE_MILLISECONDS = 5000  # of a silent link. Longer leases make cuts worse, shorter ones break under load
WAIT_BEFORE_DROP_MICROSECONDS = 10_000  # for room on a busy link; the default 1 ms loses one in ten
KEY_BYTES = 4096  # room for a message's key and headers beyond its payload
CLOSE_SECONDS = 12.0  # how long to wait for Zenoh's `close`, which takes up to ten seconds with a dead link
MOST_PUBLISHERS = 256
MOST_WAITING = 1024
"""Messages of one topic that wait in the engine to be received; it drops the oldest."""
LOOK_SECONDS = 1.0  # between two checks of a session's health
STALL_SECONDS = 6.0  # a gap between two checks that means: the process missed more than a lease
AFTER_STALL_SECONDS = (4.0, 8.0)
LONELY_SECONDS = 10.0
PAUSE_SECONDS = 30.0  # between two new sessions for loneliness


def settings(draw: Draw, tls: TlsFiles | None) -> dict[str, Any]:
    """The one configuration in which Zenoh is used, in the words of its JSON5 file. Off, because each lost
    messages in trials: implicit shared memory (chunks expire while a receiver waits for a CPU), peer mode
    (delivers over direct links only), blocking congestion control (closes links under load). Off, because
    they let strangers in: multicast scouting, gossip, the admin space."""
    link: dict[str, Any] = {
        "tx": {
            "lease": LEASE_MILLISECONDS,
            "queue": {"congestion_control": {"drop": {"wait_before_drop": WAIT_BEFORE_DROP_MICROSECONDS}}},
        },
        "rx": {"max_message_size": MOST_MESSAGE_BYTES + KEY_BYTES},
    }
    if tls is not None:
        link["tls"] = {
            "root_ca_certificate": str(tls.authority),
            "enable_mtls": True,
            "listen_certificate": str(tls.certificate),
            "listen_private_key": str(tls.key),
            "connect_certificate": str(tls.certificate),
            "connect_private_key": str(tls.key),
            "verify_name_on_connect": True,
        }
    return {
        "mode": draw.mode,
        "listen": {"endpoints": list(draw.listen)},
        "connect": {
            "endpoints": list(draw.connect),
            # Routers dial in the background for ever. A client with an endless time-out would try the first
            # of its endpoints for ever and never the others; with 0 it tries each once, and we repeat `open`.
            "timeout_ms": -1 if draw.mode == "router" else 0,
            "exit_on_failure": False,
            "retry": {"period_init_ms": 300, "period_max_ms": 2000, "period_increase_factor": 1.5},
        },
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}, "delay": 0},
        "transport": {
            "shared_memory": {"enabled": False},
            "unicast": {"max_sessions": 10_000, "accept_pending": 2000},
            "link": link,
        },
        "adminspace": {"enabled": False},
    }


class Session:
    """An open session with its publishers and subscribers, for one thread; any may call `receive`.

    Messages wait in rings of the engine, so no line of Python runs for one before it is received. A callback
    would compete with the node for the interpreter, once for each message, for as long as messages come and
    long after, since the queue in front of it has no bound."""

    def __init__(self, session: zenoh.Session, prefix: str) -> None:
        self.topics: frozenset[str] = frozenset()
        self._session = session
        self._prefix = prefix
        self._subscribers: dict[str, zenoh.Subscriber[zenoh.handlers.Handler[zenoh.Sample]]] = {}
        self._rings: tuple[zenoh.handlers.Handler[zenoh.Sample], ...] = ()
        self._publishers: OrderedDict[str, zenoh.Publisher] = OrderedDict()

    def declare(self, topics: frozenset[str]) -> int:
        """Subscribes to exactly these topics; returns the number that failed in this session."""
        failed = 0
        for topic in self.topics - topics:
            with contextlib.suppress(BaseException):
                self._subscribers.pop(topic).undeclare()  # type: ignore[no-untyped-call]
        for topic in topics - self.topics:
            try:
                self._subscribers[topic] = self._session.declare_subscriber(
                    self._prefix + topic,
                    zenoh.handlers.RingChannel(MOST_WAITING),
                    allowed_origin=zenoh.Locality.REMOTE,
                )
            except BaseException:
                failed += 1
        self._rings = tuple(subscriber.handler for subscriber in self._subscribers.values())
        self.topics = topics
        return failed

    def receive(self, limit: int) -> list[bytes]:
        """At most `limit` messages that have arrived, the oldest of each topic first. A loud topic leaves the
        others their part."""
        received: list[bytes] = []
        rings = self._rings
        for part in (max(1, limit // max(1, len(rings))), limit):
            for ring in rings:
                most = min(len(received) + part, limit)
                with contextlib.suppress(BaseException):  # the subscriber of this ring is gone
                    while len(received) < most and (sample := ring.try_recv()) is not None:
                        received.append(sample.payload.to_bytes())
        return received

    def put(self, topic: str, message: bytes) -> int:
        """Sends one message; returns 1 if that failed."""
        try:
            self._publisher(topic).put(message)
        except BaseException:
            self._publishers.pop(topic, None)
            return 1
        return 0

    def flush(self, outgoing: OutgoingQueue, deadline: float) -> int:
        """Sends waiting messages until the deadline, forgets the rest, and returns the number lost."""
        lost = 0
        while time.monotonic() < deadline and (messages := outgoing.take(1)):
            lost += self.put(*messages[0])
        return lost + outgoing.clear()

    def has_link(self) -> bool:
        try:
            return bool(self._session.info.routers_zid() or self._session.info.peers_zid())
        except BaseException:
            return False

    def close(self) -> None:
        """Closes the session in another thread, since that may take long, raise, or never come back."""
        closer = threading.Thread(target=self._close, name="zenoh-close", daemon=True)
        try:
            closer.start()
        except RuntimeError:  # the interpreter ends: later versions of Python start no more threads then
            self._close()
        else:
            closer.join(CLOSE_SECONDS)

    def _close(self) -> None:
        # Zenoh would do the first two by itself, but not without panics if neighbours close at the same time.
        self.declare(frozenset())
        for publisher in self._publishers.values():
            with contextlib.suppress(BaseException):
                publisher.undeclare()  # type: ignore[no-untyped-call]
        with contextlib.suppress(BaseException):
            self._session.close()  # type: ignore[no-untyped-call]

    def _publisher(self, topic: str) -> zenoh.Publisher:
        publisher = self._publishers.get(topic)
        if publisher is None:
            publisher = self._publishers[topic] = self._session.declare_publisher(
                self._prefix + topic,
                congestion_control=zenoh.CongestionControl.DROP,
                # Beacons must get through where frames are being dropped: they say what to fetch.
                priority=zenoh.Priority.DATA_HIGH if topic.startswith("beacon") else zenoh.Priority.DATA,
                allowed_destination=zenoh.Locality.REMOTE,
            )
            if len(self._publishers) > MOST_PUBLISHERS:
                oldest = self._publishers.popitem(last=False)[1]
                with contextlib.suppress(BaseException):
                    oldest.undeclare()  # type: ignore[no-untyped-call]
        else:
            self._publishers.move_to_end(topic)
        return publisher


class SessionHealth:
    """Decides when to open a session anew although nobody asked for it. A *lonely* session had no link for a
    while, although others are known: the engine dials the same dead neighbours for ever. A *stalled* process
    did not run for longer than a lease (frozen, suspended, starved): its neighbours have given up its links,
    and the engine wakes up half dead. A new session is whole; but it must wait while all dial each other."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._checked: float | None = None
        self._linked = 0.0
        self._due: float | None = None
        self._patient_until = 0.0

    def opened(self, now: float) -> None:
        """A new session is open, without the faults of the last one."""
        self._checked = self._linked = now
        self._due = None

    def check(self, now: float, has_link: Callable[[], bool], has_others: Callable[[], bool]) -> bool:
        """Whether to open a new session now; to be called about every `LOOK_SECONDS`."""
        if self._checked is not None and now - self._checked > STALL_SECONDS:
            self._due = now + self._rng.uniform(*AFTER_STALL_SECONDS)
            self._linked = now
        self._checked = now
        if self._due is not None:
            return now >= self._due
        if has_link():
            self._linked = now
        elif now - self._linked > LONELY_SECONDS and now > self._patient_until and has_others():
            self._patient_until = now + PAUSE_SECONDS
            return True
        return False
