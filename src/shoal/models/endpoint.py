"""An endpoint as all callers of a process share it: its limits, which hold over all event loops and threads,
and the settings that it refuses. Calls are spaced evenly: 60 per minute means one per second, without bursts.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import deque
from typing import Literal

import msgspec

from shoal.errors import ModelTimeoutError
from shoal.models.protocol import ChatRequest

DEFAULT_CONCURRENCY = 8
Dialect = Literal["unknown", "none", "llama.cpp", "vllm"]

DROPPABLE = ("temperature", "top_p", "seed", "stop")
"""Settings without which a request still makes sense. A grammar is only sent to servers that take one, so its
refusal means that the grammar is wrong."""

TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")
"""The two spellings of the bound on the answer."""


class Capabilities(msgspec.Struct, omit_defaults=True):
    """The settings that an endpoint takes for one model: every setting is sent until a refusal names it, and
    from then on it is left out, or sent in its other form. `token_limit` is the name of the bound on the
    answer, which is never dropped: a budget relies on it. Without `system`, its text goes into the first
    message."""

    token_limit: str = "max_tokens"
    refused: set[str] = msgspec.field(default_factory=set)
    system: bool = True
    grammar: Dialect = "unknown"

    def learn(self, setting: str) -> bool:
        """Notes a refusal; true if the next request will do without the setting. Learning twice is the same
        as once, because several calls in flight may be refused for one reason."""
        if setting == "system":
            self.system = False
            return True
        if setting not in (*TOKEN_LIMITS, *DROPPABLE):
            return False
        self.refused.add(setting)
        if setting in DROPPABLE:
            return True
        self.token_limit = TOKEN_LIMITS[1 - TOKEN_LIMITS.index(setting)]
        return self.token_limit not in self.refused

    def omitted(self, request: ChatRequest) -> tuple[str, ...]:
        """The settings of this request that are left out."""
        return tuple(name for name in request.sampling.chosen() if name in self.refused)


class Clock:
    def now(self) -> float:
        """Seconds, never going back."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        await asyncio.sleep(seconds)


class _Waiter:
    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.turn: asyncio.Future[None] = self.loop.create_future()
        self.granted = False

    def wake(self) -> None:
        if not self.turn.done():
            self.turn.set_result(None)


class Endpoint:
    """One endpoint. Where several models of it ask for different limits, the tightest holds."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.concurrency = DEFAULT_CONCURRENCY
        self.rpm: float | None = None
        self._lock = threading.Lock()
        self._active = 0
        self._waiting: deque[_Waiter] = deque()
        self._next_start = 0.0
        self._capabilities: dict[str, Capabilities] = {}

    def limit(self, concurrency: int | None, rpm: float | None) -> None:
        with self._lock:
            if concurrency is not None:
                self.concurrency = min(concurrency, self.concurrency)
            if rpm is not None:
                self.rpm = rpm if self.rpm is None else min(rpm, self.rpm)

    def capabilities(self, model: str) -> Capabilities:
        with self._lock:
            return self._capabilities.setdefault(model, Capabilities())

    async def enter(self, deadline: float, clock: Clock) -> None:
        """Waits for a turn. ModelTimeoutError, with nothing sent, if it would come after the deadline."""
        await self._take_place(deadline - clock.now())
        try:
            wait = self._take_start(clock.now(), deadline)
            if wait > 0:
                await clock.sleep(wait)
        except BaseException:
            self.leave()
            raise

    def leave(self) -> None:
        """Gives the place to the next in line."""
        with self._lock:
            while self._waiting:
                waiter = self._waiting.popleft()
                try:
                    waiter.loop.call_soon_threadsafe(waiter.wake)
                except RuntimeError:  # its event loop is gone
                    continue
                waiter.granted = True
                return
            self._active -= 1

    def pause(self, seconds: float, clock: Clock) -> None:
        """Starts no call for so many seconds, as the endpoint asked."""
        with self._lock:
            self._next_start = max(self._next_start, clock.now() + seconds)

    async def _take_place(self, seconds: float) -> None:
        with self._lock:
            if self._active < self.concurrency:
                self._active += 1
                return
            waiter = _Waiter()
            self._waiting.append(waiter)
        try:
            async with asyncio.timeout(seconds):
                await waiter.turn
        except BaseException as error:
            with self._lock:
                granted = waiter.granted
                if not granted:
                    self._waiting.remove(waiter)
            if granted:
                self.leave()
            if isinstance(error, TimeoutError):
                raise self._too_late() from None
            raise

    def _take_start(self, now: float, deadline: float) -> float:
        with self._lock:
            start = max(now, self._next_start)
            if start > deadline:
                raise self._too_late()
            if self.rpm is not None:
                self._next_start = start + 60 / self.rpm
            return start - now

    def _too_late(self) -> ModelTimeoutError:
        error = ModelTimeoutError(
            f"{self.name} had no turn left before the deadline: allow more calls at a time (?concurrency=), "
            "more per minute (?rpm=), or a longer deadline"
        )
        error.reached = False
        return error


class Endpoints:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[str, Endpoint] = {}

    def get(self, name: str) -> Endpoint:
        with self._lock:
            return self._known.setdefault(name, Endpoint(name))


ENDPOINTS = Endpoints()
"""The endpoints of this process. A program that wants limits of its own makes another object."""
