"""Posing and scoring, wherever it runs: from a problem to a verdict, and no exception on the way.

Whatever a family raises over an answer makes that answer wrong; whatever it raises over a question or its
settings is a refusal that can be counted.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence

from shoal.errors import TaskError
from shoal.train.rewards import clamp
from shoal.train.tasks.base import Family, Puzzle
from shoal.train.tasks.parameters import MOST_PARAMETERS, canonical_parameters, parse_parameters
from shoal.train.tasks.registry import MOST_NAME, open_family
from shoal.train.verifier.base import Posed, Problem, Refused, Scored
from shoal.train.verifier.wire import MOST_ANSWERS, MOST_QUESTION, MOST_SENT

MOST_OPEN = 64
"""Families kept open: opening one reads and checks its settings."""
MOST_REASON = 300
MOST_SEED = (1 << 63) - 1

Opener = Callable[[str, Mapping[str, object]], Family]
Scorer = Callable[[Family, Puzzle, str], float]


def refused(phrase: str, detail: str = "") -> Refused:
    text = f"{phrase}: {' '.join(detail.split())}" if detail else phrase
    return Refused(text[:MOST_REASON])


def unusable(problem: Problem) -> Refused | None:
    """What can be seen without opening the family."""
    if isinstance(problem.seed, bool) or not 0 <= problem.seed <= MOST_SEED:
        return refused("unusable seed")
    if len(problem.family) > MOST_NAME or len(problem.version) > MOST_NAME:
        return refused("unusable task", "its name or version is too long")
    if len(problem.parameters) > MOST_PARAMETERS:
        return refused("unusable task", "its settings are too long")
    return None


def plain_score(family: Family, puzzle: Puzzle, answer: str) -> float:
    return family.score(puzzle, answer)


class Judge:
    """`scorer` calls the family's `score` for one answer, within whatever limits hold there."""

    def __init__(self, opener: Opener = open_family, scorer: Scorer = plain_score) -> None:
        self._opener = opener
        self._scorer = scorer
        self._open: OrderedDict[tuple[str, str], tuple[Family, str]] = OrderedDict()

    def pose(self, problem: Problem) -> Posed | Refused:
        found = self._puzzle(problem)
        if isinstance(found, Refused):
            return found
        family, parameters, puzzle = found
        return Posed(puzzle.question, family.version, parameters, puzzle.answer)

    def score(
        self, problem: Problem, answers: Sequence[str], *, question: str | None = None, foreign: bool = True
    ) -> Scored | Refused:
        if len(answers) > MOST_ANSWERS:
            return refused("too many answers", str(len(answers)))
        found = self._puzzle(problem, foreign=foreign)
        if isinstance(found, Refused):
            return found
        family, _, puzzle = found
        if question is not None and question != puzzle.question:
            return refused("another question")
        most = min(family.most_answer, MOST_SENT)
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
        wrong = unusable(problem)
        if wrong is not None:
            return wrong
        try:
            family, parameters = self._family(problem.family, problem.parameters)
        except TaskError as error:
            return refused("unusable task", str(error))
        except Exception as error:  # a generator's settings may make it fail in any way
            return refused("unusable task", f"{type(error).__name__}: {error}")
        if problem.version not in ("", family.version):
            return refused("another version", f"here {family.name} is {family.version}")
        if foreign and not family.safe:
            return refused("unsafe for foreign text", f"the scorer of {family.name} would evaluate it")
        try:
            puzzle = family.pose(problem.seed)
            (puzzle.question + puzzle.answer).encode()  # half a character cannot be sent
        except Exception as error:
            return refused("no question", f"{type(error).__name__}: {error}")
        if len(puzzle.question) > MOST_QUESTION or len(puzzle.answer) > MOST_QUESTION:
            return refused("question too long")
        return family, parameters, puzzle

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
