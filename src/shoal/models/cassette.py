"""A cassette records every attempt of a run and plays it back without a model, bit for bit.

Each attempt is one JSON line: the model's spec, the request, the number of this call among those of the same
request to the same model, and the answer or the failure. Calls are found by content and number, however they
overlap. A request that is not there is refused. A torn last line, as a kill leaves it, is ignored.
"""

from __future__ import annotations

import errno
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ClassVar
from weakref import WeakValueDictionary

import msgspec

from shoal import errors
from shoal.errors import CassetteError, ModelError, ModelSettingError
from shoal.models.instant import Instant
from shoal.models.protocol import ChatAnswer, ChatRequest, Model, Wrapper

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

FORMAT = 1
MOST_LINE_BYTES = 64 << 20
REVIVED = ("setting", "retry_after", "reached", "transient", "seconds")
"""The attributes of a failure that a replay gives it again."""


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A ModelError as data; `error` names its class. `learnt`: the model can do without the setting."""

    error: str
    message: str
    seconds: float = 0.0
    setting: str = ""
    retry_after: float | None = None
    reached: bool = True
    transient: bool = True
    learnt: bool = False

    @classmethod
    def of(cls, failure: ModelError, learnt: bool) -> Failure:
        kept = {name: getattr(failure, name) for name in REVIVED if hasattr(failure, name)}
        return cls(type(failure).__name__, str(failure), learnt=learnt, **kept)

    def revive(self) -> ModelError:
        kind = getattr(errors, self.error, None)
        if not (isinstance(kind, type) and issubclass(kind, ModelError)):
            raise CassetteError(f"the cassette names an unknown failure, {self.error!r}: record it again")
        revived = kind.__new__(kind)
        revived.args = (self.message,)
        for name in REVIVED:
            setattr(revived, name, getattr(self, name))
        return revived


class RecordedCall(msgspec.Struct, frozen=True, omit_defaults=True):
    cassette: int
    model: str
    number: int
    digest: str
    request: ChatRequest
    answer: ChatAnswer | None = None
    failure: Failure | None = None


_decode = msgspec.json.Decoder(RecordedCall).decode


class Cassette:
    """The file. One object serves all models and threads of a process that use it."""

    _open: ClassVar[WeakValueDictionary[Path, Cassette]] = WeakValueDictionary()
    _open_lock = threading.Lock()

    def __init__(self, path: Path) -> None:
        """Use `Cassette.at`."""
        self.path = path
        self.calls: dict[tuple[str, str, int], RecordedCall] = {}
        self._lock = threading.Lock()
        self._whole_bytes = 0
        self._started: dict[tuple[str, str], int] = {}
        self._descriptor: int | None = None
        self._read()

    @classmethod
    def at(cls, path: str | Path) -> Cassette:
        """The cassette in this file, which need not exist yet; the same object for the same file."""
        resolved = Path(path).expanduser().resolve()
        with cls._open_lock:
            found = cls._open.get(resolved)
            if found is None:
                found = cls._open[resolved] = cls(resolved)
            return found

    def models(self) -> list[str]:
        return sorted({model for model, _, _ in self.calls})

    def next_number(self, model: str, digest: str) -> int:
        """The number of a call that starts now: one more than the last of this request to this model."""
        with self._lock:
            number = self._started.get((model, digest), 0)
            while (model, digest, number) in self.calls:
                number += 1
            self._started[model, digest] = number + 1
            return number

    def append(self, call: RecordedCall) -> None:
        """Writes a call; it is with the operating system before this returns."""
        line = msgspec.json.encode(call) + b"\n"
        with self._lock:
            try:
                if self._descriptor is None:
                    self._descriptor = self._own()
                written = os.write(self._descriptor, line)
                if written != len(line):
                    os.ftruncate(self._descriptor, self._whole_bytes)
                    raise OSError(errno.ENOSPC, "the disk is full")
            except OSError as error:
                raise CassetteError(f"the cassette {self.path} cannot be written: {error.strerror}") from None
            self._whole_bytes += written
            self.calls[call.model, call.digest, call.number] = call

    def close(self) -> None:
        """Lets another process write; reading goes on."""
        with self._lock:
            if self._descriptor is not None:
                os.close(self._descriptor)
                self._descriptor = None

    def __del__(self) -> None:
        if getattr(self, "_descriptor", None) is not None:
            self.close()

    def _own(self) -> int:
        """Opens the file for writing as its only writer, without the torn end of an earlier run."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0)
        descriptor = os.open(self.path, flags, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, self._whole_bytes)
        except OSError as error:
            os.close(descriptor)
            if isinstance(error, BlockingIOError):
                raise CassetteError(f"another process records to {self.path}: use two files") from None
            raise
        return descriptor

    def _read(self) -> None:
        if not self.path.exists():
            return
        try:
            with self.path.open("rb") as file:
                for count, line in enumerate(iter(lambda: file.readline(MOST_LINE_BYTES), b""), start=1):
                    if not line.endswith(b"\n"):
                        break
                    call = self._call(line, count)
                    self.calls[call.model, call.digest, call.number] = call
                    self._whole_bytes += len(line)
        except OSError as error:
            raise CassetteError(f"the cassette {self.path} cannot be read: {error.strerror}") from None

    def _call(self, line: bytes, count: int) -> RecordedCall:
        try:
            call = _decode(line)
            if call.cassette == FORMAT and call.digest == call.request.digest():
                return call
            problem = "another format, or a changed request"
        except (msgspec.DecodeError, errors.ConfigError, RecursionError) as error:
            problem = str(error)
        raise CassetteError(f"line {count} of the cassette {self.path} is damaged: {problem}")


