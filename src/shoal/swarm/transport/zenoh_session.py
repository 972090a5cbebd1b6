"""One Zenoh session. Any call into Zenoh may raise; nothing in here does, and what failed is counted.

A panic in Zenoh's core arrives as a `BaseException` that is no `Exception`, so those are caught: in a thread
other than the main one nothing else comes as one.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import OrderedDict
from collections.abc import Callable

import zenoh

from shoal.swarm.transport.queues import Outbox

CLOSE_SECONDS = 12.0
"""How long to wait for Zenoh's `close`, which takes up to ten seconds with a dead link."""
RECEIVERS_SECONDS = 2.0
"""How long to wait for the threads of subscribers to end once their session is closed."""
MOST_PUBLISHERS = 256


class Receiver:
    """A subscriber's callback. Zenoh's binding runs each in a thread of its own and lets go of it when the
    subscriber ends; if the interpreter ends before it does, it aborts the process. So it is joined here."""

    def __init__(self, arrive: Callable[[zenoh.Sample], None]) -> None:
        self.callback = zenoh.handlers.Callback(arrive, self._end)
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def join(self, deadline: float) -> bool:
        """Waits for the thread; False if it had not ended by then."""
        if not self._ended.wait(max(0.0, deadline - time.monotonic())):
            return False
        assert self._thread is not None
        self._thread.join(max(0.0, deadline - time.monotonic()))
        return not self._thread.is_alive()

    def _end(self) -> None:
        """The last thing that is called in the thread."""
        self._thread = threading.current_thread()
        self._ended.set()


class Session:
    """An open session with its publishers and subscribers, for one thread."""

    def __init__(self, session: zenoh.Session, prefix: str, arrive: Callable[[zenoh.Sample], None]) -> None:
        self.topics: frozenset[str] = frozenset()
        self._session = session
        self._prefix = prefix
        self._arrive = arrive
        self._subscribers: dict[str, zenoh.Subscriber[None]] = {}
        self._receivers: list[Receiver] = []  # also those whose subscribers are gone
        self._publishers: OrderedDict[str, zenoh.Publisher] = OrderedDict()

    def declare(self, topics: frozenset[str]) -> int:
        """Makes `topics` the subscribed ones; how many failed (they are not tried again in this session)."""
        failed = 0
        for topic in self.topics - topics:
            with contextlib.suppress(BaseException):
                self._subscribers.pop(topic).undeclare()  # type: ignore[no-untyped-call]
        self._receivers = [receiver for receiver in self._receivers if not receiver.join(0.0)]
        for topic in topics - self.topics:
            receiver = Receiver(self._arrive)
            try:
                self._subscribers[topic] = self._session.declare_subscriber(
                    self._prefix + topic, receiver.callback, allowed_origin=zenoh.Locality.REMOTE
                )
                self._receivers.append(receiver)
            except BaseException:
                failed += 1
        self.topics = topics
        return failed

    def put(self, topic: str, message: bytes) -> int:
        """Sends one message; 1 if that failed."""
        try:
            self._publisher(topic).put(message)
        except BaseException:
            with contextlib.suppress(KeyError):
                del self._publishers[topic]
            return 1
        return 0

    def flush(self, outbox: Outbox, deadline: float) -> int:
        lost = 0
        while time.monotonic() < deadline and (messages := outbox.take(1)):
            lost += self.put(*messages[0])
        return lost + outbox.clear()

    def has_link(self) -> bool:
        try:
            return bool(self._session.info.routers_zid() or self._session.info.peers_zid())
        except BaseException:
            return False

    def close(self) -> None:
        """Closes the session in a thread of its own, since that may take long, raise, or never come back."""
        closer = threading.Thread(target=self._close, name="zenoh-close", daemon=True)
        try:
            closer.start()
        except RuntimeError:  # the interpreter ends: later versions of Python start no more threads then
            self._close()
        else:
            closer.join(CLOSE_SECONDS + RECEIVERS_SECONDS)

    def _close(self) -> None:
        # Zenoh would do the first two by itself, but not without panics if neighbours close at the same time.
        self.declare(frozenset())
        for publisher in self._publishers.values():
            with contextlib.suppress(BaseException):
                publisher.undeclare()  # type: ignore[no-untyped-call]
        with contextlib.suppress(BaseException):
            self._session.close()  # type: ignore[no-untyped-call]
        deadline = time.monotonic() + RECEIVERS_SECONDS
        for receiver in self._receivers:
            receiver.join(deadline)

    def _publisher(self, topic: str) -> zenoh.Publisher:
        publisher = self._publishers.get(topic)
        if publisher is None:
            publisher = self._session.declare_publisher(
                self._prefix + topic,
                congestion_control=zenoh.CongestionControl.DROP,
                # Beacons must get through where frames are being dropped: they say what to fetch.
                priority=zenoh.Priority.DATA_HIGH if topic.startswith("beacon") else zenoh.Priority.DATA,
                allowed_destination=zenoh.Locality.REMOTE,
            )
            self._publishers[topic] = publisher
            if len(self._publishers) > MOST_PUBLISHERS:
                oldest = self._publishers.popitem(last=False)[1]
                with contextlib.suppress(BaseException):
                    oldest.undeclare()  # type: ignore[no-untyped-call]
        else:
            self._publishers.move_to_end(topic)
        return publisher
