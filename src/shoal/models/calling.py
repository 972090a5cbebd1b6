"""The one retry layer: a request goes in, and within the deadline an answer or one named error comes out.

What counts: every attempt that may have reached the model is one call of the budget, also when it was
refused, timed out or came back broken. An attempt that found nobody to connect to costs nothing. Where the
endpoint said no before making tokens, no tokens are booked; where it is unknown what an attempt cost, all
that was reserved for it is booked. Nothing is spent silently: each attempt is reserved and settled on its
own, and `Answer.attempts` counts them.

What is tried again: rate limits, time-outs, failures of the server and broken answers, after a wait that
doubles, with jitter from the caller's generator, or as long as the endpoint asks. A wait that would end
after the deadline is not begun. A refused setting that can be left out is left out and tried again at
once. Authentication and everything else fails at once.
"""

from __future__ import annotations

import math
import random
import threading
from collections.abc import Callable
from dataclasses import dataclass, field

import msgspec

from shoal.errors import ConfigError, ModelError, ModelSettingError, ModelTimeoutError
from shoal.models.budget import Amounts, Budget, BudgetRecord
from shoal.models.endpoint import ENDPOINTS, Clock, Endpoints, RealClock
from shoal.models.prices import UNPRICED, Price, check_money
from shoal.models.protocol import Answer, Model, Request

LEAST_SECONDS = 0.001


