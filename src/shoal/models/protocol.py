"""What a model is here: one method that turns a request into an answer, both plain data.

A request holds everything that an answer may depend on, so that its digest can stand for it in a cassette
and a journal, and so that a model which needs randomness takes it from the request and from nowhere else.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Literal, Protocol, runtime_checkable

import msgspec

from shoal.errors import ConfigError, ModelError

Finish = Literal["stop", "length", "filter", "other"]

MOST_REQUEST_BYTES = 4 << 20
MOST_OUTPUT_TOKENS = 1 << 20
MESSAGE_OVERHEAD_TOKENS = 32
"""More than any known chat template puts around one message."""


class ChatSampling(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """How to draw the answer. None means: as the endpoint does by default.

    `max_tokens` bounds the answer; what the model thinks before it answers counts too where the endpoint
    counts it. A `seed` is passed on where the endpoint takes one; builtin models draw everything from it.
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


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    role: Literal["user", "assistant"]
    text: str


class ChatRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """One question. `system` is the part that many requests share; `grammar` is GBNF text that the answer
    should be held to where the endpoint can do that (the answer says whether it was). `values` are the parts
    that the texts were made from; builtin models read them, no endpoint gets them, and they are not part of
    the digest."""

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
        """A request of one user text."""
        return cls((Message("user", user),), system, sampling or ChatSampling(), grammar, dict(values or {}))

    def __post_init__(self) -> None:
        if not self.messages or self.messages[-1].role != "user":
            raise ConfigError("a request ends with a user message")
        if self.text_bytes() > MOST_REQUEST_BYTES:
            raise ConfigError(
                f"the request has {self.text_bytes()} bytes of text and {MOST_REQUEST_BYTES} are allowed: "
                "shorten the prompt"
            )

    def text_bytes(self) -> int:
        texts = (self.system, self.grammar, *(message.text for message in self.messages))
        return sum(len(text.encode("utf-8", "replace")) for text in texts)

    def most_input_tokens(self) -> int:
        """No tokenizer makes more tokens of the texts: each token takes at least one byte."""
        texts = (self.system, *(message.text for message in self.messages))
        size = sum(len(text.encode("utf-8", "replace")) for text in texts)
        return size + MESSAGE_OVERHEAD_TOKENS * (len(self.messages) + 1)

    def digest(self) -> str:
        """SHA-256 over the whole content, in hexadecimal digits."""
        content = msgspec.structs.replace(self, values={}) if self.values else self
        return hashlib.sha256(msgspec.json.encode(content)).hexdigest()


class Usage(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """Tokens of one call. `input` counts all of the prompt, `cached` and `cache_written` are parts of it.

    `reported` is false when the endpoint did not say: then the numbers are 0 and the cost is unknown.
    """

    input: int = 0
    output: int = 0
    cached: int = 0
    cache_written: int = 0
    reported: bool = True

    @property
    def total(self) -> int:
        return self.input + self.output


class ChatAnswer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What came back. `latency` is in seconds, of the attempt that succeeded.

    `grammar` is true when the endpoint was held to the request's grammar. `omitted` names the settings of
    the request that this endpoint does not take and that were left out. `attempts` counts the calls that
    were spent on it, failed ones included.
    """

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
    """Something that answers. `spec` is the text it was resolved from; `endpoint` names what is shared by
    all models behind one door (rate and concurrency are counted per endpoint).

    `instant` models compute the answer at once and can be asked with `answer_now` from any thread.
    """

    @property
    def spec(self) -> str: ...

    @property
    def endpoint(self) -> str: ...

    @property
    def instant(self) -> bool: ...

    async def answer(self, request: ChatRequest, *, timeout: float) -> ChatAnswer:
        """One attempt within `timeout` seconds: an answer, or a ModelError; nothing is retried."""

    def learn(self, setting: str) -> bool:
        """Takes note that the endpoint refused a setting; true when asking again makes sense."""

    async def close(self) -> None:
        """Frees connections or weights; closing twice is allowed."""


class Instant:
    """What models that need no waiting have in common: subclasses give `answer_now`."""

    instant = True

    def __init__(self, spec: str) -> None:
        self.spec = spec
        self.endpoint = spec

    def __repr__(self) -> str:
        return f"<model {self.spec}>"

    def answer_now(self, request: ChatRequest) -> ChatAnswer:
        raise NotImplementedError

    async def answer(self, request: ChatRequest, *, timeout: float) -> ChatAnswer:
        return self.answer_now(request)

    def learn(self, setting: str) -> bool:
        return False

    async def close(self) -> None:
        return None


def failure_record(error: ModelError) -> dict[str, str]:
    """A failure as data for a journal."""
    return {"kind": error.kind, "message": str(error)}
