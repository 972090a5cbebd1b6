"""Law 8: a recorded run plays back bit for bit, without a model, in any order; a miss is refused."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Mapping
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from shoal.errors import (
    CassetteError,
    ConfigError,
    ModelAnswerError,
    ModelError,
    ModelRateLimitError,
    ModelServerError,
    ModelSettingError,
    ModelTimeoutError,
)
from shoal.models import (
    Amounts,
    BuiltinModel,
    Caller,
    Cassette,
    ChatAnswer,
    ChatRequest,
    ChatSampling,
    Endpoints,
    Patience,
    Recording,
    Scripted,
    Spending,
    Usage,
    open_model,
    parse_spec,
    price_for,
)
from shoal.models.prices import FREE


def ask(number: int) -> ChatRequest:
    return ChatRequest.ask(f"question {number}", sampling=ChatSampling(seed=number))


def run(model: object, order: list[int]) -> tuple[list[str], list[Amounts], list[int]]:
    """The answers of a run, the spending after each question, and the attempts that were announced."""
    attempts: list[int] = []
    spending = Spending(50, attempts.append)
    caller = Caller(model, FREE, Patience(deadline=100, attempts=3), Endpoints())  # type: ignore[arg-type]
    seen, spent = [], []
    for number in order:
        try:
            answer = asyncio.run(caller.call(ask(number), random.Random(number), spending))
            seen.append(msgspec.json.encode(answer).decode())
        except ModelError as error:
            seen.append(f"{type(error).__name__} {error} {error.attempts}")
        spent.append(spending.spent)
    return seen, spent, attempts


failures = st.sampled_from(
    [
        ModelServerError("down"),
        ModelServerError("nobody", reached=False),
        ModelTimeoutError("slow"),
        ModelAnswerError("rubbish"),
        ModelRateLimitError("later", 3.0),
        ModelSettingError("no", "temperature"),
        ModelSettingError("no", "model"),
    ]
)
answers = st.builds(
    ChatAnswer, st.text(max_size=20), st.just("m"), st.builds(Usage, st.integers(0, 9)), st.floats(0, 60)
)


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(failures | answers, min_size=1, max_size=25), st.lists(st.integers(0, 3), max_size=8))
def test_a_replay_equals_the_recorded_run(
    tmp_path_factory: pytest.TempPathFactory, script: list[ChatAnswer | ModelError], order: list[int]
) -> None:
    path = tmp_path_factory.mktemp("cassette") / "calls.jsonl"
    recorded = run(Recording(Scripted(script), Cassette.at(path)), order)
    if not order:
        return
    for _ in range(2):
        assert run(open_model("fake:scripted", replay=path), order) == recorded
    Cassette.at(path).close()


def test_calls_are_found_by_content_and_number_not_by_order(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    model = Recording(Scripted(["a", "b", "c"]), Cassette.at(path))
    for number in (1, 2, 1):
        model.answer_now(ask(number))
    replayed = open_model(f"cassette:{path}")
    texts = [asyncio.run(replayed.answer(ask(number), timeout=1)).text for number in (1, 1, 2)]
    assert texts == ["a", "c", "b"]


def test_a_miss_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    open_model("fake:hello", record=path).answer_now(ask(1))  # type: ignore[attr-defined]
    replayed = open_model(f"cassette:{path}")
    with pytest.raises(CassetteError, match="prompt, settings or seed differ"):
        asyncio.run(replayed.answer(ask(2), timeout=1))
    asyncio.run(replayed.answer(ask(1), timeout=1))
    with pytest.raises(CassetteError, match="only 1 answers"):
        asyncio.run(replayed.answer(ask(1), timeout=1))
    with pytest.raises(CassetteError, match=r"no calls of fake:other, only of fake:hello"):
        asyncio.run(open_model("fake:other", replay=path).answer(ask(1), timeout=1))
    with pytest.raises(ConfigError, match="no cassette"):
        open_model(f"cassette:{tmp_path / 'none.jsonl'}")


def test_a_replay_needs_neither_key_nor_package(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    Recording(Scripted(["text"], "openai:gpt-5-mini"), Cassette.at(path)).answer_now(ask(1))
    replayed = open_model("openai:gpt-5-mini", environment={}, replay=path)
    assert asyncio.run(replayed.answer(ask(1), timeout=1)).text == "text"


def test_several_models_share_a_cassette(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    for text in ("one", "two"):
        open_model(f"fake:{text}", record=path).answer_now(ask(1))  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="name one"):
        open_model(f"cassette:{path}")
    assert asyncio.run(open_model(f"cassette:{path}#fake:two").answer(ask(1), timeout=1)).text == "two"


def test_a_torn_last_line_is_ignored_and_recording_goes_on(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    Recording(Scripted(["a", "b"]), Cassette.at(path)).answer_now(ask(1))
    Cassette.at(path).close()
    whole = path.read_bytes()
    path.write_bytes(whole + whole[: len(whole) // 2])
    cassette = Cassette(path)
    Recording(Scripted(["c"]), cassette).answer_now(ask(1))
    cassette.close()
    assert path.read_bytes().startswith(whole)
    assert [call.answer.text for call in Cassette(path).calls.values() if call.answer] == ["a", "c"]


def test_damage_is_named_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    Recording(Scripted(["a"]), Cassette.at(path)).answer_now(ask(1))
    Cassette.at(path).close()
    good = path.read_bytes()
    for bad in (b"rubbish\n", good.replace(b"question 1", b"question 9"), b"[" * 100_000 + b"\n"):
        path.write_bytes(good + bad)
        with pytest.raises(CassetteError, match="line 2"):
            Cassette(path)


def test_a_second_writer_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("fcntl")
    path = tmp_path / "calls.jsonl"
    first, second = Cassette(path), Cassette(path)
    Recording(Scripted(["a"]), first).answer_now(ask(1))
    with pytest.raises(CassetteError, match="two files"):
        Recording(Scripted(["b"]), second).answer_now(ask(2))
    first.close()


def test_a_builtin_model_depends_on_the_request_only() -> None:
    def dice(values: Mapping[str, str], rng: random.Random) -> str:
        return str(rng.random())

    models = [BuiltinModel("builtin:dice", dice) for _ in range(2)]
    first = [models[0].answer_now(ask(number)).text for number in range(5)]
    second = [models[1].answer_now(ask(number)).text for number in reversed(range(5))]
    assert first == second[::-1]
    assert len(set(first)) == 5
    assert price_for(parse_spec("builtin:dice")) == FREE


def test_a_builtin_model_gets_the_values_that_no_endpoint_gets() -> None:
    parent = "MOV 0, 1\n```\nJMP -1\n"
    request = ChatRequest.ask("question", values={"program": parent})
    assert (
        BuiltinModel("builtin:copy", lambda values, rng: values["program"]).answer_now(request).text == parent
    )
    assert request.digest() == ChatRequest.ask("question").digest()


def test_a_builtin_model_that_fails_is_a_model_error() -> None:
    with pytest.raises(ModelAnswerError, match="ZeroDivisionError") as caught:
        BuiltinModel("builtin:broken", lambda values, rng: str(1 // 0)).answer_now(ask(1))
    assert not caught.value.transient


def test_a_builtin_model_is_opened_by_its_domain_only() -> None:
    with pytest.raises(ConfigError, match="operator of a domain"):
        open_model("builtin:bomber")


def test_fakes_by_spec() -> None:
    assert open_model("fake:echo").answer_now(ask(7)).text == "question 7"  # type: ignore[attr-defined]
    assert open_model("fake:a\\nb").answer_now(ask(7)).text == "a\nb"  # type: ignore[attr-defined]
    with pytest.raises(ModelTimeoutError):
        open_model("fake:error=time-out").answer_now(ask(7))  # type: ignore[attr-defined]
    with pytest.raises(ConfigError, match="unknown error"):
        open_model("fake:error=nothing")
    with pytest.raises(ConfigError, match="take no options"):
        open_model("fake:echo?temperature=1")
