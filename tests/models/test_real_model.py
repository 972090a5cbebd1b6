"""A real language model: SmolLM2 in this process, and behind llama.cpp's own HTTP server."""

from __future__ import annotations

import asyncio
import random
import re
import time

import pytest

from shoal.errors import ModelSettingError, ModelTimeoutError
from shoal.models import (
    PRESETS,
    Answer,
    Budget,
    Caller,
    Endpoints,
    Ledger,
    Limits,
    LlamaServer,
    LlamaSettings,
    Model,
    Policy,
    Request,
    Sampling,
    local_settings,
    parse_spec,
    resolve,
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
REQUEST = Request.ask(
    "Write a warrior of three lines.",
    system="You write Redcode.",
    sampling=Sampling(max_tokens=80, temperature=1.0, seed=1),
    grammar=GRAMMAR,
)
SPEC = "local:smollm2?threads=1&context=1024"


def call(model: Model, request: Request = REQUEST, endpoints: Endpoints | None = None) -> Answer:
    book = Ledger(Budget(Limits(calls=3, tokens=5000)))
    caller = Caller(model, FREE, book, Policy(deadline=30, attempts=1), endpoints or Endpoints())
    answer = asyncio.run(caller.call(request, random.Random(1)))
    assert book.budget.spent.tokens == answer.usage.total > 0
    assert book.budget.spent.calls == 1
    return answer


def test_in_this_process() -> None:
    endpoints = Endpoints()
    model = resolve(SPEC, endpoints=endpoints)
    first = call(model, endpoints=endpoints)
    assert re.fullmatch(LINE * 3, first.text)
    assert (first.grammar, first.model, first.finish) == (True, "smollm2", "stop")
    assert call(model, endpoints=endpoints).text == first.text, "one seed, one text"
    free = Request.ask("Write a warrior.", sampling=Sampling(max_tokens=12, seed=2))
    unconstrained = call(model, free, endpoints)
    assert not unconstrained.grammar
    assert unconstrained.usage.output <= 12

    story = Request.ask(
        "Tell me a very long story.", sampling=Sampling(max_tokens=900, temperature=1.0, seed=3)
    )
    started = time.monotonic()
    with pytest.raises(ModelTimeoutError):
        asyncio.run(model.answer(story, timeout=0.2))
    assert time.monotonic() - started < 5
    with pytest.raises(ModelSettingError, match="grammar") as refused:
        asyncio.run(model.answer(Request.ask("x", grammar="root ::= (("), timeout=20))
    assert refused.value.setting == "grammar"
    with pytest.raises(ModelSettingError) as refused:
        asyncio.run(model.answer(Request.ask("word " * 3000), timeout=20))
    assert refused.value.setting == "messages"


def test_behind_its_own_server() -> None:
    pytest.importorskip("openai", reason="the extra `llm` is not installed")
    settings = local_settings(parse_spec(SPEC))
    assert isinstance(settings, LlamaSettings)
    with LlamaServer(settings) as server:
        answer = call(resolve(server.spec, environment=server.environment, endpoints=Endpoints()))
        assert re.fullmatch(LINE * 3, answer.text)
        assert answer.grammar
        assert answer.model == "smollm2"
        wrong = {"SHOAL_KEY_LLAMA_SERVER": "not-the-key"}
        with pytest.raises(Exception, match="refuses the key"):
            call(resolve(server.spec, environment=wrong, endpoints=Endpoints()))
