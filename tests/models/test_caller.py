"""The one retry layer: what is tried again, what it costs, and that the deadline holds."""

from __future__ import annotations

import asyncio
import random
import threading

import pytest
from hypothesis import given, strategies as st

from shoal.errors import (
    BudgetError,
    ConfigError,
    ModelAnswerError,
    ModelAuthenticationError,
    ModelError,
    ModelRateLimitError,
    ModelServerError,
    ModelSettingError,
    ModelTimeoutError,
)
from shoal.models import (
    Amounts,
    Background,
    Caller,
    ChatAnswer,
    ChatRequest,
    ChatSampling,
    Endpoints,
    Patience,
    Price,
    Scripted,
    Spending,
    Usage,
    most_amounts,
    open_model,
    own_price,
)
from shoal.models.prices import FREE
from shoal.models.protocol import Model
from tests.models.server import Misbehaving

REQUEST = ChatRequest.ask("Write a warrior.", sampling=ChatSampling(max_tokens=64, temperature=1.0, seed=5))
HANGS = 60.0
"""Seconds after which a call that should have ended is taken to hang."""
QUICK = Patience(deadline=10, attempts=4, first_wait=0.01, longest_wait=0.02)


def call(
    model: Model,
    spending: Spending | None = None,
    patience: Patience = QUICK,
    price: Price = FREE,
    request: ChatRequest = REQUEST,
) -> ChatAnswer:
    return asyncio.run(Caller(model, price, patience, Endpoints()).call(request, random.Random(1), spending))


def test_transient_failures_are_tried_again_and_each_attempt_counts() -> None:
    before: list[tuple[int, int]] = []
    model = Scripted([ModelServerError("a"), ModelAnswerError("b"), ModelRateLimitError("c", 1.0), "text"])
    spending = Spending(10, lambda number: before.append((number, len(model.asked))))
    answer = call(model, spending)
    assert (answer.text, answer.attempts) == ("text", 4)
    assert spending.spent.calls == 4
    assert before == [(1, 0), (2, 1), (3, 2), (4, 3)], "each attempt is announced before it is sent"
    assert spending.calls_left == 6


@pytest.mark.parametrize(
    "failure", [ModelAuthenticationError("no"), ModelSettingError("no", "model"), ModelSettingError("no", "")]
)
def test_what_does_not_pass_by_itself_is_not_tried_again(failure: ModelError) -> None:
    model = Scripted([failure, "never"])
    with pytest.raises(type(failure)) as caught:
        call(model)
    assert len(model.asked) == caught.value.attempts == 1


def test_attempts_are_bounded() -> None:
    model = Scripted([ModelServerError("down")] * 9)
    with pytest.raises(ModelServerError) as caught:
        call(model)
    assert caught.value.attempts == len(model.asked) == 4


def test_an_attempt_that_reached_nobody_costs_no_call() -> None:
    spending = Spending(1)
    answer = call(Scripted([ModelServerError("nobody", reached=False)] * 3 + ["text"]), spending)
    assert answer.attempts == 1
    assert spending.spent == Amounts(calls=1, tokens=answer.usage.total)


def test_the_calls_that_were_given_end_the_attempts() -> None:
    spending = Spending(2)
    model = Scripted([ModelServerError("down")] * 9)
    with pytest.raises(BudgetError, match="2 calls") as caught:
        call(model, spending)
    assert len(model.asked) == caught.value.attempts == spending.spent.calls == 2
    assert spending.calls_left == 0


def test_an_exception_before_an_attempt_stops_it_and_costs_nothing() -> None:
    def refuse(number: int) -> None:
        if number == 2:
            raise BudgetError("the ledger is empty")

    spending = Spending(5, refuse)
    model = Scripted([ModelServerError("down"), "never"])
    with pytest.raises(BudgetError, match="ledger") as caught:
        call(model, spending)
    assert len(model.asked) == caught.value.attempts == spending.spent.calls == 1
    assert spending.calls_left == 4, "no call stays held"


@pytest.mark.parametrize(
    ("failure", "tokens"),
    [
        (ModelRateLimitError("later"), 0),
        (ModelTimeoutError("slow"), None),
        (ModelAnswerError("rubbish"), None),
    ],
)
def test_what_is_not_known_to_be_free_is_booked_in_full(failure: ModelError, tokens: int | None) -> None:
    spending = Spending()
    with pytest.raises(type(failure)):
        call(Scripted([failure]), spending, Patience(attempts=1))
    most = REQUEST.most_input_tokens() + 64
    assert spending.spent == Amounts(1, most if tokens is None else tokens)


