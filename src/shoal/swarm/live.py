"""The exchange in the field: one thread calls `tick`, any thread may call the verbs.

One lock guards all state, and the thread releases it after every few messages, so that `share` and `gather`
wait for a few signature checks at most. Every verb raises `PeerError` after `close`, and if the thread died
of a defect, with that as the cause: a swarm never stands still in silence.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Any, ParamSpec, TypeVar

import msgspec

from shoal.errors import DefectError, PeerError, ShoalError
from shoal.swarm.accounts import Accounts, Credit, write_accounts
from shoal.swarm.authors import Peer, Place, Received
from shoal.swarm.exchange import Exchange, Receipt
from shoal.swarm.identity import Identity, NodeId
from shoal.swarm.kinds import Kinds
from shoal.swarm.presence import Presence
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.transport.base import Transport

TICK = 0.025
BETWEEN_TICKS = 0.001
MESSAGES_PER_TICK = 32
SAVE_EVERY = 60.0
MEET_EVERY = 2.0

Given = ParamSpec("Given")
Result = TypeVar("Result")


class LiveExchange:
    """An exchange with its own thread. Same verbs as `Exchange`; also a context manager. With `accounts_path`
    the accounts are loaded from there, saved every minute and on `close`. With `presence_path` that file says
    how many peers were heard. `close` closes the transport as well."""

    def __init__(
        self,
        identity: Identity,
        transport: Transport,
        kinds: Kinds,
        settings: ExchangeSettings,
        *,
        accounts_path: str | Path | None = None,
        presence_path: Path | None = None,
    ) -> None:
        self._accounts_path = Path(accounts_path) if accounts_path is not None else None
        accounts = Accounts.load(self._accounts_path, settings.authors) if self._accounts_path else None
        settings = msgspec.structs.replace(
            settings, messages_per_tick=min(settings.messages_per_tick, MESSAGES_PER_TICK)
        )
        self._presence = Presence(presence_path, settings.authors) if presence_path else None
        rng = random.SystemRandom()  # nobody may foresee the nonces of pulls from earlier ones
        self._exchange = Exchange(
            identity,
            transport,
            kinds,
            settings,
            now=time.time(),
            rng=rng,
            accounts=accounts,
            meter=time.thread_time,
        )
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._closed = False
        self._failure: BaseException | None = None
        if self._accounts_path is not None:
            self.save_accounts()  # the epoch of this start, before anything is sent under it
        self._thread = threading.Thread(target=self._run, name=f"exchange {identity.name}", daemon=True)
        self._thread.start()

    @property
    def identity(self) -> Identity:
        return self._exchange.identity

    @property
    def epoch(self) -> int:
        return self._exchange.epoch

    @property
    def accounts(self) -> Accounts:
        """For reading; `credit` is how they change."""
        return self._exchange.accounts

    def share(self, item: msgspec.Struct) -> Receipt:
        return self._call(self._exchange.share, item)

    def gather(self, limit: int | None = None) -> list[Received[Any]]:
        return self._call(self._exchange.gather, limit)

    def latest(self, kind: str) -> dict[NodeId, Received[Any]]:
        return self._call(self._exchange.latest, kind)

    def peers(self) -> dict[NodeId, Peer]:
        return self._call(self._exchange.peers)

    def credit(self, author: NodeId, place: Place, credit: Credit, reason: str = "") -> None:
        self._call(self._exchange.credit, author, place, credit, reason)

    def hand_back(self, author: NodeId) -> None:
        self._call(self._exchange.hand_back, author)

    def figures(self) -> dict[str, int]:
        return self._call(self._exchange.figures)

    def save_accounts(self) -> None:
        """Writes the accounts now; the file work happens outside the lock."""
        if self._accounts_path is not None:
            with self._lock:
                content = self._exchange.accounts.encode()
            write_accounts(self._accounts_path, content)

    def close(self) -> None:
        """Sends waiting items, ends the thread and the transport, saves the accounts; may be called twice."""
        with self._lock:
            first, self._closed = not self._closed, True
        if not first:
            return
        self._ended.set()
        self._thread.join()
        self._exchange.transport.close()
        self.save_accounts()

    def __enter__(self) -> LiveExchange:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.close()
        except PeerError as second:
            if error is None:
                raise
            error.add_note(f"and then: {second}")  # people need to know the first failure

    def _call(self, verb: Callable[Given, Result], *given: Given.args, **named: Given.kwargs) -> Result:
        """Calls a verb under the lock, so that every item accepted before `close` is still sent."""
        with self._lock:
            if self._failure is not None:
                kind = PeerError if isinstance(self._failure, ShoalError) else DefectError
                raise kind(f"the exchange has stopped: {self._failure!r}") from self._failure
            if self._closed:
                raise PeerError("the exchange is closed: share and gather before close(), or open a new one")
            return verb(*given, **named)

    def _introduce(self) -> None:
        """Tells the transport which nodes are there, so that one that knew a single address finds more."""
        with self._lock:
            present = self._exchange.peers()
        self._exchange.transport.meet([end for peer in present.values() for end in peer.endpoints])
        if self._presence is not None:
            self._presence.note(present)

    def _run(self) -> None:
        save_at = time.time() + SAVE_EVERY
        meet_at = time.time()
        try:
            while not self._ended.is_set():
                with self._lock:
                    backlog = self._exchange.tick(time.time())
                if time.time() >= meet_at:
                    meet_at = time.time() + MEET_EVERY
                    self._introduce()
                if time.time() >= save_at:
                    save_at = time.time() + SAVE_EVERY
                    self.save_accounts()
                self._ended.wait(BETWEEN_TICKS if backlog else TICK)
            with self._lock:
                self._exchange.leave(time.time())
        except BaseException as error:
            self._failure = error
