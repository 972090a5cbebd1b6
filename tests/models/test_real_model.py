"""A real language model: SmolLM2 in this process, and behind llama.cpp's own HTTP server."""

from __future__ import annotations

import asyncio
import random
import re

import pytest

from shoal.errors import ModelSettingError, ModelTimeoutError
from shoal.models import (
    PRESETS,
    Caller,
    ChatAnswer,
    ChatRequest,
    ChatSampling,
    Endpoints,
    LlamaServer,
    LlamaSettings,
    Model,
    Patience,
    Spending,
    local_settings,
    open_model,
    parse_spec,
)
from shoal.models.prices import FREE

pytest.importorskip("xllamacpp", reason="the extra `local` is not installed")
if PRESETS["smollm2"].find() is None:
    pytest.skip(f"no model: {PRESETS['smollm2'].command()}", allow_module_level=True)

GRAMMAR = r"""
root ::= line line line
line ::= opcode " " mode number ", " mode number "\n"
opcode ::= "MOV" | "ADD" | "JMP" | "DAT"
mode ::= "#" | "$" | "@"
number ::= [0-9] | "-" [1-9]
"""
LINE = r"(MOV|ADD|JMP|DAT) [#$@](\d|-[1-9]), [#$@](\d|-[1-9])\n"
REQUEST = ChatRequest.ask(
    "Write a warrior of three lines.",
    system="You write Redcode.",
    sampling=ChatSampling(max_tokens=80, temperature=1.0, seed=1),
    grammar=GRAMMAR,
)
SPEC = "local:smollm2?threads=1&context=1024"


def call(model: Model, request: ChatRequest = REQUEST, endpoints: Endpoints | None = None) -> ChatAnswer:
    spending = Spending(3)
    caller = Caller(model, FREE, Patience(deadline=30, attempts=1), endpoints or Endpoints())
    answer = asyncio.run(caller.call(request, random.Random(1), spending))
    assert spending.spent.tokens == answer.usage.total > 0
    assert spending.spent.calls == 1
    return answer


def test_in_this_process() -> None:
    endpoints = Endpoints()
    model = open_model(SPEC, endpoints=endpoints)
    first = call(model, endpoints=endpoints)
    assert re.fullmatch(LINE * 3, first.text)
    assert (first.grammar, first.model, first.finish) == (True, "smollm2", "stop")
    assert call(model, endpoints=endpoints).text == first.text, "one seed, one text"
    free = ChatRequest.ask("Write a warrior.", sampling=ChatSampling(max_tokens=12, seed=2))
    unconstrained = call(model, free, endpoints)
    assert not unconstrained.grammar
    assert unconstrained.usage.output <= 12

    story = ChatRequest.ask(
        "Tell me a very long story.", sampling=ChatSampling(max_tokens=900, temperature=1.0, seed=3)
    )
    with pytest.raises(ModelTimeoutError):
        asyncio.run(asyncio.wait_for(model.answer(story, timeout=0.2), 60))
    with pytest.raises(ModelSettingError, match="grammar") as refused:
        asyncio.run(model.answer(ChatRequest.ask("x", grammar="root ::= (("), timeout=20))
    assert refused.value.setting == "grammar"
    with pytest.raises(ModelSettingError) as refused:
        asyncio.run(model.answer(ChatRequest.ask("word " * 3000), timeout=20))
    assert refused.value.setting == "messages"


def test_behind_its_own_server() -> None:
    pytest.importorskip("openai", reason="the extra `llm` is not installed")
    settings = local_settings(parse_spec(SPEC))
    assert isinstance(settings, LlamaSettings)
    with LlamaServer(settings) as server:
        answer = call(open_model(server.spec, environment=server.environment, endpoints=Endpoints()))
        assert re.fullmatch(LINE * 3, answer.text)
        assert answer.grammar
        assert answer.model == "smollm2"
        wrong = {"SHOAL_KEY_LLAMA_SERVER": "not-the-key"}
        with pytest.raises(Exception, match="refuses the key"):
            call(open_model(server.spec, environment=wrong, endpoints=Endpoints()))
