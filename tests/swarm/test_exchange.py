"""The exchange over the memory transport: the four verbs, and the laws that hold for them."""

from __future__ import annotations

import random

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from shoal.errors import ConfigError, ShareRefused
from shoal.swarm.accounts import Accounts
from shoal.swarm.body import PackedItem
from shoal.swarm.exchange import Exchange
from shoal.swarm.frame import Frame, encode
from shoal.swarm.rejection import Rejection
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.transport.memory import MemoryHub
from tests.swarm.samples import NOW, Champion, Rollout, exchange, identity, receive, rollout, run, seal


def swarm(count: int, **changes: object) -> list[Exchange]:
    hub = MemoryHub()
    return [exchange(number, hub.open(), **changes) for number in range(count)]


def test_what_one_shares_the_others_gather_once() -> None:
    nodes = swarm(3)
    receipt = nodes[0].share(Rollout(1, "text"))
    nodes[0].share(Champion("MOV 0, 1", 3.0))
    run(nodes, 1.0)
    for node in nodes[1:]:
        champion, item = node.gather()
        assert item.item == Rollout(1, "text")
        assert item.author == nodes[0].identity.node_id
        assert item.digest == receipt.digest
        assert champion.item == Champion("MOV 0, 1", 3.0)
        assert node.gather() == []
        assert [found.item for found in node.latest("champion").values()] == [Champion("MOV 0, 1", 3.0)]
    assert nodes[0].gather() == []
    assert nodes[0].latest("champion") == {}


def test_items_travel_together_in_frames_of_sixteen_and_60_kb() -> None:
    nodes = swarm(2, flush_seconds=0.2)
    for number in range(40):
        nodes[0].share(Rollout(number, "x"))
    for number in range(4):
        nodes[0].share(Rollout(100 + number, "y" * 30_000))
    nodes[0].share(Rollout(200, "z" * 200_000))
    run(nodes, 1.0)
    found = nodes[1].gather()
    assert len(found) == 45
    frames: dict[int, list[str]] = {}
    for received in found:
        assert isinstance(received.item, Rollout)
        frames.setdefault(received.seq, []).append(received.item.text)
    assert [len(texts) for _, texts in sorted(frames.items())] == [16, 16, 9, 1, 1, 1, 1] or all(
        len(texts) <= 16 and (len(texts) == 1 or sum(map(len, texts)) <= 60_000) for texts in frames.values()
    )
    assert len(frames) <= 7


def test_sharing_is_refused_by_name() -> None:
    (node,) = swarm(1, outbox_items=3)

    class Rumour(msgspec.Struct, array_like=True):
        text: str

    with pytest.raises(ShareRefused, match="limit of its kind is 65536") as size:
        node.share(Champion("x" * (64 << 10)))
    assert size.value.reason == "size"
    with pytest.raises(ShareRefused, match="not a registered kind") as kind:
        node.share(Rumour("x"))
    assert kind.value.reason == "kind"
    for number in range(3):
        node.share(Rollout(number, ""))
    with pytest.raises(ShareRefused, match="wait to be sent") as full:
        node.share(Rollout(4, ""))
    assert full.value.reason == "full"
    node.share(Champion("a register only replaces its predecessor"))


def test_latest_is_the_newest_of_each_peer() -> None:
    nodes = swarm(3)
    now = NOW
    for score in range(5):
        nodes[0].share(Champion("a", score))
        nodes[1].share(Champion("b", -score))
        now = run(nodes, 0.5, now)
    latest = nodes[2].latest("champion")
    assert {node: received.item for node, received in latest.items()} == {
        nodes[0].identity.node_id: Champion("a", 4),
        nodes[1].identity.node_id: Champion("b", -4),
    }
    assert len([received for received in nodes[2].gather() if received.kind == "champion"]) == 2, (
        "only changes"
    )


