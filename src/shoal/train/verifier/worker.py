"""The verifier's process: poses and scores what it is asked, within limits, and can do little else.

Started by child.py as `python -c` with the path of this package. Requests come on standard input and
replies go out on a private copy of standard output; standard output itself leads nowhere, because some
generators print. After its imports the process gives up what it does not need (sandbox.py).
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from math import ceil
from types import FrameType
from typing import TypeVar

import msgspec

from shoal.errors import ShoalError
from shoal.train.tasks.base import Family, Puzzle
from shoal.train.tasks.registry import open_family, registered_places
from shoal.train.verifier import sandbox
from shoal.train.verifier.base import SLOW, Posed, Refused, Scored
from shoal.train.verifier.judging import Judge, refused
from shoal.train.verifier.wire import (
    MOST_REPLY,
    MOST_REQUEST,
    Orders,
    Ready,
    Reply,
    Request,
    Requests,
    pack,
    read_frame,
)

MOST_REQUESTS = 100_000
"""Requests after which a worker asks to be replaced: nothing it leaks can grow for ever."""

Result = TypeVar("Result")


class OutOfTimeError(BaseException):
    """An answer used up its processor time. No `except Exception` of a scorer stops it."""


class Watch:
    """Limits the processor time of what runs. The timer is set once and ticks while this process computes, so
    that a limit costs no call of the system; one that is set to n seconds acts after n to 1.5 n.

    It acts between two instructions of Python: what stays within one (a huge power, a regular expression) is
    ended by the parent.
    """

    def __init__(self, answer_seconds: float) -> None:
        self._tick = answer_seconds / 2
        self._left = 0  # ticks until it is over; 0: no limit
        signal.signal(signal.SIGPROF, self._ticked)
        signal.setitimer(signal.ITIMER_PROF, self._tick, self._tick)

    def limited(self, seconds: float, call: Callable[..., Result], *arguments: object) -> Result:
        """The call's result; OutOfTimeError after so much processor time, 0: without limit. Within another
        limit, that one pauses."""
        before, self._left = self._left, 1 + ceil(seconds / self._tick) if seconds else 0
        try:
            return call(*arguments)
        finally:
            self._left = before

    def stop(self) -> None:
        signal.setitimer(signal.ITIMER_PROF, 0)

    def _ticked(self, number: int, frame: FrameType | None) -> None:
        if self._left:
            self._left -= 1
            if not self._left:
                raise OutOfTimeError


def main() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    sys.setrecursionlimit(2000)
    requests = os.dup(0)
    replies = os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    os.close(nowhere)

    def read(count: int) -> bytes:
        return os.read(requests, count)

    orders = msgspec.msgpack.decode(read_frame(read, MOST_REQUEST), type=Orders)
    sandbox.die_with(orders.parent)
    watch = Watch(orders.answer_seconds)
    judge = Judge(_opener(orders), _scorer(watch, orders.answer_seconds))
    readable = (*orders.readable, *registered_places())
    coverage = sandbox.enter(readable, memory=orders.memory, cpu_seconds=orders.cpu_seconds)
    write_all(replies, pack(msgspec.msgpack.encode(Ready(coverage))))
    try:
        serve(judge, watch, read, replies, orders)
    finally:
        watch.stop()  # an interpreter that winds down has nobody left to hear it tick
    os._exit(0)  # nothing to wind down


def serve(judge: Judge, watch: Watch, read: Callable[[int], bytes], replies: int, orders: Orders) -> None:
    """Until the stream of requests ends, or the worker retires."""
    decode = msgspec.msgpack.Decoder(Requests).decode
    encode = msgspec.msgpack.Encoder().encode
    for count in range(1, MOST_REQUESTS + 1):
        payload = read_frame(read, MOST_REQUEST)
        if not payload:
            return
        asked = decode(payload)
        verdicts = tuple([judged(judge, watch, request, orders) for request in asked.requests])
        retiring = count == MOST_REQUESTS or 2 * sum(os.times()[:2]) > orders.cpu_seconds
        reply = encode(Reply(asked.number, verdicts, retiring))
        if len(reply) > MOST_REPLY:
            verdicts = (refused("question too long"),) if len(verdicts) == 1 else ()
            reply = encode(Reply(asked.number, verdicts, retiring))
        write_all(replies, pack(reply))
        if retiring:
            return


def judged(judge: Judge, watch: Watch, request: Request, orders: Orders) -> Posed | Scored | Refused:
    try:
        return watch.limited(orders.answer_seconds * 4, answer, judge, watch, request, orders)
    except (OutOfTimeError, MemoryError, RecursionError) as error:
        is_slow = isinstance(error, OutOfTimeError) and request.verb == "score"
        return refused(SLOW if is_slow else "no question", type(error).__name__)


def answer(judge: Judge, watch: Watch, request: Request, orders: Orders) -> Posed | Scored | Refused:
    match request.verb:
        case "prepare":
            # With its own limit at the parent: what is imported here is not imported within a request.
            prefix = request.problem.family.partition(":")[0]
            name = "gym:base_conversion" if prefix == "gym" else request.problem.family
            with suppress(ShoalError):
                watch.limited(0.0, _opener(orders), name, {})
            return refused("prepared")
        case "pose":
            return judge.pose(request.problem)
        case "score":
            return judge.score(
                request.problem, request.answers, question=request.question, foreign=request.foreign
            )


def _opener(orders: Orders) -> Callable[[str, Mapping[str, object]], Family]:
    def opener(name: str, parameters: Mapping[str, object]) -> Family:
        return open_family(name, parameters, files=orders.files, families=orders.families)

    return opener


def _scorer(watch: Watch, seconds: float) -> Callable[[Family, Puzzle, str], float]:
    def scorer(family: Family, puzzle: Puzzle, answer: str) -> float:
        try:
            return watch.limited(seconds, family.score, puzzle, answer)
        except OutOfTimeError:
            return 0.0

    return scorer


def write_all(descriptor: int, payload: bytes) -> None:
    view = memoryview(payload)
    while view:
        view = view[os.write(descriptor, view) :]
