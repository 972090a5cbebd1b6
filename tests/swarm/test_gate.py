"""A flood costs the flooder: what is beyond a node's share of its processor is dropped unread."""

from __future__ import annotations

import random

from shoal.swarm.accounts import Accounts
from shoal.swarm.exchange import Exchange
from shoal.swarm.frame import Bundle, claimed_key, claimed_nonce, encode
from shoal.swarm.gate import SAVED_SECONDS, IntakeShare
from shoal.swarm.rejection import Rejection
from shoal.swarm.transport.memory import MemoryHub, MemoryTransport
from tests.swarm.samples import NOW, identity, kinds, seal, settings

CHECK = 0.001
"""Seconds of the processor that a frame takes here."""


class Meter:
    """The processor time of a thread that takes CHECK for each frame whose signature it checks."""

    def __init__(self) -> None:
        self.exchange: Exchange | None = None

    def __call__(self) -> float:
        if self.exchange is None:
            return 0.0
        tally = self.exchange.tally
        return CHECK * (tally.accepted + tally.rejected[Rejection.QUOTA] + tally.rejected[Rejection.FORGED])


def metered(share: float, accounts: Accounts | None = None) -> tuple[Exchange, MemoryTransport]:
    hub, meter = MemoryHub(), Meter()
    node = Exchange(
        identity(1),
        hub.open(),
        kinds(),
        settings(intake_share=share, verifications_per_second=1e6),
        now=NOW,
        rng=random.Random(1),
        accounts=accounts,
        meter=meter,
    )
    meter.exchange = node
    return node, hub.open()


def flood(node: Exchange, by: MemoryTransport, seconds: int, keys: int, rate: int = 400) -> None:
    """Each author within its quota."""
    frames = 0
    for tick in range(seconds * 10):
        now = NOW + tick / 10
        for _ in range(rate // 10):
            author, seq = identity(100 + frames % keys), frames // keys + 1
            by.publish("log/0", seal(author, seq, made_at=int(now * 1e6)).encode())
            frames += 1
        node.tick(now)


def test_intake_takes_its_share_of_the_processor_and_no_more() -> None:
    node, other = metered(0.05)
    flood(node, other, 20, keys=100)
    spent = CHECK * node.tally.accepted
    most = 0.05 * (20 + SAVED_SECONDS)
    assert 0.5 * most < spent < 1.1 * most, "newcomers have three fifths of it while nobody is established"
    assert node.tally.rejected[Rejection.BUSY] == 8000 - node.tally.accepted


def test_newcomers_leave_the_others_their_part() -> None:
    accounts, friend = Accounts(), identity(2)
    for _ in range(4):
        accounts.credit(friend.node_id, "verified")
    node, other = metered(0.05, accounts)
    for second in range(20):
        flood_at = NOW + second
        for place in range(400):
            author = identity(100 + place % 100)
            frame = seal(author, second * 4 + place // 100 + 1, made_at=int(flood_at * 1e6))
            other.publish("log/0", frame.encode())
        for place in range(5):
            frame = seal(friend, second * 5 + place + 1, made_at=int(flood_at * 1e6))
            other.publish("log/0", frame.encode())
        for part in range(10):
            node.tick(flood_at + part / 10)
    received = node.accounts.of(friend.node_id)
    assert received.here == 100, "every frame of the established author"
    newcomers = node.tally.accepted - 100
    assert newcomers * CHECK <= 0.2 * 0.05 * (20 + SAVED_SECONDS) + 2 * CHECK


def test_muted_authors_and_unasked_answers_are_dropped_before_they_are_read() -> None:
    node, other = metered(1.0)
    for seq in range(1, 2000):
        other.publish("log/0", seal(identity(2), seq).encode())
    for _ in range(20):
        node.tick(NOW)
    assert node.tally.rejected[Rejection.QUOTA] == 50
    muted = node.tally.rejected[Rejection.MUTED]
    assert muted == 1999 - 500 - 50
    read: list[bytes] = []
    node._context.codec.read = lambda message: read.append(message) or Rejection.MALFORMED  # type: ignore[method-assign]
    other.publish("log/0", seal(identity(2), 3000).encode())
    other.publish(f"to/{identity(1).node_id}", encode(Bundle(bytes(16), [b"x"])))
    node.tick(NOW)
    assert read == []
    assert (node.tally.rejected[Rejection.MUTED], node.tally.rejected[Rejection.UNASKED]) == (muted + 1, 1)
    assert node.gather() == [], "nothing of a muted author is handed out"
    other.publish("log/0", seal(identity(2), 3001, made_at=int((NOW + 61) * 1e6)).encode())
    node.tick(NOW + 61)
    assert len(read) == 1, "silence ends"


def test_the_author_is_found_where_frames_have_it_and_nowhere_else() -> None:
    frame = seal(identity(3), 7)
    assert claimed_key(frame.encode()) == identity(3).public_key
    assert claimed_nonce(frame.encode()) is None
    bundle = encode(Bundle(b"n" * 16, [frame.encode()]))
    assert claimed_nonce(bundle) == b"n" * 16
    assert claimed_key(bundle) is None
    for cut in range(60):
        assert claimed_key(frame.encode()[:cut]) in (None, *(identity(3).public_key[:n] for n in range(33)))


def test_an_unmetered_share_has_no_bound() -> None:
    share = IntakeShare(0.01, frozenset(), None, NOW)
    for _ in range(1000):
        assert share.refill(NOW)
        assert share.affords("new")
        share.spend("new", 1.0)
