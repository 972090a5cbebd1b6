"""Models that an application brings along: a plain function, no weights, no network, no cost.

    register_builtin("bomber", mutate_like_a_bomber, "writes programs that bomb the core")
    resolve("builtin:bomber")

The function gets the request and a generator that is seeded with the request's content, `sampling.seed`
included: the same request gives the same text on every machine and in any order.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

from shoal.errors import ConfigError, ModelAnswerError
from shoal.models.protocol import Answer, Instant, Request

Builtin = Callable[[Request, random.Random], str]

_registered: dict[str, tuple[Builtin, str]] = {}
_lock = threading.Lock()


class BuiltinModel(Instant):
    """A function as a model."""

    def __init__(self, spec: str, function: Builtin) -> None:
        super().__init__(spec)
        self._function = function

    def answer_now(self, request: Request) -> Answer:
        rng = random.Random(request.digest())
        try:
            text = self._function(request, rng)
        except Exception as error:
            raise _failed(self.spec, error) from error
        return Answer(text, self.spec)


def register_builtin(name: str, function: Builtin, description: str = "") -> None:
    """Makes `builtin:NAME` known in this process; the same function may be registered again."""
    if not name or not name.replace("-", "").replace("_", "").isalnum() or not name.isascii():
        raise ConfigError(f"{name!r} cannot name a builtin model: use letters, digits, - and _")
    with _lock:
        known = _registered.get(name)
        if known is not None and known[0] is not function:
            raise ConfigError(f"another builtin model is called {name!r} already: choose another name")
        _registered[name] = (function, description)


def builtin_model(name: str, spec: str) -> BuiltinModel:
    """The registered function of this name as a model."""
    with _lock:
        known = _registered.get(name)
        names = sorted(_registered)
    if known is None:
        listed = ", ".join(names) if names else "none; import the application that brings them"
        raise ConfigError(f"no builtin model is called {name!r}: known are {listed}")
    return BuiltinModel(spec, known[0])


def builtin_names() -> dict[str, str]:
    """Name and description of each registered builtin model."""
    with _lock:
        return {name: description for name, (_, description) in sorted(_registered.items())}


def _failed(spec: str, error: Exception) -> ModelAnswerError:
    failure = ModelAnswerError(f"{spec} failed with {type(error).__name__}: {error}")
    failure.transient = False
    return failure
