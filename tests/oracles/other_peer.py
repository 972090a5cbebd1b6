"""A peer written from docs/protocol.md alone, without a line of Shoal: msgspec, cryptography and eclipse-zenoh.

    python tests/oracles/other_peer.py tcp/127.0.0.1:7447 --items rollouts

It joins there, sends beacons, and shares champions of Core War or rollout groups of `sums`. Its first items are not
published: they stand in its vector only, until others have asked for them. At its start, and after --seconds or an
interrupt, it prints a line of JSON: its id, the peers that it heard, the numbers of what it sent and answered. The
headings are those of the page.
"""

from __future__ import annotations

import argparse
import base64
import contextlib
import hashlib
import json
import os
import random
import signal
import time
from collections import Counter
from typing import Any

import msgspec
import zenoh
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

pack, unpack = msgspec.msgpack.encode, msgspec.msgpack.decode


# Identity
def id_of(key: bytes) -> bytes:
    return hashlib.blake2b(key, digest_size=20, person=b"shoal node id").digest()


def as_text(raw_id: bytes) -> str:
    return base64.b32encode(raw_id).decode().lower()


# Swarm
class Swarm:
    def __init__(self, name: str, secret: str) -> None:
        salt = b"shoal swarm\0" + name.encode()
        root = hashlib.blake2b(salt, digest_size=32).digest()
        if secret:
            root = hashlib.scrypt(secret.encode(), salt=salt, n=16384, r=8, p=1, dklen=32)
        self.id = hashlib.blake2b(b"", key=root, digest_size=16, person=b"shoal swarm id").digest()
        tag = hashlib.blake2b(b"", key=root, digest_size=32, person=b"shoal domain").digest()
        self.domain_tag = b"shoal frame 1\0" + tag
        self.prefix = f"shoal/{hashlib.blake2b(name.encode(), digest_size=8).hexdigest()}/"


# Zenoh
def connect(address: str, seconds: float) -> zenoh.Session:
    off = {"enabled": False}
    configuration = {
        "mode": "client",
        "connect": {"endpoints": [address], "timeout_ms": 0, "exit_on_failure": False},
        "scouting": {"multicast": off, "gossip": off, "delay": 0},
        "transport": {"shared_memory": off, "link": {"rx": {"max_message_size": 1_052_672}}},
        "adminspace": off,
    }
    until = time.monotonic() + seconds
    while True:
        try:
            return zenoh.open(zenoh.Config.from_json5(json.dumps(configuration)))
        except zenoh.ZError:
            if time.monotonic() > until:
                raise
            time.sleep(1.0)


# Frame
def content_digest(kind: str, payload: bytes) -> bytes:
    return hashlib.sha256(bytes([len(kind)]) + kind.encode() + payload).digest()


def read_frame(message: bytes, swarm: Swarm) -> tuple[bytes, str, list[tuple[str, bytes]]] | None:
    """The author's key, the topic and the items of a frame that holds; None for any other message."""
    try:
        header, signature, body, *more = unpack(message)
        version, swarm_id, key, _epoch, _seq, _made_at, topic, digest, *_ = unpack(header)
        if (version, swarm_id) != (1, swarm.id):
            return None
        signed = header
        if more and more[0]:
            roll = more[0]
            places = range(0, len(roll), 32)
            if hashlib.sha256(header).digest() not in [roll[place : place + 32] for place in places]:
                return None
            signed = b"\xc1" + roll
        Ed25519PublicKey.from_public_bytes(key).verify(signature, swarm.domain_tag + signed)
        if body[0] != 0:
            return None
        items = [(str(kind), bytes(payload)) for kind, payload in unpack(body[1:])]
    except (InvalidSignature, msgspec.MsgspecError, ValueError, TypeError, IndexError):
        return None
    whole = b"".join(content_digest(kind, payload) for kind, payload in items)
    return (key, topic, items) if hashlib.sha256(whole).digest() == digest else None


