"""Models that answer at once: functions of an application, and fakes so that users can test without a model.

    Scripted(["first answer", ModelTimeoutError("too slow"), "second answer"])

As a spec, `fake:echo` repeats the last user text, `fake:error=KIND` fails with the named error, and any other
`fake:` text is the answer itself (`\\n` stands for a new line).
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Mapping

from shoal import errors
from shoal.errors import ConfigError, ModelAnswerError, ModelError
from shoal.models.protocol import ChatAnswer, ChatRequest, Model, Usage

Script = str | ChatAnswer | ModelError
Builtin = Callable[[Mapping[str, str], random.Random], str]

ERRORS: dict[str, Callable[[str], ModelError]] = {
    "authentication": errors.ModelAuthenticationError,
    "rate-limit": errors.ModelRateLimitError,
    "setting": lambda message: errors.ModelSettingError(message, "temperature"),
    "time-out": errors.ModelTimeoutError,
    "server": errors.ModelServerError,
    "answer": ModelAnswerError,
}


class Instant(Model):
    """A model that needs no waiting. Subclasses give `answer_now`."""

    instant = True

    def __init__(self, spec: str) -> None:
        self.spec = self.endpoint = spec

    def answer_now(self, request: ChatRequest) -> ChatAnswer:
        raise NotImplementedError

    async def answer(self, request: ChatRequest, *, timeout: float) -> ChatAnswer:
        return self.answer_now(request)


class BuiltinModel(Instant):
    """A plain function as a model. It gets the request's values and a generator that is seeded with the
    request's content: the same request gives the same text on every machine and in any order."""

    def __init__(self, spec: str, function: Builtin) -> None:
        super().__init__(spec)
        self._function = function

    def answer_now(self, request: ChatRequest) -> ChatAnswer:
        try:
            text = self._function(request.values, random.Random(request.digest()))
        except Exception as error:
            raise _final(f"{self.spec} failed with {type(error).__name__}: {error}") from error
        return ChatAnswer(text, self.spec)


class Scripted(Instant):
    """Answers from a script, in the order of the calls; `asked` keeps the requests. The token counts of a
    plain text are its numbers of words. A call after the end of the script is a ModelAnswerError."""

    def __init__(self, script: Iterable[Script], spec: str = "fake:scripted") -> None:
        super().__init__(spec)
        self.asked: list[ChatRequest] = []
        self._script = iter(script)
        self._lock = threading.Lock()

    def answer_now(self, request: ChatRequest) -> ChatAnswer:
        with self._lock:
            self.asked.append(request)
            line = next(self._script, None)
        if line is None:
            raise _final(f"{self.spec}: the script has ended after {len(self.asked) - 1} calls")
        return _said(line, request, self.spec)


class Fake(Instant):
    """The model of a `fake:` spec: the same answer to every call."""

    def __init__(self, name: str, spec: str) -> None:
        super().__init__(spec)
        self._name = name
        self._error = name.removeprefix("error=") if name.startswith("error=") else ""
        if self._error and self._error not in ERRORS:
            raise ConfigError(f"{spec} asks for an unknown error: known are {', '.join(ERRORS)}")

    def answer_now(self, request: ChatRequest) -> ChatAnswer:
        if self._error:
            raise ERRORS[self._error](f"{self.spec} fails as it was asked to")
        text = request.messages[-1].text if self._name == "echo" else self._name.replace("\\n", "\n")
        return _said(text, request, self.spec)


def _said(line: Script, request: ChatRequest, spec: str) -> ChatAnswer:
    if isinstance(line, ModelError):
        raise line
    if isinstance(line, ChatAnswer):
        return line
    words = sum(len(message.text.split()) for message in request.messages) + len(request.system.split())
    return ChatAnswer(line, spec, Usage(input=words, output=len(line.split())))


def _final(message: str) -> ModelAnswerError:
    """A failure that trying again does not mend."""
    failure = ModelAnswerError(message)
    failure.transient = False
    return failure