def test_presence_follows_from_verified_frames() -> None:
    nodes = swarm(3)
    now = run(nodes, 2.0)
    peers = nodes[0].peers()
    assert set(peers) == {node.identity.node_id for node in nodes[1:]}
    assert peers[nodes[1].identity.node_id].endpoints == tuple(nodes[1].transport.endpoints())
    assert peers[nodes[1].identity.node_id].name == nodes[1].identity.name
    run([nodes[0], nodes[1]], 6.0, now)
    assert set(nodes[0].peers()) == {nodes[1].identity.node_id}, "a dead peer is the same as a silent one"


def test_a_late_joiner_gets_registers_and_recent_log() -> None:
    hub = MemoryHub()
    nodes = [exchange(number, hub.open(), history_frames=8) for number in range(3)]
    now = NOW
    for step in range(20):
        for node in nodes:
            node.share(Rollout(step, node.identity.node_id))
        nodes[0].share(Champion(f"version {step}"))
        now = run(nodes, 0.3, now)
    nodes[2].transport.close()  # gone, but others have what it sent
    late = exchange(9, hub.open(), now=now, history_frames=8)
    run([*nodes[:2], late], 6.0, now)
    gathered = late.gather()
    assert late.latest("champion")[nodes[0].identity.node_id].item == Champion("version 19")
    for node in nodes:
        tasks = [
            received.item.task
            for received in gathered
            if received.author == node.identity.node_id and isinstance(received.item, Rollout)
        ]
        assert tasks == list(range(12, 20))


def test_a_restarted_node_is_not_taken_for_a_replay() -> None:
    hub = MemoryHub()
    receiver = exchange(1, hub.open())
    now = NOW
    for start in range(6):
        author = exchange(2, hub.open(), now=now)
        author.share(Rollout(start, "after a restart"))
        author.share(Champion("x", start))
        now = run([receiver, author], 1.5, now)
        author.transport.close()
        assert len(receiver.gather()) == 2
        assert receiver.latest("champion")[author.identity.node_id].item == Champion("x", start)
    state = receiver._context.authors.get(identity(2).node_id)
    assert state is not None
    assert len(state.epochs) == 4
    old = seal(identity(2), 7, epoch=int(NOW * 1e6))
    receive(receiver, [old.encode()], now)
    assert receiver.tally.rejected[Rejection.OLD_EPOCH] == 1


def test_a_start_is_later_than_the_last_even_if_the_clock_is_not() -> None:
    accounts = Accounts()
    first = exchange(1, accounts=accounts)
    second = exchange(1, accounts=accounts, now=NOW - 1000)
    assert second.epoch > first.epoch


# Laws.


def frames_of(authors: int, frames: int, epoch: int = int(NOW * 1e6)) -> list[bytes]:
    return [
        seal(
            identity(100 + author),
            seq,
            [rollout(seq, f"{author} {seq} {place}") for place in range(2)],
            epoch=epoch,
        ).encode()
        for author in range(authors)
        for seq in range(1, frames + 1)
    ]


FRAMES = frames_of(4, 8)


def contents(node: Exchange) -> list[tuple[str, int, int, int, object]]:
    return [(found.author, found.epoch, found.seq, found.index, found.item) for found in node.gather()]


@given(st.permutations(range(len(FRAMES))), st.lists(st.integers(0, len(FRAMES) - 1), max_size=30))
@settings(max_examples=25, deadline=None)
def test_order_and_duplicates_change_nothing(order: list[int], again: list[int]) -> None:
    expected, node = exchange(1), exchange(1)
    receive(expected, FRAMES)
    receive(node, [FRAMES[place] for place in (*order, *again)])
    assert contents(node) == contents(expected)
    assert node._context.authors.bytes == expected._context.authors.bytes
    for author in expected._context.authors:
        other = node._context.authors.get(author.node_id)
        assert other is not None
        assert [frame.order for frame in other.log] == [frame.order for frame in author.log]
        assert [other.known(epoch) for epoch in other.epochs] == [
            author.known(epoch) for epoch in author.epochs
        ]
    receive(node, FRAMES)
    assert node.gather() == []


