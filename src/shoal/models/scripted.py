"""A fake that ships, so that users can test their own code without a model.

    Scripted(["first answer", ModelTimeoutError("too slow"), "second answer"])

As a spec: `fake:echo` repeats the last user text, `fake:error=KIND` fails with the named error, and any
other text is the answer itself (`\\n` stands for a new line).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from shoal.errors import (
    ConfigError,
    ModelAnswerError,
    ModelAuthenticationError,
    ModelError,
    ModelRateLimitError,
    ModelServerError,
    ModelSettingError,
    ModelTimeoutError,
)
from shoal.models.protocol import ChatAnswer, ChatRequest, Instant, Usage

Script = str | ChatAnswer | ModelError

ERRORS: dict[str, Callable[[str], ModelError]] = {
    "authentication": ModelAuthenticationError,
    "rate-limit": ModelRateLimitError,
    "setting": lambda message: ModelSettingError(message, "temperature"),
    "time-out": ModelTimeoutError,
    "server": ModelServerError,
    "answer": ModelAnswerError,
}


class Scripted(Instant):
    """Answers from a script, in the order of the calls; `asked` keeps the requests.

    A text is an answer whose token counts are its numbers of words. When the script has ended, the call
    fails with a ModelAnswerError.
    """

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
            failure = ModelAnswerError(f"{self.spec}: the script has ended after {len(self.asked) - 1} calls")
            failure.transient = False
            raise failure
        return said(line, request, self.spec)


class Fake(Instant):
    """The model of a `fake:` spec: the same answer to every call."""

    def __init__(self, name: str, spec: str) -> None:
        super().__init__(spec)
        self._name = name
        if name.startswith("error=") and name.removeprefix("error=") not in ERRORS:
            raise ConfigError(f"{spec} asks for an unknown error: known are {', '.join(ERRORS)}")

    def answer_now(self, request: ChatRequest) -> ChatAnswer:
        if self._name == "echo":
            return said(request.messages[-1].text, request, self.spec)
        if self._name.startswith("error="):
            kind = self._name.removeprefix("error=")
            raise ERRORS[kind](f"{self.spec} fails as it was asked to")
        return said(self._name.replace("\\n", "\n"), request, self.spec)


def said(line: Script, request: ChatRequest, spec: str) -> ChatAnswer:
    """One line of a script as the outcome of a call."""
    if isinstance(line, ModelError):
        raise line
    if isinstance(line, ChatAnswer):
        return line
    words = sum(len(message.text.split()) for message in request.messages) + len(request.system.split())
    return ChatAnswer(line, spec, Usage(input=words, output=len(line.split())))
