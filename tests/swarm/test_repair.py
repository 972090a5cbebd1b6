"""Repair and watchdog: any holder delivers missing frames; claims without proof cost only the claimant."""

from __future__ import annotations

import random
from itertools import pairwise

import pytest

from shoal.swarm.authors import Author
from shoal.swarm.beacon import MOST_ENTRIES, Beacon, Known, draw_vector
from shoal.swarm.body import PackedItem
from shoal.swarm.exchange import Exchange
from shoal.swarm.frame import Bundle, encode
from shoal.swarm.identity import Identity, id_bytes
from shoal.swarm.intake import _pull_decoder
from shoal.swarm.pull import MOST_ANSWER_BYTES, MOST_IDS, Pull, Want
from shoal.swarm.rejection import Rejection
from shoal.swarm.repair import LEFT_ALONE, PROBE_EVERY, TIMEOUT, UNDER_WAY
from shoal.swarm.transport.memory import MemoryHub, MemoryTransport
from shoal.swarm.watchdog import Watchdog
from tests.swarm.samples import NOW, Champion, Rollout, exchange, identity, receive, rollout, run, seal

EPOCH = int(NOW * 1e6)


class Spy(MemoryTransport):
    """Keeps published messages instead of sending them."""

    def __init__(self) -> None:
        super().__init__(MemoryHub(), "spy")
        self.sent: list[tuple[str, bytes]] = []
        self.reopened_with: list[list[str]] = []

    def publish(self, topic: str, message: bytes) -> bool:
        self.sent.append((topic, message))
        return True

    def reopen(self, neighbours: object) -> None:
        self.reopened_with.append(list(neighbours))  # type: ignore[call-overload]


def claim(node: Exchange, claimant: Identity, entries: list[Known], seq: int, now: float) -> None:
    """A beacon of `claimant` with this vector."""
    payload = encode(Beacon((), tuple(entries)))
    frame = seal(claimant, seq, [PackedItem("beacon", payload)], topic="beacon/0", made_at=int(now * 1e6))
    receive(node, [frame.encode()], now)


def known(
    author: Identity, newest: int, contiguous: int | None = None, oldest: int = 1, latest: int = 0
) -> Known:
    return Known(
        id_bytes(author.node_id), EPOCH, oldest, newest if contiguous is None else contiguous, newest, latest
    )


def pulls(spy: Spy, node: Exchange) -> list[tuple[str, Pull]]:
    found = []
    for topic, message in spy.sent:
        frame = node._context.codec.read(message)
        if topic.startswith("to/") and not isinstance(frame, Rejection | Bundle):
            pull = node._context.codec.single(frame, "pull", _pull_decoder)
            assert isinstance(pull, Pull)
            found.append((topic.removeprefix("to/"), pull))
    return found


def test_what_is_missing_for_two_ticks_is_asked_of_a_holder() -> None:
    spy = Spy()
    node = exchange(1, spy)
    author, holder = identity(2), identity(3)
    receive(node, [seal(author, seq).encode() for seq in (1, 4)])
    claim(node, holder, [known(author, 5, contiguous=3)], 1, NOW)
    node._upkeep._repair_due = NOW
    node.tick(NOW + 0.01)
    assert pulls(spy, node) == [], "one tick of grace for frames under way"
    node._upkeep._repair_due = NOW
    node.tick(NOW + 0.5)
    ((to, pull),) = pulls(spy, node)
    assert to == holder.node_id
    assert pull.wants == (Want(id_bytes(author.node_id), EPOCH, (5, 3, 2)),), (
        "newest first, not what it lacks itself"
    )
    answer = encode(Bundle(pull.nonce, [seal(author, seq).encode() for seq in (5, 3, 2)]))
    receive(node, [answer], NOW + 0.6)
    assert [found.seq for found in node.gather()] == [1, 2, 3, 4, 5]
    receive(node, [answer], NOW + 0.7)
    assert node.tally.rejected[Rejection.UNASKED] == 1, "a request is answered once"


def test_a_gap_that_nobody_can_fill_does_not_hide_what_lies_beyond() -> None:
    """An author was killed before anyone had its third frame; the fourth and sixth still spread."""
    hub = MemoryHub()
    first, second = exchange(1, hub.open()), exchange(2, hub.open())
    receive(first, [seal(identity(5), seq).encode() for seq in (1, 2, 4, 6)])
    run([first, second], 5.0)
    assert [found.seq for found in second.gather()] == [1, 2, 4, 6]


