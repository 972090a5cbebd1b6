"""The body of a frame: one to sixteen packed items, and the digest that stands for all of them.

The digest in the signed header is that of all content digests, so every byte is hashed once. Believe nothing
in a body before that digest was compared (`Codec.intact`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from hashlib import sha256
from typing import Annotated

import msgspec
import zstandard

from shoal.swarm.kinds import MOST_NAME_CHARACTERS
from shoal.swarm.rejection import Rejection

DIGEST_BYTES = 32
MOST_ITEMS = 16
PLAIN, ZSTD = 0, 1
COMPRESS_ABOVE_BYTES = 256
DECODE_ERRORS = (msgspec.MsgspecError, ValueError, RecursionError, OverflowError, MemoryError)

KindName = Annotated[str, msgspec.Meta(min_length=1, max_length=MOST_NAME_CHARACTERS)]


class PackedItem(msgspec.Struct, array_like=True, frozen=True, gc=False):
    """One item in a body: the name of its kind and its bytes."""

    kind: KindName
    payload: bytes


class PackedView(msgspec.Struct, array_like=True, frozen=True, gc=False, forbid_unknown_fields=True):
    """An item that arrived; the payload is a view into the message. The signed digest covers both fields."""

    kind: KindName
    payload: memoryview


_items = msgspec.msgpack.Decoder(list[PackedView])
_encode = msgspec.msgpack.Encoder().encode


@lru_cache(maxsize=1024)
def _prefix(kind: str) -> bytes:
    name = kind.encode()
    return bytes((len(name),)) + name


def content_digest(kind: str, payload: bytes | memoryview) -> bytes:
    """The hash that equal items of all senders share."""
    return sha256(b"".join((_prefix(kind), payload))).digest()


def body_digest(content_digests: Iterable[bytes]) -> bytes:
    """The signed digest: the hash of the content digests of all items, in their order."""
    return sha256(b"".join(content_digests)).digest()


class Packing:
    """Items to bodies and back, within `most_bytes` unpacked; with `compress`, compressed if that helps."""

    def __init__(self, most_bytes: int, compress: bool) -> None:
        self._most_bytes = most_bytes
        self._compressor = zstandard.ZstdCompressor(level=3) if compress else None
        self._decompressor = zstandard.ZstdDecompressor()

    def pack(self, items: Sequence[PackedItem]) -> bytes:
        packed = _encode(items)
        body = bytes((PLAIN,)) + packed
        if self._compressor is not None and len(packed) > COMPRESS_ABOVE_BYTES:
            body = min(body, bytes((ZSTD,)) + self._compressor.compress(packed), key=len)
        return body

    def unpack(self, body: memoryview) -> list[PackedView] | Rejection:
        if not body or body[0] not in (PLAIN, ZSTD):
            return Rejection.ENCODING
        packed: bytes | memoryview = body[1:]
        if body[0] == ZSTD:
            try:
                # The library allocates the declared size, whatever its own limit says.
                size = zstandard.frame_content_size(packed)
                if size > self._most_bytes:
                    return Rejection.UNPACKED
                if size < 0:
                    return Rejection.ENCODING
                packed = self._decompressor.decompress(packed, max_output_size=size, allow_extra_data=False)
            except (zstandard.ZstdError, ValueError, MemoryError):
                return Rejection.ENCODING
        try:
            items = _items.decode(packed)
        except DECODE_ERRORS:
            return Rejection.BODY
        return items if 1 <= len(items) <= MOST_ITEMS else Rejection.ITEM_COUNT
