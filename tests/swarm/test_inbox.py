"""The laws of the inbox: order does not matter, duplicates change nothing, nobody crowds out the others."""

from __future__ import annotations

import random
from hashlib import blake2b

from hypothesis import given, strategies as st

from shoal.swarm.accounts import Accounts
from shoal.swarm.authors import Received
from shoal.swarm.inbox import Inbox, Waiting
from tests.swarm.samples import Rollout, settings


def item(author: str, seq: int, text: str = "", epoch: int = 1, arrived_at: float = 0.0) -> Received:
    text = text or f"{author} {epoch} {seq}"
    digest = blake2b(text.encode(), digest_size=16).digest()
    return Received(author, "rollout", Rollout(seq, text), epoch, seq, 0, 0.0, arrived_at, digest)


def add(inbox: Inbox, received: Received, size: int) -> None:
    inbox.extend(received.author, [Waiting(received, size)])


def inbox_of(items: list[Received], accounts: Accounts | None = None, **changes: object) -> Inbox:
    inbox = Inbox(settings(**changes), accounts or Accounts())
    for received in items:
        add(inbox, received, 100)
    return inbox


def gathered(inbox: Inbox, limit: int | None = None, now: float = 0.0) -> list[Received]:
    return inbox.gather(limit, random.Random(1), now)


def good_standing(*authors: str) -> Accounts:
    accounts = Accounts()
    for author in authors:
        for _ in range(4):
            accounts.credit(author, "verified")
    return accounts


items = st.lists(
    st.builds(item, st.sampled_from("abcd"), st.integers(1, 30), st.sampled_from(["", "x", "y", "z"])),
    max_size=40,
).map(lambda found: list({(entry.author, entry.seq): entry for entry in found}.values()))


@given(items, st.randoms(), st.one_of(st.none(), st.integers(0, 50)), st.booleans())
def test_order_of_arrival_does_not_matter(
    found: list[Received], rng: random.Random, limit: int | None, standing: bool
) -> None:
    shuffled = list(found)
    rng.shuffle(shuffled)
    nodes = ("a", "b") if standing else ()
    one, other = inbox_of(found, good_standing(*nodes)), inbox_of(shuffled, good_standing(*nodes))
    for _ in range(3):
        assert gathered(one, limit) == gathered(other, limit)


@given(items, items)
def test_equal_content_is_handed_out_once(first: list[Received], second: list[Received]) -> None:
    inbox = inbox_of(first)
    handed_out = gathered(inbox)
    for received in second:
        add(inbox, received, 100)
    handed_out += gathered(inbox)
    digests = [received.digest for received in handed_out]
    assert len(digests) == len(set(digests))
    assert set(digests) == {received.digest for received in first + second}
    assert inbox.items == inbox.bytes == 0


@given(st.lists(st.tuples(st.sampled_from("abcdefgh"), st.integers(1, 100)), max_size=300))
def test_bounds_hold_at_every_moment(arrivals: list[tuple[str, int]]) -> None:
    inbox = Inbox(settings(inbox_items=32, inbox_bytes=5000, inbox_author_items=8), good_standing("a", "b"))
    for number, (author, size) in enumerate(arrivals):
        add(inbox, item(author, number + 1), size)
        assert inbox.items <= 32
        assert inbox.bytes <= 5000
        assert all(len(queue.items) <= 8 for queue in inbox._waiting.values())
    assert inbox.items == sum(len(queue.items) for queue in inbox._waiting.values())


def test_an_author_loses_its_oldest_first() -> None:
    inbox = inbox_of([item("a", seq) for seq in (5, 1, 4, 2, 3)], inbox_author_items=3)
    assert [received.seq for received in gathered(inbox)] == [3, 4, 5]
    inbox = inbox_of([item("a", 9), item("a", 1, epoch=2), item("a", 8)], inbox_author_items=2)
    assert [(received.epoch, received.seq) for received in gathered(inbox)] == [(1, 9), (2, 1)]


def test_a_loud_author_does_not_crowd_out_the_others() -> None:
    quiet = [item(author, 1) for author in "bcdefgh"]
    loud = [item("a", seq) for seq in range(1, 5000)]
    inbox = inbox_of(quiet[:3] + loud + quiet[3:], inbox_items=64, inbox_author_items=10_000)
    assert {received.author for received in gathered(inbox)} == set("abcdefgh")


