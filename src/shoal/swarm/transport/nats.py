"""The swarm over NATS: for operators who run a server, or a cluster of them. It reconnects for ever.

The client is asyncio, in a thread. A connection to a server is whole or gone, so `reopen` does nothing.
"""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import threading
from collections.abc import Sequence
from typing import TYPE_CHECKING

from shoal.errors import ConfigError, how_to_install
from shoal.swarm.transport.base import short_hash
from shoal.swarm.transport.queues import QueuedTransport
from shoal.swarm.transport.tls import TlsFiles

try:
    from nats.aio.client import Client
except ImportError as error:
    raise ConfigError(f"the transport 'nats' needs one more package: {how_to_install('nats')}") from error

if TYPE_CHECKING:
    from nats.aio.msg import Msg
    from nats.aio.subscription import Subscription

CLOSE_SECONDS = 3.0
CONNECT_SECONDS = 2
RECONNECT_SECONDS = 1
PING_SECONDS = 5  # two unanswered pings: the server is given up, so a cut is noticed in 10 to 15 s
READY_SECONDS = 2.0  # how long the constructor waits for a connection; then it is dialled in the background
BUFFERED_BYTES = 4 << 20  # the most that the client keeps for a server that is away
LOOK_SECONDS = 5.0  # between two checks that the client still exists
SEND_AT_ONCE = 64


class NatsTransport(QueuedTransport):
    """One node's connection to the servers. Subjects are `shoal.<swarm>.<topic>`, with dots for slashes."""

    def __init__(
        self, servers: Sequence[str], *, swarm: str, name: str = "", tls: TlsFiles | None = None
    ) -> None:
        super().__init__()
        self._servers = list(servers)
        self._name = name
        self._prefix = f"shoal.{short_hash(swarm)}."
        self._context = tls.client_context() if tls is not None else None
        self._open = True
        self._ready = threading.Event()
        self._loop = asyncio.new_event_loop()
        self._wake = asyncio.Event()
        self._engine = threading.Thread(target=self._run, name="nats-engine", daemon=True)
        self._engine.start()
        atexit.register(self.close)
        self._ready.wait(READY_SECONDS)

    def endpoints(self) -> Sequence[str]:
        return ()

    def meet(self, neighbours: Sequence[str]) -> None:
        pass

    def reopen(self, neighbours: Sequence[str]) -> None:
        pass

    def close(self) -> None:
        if not self._closing:
            self._closing, self._open = True, False
            atexit.unregister(self.close)
            self._notify()
            self._engine.join(CLOSE_SECONDS)
            self._incoming.clear()

    def _notify(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._wake.set)

    # Everything below runs in the engine thread.

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_until_complete(self._drive())
        finally:
            self._ready.set()
            with contextlib.suppress(Exception):
                self._loop.close()

    async def _drive(self) -> None:
        while not self._closing:
            client = Client()
            connecting = asyncio.ensure_future(self._connect(client))
            while not (connecting.done() or self._closing):
                await self._wait(0.1)
            self._ready.set()
            subscriptions: dict[str, Subscription] = {}
            # Some errors (a revoked permission) make the client close itself; then a new one is made.
            while not (self._closing or client.is_closed):
                await self._subscribe(client, subscriptions)
                await self._send(client)
                if not self._outgoing:
                    await self._wait(LOOK_SECONDS)
            connecting.cancel()
            with contextlib.suppress(Exception):
                await asyncio.wait_for(self._finish(client), CLOSE_SECONDS / 2)

    async def _connect(self, client: Client) -> None:
        while True:
            try:
                await client.connect(
                    self._servers,
                    name=self._name,
                    no_echo=True,
                    tls=self._context,
                    allow_reconnect=True,
                    max_reconnect_attempts=-1,
                    reconnect_time_wait=RECONNECT_SECONDS,
                    connect_timeout=CONNECT_SECONDS,
                    ping_interval=PING_SECONDS,
                    max_outstanding_pings=2,
                    pending_size=BUFFERED_BYTES,
                    error_cb=_ignore,
                )
                return
            except Exception:
                await asyncio.sleep(RECONNECT_SECONDS)

    async def _subscribe(self, client: Client, subscriptions: dict[str, Subscription]) -> None:
        wanted = self._topics
        for topic in subscriptions.keys() - wanted:
            with contextlib.suppress(Exception):
                await subscriptions.pop(topic).unsubscribe()
        for topic in wanted - subscriptions.keys():
            try:
                subscriptions[topic] = await client.subscribe(self._subject(topic), cb=self._take)
            except Exception:
                self._lost += 1

    async def _send(self, client: Client) -> None:
        for topic, message in self._outgoing.take(SEND_AT_ONCE):
            try:
                await client.publish(self._subject(topic), message)
            except Exception:
                self._lost += 1

    async def _finish(self, client: Client) -> None:
        """Sends the messages that were published before closing."""
        while self._outgoing and client.is_connected:
            await self._send(client)
        if client.is_connected:
            await client.flush(1)
        await client.close()

    async def _wait(self, seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._wake.wait(), seconds)
        self._wake.clear()

    async def _take(self, message: Msg) -> None:
        self._arrive(message.data)

    def _subject(self, topic: str) -> str:
        return self._prefix + topic.replace("/", ".")


async def _ignore(error: Exception) -> None:
    """Errors of the client are expected while a server is away; it goes on dialling by itself."""
