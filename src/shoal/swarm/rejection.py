"""Rejections: one name for each reason why a message was not taken, in the order of the checks.

Guarantee: any bytes that arrive become items or exactly one of these, and never an exception.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum


class Rejection(StrEnum):
    """The reasons, cheap checks first. Only those in `OFFENCES` count against an author."""

    BUSY = "busy"  # this node spends no more of its processor on others' messages at this moment
    OVERSIZE = "oversize"  # more bytes than any frame or bundle may have
    MALFORMED = "malformed"  # not the msgpack that the protocol prescribes
    UNASKED = "unasked"  # a bundle, or a frame in one, that answers no open request
    VERSION = "version"  # a version of the protocol that is not spoken here
    SWARM = "swarm"  # another swarm's id
    KEY = "key"  # the author key cannot be one
    TOPIC = "topic"  # no such topic, not the author's own shard, or directed to someone else
    OWN = "own"  # claims to be from this node itself
    NOT_ALLOWED = "not allowed"  # the author is not on the allow-list
    UNFOLLOWED = "unfollowed"  # a shard that is not followed here
    STALE = "stale"  # older than frames may be, or than those that nobody asked for
    FUTURE = "future"  # made later than clocks can differ
    OLD_EPOCH = "old epoch"  # before the author's last four starts
    DUPLICATE = "duplicate"  # this author, epoch and number was taken before
    OUT_OF_WINDOW = "out of window"  # further back than the stores reach
    MUTED = "muted"  # the author is muted for earlier offences
    BUDGET = "budget"  # no signature check is left at this moment
    FORGED = "forged"  # the signature is not the author's
    ENCODING = "encoding"  # an unknown encoding, or compressed data that cannot be unpacked
    UNPACKED = "unpacked"  # would unpack to more than allowed
    BODY = "body"  # the body is not a list of items
    ITEM_COUNT = "item count"  # no items, or more than sixteen
    DIGEST = "digest"  # the body is not the one that was signed
    STARTS = "starts"  # the author starts anew more often than it may
    QUOTA = "quota"  # the author sent more than its share
    ITEM_SIZE = "item size"  # an item above its kind's limit
    MISTYPED = "mistyped"  # an item that is not of its kind's type
    MISPLACED = "misplaced"  # a kind that does not belong under this topic


OFFENCES = frozenset({Rejection.QUOTA, Rejection.ITEM_SIZE, Rejection.MISTYPED, Rejection.MISPLACED})
"""Faults that only the author can have caused: they are found after its signature and the digest held. Anyone
on the way can swap a body, so one that cannot be read or has a wrong digest is nobody's fault."""

HOLDERS_FAULT = frozenset(
    Rejection[name]
    for name in (
        "OVERSIZE MALFORMED UNASKED VERSION SWARM KEY TOPIC FORGED ENCODING UNPACKED BODY ITEM_COUNT DIGEST"
    ).split()
)
"""Faults of a frame in an answer that neither its author nor this node can have caused."""


@dataclass(slots=True)
class Tally:
    """Counts of rejections by reason, and of accepted frames and items."""

    accepted: int = 0  # frames
    items: int = 0  # items that reached the inbox
    repeated: int = 0  # items whose content was known
    unknown_kinds: int = 0
    rejected: Counter[Rejection] = field(default_factory=Counter)

    def as_dict(self) -> dict[str, int]:
        """For records and displays."""
        counts = {f"rejected: {reason}": number for reason, number in sorted(self.rejected.items())}
        return {
            "accepted": self.accepted,
            "items": self.items,
            "repeated": self.repeated,
            "unknown kinds": self.unknown_kinds,
            **counts,
        }