@given(st.integers(-299, 100), st.integers(0, 10**9), st.integers(1, 1000))
@settings(max_examples=25, deadline=None)
def test_what_a_sender_claims_changes_nothing_but_the_claim(age: int, epoch: int, seq: int) -> None:
    """Times and numbers of the sender's choice are reported, but do not enter what is drawn or counted."""
    plain, claimed = exchange(1), exchange(1)
    entries = [rollout(number, "content") for number in range(5)]
    receive(plain, [seal(identity(2), 1, entries).encode()])
    receive(claimed, [seal(identity(2), seq, entries, epoch=epoch, made_at=int((NOW + age) * 1e6)).encode()])
    one, other = plain.gather(), claimed.gather()
    assert [(r.author, r.item, r.digest, r.arrived_at, r.index) for r in one] == [
        (r.author, r.item, r.digest, r.arrived_at, r.index) for r in other
    ]
    assert plain.accounts.encode().replace(b"%d" % plain.epoch, b"") == claimed.accounts.encode().replace(
        b"%d" % claimed.epoch, b""
    )


def test_any_bytes_leave_the_exchange_standing() -> None:
    node = exchange(1)
    rng = random.Random(1)
    for number in range(3000):
        message = bytearray(rng.choice(FRAMES))
        for _ in range(rng.randrange(4)):
            message[rng.randrange(len(message))] = rng.randrange(256)
        receive(node, [bytes(message), rng.randbytes(rng.randrange(60))], NOW + number * 0.01)
    assert node.tally.rejected[Rejection.MALFORMED] > 3000
    assert {found.author for found in node.gather()} <= {
        identity(100 + number).node_id for number in range(4)
    }


def test_quotas_hold_and_are_charged_to_the_author_only() -> None:
    node = exchange(1, frames_burst=10, frames_per_second=1.0)
    flood = [seal(identity(2), seq).encode() for seq in range(1, 300)]
    receive(node, flood[:100])
    assert len(node.gather()) == 70, "a burst, and one a second of a minute"
    receive(node, flood[100:])
    account = node.accounts.of(identity(2).node_id)
    assert account.rejected == {"quota": 50}, "then it was muted"
    assert node.tally.rejected[Rejection.MUTED] == 179
    receive(node, [seal(identity(3), 1, [rollout(1, "another text")]).encode()])
    assert len(node.gather()) == 1, "another author is not affected"


def test_a_forger_spends_nobodys_quota() -> None:
    node = exchange(1, frames_burst=10)
    victim, forger = identity(2), identity(3)
    for seq in range(1, 300):
        frame = seal(victim, seq)
        header = frame.header
        message = encode([header, forger.sign(header), frame.body])
        swapped = encode([header, frame.signature, b"\0" + encode([rollout(10_000)])])
        receive(node, [message, swapped], NOW + seq * 0.1)
    assert node.tally.rejected[Rejection.FORGED] == node.tally.rejected[Rejection.DIGEST] == 299
    assert node.accounts.get(victim.node_id) is None
    receive(node, [seal(victim, seq).encode() for seq in range(1, 11)], NOW + 30)
    assert len(node.gather()) == 10


def test_checks_come_cheap_first() -> None:
    """A replayed, stale or misdirected frame is dropped before its signature is looked at."""
    node = exchange(1, verifications_per_second=10.0)
    receive(node, [seal(identity(2), 1).encode()])
    before = node._intake._admission._budget._lanes["new"].level
    receive(node, [seal(identity(2), 1).encode()] * 50)
    receive(node, [seal(identity(2), 2, made_at=int((NOW - 4000) * 1e6)).encode()])
    receive(node, [seal(identity(2), 2, made_at=int((NOW + 4000) * 1e6)).encode()])
    receive(node, [seal(identity(2), 2, topic=f"to/{identity(5).node_id}").encode()])
    receive(node, [seal(identity(1), 2).encode()])
    rejected = node.tally.rejected
    assert (rejected[Rejection.DUPLICATE], rejected[Rejection.STALE], rejected[Rejection.FUTURE]) == (
        50,
        1,
        1,
    )
    assert (rejected[Rejection.TOPIC], rejected[Rejection.OWN]) == (1, 1)
    assert node._intake._admission._budget._lanes["new"].level == before
    receive(node, [seal(identity(9), seq).encode() for seq in range(1, 30)])
    assert rejected[Rejection.BUDGET] > 0


