"""The worker's process, and the messages between it and the node's: a length and a msgpack value, both ways.

Requests come on standard input and replies go out on a private copy of standard output, which itself leads
nowhere, because some libraries print. The service is made first; then the process gives up everything it does
not need (sandbox.py), and only then reads a request. Both sides bound what they read. A reply repeats the
random number of its request, so nothing that was written earlier can pass for it.
"""

from __future__ import annotations

import os
import signal
import struct
import sys
from collections.abc import Callable, Sequence
from math import ceil
from types import FrameType
from typing import Protocol, TypeVar

import msgspec

from shoal.confine import sandbox
from shoal.lazy import load

HEADER = struct.Struct(">I")
MOST_ASKED = 16 << 20
"""Bytes of one message to the worker."""
MOST_REPLIED = 1 << 20
"""Bytes of one message from the worker."""
MOST_MESSAGES = 100_000
"""Messages after which a worker asks to be replaced, so that no leak can grow for ever."""

Result = TypeVar("Result")


class Orders(msgspec.Struct, frozen=True):
    """The worker's first message, from its own node and never from a stranger. `service` is the
    `module:function` that makes the worker's `Service` from `settings`. `call_seconds` is the processor time
    that `Watch` measures in, `memory` the address space in bytes."""

    parent: int
    service: str
    settings: msgspec.Raw
    readable: tuple[str, ...]
    memory: int
    call_seconds: float
    cpu_seconds: int


class Asked(msgspec.Struct, frozen=True, array_like=True):
    number: int
    requests: tuple[msgspec.Raw, ...]


class Replied(msgspec.Struct, frozen=True, array_like=True):
    """A reply to each request; none where the replies are too long together. `retiring`: the worker ends
    after this message and wants to be replaced."""

    number: int
    replies: tuple[msgspec.Raw, ...]
    retiring: bool = False


class WireError(Exception):
    """The bytes are not a message."""


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
        """The call's result, or OutOfTimeError (0 seconds: no limit). An outer limit pauses meanwhile."""
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
    requests, replies = os.dup(0), os.dup(1)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1, 2):
        os.dup2(nowhere, number)
    os.close(nowhere)
    orders = msgspec.msgpack.decode(read_frame(requests), type=Orders)
    sandbox.die_with(orders.parent)
    watch = Watch(orders.call_seconds)
    service: Service = load(orders.service)(orders.settings, watch)
    readable = (*orders.readable, *service.readable)
    coverage = sandbox.enter(readable, memory=orders.memory, cpu_seconds=orders.cpu_seconds)
    write_frame(replies, msgspec.msgpack.encode(coverage))
    try:
        serve(service, requests, replies, orders.cpu_seconds)
    finally:
        watch.stop()  # a tick while the interpreter winds down would meet no handler
    os._exit(0)


def serve(service: Service, requests: int, replies: int, cpu_seconds: int) -> None:
    """Runs until the stream of requests ends, or the worker retires."""
    decode = msgspec.msgpack.Decoder(Asked).decode
    encode = msgspec.msgpack.Encoder().encode
    for count in range(1, MOST_MESSAGES + 1):
        payload = read_frame(requests)
        if not payload:
            return
        asked = decode(payload)
        found = tuple([msgspec.Raw(encode(service.answer(request))) for request in asked.requests])
        retiring = count == MOST_MESSAGES or 2 * sum(os.times()[:2]) > cpu_seconds
        reply = encode(Replied(asked.number, found, retiring))
        if len(reply) > MOST_REPLIED:
            found = (msgspec.Raw(encode(service.too_long())),) if len(found) == 1 else ()
            reply = encode(Replied(asked.number, found, retiring))
        write_frame(replies, reply)
        if retiring:
            return


def pack(payload: bytes) -> bytes:
    return HEADER.pack(len(payload)) + payload


def write_frame(descriptor: int, payload: bytes) -> None:
    view = memoryview(pack(payload))
    while view:
        view = view[os.write(descriptor, view) :]


def read_frame(descriptor: int) -> bytes:
    """The next payload; b"" at the end of the stream."""
    header = _read_exactly(descriptor, HEADER.size)
    if not header:
        return b""
    (length,) = HEADER.unpack(header)
    if not 0 < length <= MOST_ASKED:
        raise WireError(f"a message of {length} bytes")
    return _read_exactly(descriptor, length, begun=True)


def _read_exactly(descriptor: int, count: int, *, begun: bool = False) -> bytes:
    found = bytearray()
    while len(found) < count:
        part = os.read(descriptor, count - len(found))
        if not part and (found or begun):
            raise WireError("a message broke off")
        if not part:
            return b""
        found += part
    return bytes(found)
