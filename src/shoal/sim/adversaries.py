"""Adversaries: participants that break the rules, one class for each way of doing so, ten times a second.

They hear everything (a real one can subscribe to all topics too), have their own keys, and know the swarm's
name.
"""

from __future__ import annotations

import random
from collections.abc import Sequence

import zstandard

from shoal.sim.network import SimTransport
from shoal.sim.swarm import Note, SimSwarm
from shoal.swarm.beacon import BEACON_KIND, Beacon, Known
from shoal.swarm.body import ZSTD, PackedItem, body_digest, content_digest
from shoal.swarm.codec import Codec
from shoal.swarm.frame import NONCE_BYTES, Bundle, Frame, Header, encode
from shoal.swarm.identity import Identity, id_bytes
from shoal.swarm.membership import Membership
from shoal.swarm.pull import MOST_IDS, PULL_KIND, Pull, Want
from shoal.swarm.shards import shard_of

INTERVAL = 0.1
REMEMBERED = 200


class Adversary:
    """The common part of all adversaries: ears, keys and a codec. `act` is the attack."""

    def __init__(self, swarm: SimSwarm, number: int = 0, rate: int = 20) -> None:
        self.rng = random.Random(f"adversary {type(self).__name__} {number} {swarm.seed}")
        self.identity = swarm.identity(f"adversary {type(self).__name__} {number}")
        self.codec = Codec(Membership(swarm.settings.swarm, swarm.settings.secret), swarm.kinds)
        self.settings = swarm.settings
        self.rate = rate  # messages per wake
        self.transport: SimTransport = swarm.network.open()
        self.heard: list[bytes] = []
        self.sent = 0
        self.now = swarm.network.now
        self._due = self.now + self.rng.uniform(0.0, INTERVAL)
        self._seq = 0
        self._epoch = int(self.now * 1e6)
        topics = [
            f"{channel}/{shard}"
            for channel in ("log", "latest", "beacon")
            for shard in range(swarm.settings.shards)
        ]
        victims = [f"to/{node.identity.node_id}" for node in swarm.nodes]
        self.victims = [node.identity for node in swarm.nodes]
        self.transport.subscribe(frozenset([*topics, *victims, f"to/{self.identity.node_id}"]))
        swarm.network.attach(self.transport, self)

    def wake(self, now: float) -> None:
        self.now = now
        self.heard = (self.heard + self.transport.collect())[-REMEMBERED:]
        if now >= self._due:
            self._due = now + INTERVAL
            self.act()

    def next_due(self) -> float:
        return self._due

    def act(self) -> None:
        raise NotImplementedError

    def publish(self, topic: str, message: bytes) -> None:
        self.sent += 1
        self.transport.publish(topic, message)

    def send(self, frame: Frame) -> None:
        self.publish(frame.topic, frame.encode())

    def topic(self, channel: str, identity: Identity | None = None) -> str:
        node = (identity or self.identity).node_id
        return f"{channel}/{shard_of(node, self.settings.shards)}"

    def frame(
        self, items: Sequence[PackedItem], channel: str = "log", identity: Identity | None = None
    ) -> Frame:
        """A frame whose envelope is in order."""
        self._seq += 1
        author = identity or self.identity
        topic = channel if channel.startswith("to/") else self.topic(channel, author)
        return self.codec.seal(author, self._epoch, self._seq, int(self.now * 1e6), topic, items)

    def signed_header(self, author: Identity, digest: bytes) -> list[bytes]:
        """A log header in the name of `author` and a signature by this adversary's own key."""
        self._seq += 1
        swarm, made_at, topic = self.codec.membership.swarm_id, int(self.now * 1e6), self.topic("log", author)
        header = Header(1, swarm, author.public_key, self._epoch, self._seq, made_at, topic, digest)
        packed = encode(header)
        return [packed, self.identity.sign(self.codec.membership.domain_tag + packed)]

    def note(self, text: str) -> PackedItem:
        return PackedItem("note", encode(Note(text)))


class Malformed(Adversary):
    """Random bytes, cut and changed frames, nested arrays, and huge lengths."""

    def act(self) -> None:
        for _ in range(self.rate):
            choice = self.rng.randrange(5)
            if choice == 0 or not self.heard:
                message = self.rng.randbytes(self.rng.randrange(400))
            elif choice == 1:
                message = b"\x91" * self.rng.randrange(5000)
            elif choice == 2:
                message = b"\x93\xc6\xff\xff\xff\xff" + self.rng.randbytes(20)
            else:
                changed = bytearray(self.rng.choice(self.heard))
                for _ in range(self.rng.randrange(1, 4)):
                    changed[self.rng.randrange(len(changed))] = self.rng.randrange(256)
                message = bytes(changed[: self.rng.randrange(1, len(changed) + 1)])
            self.publish(self.rng.choice(["log/0", "latest/0", "beacon/0"]), message)


