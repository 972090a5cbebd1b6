"""Models behind HTTP: what is sent, what is understood, and that every misbehaviour has one name."""

from __future__ import annotations

import asyncio
import tracemalloc

import pytest

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
from shoal.models import ChatAnswer, ChatRequest, ChatSampling, Endpoints, Message, Usage, open_model
from shoal.models.anthropic_native import AnthropicModel
from shoal.models.endpoint import Capabilities
from shoal.models.keys import Key
from shoal.models.protocol import Model
from tests.models.server import Misbehaving

pytest.importorskip("openai", reason="the extra `llm` is not installed")
pytest.importorskip("anthropic", reason="the extra `llm` is not installed")

REQUEST = ChatRequest.ask(
    "Write a warrior.", system="You write Redcode.", sampling=ChatSampling(max_tokens=64)
)

FAILURES: list[tuple[str, type[ModelError], str]] = [
    ("hang", ModelTimeoutError, "within"),
    ("half-open", ModelTimeoutError, "within"),
    ("drip", ModelTimeoutError, "within"),
    ("drop", ModelServerError, "broke off"),
    ("garbage", ModelAnswerError, "readable"),
    ("nested", ModelAnswerError, "readable"),
    ("html-error", ModelServerError, "HTML page"),
    ("html-page", ModelAnswerError, "text/html"),
    ("wrong-type", ModelAnswerError, "text/plain"),
    ("huge", ModelAnswerError, "more than"),
    ("huge-error", ModelAnswerError, "more than"),
    ("packed", ModelAnswerError, "packed"),
    ("empty-choices", ModelAnswerError, "without"),
    ("unauthorized", ModelAuthenticationError, "check"),
    ("forbidden", ModelAuthenticationError, "check"),
    ("no-credit", ModelAuthenticationError, "empty"),
    ("busy", ModelRateLimitError, "less often"),
    ("broken", ModelServerError, "oh no second line"),
    ("missing", ModelSettingError, "model name"),
    ("redirect", ModelSettingError, "final URL"),
    ("short-context", ModelSettingError, "shorten"),
]


def compatible(server: Misbehaving, name: str, key: str = "") -> Model:
    environment = {"SHOAL_KEY_127_0_0_1": key} if key else {}
    return open_model(f"{server.root}/v1#{name}", environment=environment, endpoints=Endpoints())


def native(server: Misbehaving, name: str) -> Model:
    return AnthropicModel(
        f"anthropic:{name}",
        url=server.root,
        model=name,
        key=Key("sk-ant-0123456789abcdef"),
        variable="ANTHROPIC_API_KEY",
        capabilities=Capabilities(),
    )


def ask(model: Model, request: ChatRequest = REQUEST, timeout: float = 5.0) -> ChatAnswer:
    async def run() -> ChatAnswer:
        try:
            # A call that outlives its own time limit by a minute hangs.
            return await asyncio.wait_for(model.answer(request, timeout=timeout), timeout + 60)
        finally:
            await model.close()

    return asyncio.run(run())


@pytest.mark.parametrize("make", [compatible, native])
@pytest.mark.parametrize(("name", "kind", "said"), FAILURES)
def test_each_misbehaviour_ends_in_one_named_error(
    server: Misbehaving, make: type, name: str, kind: type[ModelError], said: str
) -> None:
    timeout = 0.6 if kind is ModelTimeoutError else 10.0
    with pytest.raises(ModelError) as caught:
        ask(make(server, name), timeout=timeout)
    assert type(caught.value) is kind
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)
    assert server.calls[name] <= 1, "the vendors' packages must not retry"
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


def test_a_huge_answer_is_not_held_in_memory(server: Misbehaving) -> None:
    model = compatible(server, "huge")
    tracemalloc.start()
    try:
        with pytest.raises(ModelAnswerError):
            ask(model)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 10 << 20


def test_nobody_listens() -> None:
    model = open_model("http://127.0.0.1:9/v1#any", environment={}, endpoints=Endpoints())
    with pytest.raises(ModelServerError, match="cannot be reached") as caught:
        ask(model)
    assert not caught.value.reached


def test_an_answer_is_understood(server: Misbehaving) -> None:
    answer = ask(compatible(server, "fine"))
    assert answer.text == "MOV 0, 1"
    assert answer.model == "fine-2026"
    assert answer.usage == Usage(input=12, output=5, cached=4)
    assert answer.finish == "stop"
    assert 0 < answer.latency < 5
    assert not answer.grammar


