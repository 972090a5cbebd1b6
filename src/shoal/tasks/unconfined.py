"""Posing and scoring in any process, without limits: each request gets a reply and never an exception. If a
family raises over an answer, that is wrong; if it raises over a question or settings, that is a refusal.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

import msgspec

from shoal.confine.worker import OutOfTimeError, Watch
from shoal.errors import ShoalError, TaskError, UnknownTaskError
from shoal.tasks.family import MOST_PARAMETERS, Family, Puzzle, canonical_parameters, parse_parameters
from shoal.tasks.registry import MOST_NAME, open_task, prepare, registered_places
from shoal.tasks.sums import BUILTIN
from shoal.tasks.verifier import (
    SLOW,
    Posed,
    Posing,
    Problem,
    Refused,
    Scored,
    Scoring,
    TaskReply,
    clamp,
    extract_answer,
)

MOST_ANSWERS = 256
MOST_ANSWER = 16_384
"""Characters of one answer; no family scores more."""
MOST_QUESTION = 1 << 16
"""Characters of a question."""
MOST_OPEN = 64
"""Families kept open: opening one reads and checks its settings."""
MOST_REASON = 300
MOST_SEED = (1 << 63) - 1

Opener = Callable[[str, Mapping[str, object]], Family]
Scorer = Callable[[Family, Puzzle, str], float]


def refused(phrase: str, detail: str = "", *, uncheckable: bool = False) -> Refused:
    text = f"{phrase}: {' '.join(detail.split())}" if detail else phrase
    return Refused(text[:MOST_REASON], uncheckable)


def unopened(error: Exception) -> Refused:
    """The refusal of a task whose family cannot be made: unknown here, or of unusable settings."""
    if isinstance(error, UnknownTaskError):
        return refused("unknown task", str(error), uncheckable=True)
    kind = "" if isinstance(error, TaskError) else f"{type(error).__name__}: "
    return refused("unusable task", f"{kind}{error}")


def unusable(problem: Problem) -> Refused | None:
    """The refusal of a problem that no family could pose."""
    if isinstance(problem.seed, bool) or not 0 <= problem.seed <= MOST_SEED:
        return refused("unusable seed")
    if len(problem.family) > MOST_NAME or len(problem.version) > MOST_NAME:
        return refused("unusable task", "its name or version is too long")
    if len(problem.parameters) > MOST_PARAMETERS:
        return refused("unusable task", "its settings are too long")
    return None


class UnconfinedVerifier:
    """A `Verifier` without limits of its own. `scorer` calls the family's `score` for one answer."""

    def __init__(
        self, opener: Opener = open_task, scorer: Scorer = lambda family, *what: family.score(*what)
    ) -> None:
        self._opener = opener
        self._scorer = scorer
        self._open: OrderedDict[tuple[str, str], tuple[Family, str]] = OrderedDict()

    def pose(self, problem: Problem) -> Posed | Refused:
        found = self._puzzle(problem)
        if isinstance(found, Refused):
            return found
        family, parameters, puzzle = found
        return Posed(puzzle.question, family.version, parameters, puzzle.answer)

    def score(self, scorings: Sequence[Scoring]) -> list[Scored | Refused]:
        return [self._scored(one) for one in scorings]

    def close(self) -> None:
        pass

    def _scored(self, scoring: Scoring) -> Scored | Refused:
        if len(scoring.texts) > MOST_ANSWERS:
            return refused("too many answers", str(len(scoring.texts)))
        found = self._puzzle(scoring.problem, foreign=scoring.foreign)
        if isinstance(found, Refused):
            return found
        family, _, puzzle = found
        if scoring.question is not None and scoring.question != puzzle.question:
            return refused("another question")
        answers = scoring.texts
        if scoring.within is not None:
            whole = bool(getattr(family, "whole_text", False))
            answers = tuple([extract_answer(text, scoring.within, whole_text=whole) for text in answers])
        most = min(family.most_answer, MOST_ANSWER)
        scores: dict[str, float] = {}  # a policy often writes the same answer several times
        for answer in answers:
            if answer not in scores:
                scores[answer] = self._score(family, puzzle, answer, most)
        return Scored(puzzle.question, tuple([scores[answer] for answer in answers]))

    def _score(self, family: Family, puzzle: Puzzle, answer: str, most: int) -> float:
        if len(answer) > most:
            return 0.0
        try:
            return clamp(self._scorer(family, puzzle, answer))
        except Exception:  # an absurd answer is a wrong one
            return 0.0

    def _puzzle(self, problem: Problem, *, foreign: bool = False) -> tuple[Family, str, Puzzle] | Refused:
        if (wrong := unusable(problem)) is not None:
            return wrong
        try:
            family, parameters = self._family(problem.family, problem.parameters)
        except Exception as error:  # a generator's settings may make it fail in any way
            return self._of_another_version(problem) or unopened(error)
        if problem.version not in ("", family.version):
            return _another_version(family)
        if foreign and not family.safe:
            detail = f"the scorer of {family.name} would evaluate it"
            return refused("unsafe for foreign text", detail, uncheckable=True)
        try:
            puzzle = family.pose(problem.seed)
            (puzzle.question + puzzle.answer).encode()  # half a character cannot be sent
        except Exception as error:
            return refused("no question", f"{type(error).__name__}: {error}")
        if len(puzzle.question) > MOST_QUESTION or len(puzzle.answer) > MOST_QUESTION:
            return refused("question too long")
        return family, parameters, puzzle

    def _of_another_version(self, problem: Problem) -> Refused | None:
        """The settings of another version may be none that this one takes."""
        with suppress(Exception):
            family, _ = self._family(problem.family, "{}")
            if problem.version not in ("", family.version):
                return _another_version(family)
        return None

    def _family(self, name: str, parameters: str) -> tuple[Family, str]:
        key = (name, parameters)
        found = self._open.get(key)
        if found is None:
            family = self._opener(name, parse_parameters(parameters))
            found = self._open[key] = (family, canonical_parameters(family.parameters))
            if len(self._open) > MOST_OPEN:
                self._open.popitem(last=False)
        self._open.move_to_end(key)
        return found


