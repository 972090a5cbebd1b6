"""The verifier in a process of its own: asked, limited in time, replaced when it fails.

A request that stops the worker is refused and the next one meets a new worker. Verdicts are remembered, so
the same question costs once; so are requests that stopped a worker.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple, Self

import msgspec

from shoal.errors import TaskError
from shoal.train.rewards import clamp
from shoal.train.tasks.registry import canonical_name
from shoal.train.tasks.sums import BUILTIN
from shoal.train.verifier.base import STOPPED, Posed, Problem, Refused, Scored, Scoring
from shoal.train.verifier.cache import VerdictCache
from shoal.train.verifier.child import IdleError, StoppedError, Worker
from shoal.train.verifier.judging import refused, unusable
from shoal.train.verifier.wire import MOST_ANSWERS, MOST_QUESTION, MOST_SENT, Coverage, Orders, Request

PREPARE_SECONDS = 60.0
MOST_KILLERS = 256
"""Requests remembered because they stopped a worker."""
MOST_TOGETHER = 16
MOST_TOGETHER_CHARACTERS = 1 << 18


class Named(NamedTuple):
    """A request, and the name of what it asks."""

    key: bytes
    request: Request


class WorkerVerifier:
    """A `Verifier` whose families run in a confined process; sandbox.py says what that covers.

    `files` tells where question files are, by hash; `families` names own families as `module:Class`, to be
    imported from `import_paths` (which the worker may read). `seconds` is the wall time of one request,
    `answer_seconds` the processor time of one answer: one that takes half as much again is wrong. `memory`
    is the worker's address space in bytes. Usable from several threads, one at a time.
    """

    def __init__(
        self,
        *,
        files: Mapping[str, str | Path] | None = None,
        families: Mapping[str, str] | None = None,
        import_paths: Sequence[str | Path] = (),
        seconds: float = 5.0,
        answer_seconds: float = 0.5,
        memory: int = 1 << 30,
        cpu_seconds: int = 600,
        cached: int = 4096,
    ) -> None:
        self._files = {name: os.path.realpath(path) for name, path in (files or {}).items()}
        self._families = dict(families or {})
        self._import_paths = tuple(os.path.realpath(path) for path in import_paths)
        self._seconds = seconds
        self._orders = Orders(
            parent=0,
            files=self._files,
            families=self._families,
            readable=(*self._files.values(), *self._import_paths),
            memory=memory,
            answer_seconds=answer_seconds,
            cpu_seconds=cpu_seconds,
        )
        self._lock = threading.Lock()
        self._cache = VerdictCache(cached)
        self._killers = VerdictCache(MOST_KILLERS)
        self._worker: Worker | None = None
        self._closed = False
        self.starts = 0
        """Workers started so far."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def coverage(self) -> Coverage:
        """What protects this machine from the worker, as the worker found it."""
        with self._lock:
            return self._running().coverage

    @property
    def process_id(self) -> int:
        """The worker's, as long as it lives."""
        with self._lock:
            return self._running().process_id

    def pose(self, problem: Problem) -> Posed | Refused:
        (verdict,) = self._judged([Request("pose", problem, foreign=False)])
        return verdict if not isinstance(verdict, Scored) else refused(STOPPED, "it answered nonsense")

    def score(
        self, problem: Problem, answers: Sequence[str], *, question: str | None = None, foreign: bool = True
    ) -> Scored | Refused:
        return self.score_all([Scoring(problem, tuple(answers), question, foreign)])[0]

    def score_all(self, scorings: Sequence[Scoring]) -> list[Scored | Refused]:
        requests = [_request(one) for one in scorings]
        verdicts = iter(self._judged([one for one in requests if isinstance(one, Request)]))
        found = [one if isinstance(one, Refused) else next(verdicts) for one in requests]
        return [refused(STOPPED, "it answered nonsense") if isinstance(one, Posed) else one for one in found]

    def close(self) -> None:
        """Ends the worker. The verifier cannot be used again."""
        with self._lock:
            self._closed = True
            self._end()

    def _judged(self, requests: Sequence[Request]) -> list[Posed | Scored | Refused]:
        """A verdict for each. What is not known is asked for together; where that stops the worker none is
        blamed, and each is asked for itself."""
        named = [self._named(request) for request in requests]
        with self._lock:
            unknown = [one for one in named if isinstance(one, Named) and self._known(one.key) is None]
            for some in _together(unknown):
                for one, verdict in zip(some, self._ask_together(some), strict=False):
                    if not isinstance(verdict, Refused):
                        self._cache.put(one.key, verdict)
            return [one if isinstance(one, Refused) else self._verdict(one) for one in named]

    def _verdict(self, named: Named) -> Posed | Scored | Refused:
        found = self._known(named.key)
        if found is None:
            found = self._ask(named.request)
            if not isinstance(found, Refused):
                self._cache.put(named.key, found)
            elif found.reason.startswith(STOPPED):
                self._killers.put(named.key, found)
        if isinstance(found, Scored) and named.request.question not in (None, found.question):
            return refused("another question")
        return found

    def _named(self, request: Request) -> Named | Refused:
        """The request in the form in which it is sent, and its name."""
        wrong = unusable(request.problem)
        if wrong is not None:
            return wrong
        try:
            problem = _clean(request.problem, self._families)
        except TaskError as error:
            return refused("unusable task", str(error))
        key = self._cache.key(problem, request.answers if request.verb == "score" else None, request.foreign)
        return Named(key, msgspec.structs.replace(request, problem=problem))

    def _known(self, key: bytes) -> Posed | Scored | Refused | None:
        return self._cache.get(key) or self._killers.get(key)

    def _ask_together(self, named: Sequence[Named]) -> Sequence[Posed | Scored | Refused]:
        """The worker's verdicts; none if it stopped."""
        requests = [one.request for one in named]
        worker = self._running()
        try:
            for request in requests:
                self._prepare(worker, request.problem)
            verdicts, retiring = worker.ask(requests, self._seconds)
        except StoppedError:
            self._end()
            return ()
        if retiring:
            self._end()
        return [
            _plausible(verdict, len(request.answers))
            for verdict, request in zip(verdicts, requests, strict=False)
        ]

    def _ask(self, request: Request) -> Posed | Scored | Refused:
        """The worker's verdict; a worker that was dead before it was asked does not count."""
        for _ in range(2):
            worker = self._running()
            try:
                self._prepare(worker, request.problem)
                (verdict,), retiring = worker.ask([request], self._seconds)
            except IdleError:
                self._end()
                continue
            except StoppedError as stopped:
                self._end()
                return refused(STOPPED, str(stopped))
            if retiring:
                self._end()
            return _plausible(verdict, len(request.answers))
        return refused(STOPPED, "it ends before it is asked")

    def _prepare(self, worker: Worker, problem: Problem) -> None:
        """Has the worker import what a family needs, which may take longer than a request."""
        prefix = problem.family.partition(":")[0]
        name = prefix if prefix in ("gym", "file") else problem.family
        if name in BUILTIN or name == "file" or name in worker.prepared:
            return
        worker.prepared.add(name)
        _, retiring = worker.ask([Request("prepare", problem)], PREPARE_SECONDS)
        if retiring:
            raise IdleError("it retired")

    def _running(self) -> Worker:
        if self._closed:
            raise TaskError("this verifier is closed")
        if self._worker is None:
            orders = msgspec.structs.replace(self._orders, parent=os.getpid())
            self._worker = Worker(orders, self._import_paths)
            self.starts += 1
        return self._worker

    def _end(self) -> None:
        if self._worker is not None:
            self._worker.end()
            self._worker = None


