"""The one node of a judge's run, put together, run and watched in the same way as other nodes."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import TaskError
from shoal.judge.judge import Judge
from shoal.judge.outside import PAUSE, JudgeOutside
from shoal.judge.settings import NODE, JudgeSettings
from shoal.judge.words import of_a_judge
from shoal.node import ExchangeLike, Node, NodeSettings, Stop
from shoal.node.crew import Seat, Tell
from shoal.node.running import run_crew
from shoal.node.standing import Standing, Tally
from shoal.runs import RunFolder, derive
from shoal.runs.judging import Board, JudgeNote, Wanted
from shoal.tasks.confined import WorkerVerifier
from shoal.tasks.family import canonical_parameters
from shoal.tasks.registry import canonical_name
from shoal.tasks.verifier import Posed, Problem, Refused, Scoring, Verifier

GATHER_LIMIT = 256


class JudgeCrew:
    """A crew of one, named "judge"."""

    settings_type = JudgeSettings
    unit = "questions"
    is_free = True
    shares = True
    at_terminal = False
    total = 0  # nobody knows how many will be asked for

    def __init__(self, settings: JudgeSettings) -> None:
        settings.check()
        self.settings = settings
        self.names = settings.node_names()
        self.seed = settings.seed
        self.kinds = of_a_judge()
        self.linger = settings.linger

    def done(self, standings: Sequence[JudgeStanding]) -> int:
        return sum(node.counted for node in standings)

    def check(self) -> None:
        """TaskError for a family that cannot be asked, or whose scorer is not for strangers' text."""
        with WorkerVerifier(files=self.settings.files) as verifier:
            check_tasks(self.settings, verifier)

    def prepare(self, stop: Stop, tell: Tell) -> None:
        pass

    def take_seat(
        self,
        index: int,
        run: RunFolder,
        *,
        author: str,
        now: float,
        exchange: ExchangeLike | None,
        real_time: bool,
    ) -> Seat:
        settings = self.settings
        verifier = WorkerVerifier(files=settings.files)
        draw = _fresh if real_time else _repeatable(settings.seed)
        heard, pause = (_ear(exchange), PAUSE) if real_time else (lambda: True, 0.0)
        journal = run.open_journal(NODE)
        try:
            node: Node[Any, Any, Any, Any] = Node(
                Judge(settings, author=author, verifier=verifier),
                JudgeOutside(settings, verifier, draw, heard, pause),
                name=NODE,
                seed=settings.seed,
                journal=journal,
                now=now,
                exchange=exchange,
                settings=NodeSettings(checkpoint_every=settings.checkpoint_every, gather_limit=GATHER_LIMIT),
                checkpoints=run.checkpoints(NODE),
            )
        except BaseException:
            journal.close()
            verifier.close()
            raise
        return Seat(node, verifier.close)

    def watch(self, index: int, journal: Path) -> JudgeWatcher:
        return JudgeWatcher(journal)


def run(settings: JudgeSettings, folder: Path, **options: Any) -> str:
    """`run_crew` of shoal/node/running.py for a judge."""
    return run_crew(JudgeCrew(settings), folder, **options)


def check_models(settings: JudgeSettings) -> None:
    """A judge has no model."""


def check_tasks(settings: JudgeSettings, verifier: Verifier) -> None:
    """TaskError, with the reason, for a family that a judge cannot ask."""
    for task in settings.tasks:
        family = canonical_name(task)
        problem = Problem(family, "", canonical_parameters(settings.parameters_of(family)), 0)
        posed = verifier.pose(problem)
        if not isinstance(posed, Posed):
            raise TaskError(f"{task}: {posed.reason}")
        (scored,) = verifier.score([Scoring(problem, ("",))])
        if isinstance(scored, Refused):
            raise TaskError(f"{task}: {scored.reason}: a judge scores the text of strangers")


def _fresh(wanted: Wanted) -> random.Random:
    """The system's randomness: not even the judge knows a question before it poses it."""
    return random.SystemRandom()


def _repeatable(seed: int) -> Callable[[Wanted], random.Random]:
    return lambda wanted: derive(seed, "question", wanted.author, wanted.run, wanted.round)


def _ear(exchange: Any) -> Callable[[], bool]:
    """Whether words wait in the exchange; without one nobody is heard."""
    return lambda: exchange is not None and exchange.figures()["waiting words"] > 0


class JudgeStanding(Standing, frozen=True, kw_only=True):
    """`counted` questions are over; `node_id` is what nodes name the judge by."""

    node_id: str = ""
    entrants: int = 0
    asked: int = 0
    answered: int = 0
    right: int = 0
    counted: int = 0
    open: int = 0

    def figures(self) -> Mapping[str, object]:
        names = ("node_id", "entrants", "asked", "answered", "right", "counted", "open")
        return {name: getattr(self, name) for name in names}


class JudgeWatcher:
    """Follows a judge from its journal alone."""

    def __init__(self, journal: Path) -> None:
        self._tally = Tally(journal)
        self._board = Board()

    def look(self, *, ended: bool = False, trouble: str = "") -> JudgeStanding:
        for note in self._tally.notes(JudgeNote):
            self._board.take(note)
        board = self._board
        found = board.entrants.values()
        standing = JudgeStanding(
            name=NODE,
            model="",
            node_id=board.judge,
            entrants=len(found),
            asked=sum(one.asked for one in found),
            answered=sum(one.answered for one in found),
            right=sum(one.right for one in found),
            counted=sum(one.rounds for one in found),
            open=board.open,
            traffic=self._tally.traffic(0),
            ended=ended,
            trouble=trouble or self._tally.trouble,
        )
        if found or not board.judge or ended:
            return standing
        waiting = f"nobody has asked yet; nodes that train ask with: shoal train --judge {board.judge}"
        return msgspec.structs.replace(standing, waiting=waiting)
