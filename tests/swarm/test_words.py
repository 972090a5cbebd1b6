"""Kinds of words between nodes (`direct`), and kinds that a node passes on without looking (`taken=False`)."""

from __future__ import annotations

import random

import msgspec
import pytest

from shoal.errors import ConfigError, ShareRefused
from shoal.swarm.exchange import WORDS, Exchange
from shoal.swarm.kinds import Kind, Kinds
from shoal.swarm.transport.memory import MemoryHub
from tests.swarm.samples import NOW, Rollout, identity, run, settings


class Word(msgspec.Struct, array_like=True, frozen=True):
    to: tuple[str, ...]
    text: str


class Sign(msgspec.Struct, array_like=True, frozen=True):
    to: tuple[str, ...]
    text: str


def kinds(**of_rollouts: bool) -> Kinds:
    return Kinds(
        [
            Kind("rollout", Rollout, 256 << 10, "log", **of_rollouts),
            Kind("word", Word, 1 << 10, "log", direct=True),
            Kind("sign", Sign, 1 << 10, "latest", direct=True),
        ]
    )


def swarm(
    count: int, hub: MemoryHub | None = None, *, of_rollouts: dict[str, bool] | None = None, **changes: object
) -> list[Exchange]:
    """The last one has the kind of rollouts with these differences."""
    hub = hub or MemoryHub()
    return [
        Exchange(
            identity(number),
            hub.open(),
            kinds(**(of_rollouts or {})) if number == count - 1 else kinds(),
            settings(**changes),
            now=NOW,
            rng=random.Random(number),
        )
        for number in range(count)
    ]


def ids(nodes: list[Exchange]) -> list[str]:
    return [node.identity.node_id for node in nodes]


def test_a_word_comes_to_those_that_it_names_and_without_names_to_all() -> None:
    nodes = swarm(4)
    _, b, c, _ = ids(nodes)
    nodes[0].share(Word((b,), "to b"))
    nodes[0].share(Word((b, c), "to b and c"))
    nodes[0].share(Word((), "to all"))
    nodes[0].share(Sign((c,), "a sign to c"))
    run(nodes, 1.0)
    found = [sorted(one.item.text for one in node.gather()) for node in nodes]
    assert found == [
        [],
        ["to all", "to b", "to b and c"],
        ["a sign to c", "to all", "to b and c"],
        ["to all"],
    ]


def test_the_newest_sign_of_an_author_waits() -> None:
    nodes = swarm(2)
    for text in ("one", "two", "three"):
        nodes[0].share(Sign((), text))
        run(nodes, 0.5, now=nodes[0]._now)
    assert [one.item.text for one in nodes[1].gather()] == ["three"]


def test_repeating_the_words_of_another_takes_nothing_from_it() -> None:
    """Equal items of two authors are one item, whose author is drawn by a hash; words are two."""
    for seed in range(8):
        nodes = swarm(3)
        honest, copier, reader = nodes
        text = f"forty-two, says {seed}"
        copier.share(Word((reader.identity.node_id,), text))
        copier.share(Sign((), text))
        run(nodes, 0.5)
        honest.share(Word((reader.identity.node_id,), text))
        honest.share(Sign((), text))
        run(nodes, 0.5, now=reader._now)
        said = {(one.author, one.kind) for one in reader.gather()}
        assert {author for author, _ in said} == set(ids([honest, copier]))
        assert len(said) == 4


def test_words_wait_apart_from_items_and_a_flood_of_them_takes_no_items_place() -> None:
    nodes = swarm(3, frames_burst=4096, frames_per_second=4096.0, inbox_items=64)
    loud, quiet, reader = nodes
    for number in range(40):
        quiet.share(Rollout(number, "text"))
    now = NOW
    for number in range(40):
        for place in range(16):
            loud.share(Word((), f"{number} {place}"))
        now = run(nodes, 0.1, now=now)
    found = reader.gather(64)
    assert sum(one.kind == "rollout" for one in found) == 40
    assert sum(one.kind == "word" for one in found) == WORDS["inbox_author_items"]


