"""The one retry layer: what is tried again, what it costs, and that the deadline holds."""

from __future__ import annotations

import asyncio
import random
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
    Answer,
    Background,
    Budget,
    BudgetRecord,
    Caller,
    Endpoints,
    Ledger,
    Limits,
    Policy,
    Price,
    Request,
    Sampling,
    Scripted,
    Usage,
    own_price,
    resolve,
)
from shoal.models.prices import FREE, UNPRICED
from shoal.models.protocol import Model
from tests.models.server import Misbehaving

REQUEST = Request.ask("Write a warrior.", sampling=Sampling(max_tokens=64, temperature=1.0, seed=5))
QUICK = Policy(deadline=10, attempts=4, first_wait=0.01, longest_wait=0.02)


def ledger(**limits: float) -> tuple[Ledger, list[BudgetRecord]]:
    records: list[BudgetRecord] = []
    return Ledger(Budget(Limits(**limits)), records.append), records  # type: ignore[arg-type]


def call(
    model: Model,
    book: Ledger | None = None,
    policy: Policy = QUICK,
    price: Price = FREE,
    request: Request = REQUEST,
) -> Answer:
    caller = Caller(model, price, book, policy, Endpoints())
    return asyncio.run(caller.call(request, random.Random(1)))


def test_transient_failures_are_tried_again_and_each_attempt_counts() -> None:
    book, records = ledger(calls=10)
    model = Scripted([ModelServerError("a"), ModelAnswerError("b"), ModelRateLimitError("c", 1.0), "text"])
    answer = call(model, book)
    assert (answer.text, answer.attempts) == ("text", 4)
    assert book.budget.spent.calls == 4
    assert len(records) == 8
    assert Budget.fold(book.budget.limits, records).spent == book.budget.spent


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
    book, _ = ledger(calls=1)
    answer = call(Scripted([ModelServerError("nobody", reached=False)] * 3 + ["text"]), book)
    assert answer.attempts == 1
    assert book.budget.spent.calls == 1


def test_the_budget_ends_the_attempts() -> None:
    book, _ = ledger(calls=2)
    model = Scripted([ModelServerError("down")] * 9)
    with pytest.raises(BudgetError) as caught:
        call(model, book)
    assert len(model.asked) == caught.value.attempts == book.budget.spent.calls == 2


@pytest.mark.parametrize(
    ("failure", "tokens"),
    [
        (ModelRateLimitError("later"), 0),
        (ModelTimeoutError("slow"), None),
        (ModelAnswerError("rubbish"), None),
    ],
)
def test_what_is_not_known_to_be_free_is_booked_in_full(failure: ModelError, tokens: int | None) -> None:
    book, _ = ledger(tokens=10_000)
    with pytest.raises(type(failure)):
        call(Scripted([failure]), book, Policy(attempts=1))
    reserved = REQUEST.most_input_tokens() + 64
    assert book.budget.spent.tokens == (reserved if tokens is None else tokens)
    assert book.budget.spent.calls == 1


def test_usage_that_was_not_reported_is_booked_in_full() -> None:
    book, _ = ledger(tokens=10_000)
    call(Scripted([Answer("x", "m", Usage(reported=False))]), book)
    assert book.budget.spent.tokens == REQUEST.most_input_tokens() + 64


def test_money_is_reserved_at_most_and_settled_as_it_was() -> None:
    book, records = ledger(dollars=1.0)
    call(Scripted([Answer("x", "m", Usage(input=10, output=5))]), book, price=own_price(2.0, 8.0))
    worst = 2 * REQUEST.most_input_tokens() + 8 * 64
    assert records[0].amounts.microdollars == worst
    assert book.budget.spent.microdollars == 2 * 10 + 8 * 5


def test_money_needs_a_price() -> None:
    book, _ = ledger(dollars=1.0)
    with pytest.raises(ConfigError, match="no known price"):
        Caller(Scripted([]), UNPRICED, book)


