"""Frames: the signed, versioned, bounded wire form of one to sixteen items. docs/protocol.md has the bytes.

Frames that leave together share one signature over their **roll**, the list of the hashes of their headers,
which each of them carries. So one check holds for all of them, and each can still be checked alone.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal, TypeAlias, cast

import msgspec

from shoal.swarm.body import DIGEST_BYTES, PackedView
from shoal.swarm.identity import ID_BYTES, KEY_BYTES, SIGNATURE_BYTES, NodeId, node_id
from shoal.swarm.membership import SWARM_ID_BYTES
from shoal.swarm.rejection import Rejection

if TYPE_CHECKING:
    from shoal.swarm.codec import Contents

VERSION = 1
MOST_ON_A_ROLL = 16
NONCE_BYTES = 16

Channel: TypeAlias = Literal["log", "latest", "beacon", "to"]
Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
Nonce = Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]

_SHARDED = re.compile(r"(log|latest|beacon)/(0|[1-9][0-9]{0,4})")


class Envelope(msgspec.Struct, array_like=True, frozen=True):
    """A frame on the wire. The body is a view into the message."""

    header: Annotated[bytes, msgspec.Meta(max_length=896)]
    signature: Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]
    body: memoryview
    roll: Annotated[bytes, msgspec.Meta(max_length=MOST_ON_A_ROLL * DIGEST_BYTES)] = b""


class Header(msgspec.Struct, array_like=True, frozen=True):
    """The signed part of a frame; `epoch` and `made_at` are microseconds since 1970."""

    version: int
    swarm: Annotated[bytes, msgspec.Meta(min_length=SWARM_ID_BYTES, max_length=SWARM_ID_BYTES)]
    key: Annotated[bytes, msgspec.Meta(min_length=KEY_BYTES, max_length=KEY_BYTES)]
    epoch: Number
    seq: Annotated[int, msgspec.Meta(ge=1, lt=1 << 62)]
    made_at: Number
    topic: Annotated[str, msgspec.Meta(max_length=64)]
    digest: Annotated[bytes, msgspec.Meta(min_length=DIGEST_BYTES, max_length=DIGEST_BYTES)]
    shared: Number = 0  # items of this author in this stream up to here; 0: it does not say


class Bundle(msgspec.Struct, array_like=True, frozen=True, tag="bundle"):
    """The unsigned answer to a pull: frames, each with its author's own signature."""

    nonce: Nonce
    frames: list[bytes]


class Frame:
    """A frame with a readable header. Believe nothing in it before `Codec.authentic` and `Codec.intact`."""

    __slots__ = (
        "authentic author body channel contents control count epoch found header key made_at order place "
        "roll seq shared signature signed topic whole"
    ).split()

    def __init__(self, envelope: Envelope, header: Header, channel: Channel, place: int | NodeId) -> None:
        self.header = envelope.header
        self.signature = envelope.signature
        self.body = envelope.body
        self.roll = envelope.roll
        self.signed = header.digest
        self.key = header.key
        self.author: NodeId = node_id(header.key)
        self.epoch = header.epoch
        self.seq = header.seq
        self.order = (header.epoch, header.seq)  # the position in the author's own sequence
        self.made_at = header.made_at
        self.shared = header.shared
        self.topic = header.topic
        self.channel: Channel = channel
        self.place = place  # the shard, or for "to" the node that it is directed to
        self.authentic: bool | None = None  # the result of `Codec.authentic`
        self.whole: Rejection | bool | None = None  # the result of `Codec.intact`: True or the fault
        self.count = 0  # of the items in the body, known once it is whole
        self.found: list[tuple[PackedView, bytes]] | None = None  # by `Codec.intact`, for `Codec.contents`
        # Only the simulator keeps these, whose nodes share their frames.
        self.contents: Contents | Rejection | None = None
        self.control: msgspec.Struct | Rejection | None = None  # a beacon or a pull

    @property
    def size(self) -> int:
        """Bytes on the wire, to within a few."""
        return len(self.header) + len(self.signature) + len(self.body) + len(self.roll) + 12

    def encode(self) -> bytes:
        """The frame as it travels. Extra fields that came around the signed ones are not passed on."""
        parts: list[bytes | memoryview] = [self.header, self.signature, self.body]
        return encode([*parts, self.roll] if self.roll else parts)


encode = msgspec.msgpack.Encoder().encode


def claimed_key(message: bytes) -> bytes | None:
    """The author key that a message names, before anything of it is decoded; None if it does not stand where
    msgpack's shortest form puts it. Nothing proves it yet."""
    named = message[1:2] == b"\xc4" and message[5:7] == b"\xc4\x10" and message[23:25] == b"\xc4\x20"
    return message[25:57] if named else None


def claimed_nonce(message: bytes) -> bytes | None:
    """The same for the nonce of a bundle."""
    return message[10:26] if message[1:10] == b"\xa6bundle\xc4\x10" else None


@lru_cache(maxsize=1 << 14)
def parse_topic(topic: str) -> tuple[Channel, int | NodeId] | None:
    """The channel, and the shard or the node that it is directed to; None if there is no such topic."""
    channel, _, place = topic.partition("/")
    if channel == "to":
        return ("to", place) if len(place) == ID_BYTES * 8 // 5 else None
    found = _SHARDED.fullmatch(topic)
    return (cast(Channel, found[1]), int(found[2])) if found else None