def test_answers_hold_only_what_was_asked() -> None:
    spy = Spy()
    node = exchange(1, spy)
    author, holder, other = identity(2), identity(3), identity(4)
    claim(node, holder, [known(author, 1)], 1, NOW)
    run([node], 1.2)
    ((_, pull),) = pulls(spy, node)
    forged = seal(author, 1)
    forged.signature = bytes(64)
    frames = [seal(other, 1).encode(), b"junk", encode(Bundle(bytes(16), [])), forged.encode()]
    receive(node, [encode(Bundle(bytes(16), frames)), encode(Bundle(pull.nonce, frames))], NOW + 1.3)
    assert node.gather() == []
    assert node.tally.rejected[Rejection.UNASKED] == 3
    assert node._upkeep.repair._holders[holder.node_id].strikes == 1


def test_everything_is_bounded_whatever_is_claimed() -> None:
    spy = Spy()
    node = exchange(1, spy)
    liars = [identity(50 + number) for number in range(30)]
    rng = random.Random(1)
    for beat in range(10):
        now = NOW + beat
        for liar in liars:
            vector = [Known(rng.randbytes(20), EPOCH, 1, 10**9, 10**9, 10**9) for _ in range(MOST_ENTRIES)]
            claim(node, liar, vector, beat + 1, now)
        spy.sent.clear()
        run([node], 1.0, now)
        asked = pulls(spy, node)
        assert len(asked) <= UNDER_WAY
        assert all(pull.size <= MOST_IDS for _, pull in asked)
        assert len(node._upkeep.repair.open) <= 1, "nobody here ever delivered anything"
        assert len(node._upkeep.repair._missing) <= 1024
    assert node._upkeep.repair.asked <= 10 / TIMEOUT + 2
    assert len(node.peers()) == 30, "invented authors are not present"
    assert len(node._context.authors) == 31


def test_a_liar_is_left_alone_longer_each_time_and_asked_last() -> None:
    spy = Spy()
    node = exchange(1, spy)
    author, liar = identity(2), identity(3)
    asked_at = []
    for beat in range(120):
        now = NOW + beat
        claim(node, liar, [known(author, 10**6)], beat + 1, now)
        before = node._upkeep.repair.asked
        run([node], 1.0, now)
        if node._upkeep.repair.asked > before:
            asked_at.append(beat)
    gaps = [later - earlier for earlier, later in pairwise(asked_at)]
    assert len(asked_at) <= 8
    assert gaps[-1] >= 4 * LEFT_ALONE
    honest = identity(4)
    claim(node, honest, [known(author, 3)], 1, NOW + 121)
    claim(node, liar, [known(author, 3)], 500, NOW + 121)
    spy.sent.clear()
    run([node], 1.5, NOW + 121)
    assert [to for to, _ in pulls(spy, node)] == [honest.node_id]


def test_pulls_are_answered_by_any_holder_within_bounds() -> None:
    spy = Spy()
    node = exchange(1, spy, serve_bytes_per_second=600_000.0)
    author, asker = identity(2), identity(3)
    receive(node, [seal(author, seq, [rollout(seq, "x" * 50_000)]).encode() for seq in range(1, 21)])

    def ask(seq: int, now: float) -> int:
        spy.sent.clear()
        pull = Pull(seq.to_bytes(16, "big"), (Want(id_bytes(author.node_id), EPOCH, tuple(range(1, 30))),))
        frame = seal(asker, seq, [PackedItem("pull", encode(pull))], topic=f"to/{node.identity.node_id}")
        receive(node, [frame.encode()], now)
        return sum(len(message) for topic, message in spy.sent if topic == f"to/{asker.node_id}")

    first = ask(1, NOW)
    assert MOST_ANSWER_BYTES / 2 < first <= MOST_ANSWER_BYTES + 10_000
    assert ask(1, NOW) == 0, "a replayed pull is not answered"
    served = first + sum(ask(seq, NOW) for seq in range(2, 30))
    assert served <= 700_000
    assert ask(40, NOW + 2) > 0


def test_one_asker_does_not_use_up_what_others_get() -> None:
    node = exchange(1, Spy())
    author = identity(2)
    receive(node, [seal(author, seq, [rollout(seq, "x" * 50_000)]).encode() for seq in range(1, 21)])
    greedy, modest = Author("greedy", 0), Author("modest", 0)
    pull = Pull(bytes(16), (Want(id_bytes(author.node_id), EPOCH, tuple(range(1, 21))),))
    while node._intake.serving.answer(pull, greedy, NOW) is not None:
        pass
    assert node._intake.serving.answer(pull, modest, NOW) is not None


