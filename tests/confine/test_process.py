"""The generic part of confinement, with a service of the tests' own: replies, limits, deaths, nonsense."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.confine import Coverage, IdleError, Orders, StoppedError, Worker
from shoal.errors import ConfineError
from tests.confine.calculator import Calculation, Deed, Settings

pytestmark = pytest.mark.timeout(120)

HERE = str(Path(__file__).parent)
LONG = 60.0
"""Seconds that no request needs: one that takes them hangs."""


def start(service: str = "calculator:Calculator", memory: int = 1 << 30, **settings: Any) -> Worker:
    orders = Orders(
        parent=os.getpid(),
        service=service,
        settings=raw(Settings(**settings)),
        readable=(),
        memory=memory,
        call_seconds=0.2,
        cpu_seconds=600,
    )
    return Worker(orders, [HERE])


def raw(value: object) -> msgspec.Raw:
    return msgspec.Raw(msgspec.msgpack.encode(value))


def ask(worker: Worker, *requests: object, seconds: float = LONG) -> list[Any]:
    replies, _ = worker.ask([raw(request) for request in requests], seconds)
    return [msgspec.msgpack.decode(reply) for reply in replies]


@pytest.fixture
def worker() -> Iterator[Worker]:
    started = start(greeting="hello")
    yield started
    started.end()


def is_gone(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return True
    return False


def test_each_request_gets_its_reply_in_order(worker: Worker) -> None:
    requests = [Calculation("+", number, 1) for number in range(50)]
    assert ask(worker, *requests) == list(range(1, 51))
    assert ask(worker, Calculation("*", 6, 7), Deed("greet")) == [42, "hello"]


def test_the_coverage_is_told(worker: Worker) -> None:
    assert isinstance(worker.coverage, Coverage)
    assert worker.coverage.platform == sys.platform
    assert worker.coverage.audit_hook


def test_a_request_that_is_not_understood_costs_only_itself(worker: Worker) -> None:
    odd = ask(worker, {"type": "unknown"}, 17, Calculation("+", 1, 1))
    assert [str(one).startswith("not understood") for one in odd] == [True, True, False]
    assert ask(worker, Calculation("+", 2, 2)) == [4]


def test_a_printing_service_disturbs_no_reply(worker: Worker) -> None:
    assert ask(worker, Deed("show"), Calculation("+", 1, 2)) == ["shown", 3]


def test_processor_time_is_limited_within_the_worker(worker: Worker) -> None:
    assert ask(worker, Deed("spin"), Calculation("+", 1, 2)) == ["out of time", 3]


def test_memory_is_limited(worker: Worker) -> None:
    assert ask(worker, Deed("allocate")) == ["out of memory"]
    assert ask(worker, Calculation("+", 1, 2)) == [3]


def test_no_process_can_be_started(worker: Worker) -> None:
    assert ask(worker, Deed("fork")) == ["refused: PermissionError"]


@pytest.mark.parametrize("deed", ["sleep", "swallow"])
def test_wall_time_is_limited_from_outside(worker: Worker, deed: str) -> None:
    with pytest.raises(StoppedError, match="time limit"):
        ask(worker, Deed(deed), seconds=0.3)
    worker.end()
    assert is_gone(worker.process_id)


@pytest.mark.parametrize(
    ("deed", "because"),
    [("die", "ended with code 7"), ("crash_natively", "ended by SIGSEGV"), ("fail", "ended with code 1")],
)
def test_a_death_is_told_with_its_cause(worker: Worker, deed: str, because: str) -> None:
    with pytest.raises(StoppedError, match=because) as caught:
        ask(worker, Deed(deed))
    assert not isinstance(caught.value, IdleError), "it was asked"
    with pytest.raises(IdleError, match="had ended"):
        ask(worker, Calculation("+", 1, 1))


def test_only_the_worker_itself_can_be_signalled_from_inside(worker: Worker) -> None:
    # Python's own door to signals is closed; the native one is tried in test_sandbox.py.
    assert ask(worker, Deed("crash")) == ["refused: PermissionError"]


@pytest.mark.parametrize("deed", ["speak", "forge"])
def test_nonsense_on_the_stream_is_not_taken_for_a_reply(worker: Worker, deed: str) -> None:
    with pytest.raises(StoppedError, match=r"nonsense|another request"):
        ask(worker, Deed(deed))


def test_a_reply_that_is_too_long_is_replaced(worker: Worker) -> None:
    assert ask(worker, Deed("flood")) == ["too long"]
    assert ask(worker, Calculation("+", 1, 1)) == [2], "the worker lives on"


def test_replies_that_are_too_long_together_are_asked_for_apart(worker: Worker) -> None:
    assert ask(worker, Deed("flood"), Calculation("+", 1, 1)) == []
    assert ask(worker, Calculation("+", 1, 1)) == [2]


def test_a_worker_retires_with_its_last_reply() -> None:
    worker = start(messages=3)
    found = [worker.ask([raw(Calculation("+", number, 0))], LONG) for number in range(3)]
    assert [(msgspec.msgpack.decode(replies[0]), retiring) for replies, retiring in found] == [
        (0, False),
        (1, False),
        (2, True),
    ]
    with pytest.raises(StoppedError):
        ask(worker, Calculation("+", 1, 1))
    worker.end()


def test_a_worker_outlives_the_thread_that_started_it() -> None:
    found: list[Worker] = []
    thread = threading.Thread(target=lambda: found.append(start()))
    thread.start()
    thread.join(60)
    assert ask(found[0], Calculation("+", 20, 3)) == [23]
    found[0].end()


def test_an_ended_worker_is_gone_and_ends_twice() -> None:
    worker = start()
    worker.end()
    worker.end()
    assert is_gone(worker.process_id)
    with pytest.raises(IdleError):
        ask(worker, Calculation("+", 1, 1))


@pytest.mark.parametrize("service", ["no_such_module:Service", "calculator:nothing", "calculator:OPERATORS"])
def test_a_service_that_cannot_be_made_is_an_error_at_the_start(service: str) -> None:
    with pytest.raises(ConfineError, match="does not start"):
        start(service)