class Recording(Wrapper):
    """A model whose every attempt is written to a cassette before its outcome is used."""

    def __init__(self, model: Model, cassette: Cassette) -> None:
        super().__init__(model)
        self._cassette = cassette

    async def answer(self, request: ChatRequest, *, timeout: float) -> ChatAnswer:
        with self._recorded(request) as made:
            made.append(await self._model.answer(request, timeout=timeout))
        return made[0]

    def answer_now(self, request: ChatRequest) -> ChatAnswer:
        if not isinstance(self._model, Instant):
            raise TypeError(f"{self.spec} does not answer at once")
        with self._recorded(request) as made:
            made.append(self._model.answer_now(request))
        return made[0]

    @contextmanager
    def _recorded(self, request: ChatRequest) -> Iterator[list[ChatAnswer]]:
        """Writes the answer that is put into the list, or the failure of the block."""
        digest, started = request.digest(), time.monotonic()
        number = self._cassette.next_number(self.spec, digest)
        call = RecordedCall(FORMAT, self.spec, number, digest, request.without_values())
        made: list[ChatAnswer] = []
        try:
            yield made
        except ModelError as error:
            if not self.instant:
                error.seconds = round(time.monotonic() - started, 6)
            learnt = isinstance(error, ModelSettingError) and self._model.learn(error.setting)
            self._cassette.append(msgspec.structs.replace(call, failure=Failure.of(error, learnt)))
            raise
        self._cassette.append(msgspec.structs.replace(call, answer=made[0]))


class Replaying(Instant):
    """Plays back the recorded calls of one model. It has that model's spec and needs nothing else of it."""

    def __init__(self, spec: str, cassette: Cassette) -> None:
        super().__init__(spec)
        self._cassette = cassette
        self._learnt: dict[str, bool] = {}
        self._asked: Counter[str] = Counter()
        self._lock = threading.Lock()

    def answer_now(self, request: ChatRequest) -> ChatAnswer:
        digest = request.digest()
        with self._lock:
            number = self._asked[digest]
            self._asked[digest] += 1
        call = self._cassette.calls.get((self.spec, digest, number))
        if call is None:
            raise CassetteError(self._miss(digest, number))
        if call.failure is not None:
            self._learnt[call.failure.setting] = call.failure.learnt
            raise call.failure.revive()
        if call.answer is None:
            raise CassetteError(f"{self._cassette.path} has a call without outcome: record it again")
        return call.answer

    def learn(self, setting: str) -> bool:
        """The recorded reply, so that the same refusals lead to the same next calls."""
        return self._learnt.get(setting, False)

    def _miss(self, digest: str, number: int) -> str:
        path, models = self._cassette.path, self._cassette.models()
        if self.spec not in models:
            listed = ", ".join(models) or "nothing"
            return f"the cassette {path} has no calls of {self.spec}, only of {listed}: record it again"
        if number:
            return f"the cassette {path} has only {number} answers to request {digest[:12]}: record it again"
        return (
            f"the cassette {path} has no answer to request {digest[:12]}: prompt, settings or seed differ "
            "from the recorded run; record it again"
        )
