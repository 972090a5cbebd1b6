"""The outside of a judge: it waits for words, and poses questions in a confined worker."""

from __future__ import annotations

import random
import time
from collections.abc import Callable

from shoal.errors import ShoalError
from shoal.judge.settings import JudgeSettings
from shoal.judge.state import JudgeState
from shoal.node import Reply
from shoal.node.outside import Call, Finished, Outside
from shoal.runs.judging import (
    MOST_QUESTION,
    Heard,
    JudgeResult,
    JudgeTask,
    Listen,
    Pose,
    Question,
    Questions,
    Wanted,
)
from shoal.tasks.family import canonical_parameters
from shoal.tasks.verifier import Posed, Problem, Verifier

SEED_BITS = 62
LOOK_EVERY = 0.05
PAUSE = 0.2
"""Seconds that a judge listens at least: words that come together are one turn."""


class JudgeOutside(Outside[JudgeState, JudgeTask, JudgeResult]):
    """`heard` says whether words wait. `draw` gives the randomness of one question: nobody else can know it
    before the question is posed. With `pause` 0 the judge listens no longer than it must."""

    def __init__(
        self,
        settings: JudgeSettings,
        verifier: Verifier,
        draw: Callable[[Wanted], random.Random],
        heard: Callable[[], bool] = lambda: True,
        pause: float = 0.0,
    ) -> None:
        self._settings = settings
        self._verifier = verifier
        self._draw = draw
        self._heard = heard
        self._pause = pause
        self._listening: tuple[Call, float, float] | None = None  # until when, and from when on words end it
        self._over: list[Finished[JudgeResult]] = []

    def begin(self, call: Call, state: JudgeState, request: JudgeTask, now: float) -> None:
        if isinstance(request, Listen):
            self._listening = (call, request.until, now + self._pause)
            return
        try:
            self._over.append(Finished(call, Reply(self.pose(request), {})))
        except ShoalError as error:
            self._over.append(Finished(call, None, f"{type(error).__name__}: {error}"))

    def finished(self, now: float) -> list[Finished[JudgeResult]]:
        if self._listening is not None:
            call, until, earliest = self._listening
            if now >= until or (now >= earliest and self._heard()):
                self._listening = None
                self._over.append(Finished(call, Reply(Heard(), {})))
        over, self._over = self._over, []
        return over

    def wait(self, seconds: float) -> None:
        if self._listening is not None and self._pause:
            time.sleep(max(0.0, min(seconds, LOOK_EVERY)))

    def next_at(self) -> float | None:
        return None if self._listening is None else self._listening[1]

    def stopping(self) -> None:
        if self._listening is not None:
            call, self._listening = self._listening[0], None
            self._over.append(Finished(call, Reply(Heard(), {})))

    def pose(self, request: Pose) -> Questions:
        return Questions(tuple([self._question(one) for one in request.wanted]))

    def _question(self, wanted: Wanted) -> Question:
        rng = self._draw(wanted)
        family, seed, number = (
            rng.choice(wanted.families),
            rng.getrandbits(SEED_BITS),
            rng.getrandbits(SEED_BITS),
        )
        parameters = canonical_parameters(self._settings.parameters_of(family))
        posed = self._verifier.pose(Problem(family, "", parameters, seed))
        if not isinstance(posed, Posed):
            return Question(wanted, refused=posed.reason)
        if len(posed.question) > MOST_QUESTION:
            return Question(wanted, refused=f"the question has more than {MOST_QUESTION} characters")
        return Question(wanted, number, family, posed.version, posed.parameters, seed, posed.question)