@given(st.integers(0, 400), st.lists(st.integers(0, 5), max_size=30), st.integers(0, 2**32))
def test_no_sequence_of_failures_exceeds_the_budget(tokens: int, script: list[int], seed: int) -> None:
    outcomes: list[str | Answer | ModelError] = [
        [
            "text",
            ModelServerError("a"),
            ModelTimeoutError("b"),
            ModelServerError("c", reached=False),
            ModelRateLimitError("d", 2.0),
            Answer("e", "m", Usage(input=3, output=4)),
        ][kind]
        for kind in script
    ]
    book, records = ledger(calls=8, tokens=tokens, seconds=40)
    model = Scripted(outcomes)

    async def run() -> None:
        caller = Caller(model, FREE, book, Policy(deadline=30, attempts=3), Endpoints())
        for number in range(12):
            try:
                await caller.call(REQUEST, random.Random(seed + number))
            except ModelError:
                continue

    asyncio.run(run())
    spent = book.budget.spent
    assert spent.calls <= 8
    assert spent.tokens <= tokens
    assert spent.milliseconds <= 40_000
    assert Budget.fold(book.budget.limits, records).spent == spent


def test_a_wait_beyond_the_deadline_is_not_begun() -> None:
    started = time.monotonic()
    with pytest.raises(ModelRateLimitError):
        call(Scripted([ModelRateLimitError("later", retry_after=3600.0), "never"]))
    assert time.monotonic() - started < 5


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
    book, records = ledger(calls=5, tokens=10_000)
    model = resolve(f"{server.root}/v1#hang", environment={}, endpoints=Endpoints())
    caller = Caller(model, FREE, book, QUICK, Endpoints())
    with Background() as background:
        future = background.submit(caller.call(REQUEST, random.Random(1)))
        while not records:
            time.sleep(0.01)
    assert future.cancelled() or future.exception() is not None
    assert book.budget.held == Amounts()
    assert book.budget.spent.calls == 1
    assert book.budget.spent.tokens == REQUEST.most_input_tokens() + 64


def remote(server: Misbehaving, name: str, endpoints: Endpoints) -> Model:
    pytest.importorskip("openai")
    return resolve(f"{server.root}/v1#{name}", environment={}, endpoints=endpoints)


def test_settings_are_learnt_from_refusals_and_remembered(server: Misbehaving) -> None:
    endpoints = Endpoints()
    book, _ = ledger(calls=10)
    caller = Caller(remote(server, "picky", endpoints), FREE, book, QUICK, endpoints)
    first = asyncio.run(caller.call(REQUEST, random.Random(1)))
    assert first.attempts == 4
    assert first.omitted == ("temperature", "seed")
    assert book.budget.spent.calls == 4
    again = Caller(remote(server, "picky", endpoints), FREE, book, QUICK, endpoints)
    second = asyncio.run(again.call(REQUEST, random.Random(1)))
    assert second.attempts == 1
    assert server.seen[-1][1]["max_completion_tokens"] == 64


def test_calls_in_flight_learn_together(server: Misbehaving) -> None:
    endpoints = Endpoints()
    caller = Caller(remote(server, "picky", endpoints), FREE, None, QUICK, endpoints)

    async def run() -> list[Answer]:
        return await asyncio.gather(*(caller.call(REQUEST, random.Random(n)) for n in range(4)))

    assert [answer.text for answer in asyncio.run(run())] == ["MOV 0, 1"] * 4


def test_the_bound_on_the_answer_is_never_dropped(server: Misbehaving) -> None:
    endpoints = Endpoints()
    caller = Caller(remote(server, "no-limit", endpoints), FREE, None, QUICK, endpoints)
    with pytest.raises(ModelSettingError, match="lower max_tokens"):
        asyncio.run(caller.call(REQUEST, random.Random(1)))
    assert all({"max_tokens", "max_completion_tokens"} & set(body) for _, body in server.seen)


@pytest.mark.parametrize(("name", "calls"), [("busy-once", 2), ("broken-twice", 3)])
def test_an_endpoint_that_recovers(server: Misbehaving, name: str, calls: int) -> None:
    endpoints = Endpoints()
    caller = Caller(remote(server, name, endpoints), FREE, None, QUICK, endpoints)
    assert asyncio.run(caller.call(REQUEST, random.Random(1))).attempts == calls


