"""Kinds, nodes and frames that the tests of this folder share."""

from __future__ import annotations

import random

import msgspec

from shoal.swarm.accounts import Accounts
from shoal.swarm.body import PackedItem
from shoal.swarm.codec import Codec
from shoal.swarm.exchange import Exchange
from shoal.swarm.frame import Frame, encode
from shoal.swarm.identity import Identity
from shoal.swarm.kinds import Kind, Kinds
from shoal.swarm.membership import Membership
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.transport.base import Transport
from shoal.swarm.transport.memory import MemoryHub

NOW = 1_700_000_000.0


class Rollout(msgspec.Struct, array_like=True, frozen=True):
    task: int
    text: str


class Champion(msgspec.Struct, array_like=True, frozen=True):
    source: str
    score: float = 0.0


def kinds() -> Kinds:
    return Kinds(
        [
            Kind("rollout", Rollout, max_bytes=256 << 10, keep="log"),
            Kind("champion", Champion, max_bytes=64 << 10, keep="latest"),
        ]
    )


def identity(number: int) -> Identity:
    return Identity(number.to_bytes(2, "big") * 16)


def codec(compress: bool = False, secret: str = "") -> Codec:
    return Codec(Membership("shoal", secret), kinds(), compress)


def rollout(task: int, text: str = "text") -> PackedItem:
    return PackedItem("rollout", encode(Rollout(task, text)))


def seal(
    author: Identity,
    seq: int,
    entries: list[PackedItem] | None = None,
    *,
    epoch: int = int(NOW * 1e6),
    made_at: int = int(NOW * 1e6),
    topic: str = "log/0",
    by: Codec | None = None,
) -> Frame:
    return (by or codec()).seal(author, epoch, seq, made_at, topic, entries or [rollout(seq)])


def settings(**changes: object) -> ExchangeSettings:
    return msgspec.convert({"flush_seconds": 0.0, **changes}, ExchangeSettings)


def exchange(
    number: int,
    transport: Transport | None = None,
    *,
    now: float = NOW,
    accounts: Accounts | None = None,
    **changes: object,
) -> Exchange:
    return Exchange(
        identity(number),
        transport or MemoryHub().open(),
        kinds(),
        settings(**changes),
        now=now,
        rng=random.Random(number),
        accounts=accounts,
    )


def receive(node: Exchange, messages: list[bytes], now: float = NOW) -> None:
    """Has a node take in messages as if its transport had brought them."""
    for message in messages:
        node._now = now
        node._intake.arrive(message, now)


def run(nodes: list[Exchange], seconds: float, now: float = NOW, step: float = 0.1) -> float:
    """Ticks all nodes through some virtual seconds and says what time it is then."""
    end = now + seconds
    while now < end:
        now += step
        for node in nodes:
            node.tick(now)
    return now
