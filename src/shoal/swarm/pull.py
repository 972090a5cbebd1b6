"""Pulls: asking a holder for frames, by number, and answering within bounds.

A pull is a signed frame on the holder's own topic. Its nonce lets only the node that was asked answer.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from shoal.swarm.authors import Author
from shoal.swarm.beacon import Id
from shoal.swarm.context import Context
from shoal.swarm.frame import Bundle, Frame, Nonce, Number, encode
from shoal.swarm.identity import id_text
from shoal.swarm.quota import Bucket

MOST_IDS = 64
MOST_ANSWER_BYTES = 256 << 10
PULL_KIND = "pull"
ALL_ASKERS = 4  # all askers together get this many times the share of one


class Want(msgspec.Struct, array_like=True, frozen=True):
    """Frames of one author since its start `epoch`: those log numbers, and its registers if `registers`."""

    author: Id
    epoch: Number
    numbers: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_IDS)]
    registers: bool = False


class Pull(msgspec.Struct, array_like=True, frozen=True):
    """A request for frames; at most 64 numbers and registers in all."""

    nonce: Nonce
    wants: Annotated[tuple[Want, ...], msgspec.Meta(max_length=MOST_IDS)]

    @property
    def size(self) -> int:
        return sum(len(want.numbers) + want.registers for want in self.wants)


class Serving:
    """One node's answers to pulls, within the bounds of one asker and of all together."""

    def __init__(self, context: Context, now: float) -> None:
        self._rate = context.settings.serve_bytes_per_second
        self._authors = context.authors
        self._all = Bucket(ALL_ASKERS * self._rate, now)
        self.served = 0
        self.refused = 0

    def answer(self, pull: Pull, asker: Author, now: float) -> bytes | None:
        """The bundle for a verified pull; None if nothing of it is held or the asker had its share."""
        frames = self._frames(pull)
        if not frames:
            return None
        size = sum(frame.size for frame in frames)
        rate, burst = self._rate, max(self._rate, 2.0 * MOST_ANSWER_BYTES)
        if asker.served is None:
            asker.served = Bucket(burst, now)
        if not asker.served.take(size, rate, burst, now) or not self._all.take(
            size, ALL_ASKERS * rate, ALL_ASKERS * burst, now
        ):
            self.refused += 1
            return None
        self.served += 1
        return encode(Bundle(pull.nonce, [frame.encode() for frame in frames]))

    def _frames(self, pull: Pull) -> list[Frame]:
        """The frames asked for that are held, up to 256 KB and at least one."""
        frames: list[Frame] = []
        size = 0
        for want in pull.wants:
            for frame in self._held(want):
                if frames and size + frame.size > MOST_ANSWER_BYTES:
                    return frames
                frames.append(frame)
                size += frame.size
        return frames

    def _held(self, want: Want) -> list[Frame]:
        author = self._authors.get(id_text(want.author))
        if author is None:
            return []
        frames: list[Frame] = []
        if want.registers:
            by_number = {register.frame.order: register.frame for register in author.registers.values()}
            frames = [frame for _, frame in sorted(by_number.items()) if frame.epoch == want.epoch]
        log = (author.held(want.epoch, number) for number in want.numbers)
        return frames + [frame for frame in log if frame is not None]