def test_the_request_is_sent_as_it_is(server: Misbehaving) -> None:
    sampling = ChatSampling(max_tokens=7, temperature=0.5, top_p=0.9, seed=3, stop=("END",))
    messages = (Message("user", "a"), Message("assistant", "b"), Message("user", "c"))
    ask(compatible(server, "fine"), ChatRequest(messages, "s", sampling))
    _, body = server.seen[0]
    assert body == {
        "model": "fine",
        "messages": [
            {"role": "system", "content": "s"},
            {"role": "user", "content": "a"},
            {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"},
        ],
        "max_tokens": 7,
        "temperature": 0.5,
        "top_p": 0.9,
        "seed": 3,
        "stop": ["END"],
    }


def test_nothing_of_the_environment_reaches_a_foreign_endpoint(
    server: Misbehaving, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in (
        "OPENAI_API_KEY",
        "OPENAI_ORG_ID",
        "OPENAI_PROJECT_ID",
        "ANTHROPIC_API_KEY",
        "ANTHROPIC_AUTH_TOKEN",
    ):
        monkeypatch.setenv(name, "canary-of-another-endpoint")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "x-secret: canary-of-another-endpoint")
    ask(open_model(f"{server.root}/v1#fine", endpoints=Endpoints()))
    headers, _ = server.seen[0]
    assert "canary" not in str(headers)
    assert "authorization" not in {name.lower() for name in headers}
    assert {name.lower() for name in headers} <= {
        "host", "accept", "accept-encoding", "connection", "user-agent", "content-type", "content-length"
    }  # fmt: skip


def test_the_key_of_an_endpoint_reaches_it(server: Misbehaving) -> None:
    ask(compatible(server, "fine", "key-of-this-endpoint"))
    assert server.seen[0][0]["authorization"] == "Bearer key-of-this-endpoint"


def test_anthropic_caches_the_system_text(server: Misbehaving) -> None:
    request = ChatRequest.ask(
        "Write.", system="long text", sampling=ChatSampling(temperature=0.5, seed=1, stop=("X",))
    )
    answer = ask(native(server, "claude"), request)
    headers, body = server.seen[0]
    assert server.paths == ["/v1/messages"]
    assert headers["x-api-key"] == "sk-ant-0123456789abcdef"
    assert body["system"] == [{"type": "text", "text": "long text", "cache_control": {"type": "ephemeral"}}]
    assert body["temperature"] == 0.5
    assert body["stop_sequences"] == ["X"]
    assert "seed" not in body
    assert answer.text == "MOV 0, 1"
    assert answer.usage == Usage(input=130, output=5, cached=100, cache_written=20)
    assert answer.omitted == ("seed",)


@pytest.mark.parametrize(
    ("owner", "option", "field"),
    [
        ("llamacpp", "", "grammar"),
        ("vllm", "", "structured_outputs"),
        ("library", "", None),
        ("llamacpp", "?grammar=off", None),
        ("somebody", "?grammar=llama.cpp", "grammar"),
    ],
)
def test_a_grammar_is_sent_to_servers_that_take_one(
    server: Misbehaving, owner: str, option: str, field: str | None
) -> None:
    server.owner = owner
    model = open_model(f"{server.root}/v1#fine{option}", environment={}, endpoints=Endpoints())
    answer = ask(model, ChatRequest.ask("Write.", grammar='root ::= "x"'))
    _, body = server.seen[0]
    assert {"grammar", "structured_outputs"} & set(body) == ({field} if field else set())
    assert answer.grammar is (field is not None)


def test_without_a_grammar_nobody_asks_who_serves(server: Misbehaving) -> None:
    ask(compatible(server, "fine"))
    assert server.paths == ["/v1/chat/completions"]


def test_usage_that_was_not_reported_is_not_taken_for_nothing(server: Misbehaving) -> None:
    assert not ask(compatible(server, "no-usage")).usage.reported


def test_a_model_may_be_used_in_one_event_loop_after_another(server: Misbehaving) -> None:
    model = compatible(server, "fine")
    for _ in range(3):
        assert asyncio.run(model.answer(REQUEST, timeout=5)).text == "MOV 0, 1"


def test_a_missing_package_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "openai", None)
    with pytest.raises(ConfigError, match=r"shoal-swarm\[llm\]"):
        open_model("http://127.0.0.1:9/v1#any", environment={}, endpoints=Endpoints())
