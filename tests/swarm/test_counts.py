"""Counts that add up: shared = received + waiting + refused + missing, whatever arrives and whatever is claimed."""

from __future__ import annotations

from hypothesis import given, strategies as st

from shoal.swarm.accounts import LOST_BEFORE, Account, Accounts
from shoal.swarm.counts import Stream
from tests.swarm.samples import NOW, exchange, identity, receive, rollout, run


def adds_up(account: Account) -> bool:
    refused = sum((account.refused or {}).values())
    return account.shared == account.received + account.waiting + refused + account.missing


@given(st.lists(st.integers(1, 16), min_size=1, max_size=30), st.data())
def test_the_difference_between_two_frames_is_the_number_of_items_between_them(
    sizes: list[int], data: st.DataObject
) -> None:
    totals = [sum(sizes[: place + 1]) for place in range(len(sizes))]
    frames = list(zip(totals, sizes, strict=True))
    came = data.draw(st.lists(st.sampled_from(frames), min_size=1, unique=True))
    stream = Stream()
    grown = sum(stream.note(shared, items) for shared, items in came)
    first, last = min(came), max(came)
    assert grown == stream.shared == last[0] - first[0] + first[1]
    unseen = stream.shared - sum(items for _, items in came)
    assert stream.give_up() == unseen
    for shared, items in set(frames) - set(came):
        if first[0] < shared < last[0]:
            stream.note(shared, items)
    assert stream.give_up() == -unseen, "those that came late after all are expected again"


@given(st.lists(st.tuples(st.integers(0, 1 << 62), st.integers(0, 16)), max_size=30))
def test_no_claim_makes_a_stream_shrink_or_smaller_than_what_came(claims: list[tuple[int, int]]) -> None:
    stream, seen = Stream(), 0
    for shared, items in claims:
        before = stream.shared
        grown = stream.note(shared, items)
        seen += items
        assert grown >= 0
        assert stream.shared == before + grown >= seen


@given(st.lists(st.tuples(st.integers(1, 40), st.integers(0, 300), st.integers(1, 3)), max_size=40))
def test_accounts_add_up_whatever_an_author_claims(frames: list[tuple[int, int, int]]) -> None:
    node, author = exchange(1, inbox_author_items=5), identity(2)
    for seq, shared, items in frames:
        entries = [rollout(number, f"text {seq % 7} {number}") for number in range(items)]
        frame = node._context.codec.seal(author, 1, seq, int(NOW * 1e6), "log/0", entries, shared)
        receive(node, [frame.encode()])
        account = node.accounts.of(author.node_id)
        assert adds_up(account)
        assert account.missing >= 0
        if seq % 3 == 0:
            node.gather(1)
    assert adds_up(node.accounts.of(author.node_id))


def test_items_that_did_not_come_are_missing_and_those_that_wait_to_be_sent_too() -> None:
    node, author = exchange(1), identity(2)
    codec = node._context.codec

    def frame(seq: int, topic: str, shared: int, items: int = 2) -> bytes:
        entries = [rollout(number, f"{seq} {number}") for number in range(items)]
        return codec.seal(author, 1, seq, int(NOW * 1e6), topic, entries, shared).encode()

    receive(node, [frame(1, "log/0", 2), frame(4, "log/0", 8)])
    account = node.accounts.of(author.node_id)
    assert (account.shared, account.waiting, account.missing) == (8, 4, 4)
    node.gather()
    assert (account.received, account.waiting, account.missing) == (4, 0, 4)
    receive(node, [frame(2, "log/0", 4)])
    assert (account.shared, account.missing) == (8, 2)


def test_the_last_beacon_tells_of_items_that_were_never_sent() -> None:
    from shoal.swarm.transport.memory import MemoryHub
    from tests.swarm.samples import Rollout

    hub = MemoryHub()
    sender = exchange(1, hub.open(), frames_burst=2, frames_per_second=0.001)
    receiver = exchange(2, hub.open(), frames_burst=2, frames_per_second=0.001)
    for number in range(50):
        sender.share(Rollout(number, f"{number}"))
    now = run([sender, receiver], 3.0)
    sender.leave(now)
    now = run([receiver], 1.0, now)
    receiver.gather()
    account = receiver.accounts.of(identity(1).node_id)
    assert (account.shared, account.received, account.missing) == (50, 32, 18)


def test_a_new_start_tells_what_the_last_one_did_not_hand_out() -> None:
    accounts = Accounts()
    account = accounts.of("a")
    account.claimed, account.received, account.waiting = 20, 10, 4
    kept = Accounts.decode(accounts.encode())
    assert kept.of("a") == account, "to read the file changes nothing"
    kept.begin(NOW)
    assert kept.of("a").refused == {LOST_BEFORE: 10}
    assert (kept.of("a").shared, kept.of("a").missing, kept.of("a").waiting) == (20, 0, 0)
    assert adds_up(kept.of("a"))