def test_a_bad_frame_is_passed_on_so_that_holders_do_not_look_like_liars() -> None:
    hub = MemoryHub()
    first, second = exchange(1, hub.open()), exchange(2, hub.open())
    bad = seal(identity(5), 1, [PackedItem("rollout", b"\xc1")])
    receive(first, [bad.encode(), seal(identity(5), 2).encode()])
    run([first, second], 5.0)
    assert second.tally.rejected[Rejection.MISTYPED] == 1
    assert [found.seq for found in second.gather()] == [2]
    assert second._upkeep.repair.answered == 1
    assert second._upkeep.repair._holders[first.identity.node_id].strikes == 0


def test_registers_are_fetched_first_and_only_once() -> None:
    hub = MemoryHub()
    first = exchange(1, hub.open())
    for number in range(5):
        first.share(Champion("x", number))
        first.tick(NOW + number)
    second = exchange(2, hub.open(), now=NOW + 5)
    now = run([first, second], 4.0, NOW + 5)
    assert second.latest("champion")[first.identity.node_id].item == Champion("x", 4)
    asked = second._upkeep.repair.asked
    run([first, second], 10.0, now)
    assert second._upkeep.repair.asked == asked


def test_vectors_name_oneself_then_the_recent_then_others_in_turn() -> None:
    entries = [Known(number.to_bytes(20, "big"), 1, 1, 1, 1, 0) for number in range(200)]
    vector = draw_vector(entries[0], entries[1:100], entries[100:])
    assert vector[0] is entries[0]
    assert vector[1:32] == tuple(entries[1:32])
    assert vector[32:] == tuple(entries[100:132])
    assert len(draw_vector(None, [], entries)) == MOST_ENTRIES


def test_all_authors_come_up_in_turn() -> None:
    node = exchange(1, Spy(), frames_burst=1000)
    for number in range(150):
        receive(node, [seal(identity(1000 + number), 1).encode()], NOW + number * 0.01)
    named = {entry.author for _ in range(12) for entry in node._sender.vector()}
    assert len(named) == 151


# The watchdog.


def fetched(author: Author, now: float, made_at: float, count: int = 3) -> None:
    author.pulled_at, author.pulled_made_at = now, int(made_at * 1e6)
    author.pulled_since_push += count


@pytest.mark.parametrize("seed", range(5))
def test_the_watchdog_fires_once_and_then_waits(seed: int) -> None:
    author = Author("a", 0)
    author.pushed_at, author.pushed_made_at = NOW, int(NOW * 1e6)
    dog = Watchdog(random.Random(seed))
    fired = []
    for half in range(400):
        now = NOW + half / 2
        fetched(author, now, now)
        if dog.check([author], False, now, 1.0):
            fired.append(now - NOW)
    assert 15.0 < fired[0] <= 23.5
    assert fired[1] - fired[0] >= 21.0
    assert len(fired) <= 5, "longer each time"


def test_the_watchdog_needs_proof_of_life() -> None:
    author = Author("a", 0)
    author.pushed_at, author.pushed_made_at = NOW, int(NOW * 1e6)
    dog = Watchdog(random.Random(1))
    assert not any(dog.check([author], False, NOW + second, 1.0) for second in range(100)), (
        "silence alone is nothing"
    )
    fetched(author, NOW + 100, NOW + 100, count=2)
    assert not any(dog.check([author], False, NOW + 100 + second, 1.0) for second in range(20)), (
        "two losses are nothing"
    )
    fetched(author, NOW + 130, NOW + 5)
    assert not any(dog.check([author], False, NOW + 130 + second, 1.0) for second in range(20)), (
        "old frames are nothing"
    )


def lie(
    node: Exchange, spy: Spy, liars: list[Identity], seconds: int, honest: Identity | None = None
) -> list[int]:
    """Claims of a real author's frames that do not exist, every second; `honest` has no more than its own one
    frame, which it serves. The seconds in which the connection was reopened."""
    author = identity(2)
    receive(node, [seal(author, 1).encode()])
    own = seal(honest, 1) if honest else None
    answered, reopened = 0, []
    for beat in range(seconds):
        now = NOW + beat
        for liar in liars:
            claim(node, liar, [known(author, beat + 2)], beat + 1, now)
        if honest:
            claim(node, honest, [known(honest, 1)], beat + 1, now)
        before = len(spy.reopened_with)
        for step in range(10):
            node.tick(now + step / 10)
            asked = pulls(spy, node)
            for to, pull in asked[answered:]:
                if own is not None and honest is not None and to == honest.node_id:
                    receive(node, [encode(Bundle(pull.nonce, [own.encode()]))], now + step / 10)
            answered = len(asked)
        reopened += [beat] * (len(spy.reopened_with) - before)
    return reopened


