"""Anthropic's own protocol, with the system text cached by the vendor.

All calls of a search share one system text, which is marked for the prompt cache: every call after the first
pays a tenth for it, unless it is below the vendor's minimum. The usage counts cached tokens too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from shoal.errors import ModelAnswerError
from shoal.models.keys import Key
from shoal.models.openai_compatible import FINISHES, count
from shoal.models.protocol import ChatAnswer, ChatRequest, Usage
from shoal.models.remote import RemoteModel

ANTHROPIC_URL = "https://api.anthropic.com"
ANTHROPIC_VERSION = "2023-06-01"


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Usage(msgspec.Struct):
    input_tokens: float | None = None
    output_tokens: float | None = None
    cache_read_input_tokens: float | None = None
    cache_creation_input_tokens: float | None = None


class _Message(msgspec.Struct):
    content: list[_Block]
    model: str | None = None
    stop_reason: str | None = None
    usage: _Usage | None = None


class AnthropicModel(RemoteModel):
    """A model of Anthropic. It takes no seed and no grammar: an answer says so."""

    package = "anthropic"
    path = "/v1/messages"
    client_class = "AsyncAnthropic"
    headers: ClassVar[Mapping[str, str]] = {"anthropic-version": ANTHROPIC_VERSION}

    def __init__(self, spec: str, **options: Any) -> None:
        super().__init__(spec, **options)
        self.capabilities.refused.add("seed")
        self.capabilities.grammar = "none"

    def key_header(self, key: Key) -> tuple[str, str]:
        return "x-api-key", key.reveal()

    def body(self, request: ChatRequest) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self.model,
            "max_tokens": request.sampling.max_tokens,
            "messages": [{"role": message.role, "content": message.text} for message in request.messages],
        }
        if request.system:
            cached = {"type": "text", "text": request.system, "cache_control": {"type": "ephemeral"}}
            body["system"] = [cached]
        for name, value in request.sampling.chosen().items():
            if name not in self.capabilities.refused:
                body["stop_sequences" if name == "stop" else name] = value
        return body

    def read(self, body: bytes, request: ChatRequest) -> ChatAnswer:
        message = msgspec.json.decode(body, type=_Message)
        if not message.content and message.stop_reason is None:
            raise ModelAnswerError(f"{self.model} sent an answer without content: is the URL right?")
        return ChatAnswer(
            text="".join(block.text for block in message.content if block.type == "text"),
            model=(message.model or self.model)[:200],
            usage=_usage_of(message.usage),
            finish=FINISHES.get(message.stop_reason or "", "other"),
            omitted=self.capabilities.omitted(request),
        )


def _usage_of(usage: _Usage | None) -> Usage:
    if usage is None or usage.input_tokens is None or usage.output_tokens is None:
        return Usage(reported=False)
    cached, written = count(usage.cache_read_input_tokens), count(usage.cache_creation_input_tokens)
    return Usage(
        input=count(usage.input_tokens) + cached + written,
        output=count(usage.output_tokens),
        cached=cached,
        cache_written=written,
    )