class Forger(Adversary):
    """Frames in the name of others: signed with its own key, or a real header with another body."""

    def act(self) -> None:
        for _ in range(self.rate):
            victim = self.rng.choice(self.victims)
            note = self.note("forged")
            body = b"\0" + encode([note])
            header = self.signed_header(victim, body_digest([content_digest(note.kind, note.payload)]))
            self.publish(self.topic("log", victim), encode([*header, body]))
            if self.heard and isinstance(real := self.codec.read(self.rng.choice(self.heard)), Frame):
                self.publish(real.topic, encode([real.header, real.signature, body, real.roll]))


class Replayer(Adversary):
    """Messages of others, again and again, also under topics where they do not belong."""

    def act(self) -> None:
        for message in self.rng.choices(self.heard, k=self.rate) if self.heard else ():
            self.publish(self.rng.choice(["log/0", "latest/0", "beacon/0"]), message)


class Flooder(Adversary):
    """Valid items, far more than its quota."""

    def act(self) -> None:
        for _ in range(self.rate):
            self.send(self.frame([self.note(f"flood {self._seq}.{place}") for place in range(16)]))


class Oversizer(Adversary):
    """Items above their limit, messages above theirs, and bodies that unpack to gigabytes."""

    def act(self) -> None:
        for _ in range(max(1, self.rate // 4)):
            self.send(self.frame([self.note("x" * (20 << 10))]))
            self.publish("log/0", b"\x93" + bytes(200 << 10))
            bomb = bytes((ZSTD,)) + zstandard.ZstdCompressor(level=1).compress(bytes(4 << 20))
            # A wrong digest: nobody unpacks the bomb to find out.
            self.publish("log/0", encode([*self.signed_header(self.identity, body_digest([])), bomb]))


class Mistyper(Adversary):
    """Signed frames whose items are of the wrong type, of an unknown kind, or under the wrong topic."""

    def act(self) -> None:
        for _ in range(max(1, self.rate // 10)):
            wrong = [("note", encode(17)), ("best", encode(["x"])), ("rumour", b"?")]
            self.send(self.frame([PackedItem(*self.rng.choice(wrong))]))


class StaleClock(Adversary):
    """Frames from long ago and from the future, and new epochs all the time."""

    def act(self) -> None:
        for _ in range(self.rate):
            offset = self.rng.choice([-7200.0, 3600.0, 1e6])
            self._seq += 1
            epoch = int((self.now + self.rng.choice([0.0, offset])) * 1e6)
            made_at, topic = int((self.now + offset) * 1e6), self.topic("log")
            note = self.note("not now")
            self.send(self.codec.seal(self.identity, epoch, self._seq, made_at, topic, [note]))


class Sybils(Adversary):
    """Many fresh identities, each within its quota, each with a beacon and items of no worth."""

    def __init__(self, swarm: SimSwarm, number: int = 0, rate: int = 20, identities: int = 200) -> None:
        super().__init__(swarm, number, rate)
        self.identities = [swarm.identity(f"sybil {number} {place}") for place in range(identities)]

    def act(self) -> None:
        for identity in self.rng.sample(self.identities, min(self.rate, len(self.identities))):
            notes = [self.note(f"sybil {self._seq}.{place}") for place in range(4)]
            self.send(self.frame(notes, identity=identity))
            self.send(self.frame([PackedItem(BEACON_KIND, encode(Beacon((), ())))], "beacon", identity))


class Liar(Adversary):
    """Beacons that claim to hold frames that do not exist: of real authors, and of invented ones."""

    def act(self) -> None:
        if self.rng.random() > 0.1:
            return
        real = [id_bytes(victim.node_id) for victim in self.victims]
        invented = [self.rng.randbytes(20) for _ in range(16)]
        epochs = [int(self.now * 1e6) - 1000, self._epoch]
        for message in self.heard[-20:]:
            if isinstance(frame := self.codec.read(message), Frame):
                epochs.append(frame.epoch)
        vector = tuple(
            Known(self.rng.choice(real + invented), self.rng.choice(epochs), 1, 10**9, 10**9, 10**9)
            for _ in range(64)
        )
        self.send(self.frame([PackedItem(BEACON_KIND, encode(Beacon((), vector)))], "beacon"))


class PullFlooder(Adversary):
    """Asks everyone for as much as possible, without end, and sends answers that nobody asked for."""

    def act(self) -> None:
        wants = []
        for message in self.heard[-50:]:
            if isinstance(frame := self.codec.read(message), Frame) and frame.channel == "log":
                numbers = tuple(range(max(1, frame.seq - 15), frame.seq + 1))
                wants.append(Want(id_bytes(frame.author), frame.epoch, numbers, True))
        for _ in range(self.rate):
            victim = self.rng.choice(self.victims)
            pull = Pull(self.rng.randbytes(NONCE_BYTES), tuple(wants[: MOST_IDS // 17]))
            topic = f"to/{victim.node_id}"
            self.send(self.frame([PackedItem(PULL_KIND, encode(pull))], topic))
            unasked = Bundle(self.rng.randbytes(NONCE_BYTES), self.heard[-3:])
            self.publish(topic, encode(unasked))


ADVERSARIES: tuple[type[Adversary], ...] = tuple(Adversary.__subclasses__())