def test_claims_alone_never_reopen_the_connection() -> None:
    """One honest node is enough, however many lie: it answers when it is probed."""
    spy = Spy()
    node = exchange(1, spy)
    assert lie(node, spy, [identity(10), identity(11), identity(12)], 200, honest=identity(3)) == []
    probes = [pull for to, pull in pulls(spy, node) if to == identity(3).node_id]
    assert 1 < len(probes) <= 1 + 200 / PROBE_EVERY, "small requests now and then"
    assert all(pull.size == 1 for pull in probes[1:])


def test_one_liar_alone_is_not_even_probed() -> None:
    spy = Spy()
    node = exchange(1, spy)
    assert lie(node, spy, [identity(10)], 200) == []
    assert node._upkeep.repair.asked <= 8


def test_those_who_are_all_that_is_heard_can_reopen_it_now_and_then() -> None:
    """Whom a node cannot tell from a dead connection: bounded by the back-off, whatever they are."""
    spy = Spy()
    node = exchange(1, spy)
    reopened = lie(node, spy, [identity(10 + number) for number in range(8)], 900)
    assert 3 <= len(reopened) <= 13
    gaps = [later - earlier for earlier, later in pairwise(reopened)]
    assert min(gaps) >= 21
    assert min(gaps[2:]) >= 84, "at most every 84 s when it goes on"


def test_authors_in_good_standing_are_probed_before_newcomers() -> None:
    spy = Spy()
    node = exchange(1, spy)
    trusted = identity(3)
    for _ in range(4):
        node.accounts.credit(trusted.node_id, "verified")
    assert lie(node, spy, [identity(10 + number) for number in range(40)], 120, honest=trusted) == []


def test_frames_that_only_come_by_pull_reopen_it_with_known_endpoints() -> None:
    spy = Spy()
    node = exchange(1, spy)
    author, holder = identity(2), identity(3)
    receive(node, [seal(author, 1).encode()])
    answered = 0
    for beat in range(40):
        now = NOW + beat
        payload = encode(Beacon(("tcp/example:1",), (known(author, beat + 2),)))
        beacon = seal(
            holder, beat + 1, [PackedItem("beacon", payload)], topic="beacon/0", made_at=int(now * 1e6)
        )
        receive(node, [beacon.encode()], now)
        for step in range(10):
            node.tick(now + step / 10)
            asked = pulls(spy, node)
            for _, pull in asked[answered:]:
                frames = [
                    seal(author, number, made_at=int(now * 1e6)).encode()
                    for want in pull.wants
                    for number in want.numbers
                ]
                receive(node, [encode(Bundle(pull.nonce, frames))], now + step / 10)
            answered = len(asked)
    assert len(spy.reopened_with) == 1
    assert spy.reopened_with[0] == ["tcp/example:1"]


def test_a_node_that_was_away_accuses_nobody() -> None:
    spy = Spy()
    node = exchange(1, spy)
    claim(node, identity(3), [known(identity(2), 5)], 1, NOW)
    run([node], 1.0)
    assert node._upkeep.repair.open
    node.tick(NOW + 21)
    assert node.figures()["stalls"] == 1
    assert not node._upkeep.repair.gaps.claims
    assert not node._upkeep.repair.open
    assert node._upkeep._watchdog._not_before == NOW + 29


def test_a_clock_that_is_set_back_does_not_silence_the_node() -> None:
    spy = Spy()
    node = exchange(1, spy)
    run([node], 3.0)
    spy.sent.clear()
    run([node], 3.0, NOW - 1000)
    assert any(topic == "beacon/0" for topic, _ in spy.sent)


def test_a_clock_that_is_set_back_holds_up_neither_items_nor_pulls() -> None:
    spy = Spy()
    node = exchange(1, spy)
    run([node], 3.0)
    claim(node, identity(3), [known(identity(2), 5)], 1, NOW + 3)
    run([node], 1.0, NOW + 3)
    assert node._upkeep.repair.open
    node.share(Rollout(1, "x"))
    spy.sent.clear()
    run([node], 1.0, NOW - 100)
    assert any(topic.startswith("log/") for topic, _ in spy.sent)
    assert not node._upkeep.repair.open
    assert all(author.heard_at < NOW for author in node._context.authors)
    claim(node, identity(3), [known(identity(2), 5)], 2, NOW - 99)
    run([node], 1.0, NOW - 99)
    assert node._upkeep.repair.open, "missing frames are asked for again"


def test_a_shared_item_is_held_for_others() -> None:
    node = exchange(1, Spy())
    node.share(Rollout(1, "x"))
    node.tick(NOW + 0.1)
    entry = node._sender.own.known(node.epoch)
    assert (entry.oldest, entry.contiguous, entry.newest) == (1, 1, 1)
