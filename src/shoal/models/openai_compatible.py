"""Any server that speaks OpenAI's chat protocol: OpenAI, vLLM, llama.cpp, Ollama, LM Studio, OpenRouter, …

A grammar is sent where the server takes one. Which one it is, it says itself in its list of models; that
list is asked for once, before the first request that has a grammar, and is not a call.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.errors import ModelAnswerError
from shoal.models.keys import Key
from shoal.models.protocol import ChatAnswer, ChatRequest, Finish, Usage
from shoal.models.remote import RemoteModel

OPENAI_URL = "https://api.openai.com/v1"
FINISHES: dict[str, Finish] = {
    "stop": "stop",
    "eos": "stop",
    "length": "length",
    "max_tokens": "length",
    "content_filter": "filter",
}
MOST_COUNTED_TOKENS = 1 << 40


class _Part(msgspec.Struct):
    text: str = ""


class _Message(msgspec.Struct):
    content: str | list[_Part] | None = None
    refusal: str | None = None


class _Choice(msgspec.Struct):
    message: _Message | None = None
    finish_reason: str | None = None


class _PromptDetails(msgspec.Struct):
    cached_tokens: float | None = None


class _Usage(msgspec.Struct):
    prompt_tokens: float | None = None
    completion_tokens: float | None = None
    prompt_tokens_details: _PromptDetails | None = None


class _Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: _Usage | None = None


class _Owner(msgspec.Struct):
    owned_by: str | None = None


class _Models(msgspec.Struct):
    data: list[_Owner]


class OpenAICompatible(RemoteModel):
    """A model behind OpenAI's chat protocol."""

    package = "openai"
    path = "/chat/completions"
    client_class = "AsyncOpenAI"
    http_client_class = "DefaultAsyncHttpxClient"

    def key_header(self, key: Key) -> tuple[str, str]:
        return "authorization", f"Bearer {key.reveal()}"

    async def prepare(self, client: Any, request: ChatRequest) -> None:
        if request.grammar and self.capabilities.grammar == "unknown":
            await self._find_dialect(client)

    def read(self, body: bytes, request: ChatRequest) -> ChatAnswer:
        answer = read_completion(body, self.model)
        return msgspec.structs.replace(
            answer, grammar=self._sends_grammar(request), omitted=self.capabilities.omitted(request)
        )

    def _sends_grammar(self, request: ChatRequest) -> bool:
        known = self.capabilities.grammar in ("llama.cpp", "vllm")
        return bool(request.grammar) and known

    def body(self, request: ChatRequest) -> dict[str, Any]:
        capabilities = self.capabilities
        body = {"model": self.model} | chat_body(request, system=capabilities.system)
        body[capabilities.token_limit] = request.sampling.max_tokens
        for name in ("temperature", "top_p", "seed", "stop"):
            if not capabilities.takes(name):
                body.pop(name, None)
        if self._sends_grammar(request):
            if capabilities.grammar == "vllm":
                body["structured_outputs"] = {"grammar": request.grammar}
            else:
                body["grammar"] = request.grammar
        return body

    async def _find_dialect(self, client: Any) -> None:
        """Asks who serves. A server that cannot say takes no grammar; one that cannot be reached, or
        refuses the key, fails as the call itself would."""
        try:
            response = await client.get("/models", cast_to=self._http.Response)
            listed = msgspec.json.decode(response.content, type=_Models)
            owners = {owner.owned_by for owner in listed.data}
        except self._sdk.APIStatusError as error:
            not_implemented = error.status_code == 501
            if error.status_code in (401, 403) or (error.status_code >= 500 and not not_implemented):
                raise
            owners = set()
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            owners = set()
        dialects = {"llamacpp": "llama.cpp", "vllm": "vllm"}
        found = [dialect for owner, dialect in dialects.items() if owner in owners]
        self.capabilities.grammar = found[0] if len(found) == 1 else "none"  # type: ignore[assignment]


def chat_body(request: ChatRequest, *, system: bool = True) -> dict[str, Any]:
    """The messages and the sampling settings that are set, without the bound on tokens."""
    messages = [{"role": message.role, "content": message.text} for message in request.messages]
    if request.system and system:
        messages.insert(0, {"role": "system", "content": request.system})
    elif request.system:
        messages[0] = {
            "role": messages[0]["role"],
            "content": f"{request.system}\n\n{messages[0]['content']}",
        }
    body: dict[str, Any] = {"messages": messages}
    sampling = request.sampling
    for name in ("temperature", "top_p", "seed"):
        value = getattr(sampling, name)
        if value is not None:
            body[name] = value
    if sampling.stop:
        body["stop"] = list(sampling.stop)
    return body


def read_completion(body: bytes, model: str) -> ChatAnswer:
    """A chat completion as an answer; ModelAnswerError when it holds no choice."""
    completion = msgspec.json.decode(body, type=_Completion)
    return _answer_of(completion, model)


def convert_completion(data: object, model: str) -> ChatAnswer:
    """The same for a completion that has been decoded already."""
    return _answer_of(msgspec.convert(data, type=_Completion, strict=False), model)


def _answer_of(completion: _Completion, model: str) -> ChatAnswer:
    if not completion.choices or completion.choices[0].message is None:
        raise ModelAnswerError(f"{model} sent an answer without a choice: is this a chat endpoint?")
    choice = completion.choices[0]
    message = choice.message
    assert message is not None
    content = message.content
    text = "".join(part.text for part in content) if isinstance(content, list) else content or ""
    finish = FINISHES.get(choice.finish_reason or "", "other")
    if not text and message.refusal:
        finish = "filter"
    return ChatAnswer(
        text=text.encode("utf-8", "replace").decode(),
        model=(completion.model or model)[:200],
        usage=_usage_of(completion.usage),
        finish=finish,
    )


def _usage_of(usage: _Usage | None) -> Usage:
    if usage is None or usage.prompt_tokens is None or usage.completion_tokens is None:
        return Usage(reported=False)
    details = usage.prompt_tokens_details
    read = count(usage.prompt_tokens)
    cached = count(details.cached_tokens) if details is not None else 0
    return Usage(input=read, output=count(usage.completion_tokens), cached=min(cached, read))


def count(number: float | None) -> int:
    """A number of tokens as a server gave it, brought into a sane range."""
    if number is None or not 0 <= number <= MOST_COUNTED_TOKENS:
        return 0
    return int(number)
