"""Models that an application brings along: a plain function, no weights, no network, no cost.

The function gets the values that the request was made from, and a generator that is seeded with the request's
content, `sampling.seed` included: the same request gives the same text on every machine and in any order.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from shoal.errors import ModelAnswerError
from shoal.models.protocol import ChatAnswer, ChatRequest, Instant

Builtin = Callable[[Mapping[str, str], random.Random], str]


class BuiltinModel(Instant):
    """A function as a model."""

    def __init__(self, spec: str, function: Builtin) -> None:
        super().__init__(spec)
        self._function = function

    def answer_now(self, request: ChatRequest) -> ChatAnswer:
        rng = random.Random(request.digest())
        try:
            text = self._function(request.values, rng)
        except Exception as error:
            failure = ModelAnswerError(f"{self.spec} failed with {type(error).__name__}: {error}")
            failure.transient = False
            raise failure from error
        return ChatAnswer(text, self.spec)