def test_drawing_picks_authors_not_items() -> None:
    inbox = inbox_of([item("a", seq) for seq in range(1, 201)] + [item("b", seq) for seq in range(1, 51)])
    drawn = gathered(inbox, limit=60)
    assert len(drawn) == 60
    assert 20 <= sum(received.author == "b" for received in drawn) <= 40, "not one in five"


def test_useful_authors_are_drawn_more_often() -> None:
    accounts = good_standing("a", "b")
    for _ in range(50):
        accounts.credit("a", "used")
        accounts.credit("a", "useful")
        accounts.credit("b", "used")
    inbox = inbox_of([item(author, seq) for author in "ab" for seq in range(1, 101)], accounts)
    drawn = gathered(inbox, limit=60)
    assert sum(received.author == "a" for received in drawn) > 50


def test_a_thousand_newcomers_get_a_small_share() -> None:
    sybils = [item(f"sybil {number}", seq) for number in range(1000) for seq in range(1, 4)]
    honest = [item(author, seq) for author in "abcd" for seq in range(1, 51)]
    for limit in (None, 100):
        inbox = inbox_of(sybils[:1500] + honest + sybils[1500:], good_standing(*"abcd"), inbox_items=1024)
        drawn = [received for second in range(3) for received in gathered(inbox, limit, now=second)]
        established = [received for received in drawn if received.author in "abcd"]
        assert len(established) == 200
        assert len(drawn) - len(established) <= 0.15 * len(drawn)


def test_authors_of_unknown_items_alone_stay_newcomers_and_gain_nothing() -> None:
    """Each of their items is passed over; then they are drawn as often as authors that nobody has heard of."""
    accounts = good_standing("a", "b")
    seconds = 60
    passed_over = honest = 0
    inbox = inbox_of([], accounts)
    for second in range(seconds):
        for author in ("a", "b"):
            add(inbox, item(author, second + 1), 100)
        for number in range(20):
            add(inbox, item(f"stranger {number}", second + 1), 100)
        for received in gathered(inbox, limit=64, now=float(second)):
            if received.author.startswith("stranger"):
                accounts.credit(received.author, "passed_over", "unknown task")
                passed_over += 1
            else:
                accounts.credit(received.author, "verified")
                honest += 1
    assert honest == 2 * seconds, "nobody else waits for a place"
    share, trickle = settings().probation_share, settings().newcomers_per_minute
    assert 0 < passed_over <= honest * share / (1 - share) + trickle * seconds / 60 + 8
    assert accounts.established == {"a", "b"}
    assert not any(accounts.promising(f"stranger {number}") for number in range(20))
    assert {accounts.weight(f"stranger {number}") for number in range(20)} == {accounts.weight("never heard")}


def test_newcomers_get_through_a_little_even_if_nobody_else_sends() -> None:
    inbox = inbox_of([item(f"new {number}", 1) for number in range(100)], good_standing("a"))
    assert gathered(inbox, now=0.0) == []
    assert 15 <= sum(len(gathered(inbox, now=10.0 * step)) for step in range(1, 11)) <= 21, "twelve a minute"


def test_newcomers_of_whom_something_held_up_come_first() -> None:
    accounts = good_standing("a")
    accounts.credit("promising", "verified")
    sybils = [item(f"sybil {number}", 1) for number in range(500)]
    inbox = inbox_of([*sybils, item("promising", 9), *(item("a", seq) for seq in range(1, 9))], accounts)
    assert "promising" in {received.author for received in gathered(inbox)}


def test_where_nobody_is_established_everything_is_handed_out() -> None:
    found = [item(f"new {number}", 1) for number in range(100)]
    assert len(gathered(inbox_of(found))) == 100


def test_of_a_register_only_the_newest_waits() -> None:
    inbox = Inbox(settings(), Accounts())
    for seq in (2, 3, 1):
        inbox.replace(Waiting(item("a", seq), 100))
    assert [received.seq for received in gathered(inbox)] == [3]
    assert inbox.items == 0