def test_a_frame_that_was_not_affordable_is_taken_later() -> None:
    node = exchange(1, verifications_per_second=10.0)
    messages = [seal(identity(9), seq).encode() for seq in range(1, 30)]
    receive(node, messages)
    for second in range(1, 10):
        receive(node, messages, NOW + second)
    assert len(node.gather()) == 29


def test_only_allowed_authors_may_write() -> None:
    node = exchange(1, allow=[identity(2).node_id])
    receive(node, [seal(identity(2), 1).encode(), seal(identity(3), 1).encode()])
    assert {found.author for found in node.gather()} == {identity(2).node_id}
    assert node.tally.rejected[Rejection.NOT_ALLOWED] == 1
    with pytest.raises(ConfigError, match="not a node id"):
        exchange(1, allow=["someone"])


def test_a_secret_keeps_outsiders_out() -> None:
    hub = MemoryHub()
    inside = [exchange(number, hub.open(), secret="word") for number in range(2)]
    outside = exchange(7, hub.open(), secret="guess")
    for node in [*inside, outside]:
        node.share(Rollout(1, node.identity.name))
    run([*inside, outside], 1.0)
    assert [len(node.gather()) for node in [*inside, outside]] == [1, 1, 0]
    assert inside[0].tally.rejected[Rejection.SWARM] > 0


def test_stores_are_bounded() -> None:
    node = exchange(1, keep_frames=8, history_frames=8, keep_bytes=40_000, keep_author_bytes=5000, authors=16)
    for author in range(40):
        receive(
            node,
            [seal(identity(100 + author), seq, [rollout(seq, "x" * 400)]).encode() for seq in range(1, 20)],
        )
        assert node._context.authors.bytes <= 40_000
        assert len(node._context.authors) <= 16
        assert node._context.authors.bytes == sum(state.log_bytes for state in node._context.authors)
    assert all(len(state.log) <= 8 for state in node._context.authors)
    assert node._context.authors.get(node.identity.node_id) is not None


def test_old_frames_expire() -> None:
    node = exchange(1, ttl_seconds=100.0)
    receive(node, [seal(identity(2), 1).encode()])
    node.tick(NOW)
    run([node], 120.0, step=1.0)
    assert node._context.authors.get(identity(2).node_id) is None
    assert node._context.authors.bytes == 0


def test_registers_are_renewed_before_they_expire() -> None:
    hub = MemoryHub()
    nodes = [exchange(number, hub.open(), ttl_seconds=100.0) for number in range(2)]
    nodes[0].share(Champion("old but still the best"))
    now = run(nodes, 250.0, step=0.5)
    assert len(nodes[1].latest("champion")) == 1
    assert len(nodes[1].gather()) == 1, "the same content is not handed out again"
    late = exchange(9, hub.open(), now=now)
    run([*nodes, late], 4.0, now)
    assert len(late.latest("champion")) == 1


def test_what_has_expired_is_not_claimed_to_be_held() -> None:
    node = exchange(1, ttl_seconds=100.0)
    receive(node, [seal(identity(2), seq, made_at=int((NOW - 90) * 1e6)).encode() for seq in (1, 2, 3)])
    receive(node, [seal(identity(2), 4).encode()])
    state = node._context.authors.get(identity(2).node_id)
    assert state is not None
    known = state.known(state.epoch)
    assert [known.holds(number) for number in range(6)] == [False, True, True, True, True, False]
    node.tick(NOW)
    run([node], 20.0, step=1.0)
    known = state.known(state.epoch)
    assert [known.holds(number) for number in range(6)] == [False, False, False, False, True, False]


