"""The outside answers requests: a model behind a network, threads, a policy in this process.

The loop begins a call and later collects what has finished; it never waits inside. `Inline` answers at once
and is all that a synchronous application needs; `Threads` runs slow calls beside each other; `Delayed`
answers after a given virtual time and is for the simulator and for tests. All three wrap one plain function

    answer(state, request) -> Reply

that may raise a ShoalError (say, the model failed): the turn is then missed, with that reason. Any other
exception is a mistake in the program and stops the node.
"""

from __future__ import annotations

import heapq
import queue
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

from shoal.errors import ShoalError

State = TypeVar("State")
Request = TypeVar("Request")
Answer = TypeVar("Answer")
StateIn = TypeVar("StateIn", contravariant=True)
RequestIn = TypeVar("RequestIn", contravariant=True)
AnswerOut = TypeVar("AnswerOut", covariant=True)


@dataclass(frozen=True, slots=True)
class Call:
    """One attempt at one turn. `spend` journals that a further part of the reserve is about to be spent; it
    is called before that, from any thread."""

    turn: int
    attempt: int
    spend: Callable[[Mapping[str, int]], None] = field(default=lambda amounts: None, compare=False)


@dataclass(frozen=True, slots=True)
class Reply(Generic[AnswerOut]):
    """An answer and what it really cost (None: what was reserved)."""

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
        """Starts a call. `state` is only there to be read before this returns: a policy in training answers
        from what it is now. Calls that run on must take all they need from the request."""

    def finished(self, now: float) -> Sequence[Finished[AnswerOut]]:
        """The calls that are over since the last time; does not block."""

    def wait(self, seconds: float) -> None:
        """Returns once a call is over or the time has passed. Virtual outsides return at once."""

    def next_at(self) -> float | None:
        """When the next call will be over, where that is known."""

    def close(self) -> None: ...


Function = Callable[[State, Request], Reply[Answer]]


class Inline(Generic[State, Request, Answer]):
    """Answers within `begin`."""

    def __init__(self, function: Function[State, Request, Answer]) -> None:
        self._function = function
        self._finished: list[Finished[Answer]] = []

    def begin(self, call: Call, state: State, request: Request, now: float) -> None:
        self._finished.append(_answer(self._function, call, state, request))

    def finished(self, now: float) -> list[Finished[Answer]]:
        finished, self._finished = self._finished, []
        return finished

    def wait(self, seconds: float) -> None:
        pass

    def next_at(self) -> float | None:
        return None

    def close(self) -> None:
        pass


class Delayed(Generic[State, Request, Answer]):
    """Answers within `begin` and hands the answer out `delay(call)` virtual seconds later."""

    def __init__(self, function: Function[State, Request, Answer], delay: Callable[[Call], float]) -> None:
        self._function = function
        self._delay = delay
        self._waiting: list[tuple[float, int, int, Finished[Answer]]] = []

    def begin(self, call: Call, state: State, request: Request, now: float) -> None:
        over = _answer(self._function, call, state, request)
        heapq.heappush(self._waiting, (now + self._delay(call), call.turn, call.attempt, over))

    def finished(self, now: float) -> list[Finished[Answer]]:
        found = []
        while self._waiting and self._waiting[0][0] <= now:
            found.append(heapq.heappop(self._waiting)[3])
        return found

    def wait(self, seconds: float) -> None:
        pass

    def next_at(self) -> float | None:
        return self._waiting[0][0] if self._waiting else None

    def close(self) -> None:
        self._waiting.clear()


class Threads(Generic[Request, Answer]):
    """Runs each call in a thread of its own; there are as many as the node looks ahead.

    The function gets the request only, as the state goes on meanwhile. The threads are daemons: a call that
    never ends does not keep the process alive, and one whose answer nobody waits for any more costs a thread
    until it ends, so a client should have a time-out of its own.
    """

    def __init__(self, function: Callable[[Request], Reply[Answer]]) -> None:
        self._function = function
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
        found = [one for one in taken if isinstance(one, Finished)]
        for one in taken:
            if isinstance(one, Exception):
                raise one
        return found

    def wait(self, seconds: float) -> None:
        if not self._taken:
            try:
                self._taken.append(self._done.get(timeout=max(0.0, seconds)))
            except queue.Empty:
                return

    def next_at(self) -> float | None:
        return None

    def close(self) -> None:
        pass

    def _run(self, call: Call, request: Request) -> None:
        try:
            self._done.put(_answer(lambda _, asked: self._function(asked), call, None, request))
        except Exception as error:  # carried to the thread that owns the node, and raised there
            self._done.put(error)


def _answer(
    function: Function[State, Request, Answer], call: Call, state: State, request: Request
) -> Finished[Answer]:
    try:
        return Finished(call, function(state, request))
    except ShoalError as error:
        return Finished(call, None, f"{type(error).__name__}: {error}")