def test_words_change_no_draw_of_items() -> None:
    """The same items are drawn with words as without: they have an inbox and randomness of their own."""
    drawn = []
    for words in (0, 30):
        nodes = swarm(4)
        for number in range(30):
            nodes[number % 3].share(Rollout(number, "text"))
        run(nodes, 0.5)
        for number in range(words):
            nodes[number % 3].share(Word((), str(number)))
        now = run(nodes, 0.5, now=nodes[0]._now)
        found = []
        for _ in range(4):
            found.append([one.item.task for one in nodes[3].gather(5) if isinstance(one.item, Rollout)])
            now = run(nodes, 0.1, now=now)
        drawn.append(found)
    assert drawn[0] == drawn[1]
    assert sum(map(len, drawn[0])) == 20


def test_an_unknown_author_is_heard_at_once_among_established_ones() -> None:
    nodes = swarm(3)
    established = nodes[0].identity.node_id
    for _ in range(8):
        nodes[2].credit(established, None, "verified")  # type: ignore[arg-type]
    assert established in nodes[2].accounts.established
    for number in range(12):
        nodes[1].share(Word((), str(number)))
    run(nodes, 1.0)
    assert len(nodes[2].gather(256)) == 12, "no probation for words"


def test_items_that_are_not_taken_are_passed_on_whole() -> None:
    """The middle node holds frames that are larger than any item it takes, and never decodes them."""
    hub = MemoryHub()
    nodes = swarm(2, hub, of_rollouts={"taken": False})
    author, middle = nodes
    author.share(Rollout(1, "x" * 200_000))
    author.share(Word((), "hello"))
    now = run(nodes, 2.0)
    assert [one.item.text for one in middle.gather()] == ["hello"]
    assert middle.figures()["unknown kinds"] == 1
    assert middle.tally.rejected.total() == 0
    # Another one joins where the author is gone, and gets the frames from the middle node.
    author.transport.close()
    late = Exchange(identity(9), hub.open(), kinds(), settings(), now=now, rng=random.Random(9))
    run([middle, late], 20.0, now=now)
    found = late.gather()
    assert [len(one.item.text) for one in found if isinstance(one.item, Rollout)] == [200_000]


def test_a_node_may_send_what_it_does_not_take() -> None:
    nodes = swarm(2, of_rollouts={"taken": False})
    nodes[1].share(Rollout(1, "text"))
    run(nodes, 1.0)
    assert [one.item for one in nodes[0].gather()] == [Rollout(1, "text")]


def test_a_direct_kind_names_its_readers() -> None:
    with pytest.raises(ConfigError, match="must have a field `to`"):
        Kind("rollout", Rollout, 1 << 10, "log", direct=True)


def test_words_do_not_wait_behind_items() -> None:
    """However full a node's outbox is; and an outbox full of words takes items."""
    nodes = swarm(2, frames_per_second=1.0, frames_burst=4)
    author, reader = nodes
    for number in range(900):
        author.share(Rollout(number, "x" * 2_000))
    now = run(nodes, 2.0)
    author.share(Word((reader.identity.node_id,), "urgent"))
    now = run(nodes, 2.0, now=now)
    assert "urgent" in [one.item.text for one in reader.gather() if isinstance(one.item, Word)]
    for number in range(1024):
        author.share(Word((), str(number)))
    with pytest.raises(ShareRefused, match="wait to be sent") as refused:
        author.share(Word((), "one more"))
    assert refused.value.reason == "full"


def test_every_word_and_every_item_goes_out_once_and_in_order() -> None:
    nodes = swarm(2)
    for number in range(60):
        nodes[0].share(Rollout(number, "text") if number % 3 else Word((), str(number)))
    run(nodes, 1.0)
    found = [one.item for one in nodes[1].gather()]
    assert [one.task for one in found if isinstance(one, Rollout)] == [n for n in range(60) if n % 3]
    run(nodes, 1.0, now=nodes[0]._now)
    words = [one.text for one in found if isinstance(one, Word)]
    assert words == [str(number) for number in range(0, 60, 3)][-WORDS["inbox_author_items"] :]
