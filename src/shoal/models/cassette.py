"""A cassette records every attempt of a run and plays it back without a model, bit for bit.

One JSON line for each attempt: the model's spec, the whole request, which call of this request to this
model it was, and the answer or the failure. Calls are found by content and number, not by order, so that a
replay gives the same answers however its calls overlap. A request that is not on the cassette is refused.
Lines are appended with one write each; a torn last line, as a kill leaves it, is ignored.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import ClassVar
from weakref import WeakValueDictionary

import msgspec

from shoal import errors
from shoal.errors import CassetteError, ModelError, ModelSettingError
from shoal.models.protocol import ChatAnswer, ChatRequest, Instant, Model

if sys.platform == "win32":
    fcntl = None
else:
    import fcntl

FORMAT = 1
MOST_LINE_BYTES = 64 << 20


class Failure(msgspec.Struct, frozen=True, omit_defaults=True):
    """A ModelError as data; `error` is the name of its class. `learnt` says that the model can do without
    the refused setting."""

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
        return cls(
            type(failure).__name__,
            str(failure),
            round(failure.seconds, 6),
            getattr(failure, "setting", ""),
            getattr(failure, "retry_after", None),
            failure.reached,
            failure.transient,
            learnt,
        )

    def revive(self) -> ModelError:
        kind = getattr(errors, self.error, None)
        if not (isinstance(kind, type) and issubclass(kind, ModelError)):
            raise CassetteError(f"the cassette names an unknown failure, {self.error!r}: record it again")
        revived = kind.__new__(kind)
        revived.args = (self.message,)
        for name in ("setting", "retry_after", "reached", "transient", "seconds"):
            setattr(revived, name, getattr(self, name))
        return revived


class Entry(msgspec.Struct, frozen=True, omit_defaults=True):
    """One line of a cassette."""

    cassette: int
    model: str
    number: int
    digest: str
    request: ChatRequest
    answer: ChatAnswer | None = None
    failure: Failure | None = None


class Cassette:
    """The file. One object serves all models and threads of a process that use it."""

    _open: ClassVar[WeakValueDictionary[Path, Cassette]] = WeakValueDictionary()
    _open_lock = threading.Lock()

    def __init__(self, path: Path) -> None:
        """Use `Cassette.at`."""
        self.path = path
        self.entries: dict[tuple[str, str, int], Entry] = {}
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
        """The specs of the models that were recorded."""
        return sorted({model for model, _, _ in self.entries})

    def next_number(self, model: str, digest: str) -> int:
        """The number of a call that starts now: one more than the last of this request to this model."""
        with self._lock:
            number = self._started.get((model, digest), 0)
            while (model, digest, number) in self.entries:
                number += 1
            self._started[model, digest] = number + 1
            return number

    def find(self, model: str, digest: str, number: int) -> Entry | None:
        with self._lock:
            return self.entries.get((model, digest, number))

    def append(self, entry: Entry) -> None:
        """Writes an entry; it is on the disk's way before this returns."""
        line = msgspec.json.encode(entry) + b"\n"
        with self._lock:
            written = 0
            try:
                if self._descriptor is None:
                    self._descriptor = self._own()
                written = os.write(self._descriptor, line)
                if written != len(line):
                    os.ftruncate(self._descriptor, self._whole_bytes)
            except OSError as error:
                raise CassetteError(f"the cassette {self.path} cannot be written: {error.strerror}") from None
            if written != len(line):
                raise CassetteError(f"the cassette {self.path} cannot be written: the disk is full")
            self._whole_bytes += written
            self.entries[entry.model, entry.digest, entry.number] = entry

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
        descriptor = os.open(
            self.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600
        )
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(descriptor, self._whole_bytes)
        except BlockingIOError:
            os.close(descriptor)
            raise CassetteError(f"another process records to {self.path}: use two files") from None
        except OSError:
            os.close(descriptor)
            raise
        return descriptor

    def _read(self) -> None:
        if not self.path.exists():
            return
        decode = msgspec.json.Decoder(Entry).decode
        try:
            with self.path.open("rb") as file:
                for count, line in enumerate(iter(lambda: file.readline(MOST_LINE_BYTES), b""), start=1):
                    if not line.endswith(b"\n"):
                        break
                    entry = self._entry(decode, line, count)
                    self.entries[entry.model, entry.digest, entry.number] = entry
                    self._whole_bytes += len(line)
        except OSError as error:
            raise CassetteError(f"the cassette {self.path} cannot be read: {error.strerror}") from None

    def _entry(self, decode: object, line: bytes, count: int) -> Entry:
        problem = ""
        try:
            entry: Entry = decode(line)  # type: ignore[operator]
            if entry.cassette == FORMAT and entry.digest == entry.request.digest():
                return entry
            problem = "another format, or a changed request"
        except (msgspec.DecodeError, errors.ConfigError, RecursionError) as error:
            problem = str(error)
        raise CassetteError(f"line {count} of the cassette {self.path} is damaged: {problem}")


