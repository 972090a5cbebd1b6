"""A domain in which any text is a program and its plain form is the text itself: nothing is taken out on the way to
those who look at it."""

from __future__ import annotations

import hashlib
import random
import time
from collections.abc import Mapping, Sequence

from shoal.evolve import Axis, Candidate, CandidateError, Domain, Operator, Outcome


class Texts(Domain):
    name = "texts"
    axes = (Axis("length", (4, 100, 500, 10_000)), Axis("letter", (4, 8, 12)))

    def parse(self, text: str) -> Candidate:
        if not text:
            raise CandidateError("an empty text: write one character or more")
        return Candidate(text, text, text)

    def play(
        self, candidates: Sequence[Candidate], opponents: Sequence[Candidate], *, seed: int, rounds: int
    ) -> list[Outcome]:
        return [self._outcome(candidate.source, rounds) for candidate in candidates]

    def _outcome(self, text: str, rounds: int) -> Outcome:
        letter = hashlib.sha256(text.encode()).digest()[0] % 16
        score = (
            1.0 + (len(text) > 8) + ("<script" in text)
        )  # the worst text is the best one, which pages show
        return Outcome([score] * rounds, {"length": len(text), "letter": letter})

    def starters(self) -> Mapping[str, str]:
        return {"a": "a"}

    @property
    def operators(self) -> Mapping[str, Operator]:
        return {"digits": digits}


def digits(task: str, parent_source: str | None, rng: random.Random) -> str:
    """A model that takes its time: rounds that end in a moment would fill the journals."""
    time.sleep(0.05)
    return str(rng.randrange(1000))
