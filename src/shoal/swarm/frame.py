"""Frames: the signed, versioned, bounded wire form of one to sixteen items. docs/protocol.md has the bytes.

`Codec.seal` makes a frame, `Codec.read`, `authentic`, `intact` and `contents` take one apart in the order
of their cost. They are pure: what depends on time and memory (age, replay, quotas) is `intake.py`.
Guarantee: any bytes give a frame, a bundle or one named `Rejection`, in bounded time and memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Annotated, Any, Literal, TypeAlias, cast

import msgspec
import zstandard

from shoal.swarm.identity import (
    ID_BYTES,
    KEY_BYTES,
    SIGNATURE_BYTES,
    Identity,
    NodeId,
    node_id,
    usable_key,
    verify,
)
from shoal.swarm.kinds import MOST_NAME_CHARACTERS, Kind, Kinds
from shoal.swarm.membership import SWARM_ID_BYTES, Membership
from shoal.swarm.rejection import Rejection
from shoal.swarm.transport.base import MOST_MESSAGE_BYTES

VERSION = 1
DIGEST_BYTES = 32
CONTENT_DIGEST_BYTES = 16
MOST_ITEMS = 16
FRAME_FILL_BYTES = 60_000
ENVELOPE_BYTES = 1024
"""Room for header, signature and array marks around a body."""
PLAIN, ZSTD = 0, 1
COMPRESS_ABOVE_BYTES = 256
NONCE_BYTES = 16

Channel: TypeAlias = Literal["log", "latest", "beacon", "to"]
Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]
DECODE_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError, MemoryError)


class Envelope(msgspec.Struct, array_like=True, frozen=True):
    """A frame on the wire."""

    header: Annotated[bytes, msgspec.Meta(max_length=ENVELOPE_BYTES - 128)]
    signature: Annotated[bytes, msgspec.Meta(min_length=SIGNATURE_BYTES, max_length=SIGNATURE_BYTES)]
    body: bytes


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


class Version(msgspec.Struct, array_like=True, frozen=True):
    """The one field that every version of the header starts with."""

    version: int


class Bundle(msgspec.Struct, array_like=True, frozen=True, tag="bundle"):
    """The unsigned answer to a pull: frames, each with its author's own signature."""

    nonce: Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
    frames: list[bytes]


