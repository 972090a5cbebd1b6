"""A model is one method that turns a request into an answer; both are plain data.

A request holds everything that an answer may depend on. So its digest can stand for it in a cassette and in a
journal, and a model that needs randomness takes it from the request and from nowhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, Literal, Protocol, runtime_checkable

import msgspec

from shoal.errors import ConfigError

Finish = Literal["stop", "length", "filter", "other"]

MOST_REQUEST_BYTES = 4 << 20
MOST_OUTPUT_TOKENS = 1 << 20
MESSAGE_OVERHEAD_TOKENS = 32
"""More than any known chat template puts around one message."""


class ChatSampling(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The settings of the drawing; None leaves one to the endpoint. `max_tokens` bounds the answer, with the
    thoughts before it if the endpoint counts them. Builtin models draw everything from `seed`.
    """

    max_tokens: int = 1024
    temperature: float | None = None
    top_p: float | None = None
    seed: int | None = None
    stop: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not 1 <= self.max_tokens <= MOST_OUTPUT_TOKENS:
            raise ConfigError(f"max_tokens is {self.max_tokens}: give 1 to {MOST_OUTPUT_TOKENS}")
        if self.temperature is not None and not 0 <= self.temperature <= 10:
            raise ConfigError(f"temperature is {self.temperature}: give 0 to 10, usually 0.2 to 1.2")
        if self.top_p is not None and not 0 < self.top_p <= 1:
            raise ConfigError(f"top_p is {self.top_p}: give more than 0 and at most 1")
        if self.seed is not None and not 0 <= self.seed < 1 << 63:
            raise ConfigError(f"seed is {self.seed}: give 0 or more, below 2**63")

    def chosen(self) -> dict[str, Any]:
        """The settings that are not left to the endpoint, apart from the bound on the answer."""
        settings = {name: getattr(self, name) for name in ("temperature", "top_p", "seed")}
        settings["stop"] = list(self.stop) or None
        return {name: value for name, value in settings.items() if value is not None}


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    text: str


class ChatRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One question. `system` is the part that many requests share. `grammar` is GBNF text that the endpoint
    should hold the answer to, where it can; the answer says whether it did. `values` are the parts that the
    texts were made from: builtin models read them, no endpoint gets them, the digest leaves them out."""

    messages: tuple[Message, ...]
    system: str = ""
    sampling: ChatSampling = ChatSampling()
    grammar: str = ""
    values: dict[str, str] = {}

    @classmethod
    def ask(
        cls,
        user: str,
        *,
        system: str = "",
        sampling: ChatSampling | None = None,
        grammar: str = "",
        values: Mapping[str, str] | None = None,
    ) -> ChatRequest:
        return cls((Message("user", user),), system, sampling or ChatSampling(), grammar, dict(values or {}))

    def __post_init__(self) -> None:
        if not self.messages or self.messages[-1].role != "user":
            raise ConfigError("a request ends with a user message")
        if (size := _size(self.grammar) + self._prompt_bytes()) > MOST_REQUEST_BYTES:
            raise ConfigError(f"the request has {size} bytes, over {MOST_REQUEST_BYTES}: shorten the prompt")

    def most_input_tokens(self) -> int:
        """No tokenizer makes more tokens of the texts: each token takes at least one byte."""
        return self._prompt_bytes() + MESSAGE_OVERHEAD_TOKENS * (len(self.messages) + 1)

    def _prompt_bytes(self) -> int:
        return _size(self.system) + sum(_size(message.text) for message in self.messages)

    def digest(self) -> str:
        """SHA-256 over the content, in hexadecimal digits."""
        return hashlib.sha256(msgspec.json.encode(self.without_values())).hexdigest()

    def without_values(self) -> ChatRequest:
        return msgspec.structs.replace(self, values={}) if self.values else self


class Usage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Tokens of one call. `input` counts the whole prompt; `cached` and `cache_written` are parts of it.
    Where the endpoint reported nothing, `reported` is false, the numbers are 0 and the cost is unknown."""

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reported: bool = True

    @property
    def total(self) -> int:
        return self.input + self.output


class ChatAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """The answer to a request. `latency` is that of the attempt that succeeded, in seconds. `grammar`: the
    endpoint was held to the request's grammar. `omitted` names settings of the request that this endpoint
    does not take. `attempts` counts the calls that were spent on it, failed ones included."""

    text: str
    model: str
    usage: Usage = Usage()
    latency: float = 0.0
    finish: Finish = "stop"
    grammar: bool = False
    omitted: tuple[str, ...] = ()
    attempts: int = 1


@runtime_checkable
class Model(Protocol):
    """A model that was opened from the text `spec`. Rate and concurrency are counted per `endpoint`.
    `instant` models compute the answer at once and can be asked with `answer_now` from any thread."""

    spec: str
    endpoint: str
    instant: bool = False

    def __repr__(self) -> str:
        return f"<model {self.spec}>"

    async def answer(self, request: ChatRequest, *, timeout: float) -> ChatAnswer:
        """One attempt within `timeout` seconds: an answer, or a ModelError; nothing is retried."""
        raise NotImplementedError

    def learn(self, setting: str) -> bool:
        """Notes that the endpoint refused a setting; true if the next request can do without it."""
        return False

    async def close(self) -> None:
        """Frees connections or weights; closing twice is allowed."""
        return


class Wrapper(Model):
    """A model around another one. Subclasses change the answers; the rest is the inner model's."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self.spec, self.endpoint, self.instant = model.spec, model.endpoint, model.instant

    def learn(self, setting: str) -> bool:
        return self._model.learn(setting)

    async def close(self) -> None:
        await self._model.close()


def _size(text: str) -> int:
    return len(text.encode("utf-8", "replace"))
