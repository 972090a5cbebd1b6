"""The swarm over Eclipse Zenoh: there is no server, and every node may forward for others.

One thread per transport, the *engine thread*, makes all calls into Zenoh. So nothing that Zenoh does (waiting
for a congested link, ten seconds in `close` on a dead one, an exception) reaches the caller, and no lock of
ours is held around a call into Zenoh. The node's thread itself takes messages out of bounded rings of the
engine, which cannot wait.
"""

from __future__ import annotations

import atexit
import contextlib
import json
import os
import random
import sys
import threading
import time
from collections.abc import Sequence

import zenoh

from shoal.errors import PeerError
from shoal.swarm.transport.base import TransportStats, short_hash
from shoal.swarm.transport.neighbours import Draw, Neighbours
from shoal.swarm.transport.queues import QueuedTransport
from shoal.swarm.transport.tls import TlsFiles
from shoal.swarm.transport.zenoh_session import LOOK_SECONDS, Session, SessionHealth, settings

OPEN_SECONDS = 3.0  # how long opening may fail at first: a predecessor may still hold the port
CLOSE_SECONDS = 3.0  # how long `close` waits for the engine thread
EXIT_SECONDS = 12.0  # how much longer the end of the process waits for it: see CLOSE_SECONDS of a session
QUIET_SECONDS = 1.0
"""Between closing and opening anew. Routers compute their routes 0.1 s after a change, and some of them never
again hear a node that leaves and comes back within one such step."""
SEND_AT_ONCE = 64
RUNTIME = "(acc: (handover: rx), net: (handover: rx))"
"""The engine's threads, in the words of its variable ZENOH_RUNTIME. By default each message wakes a thread
that waits for sockets and then another one that reads, which takes half as much processor time again. Sending
keeps a thread of its own: a reader that forwards to a busy link waits for it."""
NICENESS = 10
"""The engine's threads give way to the node's own work where they share a core, to about a tenth of it. None
of them holds the interpreter. Only Linux can tell threads of a process apart in this."""
MOST_RECEIVED = 8192  # more than all rings of a small swarm hold


