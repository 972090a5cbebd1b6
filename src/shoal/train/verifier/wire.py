"""What a node's process and its verifier's worker say to each other: a length and a msgpack value, both ways.

Both sides bound what they read. A reply repeats the number of its request, which is drawn at random, so that
nothing that was written earlier can pass for it.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from typing import Literal

import msgspec

from shoal.train.verifier.base import Posed, Problem, Refused, Scored

HEADER = struct.Struct(">I")
MOST_ANSWERS = 256
MOST_SENT = 16_384
"""Characters of one answer that are sent; more are more than any family scores."""
MOST_QUESTION = 1 << 16
"""Characters of a question."""
MOST_REQUEST = 4 * MOST_ANSWERS * (MOST_SENT + 16)
MOST_REPLY = 1 << 20


class Orders(msgspec.Struct, frozen=True):
    """What the worker is told once, by its own node: never a stranger's words."""

    parent: int
    files: dict[str, str]
    families: dict[str, str]
    readable: tuple[str, ...]
    memory: int
    answer_seconds: float
    cpu_seconds: int


class Coverage(msgspec.Struct, frozen=True):
    """Which protections are in force in a worker. `missing` tells why others are not."""

    platform: str
    limits: bool = False
    """Memory, processor time, open files and written bytes are limited by the operating system."""
    dies_with_parent: bool = False
    no_new_privileges: bool = False
    capabilities_dropped: bool = False
    landlock: int = 0
    """The version of Linux's Landlock that confines file access; 0: none."""
    seccomp: bool = False
    """Only the system calls that computing and reading files need are allowed."""
    audit_hook: bool = False
    """Python itself refuses; native code does not ask it."""
    missing: tuple[str, ...] = ()

    @property
    def blocks_network(self) -> bool:
        return self.seccomp

    @property
    def blocks_processes(self) -> bool:
        return self.seccomp

    @property
    def blocks_writing(self) -> bool:
        return self.seccomp or self.landlock > 0

    @property
    def blocks_reading(self) -> bool:
        """Files outside of Python's installation and Shoal's source are closed."""
        return self.landlock > 0


class Request(msgspec.Struct, frozen=True, array_like=True):
    verb: Literal["prepare", "pose", "score"]
    problem: Problem
    answers: tuple[str, ...] = ()
    question: str | None = None
    foreign: bool = True

    @property
    def characters(self) -> int:
        return 512 + len(self.question or "") + sum(map(len, self.answers))


class Requests(msgspec.Struct, frozen=True, array_like=True):
    """What is asked at once."""

    number: int
    requests: tuple[Request, ...]


class Reply(msgspec.Struct, frozen=True, array_like=True):
    """A verdict for each request; none where they are too long together. `retiring`: the worker ends after
    this reply, and wants to be replaced."""

    number: int
    verdicts: tuple[Posed | Scored | Refused, ...]
    retiring: bool = False


class Ready(msgspec.Struct, frozen=True):
    coverage: Coverage


class WireError(Exception):
    """What came is not a message."""


def pack(payload: bytes) -> bytes:
    return HEADER.pack(len(payload)) + payload


def read_frame(read: Callable[[int], bytes], most: int) -> bytes:
    """The next payload; b"" at the end of the stream. `read` gives up to as many bytes as it is asked for."""
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
    parts: list[bytes] = []
    missing = count
    while missing:
        part = read(missing)
        if not part:
            if missing < count:
                raise WireError("a message broke off")
            return b""
        parts.append(part)
        missing -= len(part)
    return parts[0] if len(parts) == 1 else b"".join(parts)