def test_usage_that_was_not_reported_is_booked_in_full() -> None:
    spending = Spending()
    call(Scripted([ChatAnswer("x", "m", Usage(reported=False))]), spending)
    assert spending.spent.tokens == REQUEST.most_input_tokens() + 64


def test_money_is_booked_as_it_was_and_at_most_the_most() -> None:
    spending, price = Spending(), own_price(2.0, 8.0)
    call(Scripted([ChatAnswer("x", "m", Usage(input=10, output=5))]), spending, price=price)
    assert spending.spent.microdollars == 2 * 10 + 8 * 5
    assert most_amounts(REQUEST, price).microdollars == 2 * REQUEST.most_input_tokens() + 8 * 64


@given(st.integers(0, 8), st.lists(st.integers(0, 5), max_size=30), st.integers(0, 2**32))
def test_no_sequence_of_failures_makes_more_calls_than_given(
    calls: int, script: list[int], seed: int
) -> None:
    outcomes: list[str | ChatAnswer | ModelError] = [
        [
            "text",
            ModelServerError("a"),
            ModelTimeoutError("b"),
            ModelServerError("c", reached=False),
            ModelRateLimitError("d", 2.0),
            ChatAnswer("e", "m", Usage(input=3, output=4)),
        ][kind]
        for kind in script
    ]
    numbers: list[int] = []
    spending = Spending(calls, numbers.append)
    model = Scripted(outcomes)

    async def run() -> None:
        caller = Caller(model, FREE, Patience(deadline=30, attempts=3), Endpoints())
        for number in range(12):
            try:
                await caller.call(REQUEST, random.Random(seed + number), spending)
            except ModelError:
                continue

    asyncio.run(run())
    assert spending.spent.calls <= calls
    assert spending.calls_left == calls - spending.spent.calls
    assert numbers == list(range(1, len(model.asked) + 1))


def test_overlapping_calls_share_what_was_given(server: Misbehaving) -> None:
    pytest.importorskip("openai")
    endpoints, numbers = Endpoints(), list[int]()
    spending = Spending(3, numbers.append)
    caller = Caller(remote(server, "slow", endpoints), FREE, QUICK, endpoints)

    async def run() -> list[ChatAnswer | BaseException]:
        questions = [caller.call(REQUEST, random.Random(n), spending) for n in range(6)]
        return await asyncio.gather(*questions, return_exceptions=True)

    found = asyncio.run(run())
    assert sum(isinstance(one, ChatAnswer) for one in found) == 3
    assert sum(isinstance(one, BudgetError) for one in found) == 3
    assert server.calls["slow"] == spending.spent.calls == 3
    assert sorted(numbers) == [1, 2, 3]


def test_threads_share_what_was_given() -> None:
    spending, granted = Spending(50), list[int]()

    def work() -> None:
        for _ in range(40):
            try:
                spending.begin()
            except BudgetError:
                continue
            granted.append(1)
            spending.end(Amounts(calls=1))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(granted) == spending.spent.calls == 50


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    model = Scripted([ModelRateLimitError("later", retry_after=3600.0), "never"])
    with pytest.raises(ModelRateLimitError):
        call(model)
    assert len(model.asked) == 1


def test_jitter_comes_from_the_callers_generator_only() -> None:
    states = []
    for _ in range(2):
        rng = random.Random(9)
        caller = Caller(Scripted([ModelServerError("x"), "text"]), FREE, endpoints=Endpoints())
        asyncio.run(caller.call(REQUEST, rng))
        states.append(rng.random())
    assert states[0] == states[1] != random.Random(9).random()


def test_a_cancelled_call_is_booked_and_nothing_stays_held(server: Misbehaving) -> None:
    pytest.importorskip("openai")
    begun = threading.Event()
    spending = Spending(5, lambda number: begun.set())
    model = open_model(f"{server.root}/v1#hang", environment={}, endpoints=Endpoints())
    with Background() as background:
        work = Caller(model, FREE, QUICK, Endpoints()).call(REQUEST, random.Random(1), spending)
        future = background.submit(work)
        assert begun.wait(30)
    assert future.cancelled() or future.exception() is not None
    assert spending.spent == Amounts(1, REQUEST.most_input_tokens() + 64)
    assert spending.calls_left == 4


def remote(server: Misbehaving, name: str, endpoints: Endpoints) -> Model:
    pytest.importorskip("openai")
    return open_model(f"{server.root}/v1#{name}", environment={}, endpoints=endpoints)


