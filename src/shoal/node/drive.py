"""The drivers of nodes: in the field, and several in one process. They run the same nodes and differ in the
source of time and in the order of calls. The simulator calls `Node.advance` itself."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Sequence
from itertools import count
from types import FrameType
from typing import Any, Protocol

from shoal.node.node import Node

AnyNode = Node[Any, Any, Any, Any]

LONGEST_WAIT = 0.2
"""Seconds after which a waiting driver looks up at the latest, to see a wish to stop."""
GRACE = 30.0
"""Seconds that calls under way have to end when a stop is requested."""


class Ticks(Protocol):
    """An exchange that has no thread of its own."""

    def tick(self, now: float) -> object: ...


class Stop:
    """A wish to stop, from SIGINT, SIGTERM or `request()`. A second SIGINT interrupts at once; with
    `at_once`, for a driver that waits for a person, the first signal does. As a context manager it takes the
    signals over and gives them back; outside of the main thread it only listens to `request()`."""

    def __init__(self) -> None:
        self.reason = ""
        self.at_once = False
        self._event = threading.Event()
        self._before: dict[int, Any] = {}

    @property
    def requested(self) -> bool:
        return self._event.is_set()

    def request(self, reason: str = "stopped") -> None:
        self.reason = self.reason or reason
        self._event.set()

    def __enter__(self) -> Stop:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._before[number] = signal.signal(number, self._on_signal)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        self._before.clear()

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        is_second = self.requested and number == signal.SIGINT
        self.request(signal.Signals(number).name)
        if is_second or self.at_once:
            raise KeyboardInterrupt


def run_in_field(
    node: AnyNode,
    stop: Stop,
    *,
    clock: Callable[[], float] = time.time,
    grace: float = GRACE,
    after_turn: Callable[[], None] = lambda: None,
) -> str:
    """Drives one node until it has finished or is asked to stop, closes it, and returns the reason. After a
    wish to stop, the calls under way, which are paid for, have `grace` seconds to end and be journaled."""
    reason = ""
    try:
        while not reason:
            status = node.step(clock())
            if status == "turned":
                after_turn()
            if status == "finished":
                reason = node.finished_because
            elif stop.requested:
                reason = stop.reason
                _collect_rest(node, clock, grace)
            elif status == "waiting":
                _wait(node, clock())
            elif status == "resting":
                _rest(node, clock())
        node.close(clock(), reason)
    except BaseException:
        node.abandon()
        raise
    return reason


def run_in_threads(
    nodes: Sequence[AnyNode], stop: Stop, *, clock: Callable[[], float] = time.time, grace: float = GRACE
) -> list[str]:
    """`run_in_field` for several nodes, each in its thread. If one fails, all stop, and it raises here."""
    reasons = [""] * len(nodes)
    failures: list[BaseException] = []

    def drive(index: int) -> None:
        try:
            reasons[index] = run_in_field(nodes[index], stop, clock=clock, grace=grace)
        except BaseException as error:
            failures.append(error)
            stop.request(f"node {nodes[index].name} failed")

    threads = [threading.Thread(target=drive, args=(index,), daemon=True) for index in range(len(nodes))]
    for thread in threads:
        thread.start()
    for thread in threads:
        # In short waits, so that the main thread can take signals meanwhile.
        while thread.is_alive():
            thread.join(LONGEST_WAIT)
    if failures:
        raise failures[0]
    return reasons


def run_in_turns(
    nodes: Sequence[AnyNode],
    exchanges: Sequence[Ticks] = (),
    *,
    clock: Callable[[], float],
    most_rounds: int | None = None,
) -> bool:
    """Drives several nodes in this thread: each round every node takes at most one turn and every exchange a
    tick. True once all have finished; False after `most_rounds`. Closes nothing. A counting clock makes it
    deterministic."""
    for _ in count() if most_rounds is None else range(most_rounds):
        statuses = [node.advance(clock()) for node in nodes]
        now = clock()
        for exchange in exchanges:
            exchange.tick(now)
        if all(status == "finished" for status in statuses):
            return True
        if all(status in ("finished", "waiting", "resting") for status in statuses):
            for node in nodes:
                node.outside.wait(LONGEST_WAIT / len(nodes))
    return False


def _collect_rest(node: AnyNode, clock: Callable[[], float], grace: float) -> None:
    node.outside.stopping()
    until = clock() + grace
    while node.unanswered and (now := clock()) < until:
        _wait(node, now)
        node.collect(clock())


def _rest(node: AnyNode, now: float) -> None:
    """Sleeps until the node is to be called again, and no longer than a wish to stop may wait."""
    wake_at = node.wake_at()
    time.sleep(LONGEST_WAIT if wake_at is None else min(LONGEST_WAIT, max(0.0, wake_at - now)))


def _wait(node: AnyNode, now: float) -> None:
    wake_at = node.wake_at()
    node.outside.wait(LONGEST_WAIT if wake_at is None else min(LONGEST_WAIT, max(0.0, wake_at - now)))