def _request(scoring: Scoring) -> Request | Refused:
    answers, question = scoring.answers, scoring.question
    if len(answers) > MOST_ANSWERS:
        return refused("too many answers", str(len(answers)))
    if question is not None and (len(question) > MOST_QUESTION or question != _encodable(question)):
        return refused("another question")  # none that is made here
    if not (whole := "".join(answers)).isascii() or len(whole) > MOST_SENT:
        answers = tuple([_encodable(answer[: MOST_SENT + 1]) for answer in answers])
    return Request("score", scoring.problem, answers, question, scoring.foreign)


def _together(named: Iterable[Named]) -> Iterator[list[Named]]:
    """Two or more that are asked at once, within bounds; what is left is asked for itself."""
    some: list[Named] = []
    characters = 0
    for one in named:
        size = one.request.characters
        if len(some) == MOST_TOGETHER or characters + size > MOST_TOGETHER_CHARACTERS:
            if len(some) > 1:
                yield some
            some, characters = [], 0
        some.append(one)
        characters += size
    if len(some) > 1:
        yield some


def _clean(problem: Problem, families: Mapping[str, str]) -> Problem:
    """The problem with its family's canonical name and text that can be sent; TaskError if nobody here knows
    such a family."""
    return Problem(
        canonical_name(_encodable(problem.family), families),
        _encodable(problem.version),
        _encodable(problem.parameters),
        problem.seed,
    )


def _plausible(verdict: Posed | Scored | Refused, answers: int) -> Posed | Scored | Refused:
    """The verdict within its bounds, whatever runs in the worker."""
    if not isinstance(verdict, Scored):
        return verdict
    if len(verdict.scores) != answers:
        return refused(STOPPED, "it answered nonsense")
    return Scored(verdict.question, tuple(map(clamp, verdict.scores)))


def _encodable(text: str) -> str:
    """Text that has a UTF-8 form: half a character becomes a question mark."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")
