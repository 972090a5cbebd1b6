"""Frames: the signed, versioned, bounded wire form of one to sixteen items. docs/protocol.md has the bytes.

`Codec.seal` makes a frame, `Codec.read`, `authentic`, `intact` and `contents` take one apart in the order
of their cost. What depends on time and memory of a node (age, replay, quotas) is `intake.py`.
Guarantee: any bytes give a frame, a bundle or one named `Rejection`, in bounded time and memory.

Frames that leave together share one signature: it is then made over their **roll**, the list of the hashes
of their headers, which each of them carries. Whoever checked it once need not check it for the others, and
each frame can still be checked alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias, cast

import msgspec

from shoal.swarm.body import (
    DECODE_ERRORS,
    DIGEST_BYTES,
    Entry,
    FoundEntry,
    Packing,
    body_digest,
    content_digest,
)
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
from shoal.swarm.kinds import Kind, Kinds
from shoal.swarm.membership import SWARM_ID_BYTES, Membership
from shoal.swarm.rejection import Rejection
from shoal.swarm.transport.base import MOST_MESSAGE_BYTES

VERSION = 1
FRAME_FILL_BYTES = 60_000
MOST_ON_A_ROLL = 16
ENVELOPE_BYTES = 1024 + MOST_ON_A_ROLL * DIGEST_BYTES
"""Room for header, signature, roll and array marks around a body."""
ROLL_MARK = b"\xc1"
"""Stands before a roll where it is signed. No header begins with this byte: neither passes for the other."""
REMEMBERED_ROLLS = 512
NONCE_BYTES = 16

Channel: TypeAlias = Literal["log", "latest", "beacon", "to"]
Number = Annotated[int, msgspec.Meta(ge=0, lt=1 << 62)]


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


class Version(msgspec.Struct, array_like=True, frozen=True):
    """The one field that every version of the header starts with."""

    version: int


class Bundle(msgspec.Struct, array_like=True, frozen=True, tag="bundle"):
    """The unsigned answer to a pull: frames, each with its author's own signature."""

    nonce: Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
    frames: list[bytes]


class Item(msgspec.Struct, frozen=True, gc=False):
    """A decoded item of a known kind. `digest` is the hash of its content, kind included; `index` is its
    place in the frame."""

    kind: Kind
    value: msgspec.Struct
    digest: bytes
    size: int
    index: int


class Contents(NamedTuple):
    """What a body held."""

    items: tuple[Item, ...]
    unknown_kinds: int


class Draft(NamedTuple):
    """A frame before it is signed. `digests` are the content digests of its items."""

    seq: int
    made_at: int
    topic: str
    entries: Sequence[Entry]
    digests: Sequence[bytes]


class Frame:
    """A frame whose header could be read. Nothing in it is to be believed until `authentic` and `intact`."""

    __slots__ = (
        "author", "body", "channel", "contents",
        "control", "epoch", "found", "header", "key", "made_at",
        "order", "place", "roll", "seq", "signature", "signed", "topic", "verdict", "whole",
    )  # fmt: skip

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
        self.topic = header.topic
        self.channel: Channel = channel
        self.place = place  # the shard, or for "to" the node that it is directed to
        self.verdict: bool | None = None  # what `authentic` found
        self.whole: Rejection | bool | None = None  # what `intact` found: True, or what is wrong
        self.found: list[tuple[FoundEntry, bytes]] | None = None  # by `intact`, for `contents`
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
_envelope = msgspec.msgpack.Decoder(Envelope)
_header = msgspec.msgpack.Decoder(Header)
_version = msgspec.msgpack.Decoder(Version)
_bundle = msgspec.msgpack.Decoder(Bundle)