class Policy(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`deadline` is seconds for the whole proposal: waiting for a turn, all attempts, all pauses."""

    deadline: float = 120.0
    attempts: int = 4
    attempt_seconds: float = 120.0
    first_wait: float = 0.5
    longest_wait: float = 30.0

    def __post_init__(self) -> None:
        if not (0 < self.deadline < math.inf and 0 < self.attempt_seconds < math.inf and self.attempts >= 1):
            raise ConfigError(
                "give at least one attempt, and more than 0 seconds for it and for the deadline"
            )
        if not 0 <= self.first_wait <= self.longest_wait < math.inf:
            raise ConfigError("pauses are 0 or more seconds, the first not above the longest")


class Ledger:
    """A budget with a lock and a journal. `record` is called before the call starts and after it ended,
    from the thread that calls, one at a time; what it raises stops the call."""

    def __init__(self, budget: Budget, record: Callable[[BudgetRecord], None] | None = None) -> None:
        self.budget = budget
        self._record = record
        self._lock = threading.Lock()

    def reserve(self, amounts: Amounts) -> tuple[int, Amounts]:
        """Reserves and records; less time than asked for is reserved when no more is left."""
        with self._lock:
            left = self.budget.remaining("milliseconds")
            if left is not None:
                # With nothing left the least is asked for: the refusal then tells whether calls in
                # flight hold the time or it is used up.
                shortened = min(amounts.milliseconds, max(left, 1))
                amounts = msgspec.structs.replace(amounts, milliseconds=shortened)
            reserved = self.budget.reserve(amounts)
            if self._record is not None:
                self._record(reserved)
            return reserved.number, amounts

    def settle(self, number: int, amounts: Amounts) -> None:
        with self._lock:
            settled = self.budget.settle(number, amounts)
            if self._record is not None:
                self._record(settled)


class _RecordedClock:
    """Time for models that answer at once: it passes by what the answers say and by the pauses, so that a
    replayed run takes the same decisions without waiting."""

    def __init__(self) -> None:
        self.time = 0.0

    def now(self) -> float:
        return self.time

    async def sleep(self, seconds: float) -> None:
        self.time += seconds


@dataclass(frozen=True)
class Caller:
    """A model with all that stands around a call of it."""

    model: Model
    price: Price = UNPRICED
    ledger: Ledger | None = None
    policy: Policy = field(default_factory=Policy)
    endpoints: Endpoints = field(default=ENDPOINTS, repr=False)
    clock: Clock = field(default_factory=RealClock, repr=False)

    def __post_init__(self) -> None:
        if self.ledger is not None:
            check_money(self.price, self.model.spec, self.ledger.budget.limits.dollars)

    async def call(self, request: Request, rng: random.Random) -> Answer:
        """An answer, or a ModelError (BudgetError included), within the deadline. The error's `attempts`
        is the number of calls that were spent."""
        clock: Clock = _RecordedClock() if self.model.instant else self.clock
        deadline = clock.now() + self.policy.deadline
        spent = failures = 0
        refused: set[str] = set()
        while True:
            try:
                outcome = await self._attempt(request, deadline, clock)
            except ModelError as error:
                error.attempts = spent
                raise
            if isinstance(outcome, Answer):
                return msgspec.structs.replace(outcome, attempts=spent + 1)
            spent += outcome.reached
            outcome.attempts = spent
            if isinstance(outcome, ModelSettingError) and outcome.setting not in refused:
                refused.add(outcome.setting)
                if self.model.learn(outcome.setting):
                    continue
            failures += 1
            wait = self._wait(outcome, failures, rng)
            if not outcome.transient or failures >= self.policy.attempts:
                raise outcome
            if clock.now() + wait >= deadline:
                raise outcome
            await clock.sleep(wait)

    async def _attempt(self, request: Request, deadline: float, clock: Clock) -> Answer | ModelError:
        """One attempt with its turn at the endpoint and its entry in the budget; BudgetError and a turn
        that comes too late are raised, because trying again does not help."""
        endpoint = None if self.model.instant else self.endpoints.get(self.model.endpoint)
        if endpoint is not None:
            await endpoint.enter(deadline, clock)
        try:
            started = clock.now()
            seconds = min(deadline - started, self.policy.attempt_seconds)
            if seconds < LEAST_SECONDS:
                late = ModelTimeoutError(f"{self.model.spec} had no time left before the deadline")
                late.reached = False
                raise late
            number, reserved = self._reserve(request, seconds)
            if self.ledger is not None and self.ledger.budget.limits.seconds is not None:
                seconds = reserved.milliseconds / 1000
            outcome: Answer | ModelError | None = None
            try:
                outcome = await self.model.answer(request, timeout=seconds)
            except ModelError as error:
                outcome = error
            finally:
                # Also when the task is cancelled: then all that was reserved is booked.
                elapsed = clock.now() - started
                self._settle(number, reserved, outcome, elapsed)
            if isinstance(clock, _RecordedClock):
                await clock.sleep(outcome.latency if isinstance(outcome, Answer) else outcome.seconds)
            elif isinstance(outcome, ModelError):
                outcome.seconds = elapsed
                pause = getattr(outcome, "retry_after", None)
                if pause and endpoint is not None:
                    endpoint.pause(pause, clock)
            return outcome
        finally:
            if endpoint is not None:
                endpoint.leave()

    def _reserve(self, request: Request, seconds: float) -> tuple[int, Amounts]:
        if self.ledger is None:
            return 0, Amounts()
        input_tokens, output_tokens = request.most_input_tokens(), request.sampling.max_tokens
        worst = Amounts(
            calls=1,
            tokens=input_tokens + output_tokens,
            microdollars=self.price.most(input_tokens, output_tokens),
            milliseconds=math.ceil(seconds * 1000),
        )
        return self.ledger.reserve(worst)

    def _settle(
        self, number: int, reserved: Amounts, outcome: Answer | ModelError | None, elapsed: float
    ) -> None:
        if self.ledger is not None:
            self.ledger.settle(number, actual_amounts(reserved, outcome, elapsed, self.price))

    def _wait(self, outcome: ModelError, failures: int, rng: random.Random) -> float:
        """Seconds before the next attempt. One number is drawn for each failure, whatever its kind."""
        longest = min(self.policy.longest_wait, self.policy.first_wait * 2 ** (failures - 1))
        drawn: float = longest * (0.5 + rng.random() / 2)
        asked: float | None = getattr(outcome, "retry_after", None)
        return drawn if asked is None else max(asked, drawn)


def actual_amounts(
    reserved: Amounts, outcome: Answer | ModelError | None, elapsed: float, price: Price
) -> Amounts:
    """What an attempt is booked with. None is an attempt of which nothing is known."""
    if outcome is None:
        return reserved
    if isinstance(outcome, Answer):
        elapsed = outcome.latency
    elif outcome.seconds:
        elapsed = outcome.seconds
    milliseconds = min(math.ceil(max(0.0, elapsed) * 1000), reserved.milliseconds)
    if isinstance(outcome, ModelError):
        if not outcome.reached:
            return Amounts(milliseconds=milliseconds)
        if outcome.unbilled:
            return Amounts(calls=1, milliseconds=milliseconds)
        return msgspec.structs.replace(reserved, milliseconds=milliseconds)
    if not outcome.usage.reported:
        return msgspec.structs.replace(reserved, milliseconds=milliseconds)
    return Amounts(1, outcome.usage.total, price.cost(outcome.usage), milliseconds)