class Peer:
    def __init__(self, swarm: Swarm, session: zenoh.Session) -> None:
        self.swarm, self.session = swarm, session
        self.private = Ed25519PrivateKey.from_private_bytes(os.urandom(32))
        self.key = self.private.public_key().public_bytes_raw()
        self.raw_id = id_of(self.key)
        self.id = as_text(self.raw_id)
        self.epoch = time.time_ns() // 1000
        self.numbers: Counter[str] = Counter()  # by stream
        self.log: dict[int, bytes] = {}
        self.register: bytes = b""
        self.heard: dict[str, int] = {}
        self.done: Counter[str] = Counter()
        self.arrivals = [
            session.declare_subscriber(swarm.prefix + topic, zenoh.handlers.RingChannel(1024))
            for topic in ("log/0", "latest/0", "beacon/0", f"to/{self.id}")
        ]

    def frame(self, topic: str, kind: str, item: object) -> bytes:
        stream, payload = topic.partition("/")[0], pack(item)
        self.numbers[stream] += 1
        digest = hashlib.sha256(content_digest(kind, payload)).digest()
        made_at = max(self.epoch, time.time_ns() // 1000)
        header = pack([1, self.swarm.id, self.key, self.epoch, self.numbers[stream], made_at, topic, digest])
        signature = self.private.sign(self.swarm.domain_tag + header)
        return pack([header, signature, b"\0" + pack([[kind, payload]])])

    def put(self, topic: str, message: bytes) -> None:
        self.session.put(
            self.swarm.prefix + topic,
            message,
            congestion_control=zenoh.CongestionControl.DROP,
            priority=zenoh.Priority.DATA_HIGH if topic.startswith("beacon/") else zenoh.Priority.DATA,
        )

    # Items

    def share(self, topic: str, kind: str, item: object) -> None:
        frame = self.frame(topic, kind, item)
        if topic.startswith("log/"):
            self.log[self.numbers["log"]] = frame
            self.log.pop(self.numbers["log"] - 256, None)
        else:
            self.register = frame
        if self.done["pulls answered"]:
            self.put(topic, frame)
        self.done["published" if self.done["pulls answered"] else "withheld"] += 1

    # Beacon

    def beacon(self) -> None:
        newest, oldest = self.numbers["log"], min(self.log, default=0)
        own = [self.raw_id, self.epoch, oldest, newest, newest, self.numbers["latest"], 0]
        self.put("beacon/0", self.frame("beacon/0", "beacon", [[], [own]]))

    # Pull and bundle

    def take_in(self) -> None:
        for ring in self.arrivals:
            while (sample := ring.handler.try_recv()) is not None:
                message = sample.payload.to_bytes()
                found = read_frame(message, self.swarm) if len(message) <= 1_048_576 else None
                if found is None:
                    self.done["unreadable"] += 1
                    continue
                key, topic, items = found
                author = as_text(id_of(key))
                if author == self.id:  # a session hears itself
                    continue
                self.heard[author] = self.heard.get(author, 0) + 1
                if topic == f"to/{self.id}" and [kind for kind, _ in items] == ["pull"]:
                    with contextlib.suppress(msgspec.MsgspecError, ValueError, TypeError):
                        self.answer(author, unpack(items[0][1]))

    def answer(self, asker: str, pull: list[Any]) -> None:
        nonce, wants, *_ = pull
        frames: list[bytes] = []
        for author, epoch, numbers, registers, *_ in wants:
            if (author, epoch) != (self.raw_id, self.epoch):
                continue
            held = [self.register] if registers and self.register else []
            held += [self.log[number] for number in numbers if number in self.log]
            for frame in held:
                if not frames or sum(map(len, [*frames, frame])) <= 262_144:
                    frames.append(frame)
        if frames:
            self.done["pulls answered"] += 1
            self.put(f"to/{asker}", pack(["bundle", nonce, frames]))


# Champions
DOMAIN, MODEL = "corewar", "another program"


def program(number: int) -> str:
    """A bomber whose step is another one each time."""
    step = 4 * (number % 500 + 1) + 1
    return f"bomb add.ab #{step}, target\ntarget mov.i 2, {step}\n jmp bomb\n dat #0, #0\n"


# The seed of a task; questions and answers
def rollout_group(author: str, epoch: int, counter: int) -> list[Any]:
    """A question of `sums` with right and wrong answers."""
    parts = [("i", str(epoch)), ("s", "task"), ("s", author), ("i", str(counter))]
    hashed = "".join(f"{letter}{len(text)}:{text}" for letter, text in parts).encode()
    digest = hashlib.blake2b(hashed, digest_size=64, person=b"shoal.seeds").digest()
    rng = random.Random(int.from_bytes(digest, "big") >> (512 - 62))
    first, second = rng.randint(0, 9), rng.randint(0, 9)
    texts = [str(first + second), f"<answer>{first + second}</answer>", str(first + second + 1), "none"]
    completions = [[text, True, []] for text in texts]
    return [["sums", "1", "{}", counter], f"{first}+{second}=", completions, MODEL]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("address")
    parser.add_argument("--swarm", default="shoal")
    parser.add_argument("--secret", default="")
    parser.add_argument("--items", choices=("champion", "rollouts"), required=True)
    parser.add_argument("--seconds", type=float, default=60.0)
    given = parser.parse_args()
    until = time.monotonic() + given.seconds
    peer = Peer(Swarm(given.swarm, given.secret), connect(given.address, given.seconds))
    print(json.dumps({"id": peer.id}), flush=True)
    beacon_at = share_at = time.monotonic()
    stops: list[bool] = []
    signal.signal(signal.SIGINT, lambda *_: stops.append(True))
    while (now := time.monotonic()) < until and not stops:
        if now >= beacon_at:
            beacon_at = now + random.uniform(0.8, 1.2)
            peer.beacon()
        if now >= share_at:
            share_at = now + (2.0 if given.items == "champion" else 0.4)
            count = peer.done["withheld"] + peer.done["published"]
            if given.items == "champion":
                peer.share("latest/0", "champion", [DOMAIN, program(count), count, MODEL, 1.0])
            else:
                peer.share("log/0", "rollouts", rollout_group(peer.id, peer.epoch, count))
        peer.take_in()
        time.sleep(0.02)
    peer.session.close()
    print(json.dumps({"id": peer.id, "heard": peer.heard, **peer.done}), flush=True)


if __name__ == "__main__":
    main()