class Recording:
    """A model whose every attempt is written to a cassette before its outcome is used."""

    def __init__(self, model: Model, cassette: Cassette) -> None:
        self._model = model
        self._cassette = cassette

    def __repr__(self) -> str:
        return f"<recording of {self.spec}>"

    @property
    def spec(self) -> str:
        return self._model.spec

    @property
    def endpoint(self) -> str:
        return self._model.endpoint

    @property
    def instant(self) -> bool:
        return self._model.instant

    async def answer(self, request: ChatRequest, *, timeout: float) -> ChatAnswer:
        entry, started = self._begin(request), time.monotonic()
        try:
            answer = await self._model.answer(request, timeout=timeout)
        except ModelError as error:
            self._failed(entry, error, started)
            raise
        self._cassette.append(msgspec.structs.replace(entry, answer=answer))
        return answer

    def answer_now(self, request: ChatRequest) -> ChatAnswer:
        """As `answer`, for a model that is instant."""
        if not isinstance(self._model, Instant):
            raise TypeError(f"{self.spec} does not answer at once")
        entry, started = self._begin(request), time.monotonic()
        try:
            answer = self._model.answer_now(request)
        except ModelError as error:
            self._failed(entry, error, started)
            raise
        self._cassette.append(msgspec.structs.replace(entry, answer=answer))
        return answer

    def _begin(self, request: ChatRequest) -> Entry:
        digest = request.digest()
        return Entry(FORMAT, self.spec, self._cassette.next_number(self.spec, digest), digest, request)

    def _failed(self, entry: Entry, error: ModelError, started: float) -> None:
        if not self.instant:
            error.seconds = time.monotonic() - started
        learnt = isinstance(error, ModelSettingError) and self._model.learn(error.setting)
        self._cassette.append(msgspec.structs.replace(entry, failure=Failure.of(error, learnt)))

    def learn(self, setting: str) -> bool:
        return self._model.learn(setting)

    async def close(self) -> None:
        await self._model.close()


class Replaying(Instant):
    """Plays back what was recorded of one model; it has that model's spec, and needs nothing else of it."""

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
        entry = self._cassette.find(self.spec, digest, number)
        if entry is None:
            raise CassetteError(self._miss(digest, number))
        if entry.failure is not None:
            self._learnt[entry.failure.setting] = entry.failure.learnt
            raise entry.failure.revive()
        if entry.answer is None:
            raise CassetteError(
                f"the cassette {self._cassette.path} has a call without outcome: record again"
            )
        return entry.answer

    def learn(self, setting: str) -> bool:
        """As when it was recorded, so that the same refusals lead to the same next calls."""
        return self._learnt.get(setting, False)

    def _miss(self, digest: str, number: int) -> str:
        path = self._cassette.path
        if self.spec not in self._cassette.models():
            listed = ", ".join(self._cassette.models()) or "nothing"
            return f"the cassette {path} has no calls of {self.spec}, only of {listed}: record it again"
        if number:
            return f"the cassette {path} has only {number} answers to request {digest[:12]}: record it again"
        return (
            f"the cassette {path} has no answer to request {digest[:12]}: prompt, settings or seed differ "
            "from the recorded run; record it again"
        )