class Entry(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One item in a body: the name of its kind and its bytes."""

    kind: Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_NAME_CHARACTERS)]
    payload: bytes


@dataclass(frozen=True, slots=True)
class Item:
    """A decoded item of a known kind. `digest` is the hash of its content, kind included."""

    kind: Kind
    value: msgspec.Struct
    digest: bytes
    size: int


@dataclass(frozen=True, slots=True)
class Contents:
    """What a body held. `indices[i]` is the place of `items[i]` in the frame."""

    items: tuple[Item, ...]
    indices: tuple[int, ...]
    unknown_kinds: int


class Frame:
    """A frame whose header could be read. Nothing in it is to be believed until `authentic` and `intact`."""

    __slots__ = (
        "author", "body", "channel", "contents",
        "control", "epoch", "header", "key", "made_at",
        "place", "seq", "signature", "signed", "topic", "verdict", "whole",
    )  # fmt: skip

    def __init__(self, envelope: Envelope, header: Header, channel: Channel, place: int | NodeId) -> None:
        self.header = envelope.header
        self.signature = envelope.signature
        self.body = envelope.body
        self.signed = header.digest
        self.key = header.key
        self.author: NodeId = node_id(header.key)
        self.epoch = header.epoch
        self.seq = header.seq
        self.made_at = header.made_at
        self.topic = header.topic
        self.channel: Channel = channel
        self.place = place  # the shard, or for "to" the node that it is directed to
        # Verdicts are remembered, so that a frame that many simulated nodes share is checked once.
        self.verdict: bool | None = None
        self.whole: bool | None = None
        self.contents: Contents | Rejection | None = None
        self.control: msgspec.Struct | Rejection | None = None  # a beacon or a pull

    @property
    def order(self) -> tuple[int, int]:
        """Position in the author's own sequence: epoch, then number."""
        return (self.epoch, self.seq)

    @property
    def size(self) -> int:
        """Bytes on the wire, to within a few."""
        return len(self.header) + len(self.signature) + len(self.body) + 12

    def encode(self) -> bytes:
        """The frame as it travels. Extra fields that came around the signed ones are not passed on."""
        return encode([self.header, self.signature, self.body])


encode = msgspec.msgpack.Encoder().encode
_envelope = msgspec.msgpack.Decoder(Envelope)
_header = msgspec.msgpack.Decoder(Header)
_version = msgspec.msgpack.Decoder(Version)
_bundle = msgspec.msgpack.Decoder(Bundle)
_entries = msgspec.msgpack.Decoder(list[Entry])


def content_digest(kind: str, payload: bytes) -> bytes:
    """The hash by which equal items are recognised, whoever sent them."""
    name = kind.encode()
    return blake2b(bytes((len(name),)) + name + payload, digest_size=CONTENT_DIGEST_BYTES).digest()


def body_digest(body: bytes) -> bytes:
    return blake2b(body, digest_size=DIGEST_BYTES).digest()


def parse_topic(topic: str) -> tuple[Channel, int | NodeId] | None:
    """The channel, and the shard or the node that it is directed to; None where there is no such topic."""
    channel, _, place = topic.partition("/")
    if channel == "to":
        return ("to", place) if len(place) == ID_BYTES * 8 // 5 else None
    if (
        channel not in ("log", "latest", "beacon")
        or not place.isascii()
        or not place.isdecimal()
        or len(place) > 5
    ):
        return None
    if len(place) > 1 and place[0] == "0":
        return None
    return cast(Channel, channel), int(place)


def is_bundle(message: bytes) -> bool:
    """Whether a message starts as a bundle does: an array whose first element is not binary."""
    return len(message) > 1 and 0x90 <= message[0] <= 0x9F and message[1] not in (0xC4, 0xC5, 0xC6)


class Codec:
    """Frames of one swarm with one set of kinds, to bytes and back."""

    def __init__(self, membership: Membership, kinds: Kinds, compress: bool = False) -> None:
        self.membership = membership
        self.kinds = kinds
        self.most_body_bytes = max(FRAME_FILL_BYTES + 4096, kinds.most_bytes + 256)
        self.most_frame_bytes = self.most_body_bytes + ENVELOPE_BYTES
        self._compressor = zstandard.ZstdCompressor(level=3) if compress else None
        self._decompressor = zstandard.ZstdDecompressor()

    def seal(
        self, identity: Identity, epoch: int, seq: int, made_at: int, topic: str, entries: Sequence[Entry]
    ) -> Frame:
        """A signed frame of these items."""
        packed = encode(entries)
        body = bytes((PLAIN,)) + packed
        if self._compressor is not None and len(packed) > COMPRESS_ABOVE_BYTES:
            smaller = bytes((ZSTD,)) + self._compressor.compress(packed)
            body = min(body, smaller, key=len)
        head = Header(
            VERSION,
            self.membership.swarm_id,
            identity.public_key,
            epoch,
            seq,
            made_at,
            topic,
            body_digest(body),
        )
        header = encode(head)
        place = parse_topic(topic)
        assert place is not None, topic
        frame = Frame(
            Envelope(header, identity.sign(self.membership.domain_tag + header), body), head, *place
        )
        frame.verdict = frame.whole = True
        return frame

    def read(self, message: bytes) -> Frame | Bundle | Rejection:
        """The cheap checks: size, decoding, version, swarm, key, topic."""
        if is_bundle(message):
            if len(message) > MOST_MESSAGE_BYTES:
                return Rejection.OVERSIZE
            try:
                return _bundle.decode(message)
            except DECODE_ERRORS:
                return Rejection.MALFORMED
        if len(message) > self.most_frame_bytes:
            return Rejection.OVERSIZE
        try:
            envelope = _envelope.decode(message)
        except DECODE_ERRORS:
            return Rejection.MALFORMED
        try:
            header = _header.decode(envelope.header)
        except DECODE_ERRORS:
            return self._unreadable(envelope.header)
        if header.version != VERSION:
            return Rejection.VERSION
        if header.swarm != self.membership.swarm_id:
            return Rejection.SWARM
        if not usable_key(header.key):
            return Rejection.KEY
        place = parse_topic(header.topic)
        if place is None:
            return Rejection.TOPIC
        return Frame(envelope, header, *place)

    @staticmethod
    def _unreadable(header: bytes) -> Rejection:
        # A later version may have another shape; say so rather than call it malformed.
        try:
            return Rejection.MALFORMED if _version.decode(header).version == VERSION else Rejection.VERSION
        except DECODE_ERRORS:
            return Rejection.MALFORMED

    def authentic(self, frame: Frame) -> bool:
        """Whether the author signed this header for this swarm. The one costly check."""
        if frame.verdict is None:
            frame.verdict = verify(frame.key, frame.signature, self.membership.domain_tag + frame.header)
        return frame.verdict

    def intact(self, frame: Frame) -> bool:
        """Whether the body is the one that was signed."""
        if frame.whole is None:
            frame.whole = body_digest(frame.body) == frame.signed
        return frame.whole

    def single(
        self, frame: Frame, kind: str, decoder: msgspec.msgpack.Decoder[Any]
    ) -> msgspec.Struct | Rejection:
        """The one item of a frame on a channel of the protocol itself: a beacon or a pull."""
        if frame.control is None:
            frame.control = self._single(frame, kind, decoder)
        return frame.control

    def _single(
        self, frame: Frame, kind: str, decoder: msgspec.msgpack.Decoder[Any]
    ) -> msgspec.Struct | Rejection:
        entries = self.entries(frame)
        if isinstance(entries, Rejection):
            return entries
        if len(entries) != 1 or entries[0].kind != kind:
            return Rejection.MISPLACED
        try:
            item: msgspec.Struct = decoder.decode(entries[0].payload)
        except DECODE_ERRORS:
            return Rejection.MISTYPED
        return item

    def contents(self, frame: Frame) -> Contents | Rejection:
        """The typed items of an authentic, intact frame on a channel for items."""
        if frame.contents is None:
            frame.contents = self._contents(frame)
        return frame.contents

    def entries(self, frame: Frame) -> list[Entry] | Rejection:
        """The items of a body, still as bytes."""
        body = frame.body
        if not body or body[0] not in (PLAIN, ZSTD):
            return Rejection.ENCODING
        packed: bytes = body[1:]
        if body[0] == ZSTD:
            try:
                # The declared size is what the library allocates, whatever its own limit says.
                size = zstandard.frame_content_size(packed)
                if size > self.most_body_bytes:
                    return Rejection.UNPACKED
                if size < 0:
                    return Rejection.ENCODING
                packed = self._decompressor.decompress(packed, max_output_size=size, allow_extra_data=False)
            except (zstandard.ZstdError, ValueError, MemoryError):
                return Rejection.ENCODING
        try:
            entries = _entries.decode(packed)
        except DECODE_ERRORS:
            return Rejection.BODY
        return entries if 1 <= len(entries) <= MOST_ITEMS else Rejection.ITEM_COUNT

    def _contents(self, frame: Frame) -> Contents | Rejection:
        entries = self.entries(frame)
        if isinstance(entries, Rejection):
            return entries
        items: list[Item] = []
        indices: list[int] = []
        for index, entry in enumerate(entries):
            kind = self.kinds.get(entry.kind)
            if kind is None:
                continue
            if kind.keep != frame.channel:
                return Rejection.MISPLACED
            if len(entry.payload) > kind.max_bytes:
                return Rejection.ITEM_SIZE
            try:
                value = self.kinds.decode(entry.kind, entry.payload)
            except Exception:
                # An application's struct may check itself in `__post_init__` and raise what it likes.
                return Rejection.MISTYPED
            items.append(Item(kind, value, content_digest(entry.kind, entry.payload), len(entry.payload)))
            indices.append(index)
        return Contents(tuple(items), tuple(indices), len(entries) - len(items))