class ZenohTransport(QueuedTransport):
    """One node's session. The constructor returns with the session open (a client may still be dialling)."""

    def __init__(
        self, neighbours: Neighbours, *, swarm: str, rng: random.Random, tls: TlsFiles | None = None
    ) -> None:
        super().__init__()
        self._neighbours = neighbours
        self._prefix = f"shoal/{short_hash(swarm)}/"
        self._tls = tls
        self._reopening = False
        self._health = SessionHealth(rng)
        self._session: Session | None = None  # whose messages are received
        self._first_error: BaseException | None = None
        self._wake = threading.Condition()
        self._ready = threading.Event()
        zenoh.try_init_log_from_env()  # type: ignore[no-untyped-call]  # only where RUST_LOG is set
        self._engine = threading.Thread(target=self._run, name="zenoh-engine", daemon=True)
        self._engine.start()
        atexit.register(self._end)
        self._ready.wait(OPEN_SECONDS + 2.0)
        if self._first_error is not None:
            self.close()
            raise PeerError(f"cannot join the swarm: {_first_line(self._first_error)}") from self._first_error

    def endpoints(self) -> Sequence[str]:
        return () if self._closing else self._neighbours.endpoints()

    def meet(self, neighbours: Sequence[str]) -> None:
        self._neighbours.learn(neighbours)

    def reopen(self, neighbours: Sequence[str]) -> None:
        self._neighbours.learn(neighbours)
        with self._wake:
            # A request while one is under way is the same request.
            if self._open:
                self._open = False
                self._reopening = True
                self._reopened += 1
                self._wake.notify()

    def collect(self, limit: int = 1024) -> list[bytes]:
        self._receive(limit)
        return super().collect(limit)

    def stats(self) -> TransportStats:
        self._receive(MOST_RECEIVED)
        return super().stats()

    def _receive(self, limit: int) -> None:
        session = self._session
        if session is not None:
            for message in session.receive(limit):
                self._arrive(message)

    def close(self) -> None:
        with self._wake:
            first, self._closing, self._open = not self._closing, True, False
            self._wake.notify()
        if first:
            self._engine.join(CLOSE_SECONDS)
            self._incoming.clear()
        if not self._engine.is_alive():
            atexit.unregister(self._end)

    def _notify(self) -> None:
        with self._wake:
            self._wake.notify()

    def _end(self) -> None:
        """Waits for the engine thread: inside Zenoh at the interpreter's end, it would abort the process."""
        self.close()
        self._engine.join(EXIT_SECONDS)

    # Everything below runs in the engine thread.

    def _run(self) -> None:
        try:
            while not self._closing:
                opened = self._open_session()
                if opened is None:
                    break
                session, draw = opened
                try:
                    self._drive(session, draw)
                except BaseException:
                    self._lost += 1  # whatever it was, a new session is the remedy
                self._open = False
                self._receive(MOST_RECEIVED)
                self._session = None
                session.close()
                self._pause(QUIET_SECONDS)
        finally:
            self._open = False
            self._neighbours.leave()
            self._ready.set()

    def _open_session(self) -> tuple[Session, Draw] | None:
        """A session, opened with as many tries as it takes; None if the transport is closed meanwhile."""
        began, wait = time.monotonic(), 0.1
        while not self._closing:
            draw = None
            try:
                draw = self._neighbours.draw()
                opened = _open(json.dumps(settings(draw, self._tls)))
            except BaseException as error:
                if draw is not None and draw.mode == "client":
                    self._ready.set()  # nobody answers yet, which is no mistake of this node
                elif not self._ready.is_set() and time.monotonic() - began > OPEN_SECONDS:
                    self._first_error = error
                    return None
                self._pause(wait)
                wait = min(2.0, wait * 1.5)
                continue
            with self._wake:
                self._open = not self._closing
                self._reopening = False
            self._ready.set()
            self._session = Session(opened, self._prefix)
            return self._session, draw
        return None

    def _drive(self, session: Session, draw: Draw) -> None:
        """Subscribes and sends until the transport is closed or the session is to be opened anew."""
        looked = time.monotonic()
        self._health.opened(looked)
        while True:
            with self._wake:
                self._wake.wait_for(lambda: self._has_work(session), _patience(draw))
                closing, reopening, topics = self._closing, self._reopening, self._topics
            if reopening and not closing:
                self._lost += self._outgoing.clear()
                return
            if topics != session.topics:
                self._lost += session.declare(topics)
            for topic, message in self._outgoing.take(SEND_AT_ONCE):
                self._lost += session.put(topic, message)
            if closing:
                # Messages published before closing still go out, as far as that does not take long.
                self._lost += session.flush(self._outgoing, time.monotonic() + CLOSE_SECONDS / 3)
                return
            now = time.monotonic()
            if draw.until is not None and now >= draw.until:
                with self._wake:
                    self._open = False
                self._lost += session.flush(self._outgoing, now + 0.1)
                return
            if now - looked >= LOOK_SECONDS:
                looked = now
                if self._health.check(now, session.has_link, lambda: self._neighbours.has_others(draw)):
                    self.reopen(())

    def _has_work(self, session: Session) -> bool:
        return self._closing or self._reopening or len(self._outgoing) > 0 or self._topics != session.topics

    def _pause(self, seconds: float) -> None:
        with self._wake:
            self._wake.wait_for(lambda: self._closing, seconds)


def _open(configuration: str) -> zenoh.Session:
    """A session whose threads give way to those of the node. They inherit that from the thread that opens it,
    which cannot take it back for itself."""
    os.environ.setdefault("ZENOH_RUNTIME", RUNTIME)
    opened: list[zenoh.Session | BaseException] = []

    def open_it() -> None:
        if sys.platform == "linux":
            with contextlib.suppress(OSError):
                os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
        try:
            opened.append(zenoh.open(zenoh.Config.from_json5(configuration)))
        except BaseException as error:
            opened.append(error)

    opener = threading.Thread(target=open_it, name="zenoh-open", daemon=True)
    opener.start()
    opener.join()
    if isinstance(opened[0], BaseException):
        raise opened[0]
    return opened[0]


def _patience(draw: Draw) -> float:
    """The seconds to sleep while there is nothing to do."""
    if draw.until is None:
        return LOOK_SECONDS
    return max(0.0, min(LOOK_SECONDS, draw.until - time.monotonic()))


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0].partition(" at /")[0]