def test_unknown_kinds_are_kept_for_others() -> None:
    node = exchange(1)
    receive(node, [seal(identity(2), 1, [PackedItem("rumour", b"?")]).encode()])
    assert node.gather() == []
    assert node.tally.unknown_kinds == 1
    state = node._context.authors.get(identity(2).node_id)
    assert state is not None
    assert len(state.log) == 1


def test_a_thousand_fresh_registers_do_not_fill_latest() -> None:
    node = exchange(1)
    good = identity(2)
    champion = [PackedItem("champion", encode(Champion("good")))]
    receive(node, [seal(good, 1, champion, topic="latest/0").encode()])
    for _ in range(4):
        node.accounts.credit(good.node_id, "verified")
    for number in range(1000):
        worthless = [PackedItem("champion", encode(Champion(f"{number}")))]
        receive(
            node,
            [seal(identity(1000 + number), 1, worthless, topic="latest/0").encode()],
            NOW + number * 0.01,
        )
    latest = node.latest("champion")
    assert good.node_id in latest
    assert len(latest) <= 9


def test_shards_are_followed_and_redrawn() -> None:
    hub = MemoryHub()
    nodes = [
        exchange(number, hub.open(), shards=8, follow=2, follow_all_until=4, redraw_seconds=20.0)
        for number in range(12)
    ]
    assert all(len(node._context.following.shards) == 8 for node in nodes), (
        "everything, until the swarm is known to be large"
    )
    now = run(nodes, 21.0)
    assert all(len(node._context.following.shards) == 2 for node in nodes)
    assert all(node._context.following.home in node._context.following.shards for node in nodes)
    before = [node._context.following.shards for node in nodes]
    for node in nodes:
        node.gather()
        node.share(Rollout(1, node.identity.node_id))
    now = run(nodes, 1.0, now)
    for node in nodes:
        followed = {
            other.identity.node_id
            for other in nodes
            if other is not node and other._context.following.home in node._context.following.shards
        }
        assert {found.author for found in node.gather()} == followed
    run(nodes, 60.0, now, step=0.5)
    assert [node._context.following.shards for node in nodes] != before


def test_settings_name_what_cannot_work() -> None:
    with pytest.raises(ConfigError, match="shards"):
        exchange(1, shards=0)
    with pytest.raises(ConfigError, match="history_frames"):
        exchange(1, history_frames=1000)
    with pytest.raises(msgspec.ValidationError, match="unknown field"):
        msgspec.convert({"shard": 1}, ExchangeSettings)


def test_outgoing_items_stay_below_the_quota_of_receivers() -> None:
    nodes = swarm(2, frames_burst=5, frames_per_second=2.0)
    now = NOW
    for number in range(60):
        nodes[0].share(Rollout(number, "x" * 40_000))
        now = run(nodes, 0.1, now)
    run(nodes, 60.0, now)
    assert nodes[1].tally.rejected[Rejection.QUOTA] == 0
    assert len(nodes[1].gather()) == 60


def test_frames_are_read_by_content_whatever_topic_they_came_under() -> None:
    hub = MemoryHub()
    node, stray = exchange(1, hub.open()), hub.open()
    stray.publish("beacon/0", seal(identity(2), 1).encode())
    stray.publish(f"to/{node.identity.node_id}", seal(identity(2), 2).encode())
    node.tick(NOW + 0.1)
    assert [found.seq for found in node.gather()] == [1, 2]


def test_a_key_belongs_to_one_shard() -> None:
    node = exchange(1, shards=4, follow_all_until=100)
    home = exchange(2, shards=4)._context.following.home
    frames: list[Frame] = [
        seal(identity(2), seq, topic=f"log/{shard}") for seq, shard in enumerate(range(4), 1)
    ]
    receive(node, [frame.encode() for frame in frames])
    assert [found.seq for found in node.gather()] == [home + 1]