def test_settings_are_learnt_from_refusals_and_remembered(server: Misbehaving) -> None:
    endpoints = Endpoints()
    spending = Spending(10)
    caller = Caller(remote(server, "picky", endpoints), FREE, QUICK, endpoints)
    first = asyncio.run(caller.call(REQUEST, random.Random(1), spending))
    assert first.attempts == 4
    assert first.omitted == ("temperature", "seed")
    assert spending.spent.calls == 4
    again = Caller(remote(server, "picky", endpoints), FREE, QUICK, endpoints)
    second = asyncio.run(again.call(REQUEST, random.Random(1)))
    assert second.attempts == 1
    assert server.seen[-1][1]["max_completion_tokens"] == 64


def test_calls_in_flight_learn_together(server: Misbehaving) -> None:
    endpoints = Endpoints()
    caller = Caller(remote(server, "picky", endpoints), FREE, QUICK, endpoints)

    async def run() -> list[ChatAnswer]:
        return await asyncio.gather(*(caller.call(REQUEST, random.Random(n)) for n in range(4)))

    assert [answer.text for answer in asyncio.run(run())] == ["MOV 0, 1"] * 4


def test_the_bound_on_the_answer_is_never_dropped(server: Misbehaving) -> None:
    endpoints = Endpoints()
    caller = Caller(remote(server, "no-limit", endpoints), FREE, QUICK, endpoints)
    with pytest.raises(ModelSettingError, match="lower max_tokens"):
        asyncio.run(caller.call(REQUEST, random.Random(1)))
    assert all({"max_tokens", "max_completion_tokens"} & set(body) for _, body in server.seen)


@pytest.mark.parametrize(("name", "calls"), [("busy-once", 2), ("broken-twice", 3)])
def test_an_endpoint_that_recovers(server: Misbehaving, name: str, calls: int) -> None:
    endpoints = Endpoints()
    caller = Caller(remote(server, name, endpoints), FREE, QUICK, endpoints)
    assert asyncio.run(caller.call(REQUEST, random.Random(1))).attempts == calls


@pytest.mark.parametrize(
    "name", ["hang", "half-open", "drip", "garbage", "html-error", "busy", "unauthorized"]
)
def test_every_failure_ends_within_the_deadline(server: Misbehaving, name: str) -> None:
    endpoints = Endpoints()
    patience = Patience(deadline=0.5, first_wait=0.05, attempt_seconds=0.2)
    caller = Caller(remote(server, name, endpoints), FREE, patience, endpoints)
    with pytest.raises(ModelError):
        asyncio.run(asyncio.wait_for(caller.call(REQUEST, random.Random(1)), HANGS))


def test_concurrency_is_shared_by_all_threads_of_a_process(server: Misbehaving) -> None:
    endpoints = Endpoints()
    pytest.importorskip("openai")
    spec = f"{server.root}/v1#slow?concurrency=2"

    def work() -> None:
        caller = Caller(open_model(spec, environment={}, endpoints=endpoints), FREE, QUICK, endpoints)

        async def run() -> None:
            await asyncio.gather(*(caller.call(REQUEST, random.Random(n)) for n in range(4)))

        asyncio.run(run())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert server.calls["slow"] == 12
    assert server.most_active == 2


def test_calls_per_minute_are_spaced(server: Misbehaving) -> None:
    endpoints = Endpoints()
    pytest.importorskip("openai")
    model = open_model(f"{server.root}/v1#fine?rpm=600", environment={}, endpoints=endpoints)
    caller = Caller(model, FREE, QUICK, endpoints)

    async def run() -> None:
        await model.answer(REQUEST, timeout=5)
        await asyncio.gather(*(caller.call(REQUEST, random.Random(n)) for n in range(4)))

    asyncio.run(run())
    assert server.times[-1] - server.times[1] > 0.25, "four starts, 0.1 s apart"


def test_a_turn_that_comes_too_late_costs_nothing(server: Misbehaving) -> None:
    endpoints = Endpoints()
    pytest.importorskip("openai")
    model = open_model(f"{server.root}/v1#fine?rpm=1", environment={}, endpoints=endpoints)
    spending = Spending(5)
    caller = Caller(model, FREE, Patience(deadline=2), endpoints)
    asyncio.run(caller.call(REQUEST, random.Random(1), spending))
    with pytest.raises(ModelTimeoutError, match="no turn left") as caught:
        asyncio.run(caller.call(REQUEST, random.Random(1), spending))
    assert not caught.value.reached
    assert spending.spent.calls == 1


def test_patience_is_checked() -> None:
    with pytest.raises(ConfigError):
        Patience(attempts=0)
    with pytest.raises(ConfigError):
        Patience(deadline=0)
    with pytest.raises(ConfigError):
        Patience(first_wait=5, longest_wait=1)
