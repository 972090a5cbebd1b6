"""The one retry layer: a request goes in, and within the deadline an answer or one named error comes out.

Every attempt that may have reached the model is one call; an attempt that could not connect costs nothing. A
refusal books no tokens; an unknown cost is booked as the most that it could be.

Rate limits, time-outs, failures of the server and broken answers are tried again after a pause that doubles,
with jitter from the caller's generator, or as long as the endpoint asks. No pause ends after the deadline. A
refused setting that can be left out is left out at once. Every other failure ends the call.

    with Background() as background:
        future = background.submit(Caller(model).call(request, rng))     # returns at once
        answer = future.result()
"""

from __future__ import annotations

import asyncio
import math
import random
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from shoal.errors import BudgetError, ConfigError, ModelError, ModelSettingError, ModelTimeoutError
from shoal.models.endpoint import ENDPOINTS, Clock, Endpoints
from shoal.models.prices import UNPRICED, Price
from shoal.models.protocol import ChatAnswer, ChatRequest, Model

LEAST_SECONDS = 0.001
QUANTITIES = ("calls", "tokens", "microdollars")

Result = TypeVar("Result")


class Amounts(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=True):
    """A cost in whole numbers, whose sum does not depend on their order."""

    calls: int = 0
    tokens: int = 0
    microdollars: int = 0

    def __add__(self, other: Amounts) -> Amounts:
        return Amounts(*(getattr(self, name) + getattr(other, name) for name in QUANTITIES))


class Spending:
    """The cost of one question, of at most `calls` calls (None: any number). `before` is called with the
    number of each attempt, 1, 2, 3 …, before it is sent; an exception of it stops the call. Thread-safe. The
    budget of a run is the node's ledger (`shoal.runs.Ledger`)."""

    def __init__(self, calls: int | None = None, before: Callable[[int], None] = lambda number: None) -> None:
        self.spent = Amounts()
        self._calls = calls
        self._before = before
        self._attempts = 0
        self._under_way = 0
        self._lock = threading.Lock()

    @property
    def calls_left(self) -> int | None:
        """Calls that can still be begun; None: no limit."""
        return None if self._calls is None else max(0, self._calls - self.spent.calls - self._under_way)

    def begin(self) -> None:
        """Takes one call, or raises BudgetError."""
        with self._lock:
            if self.calls_left == 0:
                raise BudgetError(f"the {self._calls} calls for this question are spent")
            self._under_way += 1
            self._attempts += 1
            number = self._attempts
        try:
            self._before(number)
        except BaseException:
            self.end(Amounts())
            raise

    def end(self, amounts: Amounts) -> None:
        """Books the cost of a call that was begun."""
        with self._lock:
            self._under_way -= 1
            self.spent += amounts