def _another_version(family: Family) -> Refused:
    return refused("another version", f"here {family.name} is {family.version}", uncheckable=True)


class DirectVerifier(UnconfinedVerifier):
    """A verifier in the node's own process, for the simulator and for tests. It refuses all families but the
    builtin ones, because nothing here limits or confines."""

    def __init__(self) -> None:
        super().__init__(_open_builtin)


def _open_builtin(name: str, parameters: Mapping[str, object]) -> Family:
    if name not in BUILTIN:
        raise UnknownTaskError(f"{name} needs a confined worker; without one there are {', '.join(BUILTIN)}")
    return BUILTIN[name](parameters)


class Places(msgspec.Struct, frozen=True):
    """A node's own configuration of its worker: the paths of question files, by hash; own families as
    `module:Class`; the processor seconds of one answer."""

    files: dict[str, str]
    families: dict[str, str]
    answer_seconds: float


class Preparing(msgspec.Struct, frozen=True, tag="prepare"):
    """Import the libraries of this family, which may take longer than a request."""

    family: str


class TaskService:
    """The same as the service of a confined worker (confine/worker.py)."""

    def __init__(self, settings: msgspec.Raw, watch: Watch) -> None:
        places = msgspec.msgpack.decode(settings, type=Places)
        self.readable = registered_places()
        self._families = places.families
        self._seconds = places.answer_seconds
        self._watch = watch
        self._decode = msgspec.msgpack.Decoder(Posing | Scoring | Preparing).decode

        def opener(name: str, parameters: Mapping[str, object]) -> Family:
            return open_task(name, parameters, files=places.files, families=places.families)

        self._verifier = UnconfinedVerifier(opener, self._score)

    def answer(self, request: msgspec.Raw) -> TaskReply:
        asked = self._decode(request)
        try:
            return self._watch.limited(4 * self._seconds, self._answer, asked)
        except (OutOfTimeError, MemoryError, RecursionError) as error:
            is_slow = isinstance(error, OutOfTimeError) and isinstance(asked, Scoring)
            return refused(SLOW if is_slow else "no question", type(error).__name__)

    def too_long(self) -> Refused:
        return refused("question too long")

    def _answer(self, asked: Posing | Scoring | Preparing) -> TaskReply:
        if isinstance(asked, Posing):
            return self._verifier.pose(asked.problem)
        if isinstance(asked, Scoring):
            return self._verifier.score([asked])[0]
        with suppress(ShoalError):  # the parent limits the time of this one
            self._watch.limited(0.0, prepare, asked.family, self._families)
        return refused("prepared")

    def _score(self, family: Family, puzzle: Puzzle, answer: str) -> float:
        try:
            return self._watch.limited(self._seconds, family.score, puzzle, answer)
        except OutOfTimeError:
            return 0.0
