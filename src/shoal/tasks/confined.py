"""A verifier in a confined process, which is limited in time and replaced when it fails. A request that stops
the worker is refused. Replies are remembered, and so are requests that stopped a worker.
"""

from __future__ import annotations

import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from shoal.confine.process import IdleError, StoppedError, Worker
from shoal.confine.sandbox import Coverage
from shoal.confine.worker import Orders
from shoal.errors import TaskError
from shoal.tasks.registry import canonical_name, source_of
from shoal.tasks.unconfined import (
    MOST_ANSWER,
    MOST_ANSWERS,
    MOST_QUESTION,
    Places,
    Preparing,
    refused,
    unopened,
    unusable,
)
from shoal.tasks.verifier import (
    MOST_TEXT,
    STOPPED,
    Posed,
    Posing,
    Problem,
    Refused,
    Scored,
    Scoring,
    TaskReply,
    TaskRequest,
    clamp,
)

PREPARE_SECONDS = 60.0
MEMORY = 1 << 30
"""The worker's address space in bytes."""
MOST_STOPPERS = 256
"""Requests remembered because they stopped a worker."""
MOST_TOGETHER = 16
MOST_TOGETHER_CHARACTERS = 1 << 18
NONSENSE = "it answered nonsense"
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(TaskReply).decode


class Named(NamedTuple):
    """A request as it is sent, and the hash that names it."""

    key: bytes
    request: TaskRequest


class WorkerVerifier:
    """A `Verifier` whose families run in a confined process; confine/sandbox.py says what that covers.

    `files` are the paths of question files, by hash; `families` are own families as `module:Class`, imported
    from `import_paths`. `seconds` is the wall time of one request, `answer_seconds` the processor time of one
    answer: one that takes half as much again is wrong. Threads take turns.
    """

    def __init__(
        self,
        *,
        files: Mapping[str, str | Path] | None = None,
        families: Mapping[str, str] | None = None,
        import_paths: Sequence[str | Path] = (),
        seconds: float = 5.0,
        answer_seconds: float = 0.5,
        cpu_seconds: int = 600,
    ) -> None:
        paths = {name: os.path.realpath(path) for name, path in (files or {}).items()}
        self._families = dict(families or {})
        self._import_paths = tuple(os.path.realpath(path) for path in import_paths)
        self._seconds = seconds
        self._orders = Orders(
            parent=0,
            service="shoal.tasks.unconfined:TaskService",
            settings=_raw(Places(paths, self._families, answer_seconds)),
            readable=(*paths.values(), *self._import_paths),
            memory=MEMORY,
            call_seconds=answer_seconds,
            cpu_seconds=cpu_seconds,
        )
        self._lock = threading.Lock()
        self._known = ReplyCache()
        self._stoppers = ReplyCache(MOST_STOPPERS)
        self._worker: Worker | None = None
        self._prepared: set[str] = set()
        self._closed = False
        self.starts = 0
        """Workers started so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def coverage(self) -> Coverage:
        """The protections of this machine from the worker, as the worker reports them."""
        with self._lock:
            return self._running().coverage

    def pose(self, problem: Problem) -> Posed | Refused:
        (reply,) = self._replies([Posing(problem)])
        return reply if not isinstance(reply, Scored) else refused(STOPPED, NONSENSE)

    def score(self, scorings: Sequence[Scoring]) -> list[Scored | Refused]:
        bounded = [_bounded(one) for one in scorings]
        replies = iter(self._replies([one for one in bounded if isinstance(one, Scoring)]))
        found = [one if isinstance(one, Refused) else next(replies) for one in bounded]
        return [refused(STOPPED, NONSENSE) if isinstance(one, Posed) else one for one in found]

    def close(self) -> None:
        """Ends the worker. The verifier cannot be used again."""
        with self._lock:
            self._closed = True
            self._end()

    def _replies(self, requests: Sequence[TaskRequest]) -> list[TaskReply]:
        """A reply to each request. Unknown ones are sent together; each alone if that stops the worker."""
        named = [self._named(request) for request in requests]
        with self._lock:
            unknown = [one for one in named if isinstance(one, Named) and self._remembered(one.key) is None]
            for some in _together(unknown):
                try:
                    replies = self._exchange([one.request for one in some])
                except StoppedError:
                    self._end()
                    replies = []
                for one, reply in zip(some, replies, strict=False):
                    if not isinstance(reply, Refused):
                        self._known.put(one.key, reply)
            return [one if isinstance(one, Refused) else self._reply(one) for one in named]

    def _reply(self, named: Named) -> TaskReply:
        found = self._remembered(named.key)
        if found is None:
            found = self._ask(named.request)
            if not isinstance(found, Refused):
                self._known.put(named.key, found)
            elif found.reason.startswith(STOPPED):
                self._stoppers.put(named.key, found)
        expected = named.request.question if isinstance(named.request, Scoring) else None
        if isinstance(found, Scored) and expected not in (None, found.question):
            return refused("another question")
        return found

    def _named(self, request: TaskRequest) -> Named | Refused:
        problem = request.problem
        if (wrong := unusable(problem)) is not None:
            return wrong
        try:
            problem = Problem(
                canonical_name(_encodable(problem.family), self._families),
                _encodable(problem.version),
                _encodable(problem.parameters),
                problem.seed,
            )
        except TaskError as error:
            return unopened(error)
        request = msgspec.structs.replace(request, problem=problem)
        # The reply does not depend on the expected question, which is compared with it afterwards.
        asked = msgspec.structs.replace(request, question=None) if isinstance(request, Scoring) else request
        return Named(hashlib.blake2b(_encode(asked), digest_size=32).digest(), request)

    def _remembered(self, key: bytes) -> TaskReply | None:
        return self._known.get(key) or self._stoppers.get(key)

    def _ask(self, request: TaskRequest) -> TaskReply:
        """The worker's reply; a worker that was dead before it was asked does not count."""
        for _ in range(2):
            try:
                return self._exchange([request])[0]
            except IdleError:
                self._end()
            except StoppedError as stopped:
                self._end()
                return refused(STOPPED, str(stopped))
        return refused(STOPPED, "it ends before it is asked")

    def _exchange(self, requests: Sequence[TaskRequest]) -> list[TaskReply]:
        worker = self._running()
        for source, family in {source_of(one.problem.family): one.problem.family for one in requests}.items():
            if source not in self._prepared:
                self._prepared.add(source)
                _, retiring = worker.ask([_raw(Preparing(family))], PREPARE_SECONDS)
                if retiring:
                    raise IdleError("it retired")
        raw, retiring = worker.ask([_raw(one) for one in requests], self._seconds)
        try:
            replies = [_decode(one) for one in raw]
        except msgspec.DecodeError as error:
            raise StoppedError(f"{NONSENSE} ({error})") from None
        if retiring:
            self._end()
        return [_plausible(reply, request) for reply, request in zip(replies, requests, strict=False)]

    def _running(self) -> Worker:
        if self._closed:
            raise TaskError("this verifier is closed")
        if self._worker is None:
            orders = msgspec.structs.replace(self._orders, parent=os.getpid())
            self._worker = Worker(orders, self._import_paths)
            self._prepared = set()
            self.starts += 1
        return self._worker

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None


