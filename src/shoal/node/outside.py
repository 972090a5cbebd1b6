"""The outside answers requests: a model behind a network, threads, a policy in this process. The loop begins
a call and later collects the calls that are over. `Inline` answers at once, `Threads` runs slow calls beside
each other, `Delayed` answers after a virtual time. All wrap one function `answer(state, request) -> Reply`.
If it raises a ShoalError, the turn is missed with that reason; any other exception stops the node."""

from __future__ import annotations

import heapq
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from shoal.errors import ShoalError
from shoal.node.application import Answer, Request, State, StateIn

RequestIn = TypeVar("RequestIn", contravariant=True)
AnswerOut = TypeVar("AnswerOut", covariant=True)


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt at one turn. `spend` journals a further part of the reserve before it is spent, from any
    thread."""

    turn: int
    attempt: int
    spend: Callable[[Mapping[str, int]], None] = field(default=lambda amounts: None, compare=False)


@dataclass(frozen=True, slots=True)
class Reply(Generic[AnswerOut]):
    """An answer and its real cost (None: the whole reserve)."""

    answer: AnswerOut
    cost: Mapping[str, int] | None = None


@dataclass(frozen=True, slots=True)
class Finished(Generic[AnswerOut]):
    """A call that is over: with a reply, or with the reason why there is none."""

    call: Call
    reply: Reply[AnswerOut] | None
    failure: str = ""


class Outside(Protocol[StateIn, RequestIn, AnswerOut]):
    def begin(self, call: Call, state: StateIn, request: RequestIn, now: float) -> None:
        """Starts a call, which may read `state` until this returns, and later only the request."""

    def finished(self, now: float) -> Sequence[Finished[AnswerOut]]:
        """The calls that are over since the last time; does not block."""

    def wait(self, seconds: float) -> None:
        """Returns once a call is over or the time has passed; by default at once, as virtual outsides do."""
        return

    def next_at(self) -> float | None:
        """The time at which the next call will be over; None, the default: unknown."""
        return None

    def stopping(self) -> None:
        """The node is going to stop: calls that cost nothing need not be waited for."""
        return

    def close(self) -> None:
        return


Function = Callable[[State, Request], Reply[Answer]]


class Inline(Outside[State, Request, Answer]):
    """Answers within `begin`."""

    def __init__(self, function: Function[State, Request, Answer]) -> None:
        self._function = function
        self._finished: list[Finished[Answer]] = []

    def begin(self, call: Call, state: State, request: Request, now: float) -> None:
        self._finished.append(self._answer(call, state, request))

    def finished(self, now: float) -> list[Finished[Answer]]:
        finished, self._finished = self._finished, []
        return finished

    def _answer(self, call: Call, state: State, request: Request) -> Finished[Answer]:
        try:
            return Finished(call, self._function(state, request))
        except ShoalError as error:
            return Finished(call, None, f"{type(error).__name__}: {error}")


class Delayed(Inline[State, Request, Answer]):
    """Answers within `begin` and hands the answer out `delay(call)` virtual seconds later."""

    def __init__(self, function: Function[State, Request, Answer], delay: Callable[[Call], float]) -> None:
        super().__init__(function)
        self._delay = delay
        self._waiting: list[tuple[float, int, int, Finished[Answer]]] = []

    def begin(self, call: Call, state: State, request: Request, now: float) -> None:
        over = self._answer(call, state, request)
        heapq.heappush(self._waiting, (now + self._delay(call), call.turn, call.attempt, over))

    def finished(self, now: float) -> list[Finished[Answer]]:
        found = []
        while self._waiting and self._waiting[0][0] <= now:
            found.append(heapq.heappop(self._waiting)[3])
        return found

    def next_at(self) -> float | None:
        return self._waiting[0][0] if self._waiting else None

    def close(self) -> None:
        self._waiting.clear()


class Threads(Inline[object, Request, Answer]):
    """Runs each call in a thread of its own. The function gets the request only, as the state goes on
    meanwhile. The threads are daemons: a call that never ends does not keep the process alive, but costs a
    thread, so a client should have a time-out of its own."""

    def __init__(self, function: Callable[[Request], Reply[Answer]]) -> None:
        super().__init__(lambda _, request: function(request))
        self._done: queue.SimpleQueue[Finished[Answer] | Exception] = queue.SimpleQueue()
        self._taken: list[Finished[Answer] | Exception] = []

    def begin(self, call: Call, state: object, request: Request, now: float) -> None:
        thread = threading.Thread(
            target=self._run, args=(call, request), daemon=True, name=f"turn-{call.turn}"
        )
        thread.start()

    def finished(self, now: float) -> list[Finished[Answer]]:
        while not self._done.empty():
            self._taken.append(self._done.get())
        taken, self._taken = self._taken, []
        for one in taken:
            if isinstance(one, Exception):
                raise one
        return [one for one in taken if isinstance(one, Finished)]

    def wait(self, seconds: float) -> None:
        if not self._taken:
            try:
                self._taken.append(self._done.get(timeout=max(0.0, seconds)))
            except queue.Empty:
                return

    def _run(self, call: Call, request: Request) -> None:
        try:
            self._done.put(self._answer(call, None, request))
        except Exception as error:  # carried to the thread that owns the node, and raised there
            self._done.put(error)