@lru_cache(maxsize=1 << 14)
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
        most_body_bytes = max(FRAME_FILL_BYTES + 4096, kinds.most_bytes + 256)
        self.most_frame_bytes = most_body_bytes + ENVELOPE_BYTES
        self._packing = Packing(most_body_bytes, compress)
        self._signed_rolls: dict[tuple[bytes, bytes, bytes], None] = {}  # key, signature, roll: they held

    def seal(
        self, identity: Identity, epoch: int, seq: int, made_at: int, topic: str, entries: Sequence[Entry]
    ) -> Frame:
        """A signed frame of these items."""
        digests = [content_digest(entry.kind, entry.payload) for entry in entries]
        return self.seal_all(identity, epoch, [Draft(seq, made_at, topic, entries, digests)])[0]

    def seal_all(self, identity: Identity, epoch: int, drafts: Sequence[Draft]) -> list[Frame]:
        """At most sixteen frames under one signature."""
        headers = [
            Header(
                VERSION,
                self.membership.swarm_id,
                identity.public_key,
                epoch,
                draft.seq,
                draft.made_at,
                draft.topic,
                body_digest(draft.digests),
            )
            for draft in drafts
        ]
        encoded = [encode(header) for header in headers]
        roll = b"".join(sha256(header).digest() for header in encoded) if len(drafts) > 1 else b""
        signature = identity.sign(self._signed(encoded[0], roll))
        frames = []
        for draft, header, packed in zip(drafts, headers, encoded, strict=True):
            place = parse_topic(draft.topic)
            assert place is not None, draft.topic
            body = memoryview(self._packing.pack(draft.entries))
            frame = Frame(Envelope(packed, signature, body, roll), header, *place)
            frame.verdict = frame.whole = True
            frames.append(frame)
        return frames

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
            frame.verdict = self._authentic(frame)
        return frame.verdict

    def _authentic(self, frame: Frame) -> bool:
        if not frame.roll:
            return verify(frame.key, frame.signature, self._signed(frame.header, b""))
        place = frame.roll.find(sha256(frame.header).digest())
        if place < 0 or place % DIGEST_BYTES or len(frame.roll) % DIGEST_BYTES:
            return False
        known = (frame.key, frame.signature, frame.roll)
        if known in self._signed_rolls:
            return True
        if not verify(frame.key, frame.signature, self._signed(frame.header, frame.roll)):
            return False
        self._signed_rolls[known] = None
        if len(self._signed_rolls) > REMEMBERED_ROLLS:
            del self._signed_rolls[next(iter(self._signed_rolls))]
        return True

    def _signed(self, header: bytes, roll: bytes) -> bytes:
        return self.membership.domain_tag + (ROLL_MARK + roll if roll else header)

    def intact(self, frame: Frame) -> Rejection | None:
        """What is wrong with the body, None if it is the one that was signed. It says nothing about the
        author: anyone can put another body behind a signed header."""
        if frame.whole is None:
            frame.whole = self._unpack(frame) or True
        return None if frame.whole is True else cast(Rejection, frame.whole)

    def _unpack(self, frame: Frame) -> Rejection | None:
        entries = self._packing.unpack(frame.body)
        if isinstance(entries, Rejection):
            return entries
        digests = [content_digest(entry.kind, entry.payload) for entry in entries]
        if body_digest(digests) != frame.signed:
            return Rejection.DIGEST
        frame.found = list(zip(entries, digests, strict=True))
        return None

    def single(
        self, frame: Frame, kind: str, decoder: msgspec.msgpack.Decoder[Any]
    ) -> msgspec.Struct | Rejection:
        """The one item of an intact frame on a channel of the protocol itself: a beacon or a pull."""
        found = self._found(frame)
        if isinstance(found, Rejection):
            return found
        if len(found) != 1 or found[0][0].kind != kind:
            return Rejection.MISPLACED
        try:
            item: msgspec.Struct = decoder.decode(found[0][0].payload)
        except DECODE_ERRORS:
            return Rejection.MISTYPED
        return item

    def contents(self, frame: Frame) -> Contents | Rejection:
        """The typed items of an authentic, intact frame on a channel for items."""
        found = self._found(frame)
        if isinstance(found, Rejection):
            return found
        items: list[Item] = []
        name, kind, decode = "", None, None  # of the item before: nearly always the same again
        for index, (entry, digest) in enumerate(found):
            if entry.kind != name:
                name = entry.kind
                kind, decode = self.kinds.get(name), self.kinds.decoder(name)
            if kind is None or decode is None:
                continue
            if kind.keep != frame.channel:
                return Rejection.MISPLACED
            payload = entry.payload
            size = len(payload)
            if size > kind.max_bytes:
                return Rejection.ITEM_SIZE
            try:
                value = decode(payload)
            except Exception:
                # An application's struct may check itself in `__post_init__` and raise what it likes.
                return Rejection.MISTYPED
            items.append(Item(kind, value, digest, size, index))
        return Contents(tuple(items), len(found) - len(items))

    def _found(self, frame: Frame) -> list[tuple[FoundEntry, bytes]] | Rejection:
        """What `intact` found in the body. Handed out once: the views would keep the body in memory."""
        if frame.found is None:  # sealed here, not looked at yet, or asked for again
            frame.whole = None
        wrong = self.intact(frame)
        found, frame.found = frame.found or [], None
        return found if wrong is None else wrong
