"""The bytes of the protocol: docs/protocol.md in numbers. Each is rebuilt here without the code under test."""

from __future__ import annotations

import base64
import hashlib
import json
import random
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from shoal.corewar import assemble, hill
from shoal.swarm.codec import Codec
from shoal.swarm.frame import Bundle, Frame
from shoal.swarm.kinds import Kinds
from shoal.swarm.membership import Membership
from tests.swarm.vectors.make import PATH, vectors

VECTORS: dict[str, Any] = json.loads(PATH.read_text())


def test_the_code_still_makes_these_bytes() -> None:
    assert vectors() == VECTORS, "a change of the wire format needs a new version of the protocol"


def test_the_id_is_a_hash_of_the_key() -> None:
    digest = hashlib.blake2b(
        bytes.fromhex(VECTORS["public_key"]), digest_size=20, person=b"shoal node id"
    ).digest()
    assert base64.b32encode(digest).decode().lower() == VECTORS["node_id"]


@pytest.mark.parametrize("place", [0, 1])
def test_swarms_follow_from_name_and_secret(place: int) -> None:
    swarm = VECTORS["swarms"][place]
    salt = b"shoal swarm\0" + swarm["name"].encode()
    if swarm["secret"]:
        root = hashlib.scrypt(swarm["secret"].encode(), salt=salt, n=16384, r=8, p=1, dklen=32)
    else:
        root = hashlib.blake2b(salt, digest_size=32).digest()
    id_ = hashlib.blake2b(b"", key=root, digest_size=16, person=b"shoal swarm id").hexdigest()
    tag = hashlib.blake2b(b"", key=root, digest_size=32, person=b"shoal domain").digest()
    assert id_ == swarm["swarm_id"]
    assert (b"shoal frame 1\0" + tag).hex() == swarm["domain_tag"]


@pytest.mark.parametrize("name", VECTORS["frames"])
def test_frames(name: str) -> None:
    frame = VECTORS["frames"][name]
    swarm = VECTORS["swarms"]["secret" in name]
    header, signature, body, *rest = msgspec.msgpack.decode(bytes.fromhex(frame["message"]))
    assert (header.hex(), signature.hex(), body.hex()) == (frame["header"], frame["signature"], frame["body"])
    assert body[0] == 0
    entries = msgspec.msgpack.decode(body[1:])
    assert all(isinstance(kind, str) and isinstance(payload, bytes) for kind, payload in entries)
    contents = [
        hashlib.sha256(bytes([len(kind)]) + kind.encode() + payload).digest() for kind, payload in entries
    ]
    digest = hashlib.sha256(b"".join(contents)).digest()
    assert msgspec.msgpack.decode(header) == [
        1,
        bytes.fromhex(swarm["swarm_id"]),
        bytes.fromhex(VECTORS["public_key"]),
        frame["epoch"],
        frame["seq"],
        frame["made_at"],
        frame["topic"],
        digest,
        frame["shared"],
    ]
    key = Ed25519PublicKey.from_public_bytes(bytes.fromhex(VECTORS["public_key"]))
    signed = header
    if "under one signature" in name:
        (roll,) = rest
        assert [roll[:32], roll[32:]].index(hashlib.sha256(header).digest()) == name.startswith("second")
        signed = b"\xc1" + roll
    else:
        assert not rest
    key.verify(signature, bytes.fromhex(swarm["domain_tag"]) + signed)
    codec = Codec(Membership(swarm["name"], swarm["secret"]), Kinds())
    read = codec.read(bytes.fromhex(frame["message"]))
    assert isinstance(read, Frame)
    assert codec.authentic(read)
    assert codec.intact(read) is None


def test_items_of_the_protocol() -> None:
    def item(name: str) -> Any:
        body = bytes.fromhex(VECTORS["frames"][name]["body"])
        ((kind, payload),) = msgspec.msgpack.decode(body[1:])
        assert kind == name
        return msgspec.msgpack.decode(payload)

    raw = base64.b32decode(VECTORS["node_id"].upper())
    epoch = VECTORS["frames"]["beacon"]["epoch"]
    assert item("beacon") == [["tcp/192.0.2.1:7447"], [[raw, epoch, 1, 2, 3, 4, 0]]]
    assert item("pull") == [bytes(range(16)), [[raw, epoch, [3, 2], True]]]
    bundle = Codec(Membership("example"), Kinds()).read(bytes.fromhex(VECTORS["bundle"]))
    assert isinstance(bundle, Bundle)
    assert [frame.hex() for frame in bundle.frames] == [VECTORS["frames"]["log of two items"]["message"]]


def payload_of(name: str) -> tuple[str, Any]:
    body = bytes.fromhex(VECTORS["frames"][name]["body"])
    ((kind, payload),) = msgspec.msgpack.decode(body[1:])
    return kind, msgspec.msgpack.decode(payload)


def test_items_of_the_applications() -> None:
    kind, (domain, source, number, model, fitness) = payload_of("champion")
    assert (kind, domain, number, model, fitness) == ("champion", "corewar", 3, "another program", 1.25)
    assert assemble(source, hill("drq")).canonical
    kind, (task, question, completions, model) = [
        part[:4] if isinstance(part, list) else part for part in payload_of("rollouts")
    ]
    assert (kind, task, model) == ("rollouts", ["sums", "1", "{}", 17], "another program")
    assert question == VECTORS["tasks"][1]["question"]
    assert completions == [["10", True, []], ["<answer>11</answer>", True, []], ["4+6 is", False, []]]


def part(value: int | str) -> bytes:
    content = str(value).encode()
    return (b"i" if isinstance(value, int) else b"s") + b"%d:" % len(content) + content


@pytest.mark.parametrize("place", range(len(VECTORS["tasks"])))
def test_seeds_and_questions(place: int) -> None:
    task = VECTORS["tasks"][place]
    hashed = part(task["epoch"]) + part("task") + part(task["author"]) + part(task["counter"])
    digest = hashlib.blake2b(hashed, digest_size=64, person=b"shoal.seeds").digest()
    assert task["seed"] == int.from_bytes(digest, "big") >> (512 - 62)
    assert (task["family"], task["version"]) == ("sums", "1")
    settings = {"largest": 9, "operators": "+", "terms": 2, **json.loads(task["parameters"])}
    assert task["all_parameters"] == json.dumps(settings, sort_keys=True, separators=(",", ":"))
    rng = random.Random(task["seed"])
    numbers = [rng.randint(0, settings["largest"]) for _ in range(settings["terms"])]
    signs = [rng.choice(settings["operators"]) for _ in numbers[1:]]
    calculation = str(numbers[0]) + "".join(
        f"{sign}{number}" for sign, number in zip(signs, numbers[1:], strict=True)
    )
    assert task["question"] == f"{calculation}="
    assert int(task["answer"]) == numbers[0] + sum(
        number if sign == "+" else -number for sign, number in zip(signs, numbers[1:], strict=True)
    )


def test_keys_and_subjects() -> None:
    for address in VECTORS["addresses"]:
        name = hashlib.blake2b(address["swarm"].encode(), digest_size=8).hexdigest()
        assert address["zenoh"] == f"shoal/{name}/{address['topic']}"
        assert address["nats"] == f"shoal.{name}.{address['topic'].replace('/', '.')}"


def test_content_digests() -> None:
    content = VECTORS["content_digest"]
    kind = content["kind"].encode()
    data = bytes([len(kind)]) + kind + bytes.fromhex(content["payload"])
    assert hashlib.sha256(data).hexdigest() == content["digest"]
