"""The worker's process: it answers requests within limits, and can do little else.

process.py starts it as `python -c` with the path of this package. Requests come on standard input and replies
go out on a private copy of standard output. Standard output itself leads nowhere, because some libraries
print. The service is made first; then the process gives up everything it does not need (sandbox.py), and only
then does it read a request.
"""

from __future__ import annotations

import importlib
import os
import signal
import sys
from collections.abc import Callable, Sequence
from math import ceil
from types import FrameType
from typing import Protocol, TypeVar

import msgspec

from shoal.confine import sandbox
from shoal.confine.wire import MOST_ASKED, MOST_REPLIED, Asked, Orders, Replied, pack, read_frame

MOST_MESSAGES = 100_000
"""Messages after which a worker asks to be replaced, so that no leak can grow for ever."""

Result = TypeVar("Result")


class OutOfTimeError(BaseException):
    """A call used up its processor time. No `except Exception` inside the call stops it."""


class Watch:
    """Limits the processor time of calls. The timer is set once and ticks while this process computes, so a
    limit costs no system call. A limit of n seconds acts after n to 1.5 n, between two instructions of
    Python. The parent ends a worker that stays within one of them (a huge power, a regular expression)."""

    def __init__(self, seconds: float) -> None:
        self._tick = seconds / 2
        self._left = 0  # ticks until the limit acts; 0: no limit
        signal.signal(signal.SIGPROF, self._ticked)
        signal.setitimer(signal.ITIMER_PROF, self._tick, self._tick)

    def limited(self, seconds: float, call: Callable[..., Result], *arguments: object) -> Result:
        """The call's result; OutOfTimeError after so much processor time (0: no limit). An outer limit pauses
        meanwhile."""
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


class Service(Protocol):
    """The work of a worker. The `module:function` of the orders makes it from settings and a watch, before
    the process is confined; `readable` are places that it must read afterwards."""

    @property
    def readable(self) -> Sequence[str]: ...

    def answer(self, request: msgspec.Raw) -> object:
        """The reply. It limits its own time and raises nothing for any content of a request."""

    def too_long(self) -> object:
        """The reply in place of one that is longer than a message may be."""


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

    orders = msgspec.msgpack.decode(read_frame(read, MOST_ASKED), type=Orders)
    sandbox.die_with(orders.parent)
    watch = Watch(orders.call_seconds)
    module, _, function = orders.service.partition(":")
    service: Service = getattr(importlib.import_module(module), function)(orders.settings, watch)
    readable = (*orders.readable, *service.readable)
    coverage = sandbox.enter(readable, memory=orders.memory, cpu_seconds=orders.cpu_seconds)
    write_all(replies, pack(msgspec.msgpack.encode(coverage)))
    try:
        serve(service, read, replies, orders.cpu_seconds)
    finally:
        watch.stop()  # a tick while the interpreter winds down would meet no handler
    os._exit(0)


def serve(service: Service, read: Callable[[int], bytes], replies: int, cpu_seconds: int) -> None:
    """Runs until the stream of requests ends, or the worker retires."""
    decode = msgspec.msgpack.Decoder(Asked).decode
    encode = msgspec.msgpack.Encoder().encode
    for count in range(1, MOST_MESSAGES + 1):
        payload = read_frame(read, MOST_ASKED)
        if not payload:
            return
        asked = decode(payload)
        found = tuple([msgspec.Raw(encode(service.answer(request))) for request in asked.requests])
        retiring = count == MOST_MESSAGES or 2 * sum(os.times()[:2]) > cpu_seconds
        reply = encode(Replied(asked.number, found, retiring))
        if len(reply) > MOST_REPLIED:
            found = (msgspec.Raw(encode(service.too_long())),) if len(found) == 1 else ()
            reply = encode(Replied(asked.number, found, retiring))
        write_all(replies, pack(reply))
        if retiring:
            return


def write_all(descriptor: int, payload: bytes) -> None:
    view = memoryview(payload)
    while view:
        view = view[os.write(descriptor, view) :]
