"""The messages between a node's process and its worker: a length and a msgpack value, both ways.

Both sides bound what they read. A reply repeats the number of its request, which is drawn at random, so
nothing that was written earlier can pass for the reply.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

import msgspec

HEADER = struct.Struct(">I")
MOST_ASKED = 16 << 20
"""Bytes of one message to the worker."""
MOST_REPLIED = 1 << 20
"""Bytes of one message from the worker."""


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


class Coverage(msgspec.Struct, frozen=True):
    """The protections that are in force in a worker. `missing` tells why others are not."""

    platform: str
    limits: bool = False
    """The system limits memory, processor time, open files and written bytes."""
    dies_with_parent: bool = False
    no_new_privileges: bool = False
    capabilities_dropped: bool = False
    landlock: int = 0
    """The version of Linux's Landlock that closes all files but Python's, Shoal's and given ones; 0: none."""
    seccomp: bool = False
    """Only system calls for computing and reading files are allowed: no network, no process, no writing."""
    audit_hook: bool = False
    """Python itself refuses; native code does not ask it."""
    missing: tuple[str, ...] = ()


class Asked(msgspec.Struct, frozen=True, array_like=True):
    """Requests that are asked together."""

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


def pack(payload: bytes) -> bytes:
    return HEADER.pack(len(payload)) + payload


def read_frame(read: Callable[[int], bytes], most: int) -> bytes:
    """The next payload; b"" at the end of the stream."""
    header = _read_exactly(read, HEADER.size)
    if not header:
        return b""
    (length,) = HEADER.unpack(header)
    if not 0 < length <= most:
        raise WireError(f"a message of {length} bytes")
    payload = _read_exactly(read, length)
    if not payload:
        raise WireError("a message broke off")
    return payload


def _read_exactly(read: Callable[[int], bytes], count: int) -> bytes:
    found = bytearray()
    while len(found) < count:
        part = read(count - len(found))
        if not part and found:
            raise WireError("a message broke off")
        if not part:
            return b""
        found += part
    return bytes(found)
