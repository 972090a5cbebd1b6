"""A service of the tests' own, to be run inside a confined worker: it calculates, and misbehaves on request."""

from __future__ import annotations

import operator
import os
import signal
import time
from collections.abc import Callable

import msgspec

from shoal.confine import worker
from shoal.confine.worker import OutOfTimeError, Replied, Watch, pack

OPERATORS: dict[str, Callable[[int, int], int]] = {"+": operator.add, "*": operator.mul}
CALL_SECONDS = 0.2


class Calculation(msgspec.Struct, tag="calculate"):
    operator: str
    left: int
    right: int


class Deed(msgspec.Struct, tag="do"):
    """One of the functions below, by name."""

    name: str


class Settings(msgspec.Struct):
    greeting: str = ""
    messages: int = worker.MOST_MESSAGES


class Calculator:
    readable = ()

    def __init__(self, settings: msgspec.Raw, watch: Watch) -> None:
        self._settings = msgspec.msgpack.decode(settings, type=Settings)
        self._watch = watch
        self._decode = msgspec.msgpack.Decoder(Calculation | Deed).decode
        worker.MOST_MESSAGES = self._settings.messages

    def answer(self, request: msgspec.Raw) -> object:
        try:
            asked = self._decode(request)
        except msgspec.DecodeError as error:
            return f"not understood: {error}"
        try:
            return self._watch.limited(CALL_SECONDS, self._do, asked)
        except OutOfTimeError:
            return "out of time"
        except MemoryError:
            return "out of memory"
        except OSError as error:
            return f"refused: {type(error).__name__}"

    def too_long(self) -> str:
        return "too long"

    def _do(self, asked: Calculation | Deed) -> object:
        if isinstance(asked, Calculation):
            return OPERATORS[asked.operator](asked.left, asked.right)
        return globals()[asked.name](self._settings)


def greet(settings: Settings) -> object:
    return settings.greeting


def show(settings: Settings) -> object:
    print("printed", flush=True)
    os.write(2, b"written to standard error")
    return "shown"


def spin(settings: Settings) -> object:
    while True:
        pass


def swallow(settings: Settings) -> object:
    """Does not end for the exception that limits its time."""
    while True:
        try:
            spin(settings)
        except BaseException:
            continue


def sleep(settings: Settings) -> object:
    time.sleep(60)
    return "slept"


def allocate(settings: Settings) -> object:
    return len(bytearray(1 << 40))


def fork(settings: Settings) -> object:
    return os.fork()


def flood(settings: Settings) -> object:
    return "x" * (2 << 20)


def die(settings: Settings) -> object:
    os._exit(7)


def crash(settings: Settings) -> object:
    os.kill(os.getpid(), signal.SIGSEGV)
    return "alive"


def crash_natively(settings: Settings) -> object:
    import ctypes

    return ctypes.string_at(0)


def fail(settings: Settings) -> object:
    """An exception that the service does not foresee."""
    return 1 // 0


def _write_replies(message: bytes) -> None:
    for descriptor in range(3, 32):
        try:
            os.write(descriptor, message)
        except OSError:
            continue


def speak(settings: Settings) -> object:
    """Writes to the stream of replies before the reply."""
    _write_replies(b"\xff" * 64)
    return "spoken"


def forge(settings: Settings) -> object:
    """Writes a reply to a request that was not made, and then none."""
    _write_replies(pack(msgspec.msgpack.encode(Replied(1, (msgspec.Raw(msgspec.msgpack.encode("forged")),)))))
    os._exit(0)