@pytest.mark.parametrize(
    "name", ["hang", "half-open", "drip", "garbage", "html-error", "busy", "unauthorized"]
)
def test_every_failure_ends_within_the_deadline(server: Misbehaving, name: str) -> None:
    endpoints = Endpoints()
    policy = Policy(deadline=0.5, first_wait=0.05, attempt_seconds=0.2)
    caller = Caller(remote(server, name, endpoints), FREE, None, policy, endpoints)
    started = time.monotonic()
    with pytest.raises(ModelError):
        asyncio.run(caller.call(REQUEST, random.Random(1)))
    assert time.monotonic() - started < 5


def test_concurrency_is_shared_by_all_threads_of_a_process(server: Misbehaving) -> None:
    endpoints = Endpoints()
    pytest.importorskip("openai")
    spec = f"{server.root}/v1#slow?concurrency=2"

    def work() -> None:
        caller = Caller(resolve(spec, environment={}, endpoints=endpoints), FREE, None, QUICK, endpoints)

        async def run() -> None:
            await asyncio.gather(*(caller.call(REQUEST, random.Random(n)) for n in range(4)))

        asyncio.run(run())

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert server.calls["slow"] == 12
    assert server.most_active == 2


def test_calls_per_minute_are_spaced(server: Misbehaving) -> None:
    endpoints = Endpoints()
    pytest.importorskip("openai")
    model = resolve(f"{server.root}/v1#fine?rpm=600", environment={}, endpoints=endpoints)
    caller = Caller(model, FREE, None, QUICK, endpoints)

    async def run() -> None:
        await model.answer(REQUEST, timeout=5)
        await asyncio.gather(*(caller.call(REQUEST, random.Random(n)) for n in range(4)))

    asyncio.run(run())
    assert server.times[-1] - server.times[1] > 0.25, "four starts, 0.1 s apart"


def test_a_turn_that_comes_too_late_costs_nothing(server: Misbehaving) -> None:
    endpoints = Endpoints()
    pytest.importorskip("openai")
    model = resolve(f"{server.root}/v1#fine?rpm=1", environment={}, endpoints=endpoints)
    book, _ = ledger(calls=5)
    caller = Caller(model, FREE, book, Policy(deadline=2), endpoints)
    asyncio.run(caller.call(REQUEST, random.Random(1)))
    with pytest.raises(ModelTimeoutError, match="no turn left") as caught:
        asyncio.run(caller.call(REQUEST, random.Random(1)))
    assert not caught.value.reached
    assert book.budget.spent.calls == 1


def test_a_budget_of_seconds_shortens_the_last_attempt(server: Misbehaving) -> None:
    endpoints = Endpoints()
    book, _ = ledger(seconds=0.4)
    policy = Policy(deadline=20, attempts=9, first_wait=0.0, longest_wait=0.0)
    caller = Caller(remote(server, "hang", endpoints), FREE, book, policy, endpoints)
    with pytest.raises(BudgetError) as caught:
        asyncio.run(caller.call(REQUEST, random.Random(1)))
    assert caught.value.quantity == "milliseconds"
    assert book.budget.spent.milliseconds <= 400


def test_time_that_calls_in_flight_hold_may_come_free() -> None:
    book, _ = ledger(seconds=1.0)
    number, reserved = book.reserve(Amounts(calls=1, milliseconds=120_000))
    assert reserved.milliseconds == 1000
    with pytest.raises(BudgetError) as caught:
        book.reserve(Amounts(calls=1, milliseconds=120_000))
    assert caught.value.temporary
    book.settle(number, Amounts(calls=1, milliseconds=1000))
    with pytest.raises(BudgetError) as caught:
        book.reserve(Amounts(calls=1, milliseconds=120_000))
    assert not caught.value.temporary


def test_a_policy_is_checked() -> None:
    with pytest.raises(ConfigError):
        Policy(attempts=0)
    with pytest.raises(ConfigError):
        Policy(deadline=0)
    with pytest.raises(ConfigError):
        Policy(first_wait=5, longest_wait=1)