class ReplyCache:
    """The newest replies by the hash of their request, within a bound on their number and size."""

    def __init__(self, most_entries: int = 4096, most_bytes: int = 8 << 20) -> None:
        self._most_entries = most_entries
        self._most_bytes = most_bytes
        self._replies: OrderedDict[bytes, tuple[TaskReply, int]] = OrderedDict()
        self._bytes = 0

    def get(self, key: bytes) -> TaskReply | None:
        if key not in self._replies:
            return None
        self._replies.move_to_end(key)
        return self._replies[key][0]

    def put(self, key: bytes, reply: TaskReply) -> None:
        size = 200 + len(_encode(reply))
        self._bytes += size - self._replies.pop(key, (reply, 0))[1]
        self._replies[key] = reply, size
        while len(self._replies) > self._most_entries or self._bytes > self._most_bytes:
            self._bytes -= self._replies.popitem(last=False)[1][1]

    def __len__(self) -> int:
        return len(self._replies)


def _raw(content: object) -> msgspec.Raw:
    return msgspec.Raw(_encode(content))


def _bounded(scoring: Scoring) -> Scoring | Refused:
    """The request within the bounds of the wire."""
    texts, question = scoring.texts, scoring.question
    if len(texts) > MOST_ANSWERS:
        return refused("too many answers", str(len(texts)))
    if question is not None and (len(question) > MOST_QUESTION or question != _encodable(question)):
        return refused("another question")  # no family makes such a question
    # One character more than is scored, so that a longer answer stays a wrong one.
    most = MOST_ANSWER + 1 if scoring.within is None else MOST_TEXT
    if not (whole := "".join(texts)).isascii() or len(whole) > most:
        cut = slice(most) if scoring.within is None else slice(-most, None)
        return msgspec.structs.replace(scoring, texts=tuple([_encodable(text[cut]) for text in texts]))
    return scoring


def _together(named: Iterable[Named]) -> Iterator[list[Named]]:
    """Batches of two or more requests, within bounds; a single one that is left is sent alone."""
    some: list[Named] = []
    characters = 0
    for one in named:
        size = 512
        if isinstance(one.request, Scoring):
            size += len(one.request.question or "") + sum(map(len, one.request.texts))
        if len(some) == MOST_TOGETHER or characters + size > MOST_TOGETHER_CHARACTERS:
            if len(some) > 1:
                yield some
            some, characters = [], 0
        some.append(one)
        characters += size
    if len(some) > 1:
        yield some


def _plausible(reply: TaskReply, request: TaskRequest) -> TaskReply:
    """The reply within its bounds, whatever the worker sent."""
    if not isinstance(reply, Scored) or not isinstance(request, Scoring):
        return reply
    if len(reply.scores) != len(request.texts):
        return refused(STOPPED, NONSENSE)
    return Scored(reply.question, tuple(map(clamp, reply.scores)))


def _encodable(text: str) -> str:
    """Text that has a UTF-8 form: half a character becomes a question mark."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode("utf-8")
