"""An exchange that plays a script, and what tests of the loop have in common."""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec
from examples.hypotenuses import Hypotenuses, Known, Legs, Search, Triangle, search_legs

from shoal.errors import ShareRefused
from shoal.node import Call, Delayed, Node, NodeSettings
from shoal.runs import Checkpoints, JournalLike, MemoryJournal, derive
from shoal.runs.records import Content, content_of
from shoal.swarm.authors import Place, Received

LIMIT = 24


def received(hypotenuse: int, legs: tuple[int, int], seq: int = 1, author: str = "peer") -> Received:
    return Received(author, "triangle", Triangle(hypotenuse, legs), 7, seq, 0, 0.0, 0.0, b"%d" % hypotenuse)


class ScriptedExchange:
    """Hands out `batches`, one per gather, then nothing; keeps what it is told."""

    def __init__(self, batches: Sequence[Sequence[Received]] = (), refuse: str = "") -> None:
        self.batches = [list(batch) for batch in batches]
        self.refuse = refuse
        self.shared: list[msgspec.Struct] = []
        self.credits: list[tuple[int, str, str]] = []
        self.handed_back: list[str] = []

    def share(self, item: msgspec.Struct) -> None:
        if self.refuse:
            raise ShareRefused(self.refuse, "size")
        self.shared.append(item)

    def gather(self, limit: int | None = None) -> list[Received]:
        return self.batches.pop(0) if self.batches else []

    def credit(self, author: str, place: Place, outcome: str, reason: str = "") -> None:
        self.credits.append((place.seq, outcome, reason))

    def hand_back(self, author: str) -> None:
        self.handed_back.append(author)


def out_of_order(call: Call) -> float:
    """A delay that makes later calls overtake earlier ones."""
    return derive(5, "delay", call.turn, call.attempt).choice([0.1, 0.7, 2.3, 4.1])


def make_node(
    journal: JournalLike,
    exchange: ScriptedExchange | None = None,
    *,
    look_ahead: int = 1,
    delay: Callable[[Call], float] = lambda call: 0.0,
    answer: Callable[[Known, Search], Any] = search_legs,
    application: Hypotenuses | None = None,
    checkpoints: Checkpoints | None = None,
    now: float = 0.0,
    **settings: Any,
) -> Node[Known, Search, Legs, None]:
    return Node(
        application or Hypotenuses(LIMIT),
        Delayed(answer, delay),
        name="a",
        seed=3,
        journal=journal,
        now=now,
        exchange=exchange,
        settings=NodeSettings(look_ahead=look_ahead, **settings),
        checkpoints=checkpoints,
    )


def run(node: Node[Known, Search, Legs, None], *, start: float = 0.0, most_turns: int = 10_000) -> float:
    """Runs in virtual time until the node has finished; returns the time."""
    now = start
    while node.turns < most_turns and (status := node.advance(now)) != "finished":
        if status == "waiting":
            wake_at = node.wake_at()
            assert wake_at is not None, "a waiting node knows what it waits for"
            now = max(now, wake_at)
    return now


def contents(journal: JournalLike, *kinds: type) -> list[Content]:
    found = [content_of(record) for record in journal.read()]
    return [content for content in found if content is not None and (not kinds or isinstance(content, kinds))]


def journal_of(lines: Sequence[bytes]) -> MemoryJournal:
    """A journal that holds these lines, as after a crash."""
    journal = MemoryJournal()
    journal.lines = list(lines)
    journal.last_number = len(lines)
    return journal