class Patience(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`deadline` is seconds for the whole question: waiting for a turn, all attempts, all pauses."""

    deadline: float = 120.0
    attempts: int = 4
    attempt_seconds: float = 120.0
    first_wait: float = 0.5
    longest_wait: float = 30.0

    def __post_init__(self) -> None:
        if not (0 < self.deadline < math.inf and 0 < self.attempt_seconds < math.inf and self.attempts >= 1):
            raise ConfigError("give at least one attempt, with more than 0 seconds for it and the deadline")
        if not 0 <= self.first_wait <= self.longest_wait < math.inf:
            raise ConfigError("pauses are 0 or more seconds, the first not above the longest")


class _RecordedClock(Clock):
    """Time for models that answer at once. It passes by the recorded latencies and by the pauses, so that a
    replayed run takes the same decisions without waiting."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


@dataclass(frozen=True)
class Caller:
    """A model with its price, its patience and its place in the queue of an endpoint."""

    model: Model
    price: Price = UNPRICED
    patience: Patience = field(default_factory=Patience)
    endpoints: Endpoints = field(default=ENDPOINTS, repr=False)
    clock: Clock = field(default_factory=Clock, repr=False)

    async def call(
        self, request: ChatRequest, rng: random.Random, spending: Spending | None = None
    ) -> ChatAnswer:
        """An answer or a ModelError (BudgetError included) within the deadline; both count the `attempts`."""
        spending = spending or Spending()
        clock = _RecordedClock() if self.model.instant else self.clock
        deadline = clock.now() + self.patience.deadline
        spent = failures = 0
        refused: set[str] = set()
        while True:
            try:
                outcome = await self._attempt(request, deadline, clock, spending)
            except ModelError as error:
                error.attempts = spent
                raise
            if isinstance(outcome, ChatAnswer):
                return msgspec.structs.replace(outcome, attempts=spent + 1)
            spent += outcome.reached
            outcome.attempts = spent
            if isinstance(outcome, ModelSettingError) and outcome.setting not in refused:
                refused.add(outcome.setting)
                if self.model.learn(outcome.setting):
                    continue
            failures += 1
            wait = self._wait(outcome, failures, rng)
            is_last = not outcome.transient or failures >= self.patience.attempts
            if is_last or clock.now() + wait >= deadline:
                raise outcome
            await clock.sleep(wait)

    async def _attempt(
        self, request: ChatRequest, deadline: float, clock: Clock, spending: Spending
    ) -> ChatAnswer | ModelError:
        """One attempt with its turn at the endpoint. Errors that no retry can mend are raised."""
        endpoint = None if self.model.instant else self.endpoints.get(self.model.endpoint)
        if endpoint is not None:
            await endpoint.enter(deadline, clock)
        try:
            started = clock.now()
            seconds = min(deadline - started, self.patience.attempt_seconds)
            if seconds < LEAST_SECONDS:
                late = ModelTimeoutError(f"{self.model.spec} had no time left before the deadline")
                late.reached = False
                raise late
            spending.begin()
            outcome: ChatAnswer | ModelError | None = None
            try:
                outcome = await self.model.answer(request, timeout=seconds)
            except ModelError as error:
                outcome = error
            finally:
                # Also when the task is cancelled: then the most that it could cost is booked.
                elapsed = clock.now() - started
                spending.end(actual_amounts(request, outcome, self.price))
            if isinstance(clock, _RecordedClock):
                await clock.sleep(outcome.latency if isinstance(outcome, ChatAnswer) else outcome.seconds)
            elif isinstance(outcome, ModelError):
                outcome.seconds = elapsed
                pause = getattr(outcome, "retry_after", None)
                if pause and endpoint is not None:
                    endpoint.pause(pause, clock)
            return outcome
        finally:
            if endpoint is not None:
                endpoint.leave()

    def _wait(self, outcome: ModelError, failures: int, rng: random.Random) -> float:
        """Seconds before the next attempt. One number is drawn for each failure, whatever its kind."""
        longest = min(self.patience.longest_wait, self.patience.first_wait * 2 ** (failures - 1))
        drawn: float = longest * (0.5 + rng.random() / 2)
        asked: float | None = getattr(outcome, "retry_after", None)
        return drawn if asked is None else max(asked, drawn)


def most_amounts(request: ChatRequest, price: Price) -> Amounts:
    """The most that one call can cost."""
    input_tokens, output_tokens = request.most_input_tokens(), request.sampling.max_tokens
    return Amounts(1, input_tokens + output_tokens, price.most(input_tokens, output_tokens))


def actual_amounts(request: ChatRequest, outcome: ChatAnswer | ModelError | None, price: Price) -> Amounts:
    """The cost of one attempt. None is an attempt of unknown outcome."""
    if isinstance(outcome, ModelError) and not outcome.reached:
        return Amounts()
    if isinstance(outcome, ModelError) and outcome.unbilled:
        return Amounts(calls=1)
    if isinstance(outcome, ChatAnswer) and outcome.usage.reported:
        return Amounts(1, outcome.usage.total, price.cost(outcome.usage))
    return most_amounts(request, price)


class Background:
    """An event loop in a thread of its own, for programs that are not asynchronous."""

    def __init__(self, name: str = "shoal-models") -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def submit(self, work: Coroutine[Any, Any, Result]) -> Future[Result]:
        """Starts a coroutine; its result or its exception is in the future."""
        if not self._thread.is_alive():
            work.close()
            raise ConfigError("the background for model calls is closed: make another one")
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def close(self) -> None:
        """Cancels all coroutines, waits for their end, and ends the thread."""
        if self._thread.is_alive():
            asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def __enter__(self) -> Background:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def run_now(work: Coroutine[Any, Any, Result]) -> Result:
    """The result of a coroutine that never waits, such as a call of an instant model; no event loop runs."""
    try:
        work.send(None)
    except StopIteration as done:
        result: Result = done.value
        return result
    work.close()
    raise RuntimeError("an instant model waited for something")


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
