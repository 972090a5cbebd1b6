"""A confined worker, seen from the node: it is started, asked within a time limit, and ended."""

from __future__ import annotations

import contextlib
import os
import secrets
import select
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import Future
from pathlib import Path

import msgspec

import shoal
from shoal.confine.sandbox import Coverage
from shoal.confine.worker import HEADER, MOST_REPLIED, Asked, Orders, Replied, WireError, pack
from shoal.errors import ConfineError

BOOTSTRAP = (
    "import sys; root, *more = sys.argv[1:]; "
    "sys.path[:0] = [] if root in sys.path else [root]; sys.path += more; "
    "from shoal.confine.worker import main; main()"
)
ENVIRONMENT = {
    "PATH": "/usr/bin:/bin",
    "LANG": "C.UTF-8",
    "PYTHONHASHSEED": "0",  # a generator that walks through a set makes the same question everywhere
    "PYTHONDONTWRITEBYTECODE": "1",
    "MPLCONFIGDIR": "/tmp",  # a dependency of reasoning-gym may demand a folder; nothing is written
    "OPENBLAS_NUM_THREADS": "1",  # the worker may not start threads
    "OMP_NUM_THREADS": "1",
    "MKL_NUM_THREADS": "1",
}
MOST_PIECE = 1 << 16
START_SECONDS = 60.0


class StoppedError(Exception):
    """The worker is gone, or has to be ended; the message says why."""


class IdleError(StoppedError):
    """The worker had ended, or broken the rules, before it was asked."""


class Worker:
    """One process and the two pipes to it. On Linux it ends with this process, however that ends."""

    def __init__(self, orders: Orders, import_paths: Sequence[str]) -> None:
        root = str(Path(shoal.__file__).resolve().parents[1])
        self._ended = threading.Event()
        try:
            self._process = _started([root, *import_paths], self._ended)
        except OSError as error:
            raise ConfineError(f"the confined worker cannot be started: {error}") from error
        self.process_id = self._process.pid
        streams = (self._process.stdin, self._process.stdout)
        self._streams = [stream for stream in streams if stream is not None]
        self._to, self._from = (stream.fileno() for stream in self._streams)
        os.set_blocking(self._to, False)
        self._readable = select.poll()
        self._readable.register(self._from, select.POLLIN)
        self._writable = select.poll()
        self._writable.register(self._to, select.POLLOUT)
        self._encode = msgspec.msgpack.Encoder().encode
        self._decode = msgspec.msgpack.Decoder(Replied).decode
        try:
            until = time.monotonic() + START_SECONDS
            self._send(pack(self._encode(orders)), until)
            self.coverage = msgspec.msgpack.decode(self._receive(until), type=Coverage)
        except (StoppedError, WireError, msgspec.DecodeError, OSError) as error:
            self.end()
            command = f"{sys.executable} -c 'import shoal.confine.worker'"
            raise ConfineError(f"the confined worker does not start ({error}): try {command}") from error

    def ask(self, requests: Sequence[msgspec.Raw], seconds: float) -> tuple[tuple[msgspec.Raw, ...], bool]:
        """A reply to each request, and whether the worker retires; StoppedError if no reply comes in time. An
        empty reply to several requests means that their replies are too long together."""
        if self._process.poll() is not None:
            raise IdleError("it had ended")
        if self._readable.poll(0):
            raise IdleError("it spoke unasked")
        number = secrets.randbits(63)
        until = time.monotonic() + seconds
        try:
            self._send(pack(self._encode(Asked(number, tuple(requests)))), until)
            reply = self._decode(self._receive(until))
        except (WireError, msgspec.DecodeError) as error:
            raise StoppedError(f"it answered nonsense ({error})") from None
        except OSError:
            raise StoppedError(self._end_of_it()) from None
        if reply.number != number:
            raise StoppedError("it answered another request")
        if len(reply.replies) != len(requests) and (reply.replies or len(requests) == 1):
            raise StoppedError("it answered nonsense")
        return reply.replies, reply.retiring

    def end(self) -> None:
        self._process.kill()
        self._process.wait()
        self._ended.set()
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.close()

    def _send(self, message: bytes, until: float) -> None:
        view = memoryview(message)
        while view:
            try:
                view = view[os.write(self._to, view) :]
            except BlockingIOError:
                self._wait(self._writable, until)

    def _receive(self, until: float) -> bytes:
        """One reply. Most come in one piece, with their header."""
        message = self._piece(until)
        while len(message) < HEADER.size:
            message += self._piece(until)
        (length,) = HEADER.unpack_from(message)
        if not 0 < length <= MOST_REPLIED:
            raise WireError(f"a reply of {length} bytes")
        pieces, there = [message[HEADER.size :]], len(message) - HEADER.size
        while there < length:
            pieces.append(self._piece(until))
            there += len(pieces[-1])
        if there > length:
            raise WireError("more than one reply")
        return b"".join(pieces)

    def _piece(self, until: float) -> bytes:
        self._wait(self._readable, until)
        piece = os.read(self._from, MOST_PIECE)
        if not piece:
            raise StoppedError(self._end_of_it())
        return piece

    def _wait(self, poll: select.poll, until: float) -> None:
        left = until - time.monotonic()
        if left <= 0 or not poll.poll(left * 1000):
            raise StoppedError("time limit")

    def _end_of_it(self) -> str:
        try:
            code = self._process.wait(timeout=1.0)
        except subprocess.TimeoutExpired:
            return "it closed its stream"
        if code >= 0:
            return f"ended with code {code}"
        with contextlib.suppress(ValueError):
            return f"ended by {signal.Signals(-code).name}"
        return f"ended by signal {-code}"


def _started(places: Sequence[str], ended: threading.Event) -> subprocess.Popen[bytes]:
    """The process, started by a thread of its own that stays until `ended`: Linux ends a process with the
    thread that started it, and the asking thread may end long before the worker."""
    made: Future[subprocess.Popen[bytes]] = Future()

    def keep() -> None:
        # -P and -s: nothing is imported from the current folder or the user's. A session of its own: only
        # the parent gets an interrupt at the terminal.
        try:
            process = subprocess.Popen(
                [sys.executable, "-P", "-s", "-c", BOOTSTRAP, *places],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                cwd="/",
                env=ENVIRONMENT,
                start_new_session=True,
            )
        except BaseException as error:
            made.set_exception(error)
        else:
            made.set_result(process)
            ended.wait()

    threading.Thread(target=keep, name="worker-keeper", daemon=True).start()
    return made.result()
