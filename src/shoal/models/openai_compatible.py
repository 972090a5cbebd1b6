"""Any server that speaks OpenAI's chat protocol: OpenAI, vLLM, llama.cpp, Ollama, LM Studio, OpenRouter, …

A grammar is sent to servers that take one, as their list of models tells, which is asked for once.
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
    "end_turn": "stop",  # this and the rest: Anthropic's
    "stop_sequence": "stop",
    "refusal": "filter",
}
MOST_COUNTED_TOKENS = 1 << 40
NOT_IMPLEMENTED = 501


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


class Completion(msgspec.Struct):
    choices: list[_Choice]
    model: str | None = None
    usage: _Usage | None = None


class _Owner(msgspec.Struct):
    owned_by: str | None = None


class _Models(msgspec.Struct):
    data: list[_Owner]


class OpenAICompatible(RemoteModel):
    package = "openai"
    path = "/chat/completions"
    client_class = "AsyncOpenAI"

    def key_header(self, key: Key) -> tuple[str, str]:
        return "authorization", f"Bearer {key.reveal()}"

    async def prepare(self, client: Any, request: ChatRequest) -> None:
        if request.grammar and self.capabilities.grammar == "unknown":
            await self._find_dialect(client)

    def read(self, body: bytes, request: ChatRequest) -> ChatAnswer:
        answer = answer_of(msgspec.json.decode(body, type=Completion), self.model)
        held, omitted = self._sends_grammar(request), self.capabilities.omitted(request)
        return msgspec.structs.replace(answer, grammar=held, omitted=omitted)

    def _sends_grammar(self, request: ChatRequest) -> bool:
        return bool(request.grammar) and self.capabilities.grammar in ("llama.cpp", "vllm")

    def body(self, request: ChatRequest) -> dict[str, Any]:
        capabilities = self.capabilities
        body = {"model": self.model} | chat_body(request, system=capabilities.system)
        body[capabilities.token_limit] = request.sampling.max_tokens
        for name in capabilities.omitted(request):
            del body[name]
        if self._sends_grammar(request):
            grammar = {"grammar": request.grammar}
            body |= {"structured_outputs": grammar} if capabilities.grammar == "vllm" else grammar
        return body

    async def _find_dialect(self, client: Any) -> None:
        """Asks who serves. A server that cannot say takes no grammar; one that cannot be reached, or
        refuses the key, fails as the call itself would."""
        try:
            response = await client.get("/models", cast_to=self._http.Response)
            listed = msgspec.json.decode(response.content, type=_Models)
            owners = {owner.owned_by for owner in listed.data}
        except self._sdk.APIStatusError as error:
            status = error.status_code
            if status in (401, 403) or (status >= 500 and status != NOT_IMPLEMENTED):
                raise
            owners = set()
        except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
            owners = set()
        dialects = {"llamacpp": "llama.cpp", "vllm": "vllm"}
        found = [dialect for owner, dialect in dialects.items() if owner in owners]
        self.capabilities.grammar = found[0] if len(found) == 1 else "none"  # type: ignore[assignment]


def chat_body(request: ChatRequest, *, system: bool = True) -> dict[str, Any]:
    """The messages and the chosen settings, without the bound on tokens."""
    messages = [{"role": message.role, "content": message.text} for message in request.messages]
    if request.system and system:
        messages.insert(0, {"role": "system", "content": request.system})
    elif request.system:
        messages[0]["content"] = f"{request.system}\n\n{messages[0]['content']}"
    return {"messages": messages, **request.sampling.chosen()}


def answer_of(completion: Completion, model: str) -> ChatAnswer:
    """A chat completion as an answer; ModelAnswerError if it holds no choice."""
    choice = completion.choices[0] if completion.choices else _Choice()
    message = choice.message
    if message is None:
        raise ModelAnswerError(f"{model} sent an answer without a choice: is this a chat endpoint?")
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
    return int(number) if number is not None and 0 <= number <= MOST_COUNTED_TOKENS else 0
