"""The codec: makes frames, and takes them apart in the order of the cost of each check.

`intake.py` has the checks that depend on a node's clock and memory (age, replay, quotas). Guarantee: any
bytes give a frame, a bundle or one named `Rejection`, in bounded time and memory.
"""

from __future__ import annotations

from collections.abc import Sequence
from hashlib import sha256
from typing import Any, NamedTuple, cast

import msgspec

from shoal.swarm.body import (
    DECODE_ERRORS,
    DIGEST_BYTES,
    PackedItem,
    PackedView,
    Packing,
    body_digest,
    content_digest,
)
from shoal.swarm.frame import (
    MOST_ON_A_ROLL,
    VERSION,
    Bundle,
    Envelope,
    Frame,
    Header,
    encode,
    parse_topic,
)
from shoal.swarm.identity import Identity, usable_key, verify
from shoal.swarm.kinds import Kind, Kinds
from shoal.swarm.membership import Membership
from shoal.swarm.rejection import Rejection
from shoal.swarm.transport.base import MOST_MESSAGE_BYTES

FRAME_FILL_BYTES = 60_000
ENVELOPE_BYTES = 1024 + MOST_ON_A_ROLL * DIGEST_BYTES  # header, signature, roll, array marks
ROLL_MARK = b"\xc1"  # stands before a signed roll. No header begins with it: neither passes for the other
REMEMBERED_ROLLS = 512


class Version(msgspec.Struct, array_like=True, frozen=True):
    """The one field that every version of the header starts with."""

    version: int


class Item(msgspec.Struct, frozen=True, gc=False):
    """A decoded item of a known kind, with the hash of its content and its place in the frame."""

    kind: Kind
    value: msgspec.Struct
    digest: bytes
    size: int
    index: int


class Contents(NamedTuple):
    """The items in a body, and the number of those whose kind is unknown or not taken."""

    items: tuple[Item, ...]
    unknown_kinds: int


class Draft(NamedTuple):
    """A frame before it is signed. `digests` are the content digests of its items."""

    seq: int
    made_at: int
    topic: str
    items: Sequence[PackedItem]
    digests: Sequence[bytes]
    shared: int = 0


_envelope = msgspec.msgpack.Decoder(Envelope)
_header = msgspec.msgpack.Decoder(Header)
_version = msgspec.msgpack.Decoder(Version)
_bundle = msgspec.msgpack.Decoder(Bundle)


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
        self,
        identity: Identity,
        epoch: int,
        seq: int,
        made_at: int,
        topic: str,
        items: Sequence[PackedItem],
        shared: int = 0,
    ) -> Frame:
        """A signed frame of these items."""
        digests = [content_digest(item.kind, item.payload) for item in items]
        return self.seal_all(identity, epoch, [Draft(seq, made_at, topic, items, digests, shared)])[0]

    def seal_all(self, identity: Identity, epoch: int, drafts: Sequence[Draft]) -> list[Frame]:
        """At most sixteen frames under one signature."""
        swarm, key = self.membership.swarm_id, identity.public_key
        headers = [
            Header(VERSION, swarm, key, epoch, seq, made_at, topic, body_digest(digests), shared)
            for seq, made_at, topic, _, digests, shared in drafts
        ]
        encoded = [encode(header) for header in headers]
        roll = b"".join(sha256(header).digest() for header in encoded) if len(drafts) > 1 else b""
        signature = identity.sign(self._signed(encoded[0], roll))
        frames = []
        for draft, header, packed in zip(drafts, headers, encoded, strict=True):
            place = parse_topic(draft.topic)
            assert place is not None, draft.topic
            body = memoryview(self._packing.pack(draft.items))
            frame = Frame(Envelope(packed, signature, body, roll), header, *place)
            frame.authentic = frame.whole = True
            frames.append(frame)
        return frames

    def read(self, message: bytes) -> Frame | Bundle | Rejection:
        """The cheap checks: size, decoding, version, swarm, key, topic."""
        bundled = is_bundle(message)
        if len(message) > (MOST_MESSAGE_BYTES if bundled else self.most_frame_bytes):
            return Rejection.OVERSIZE
        try:
            if bundled:
                return _bundle.decode(message)
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
        if frame.authentic is None:
            frame.authentic = self._authentic(frame)
        return frame.authentic

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
        """None if the body is the one that was signed, else the fault. It says nothing about the author:
        anyone can put another body behind a signed header."""
        if frame.whole is None:
            frame.whole = self._unpack(frame) or True
        return None if frame.whole is True else cast(Rejection, frame.whole)

    def _unpack(self, frame: Frame) -> Rejection | None:
        items = self._packing.unpack(frame.body)
        if isinstance(items, Rejection):
            return items
        digests = [content_digest(item.kind, item.payload) for item in items]
        if body_digest(digests) != frame.signed:
            return Rejection.DIGEST
        frame.found = list(zip(items, digests, strict=True))
        frame.count = len(items)
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
        for index, (item, digest) in enumerate(found):
            if item.kind != name:
                name = item.kind
                kind, decode = self.kinds.get(name), self.kinds.decoder(name)
            if kind is None or decode is None or not kind.taken:
                continue
            if kind.keep != frame.channel:
                return Rejection.MISPLACED
            payload = item.payload
            size = len(payload)
            if size > kind.max_bytes:
                return Rejection.ITEM_SIZE
            try:
                value = decode(payload)
            except Exception:
                # An application's struct may check itself in `__post_init__` and raise anything.
                return Rejection.MISTYPED
            items.append(Item(kind, value, digest, size, index))
        return Contents(tuple(items), len(found) - len(items))

    def _found(self, frame: Frame) -> list[tuple[PackedView, bytes]] | Rejection:
        """The items that `intact` found in the body. Handed out once: the views keep the body in memory."""
        if frame.found is None:  # sealed here, not looked at yet, or asked for again
            frame.whole = None
        wrong = self.intact(frame)
        found, frame.found = frame.found or [], None
        return found if wrong is None else wrong
