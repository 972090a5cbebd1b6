"""Pulls: asking a holder for frames, by number, within bounds.

A pull is a signed frame on the holder's own topic; the answer is a bundle on the asker's, with the pull's
nonce, so that only the one who was asked can answer.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from shoal.swarm.beacon import Id
from shoal.swarm.frame import NONCE_BYTES, Number

MOST_IDS = 64
MOST_ANSWER_BYTES = 256 << 10
PULL_KIND = "pull"


class Want(msgspec.Struct, array_like=True, frozen=True):
    """Frames of one author since its start `epoch`: those log numbers, and its registers if `registers`."""

    author: Id
    epoch: Number
    numbers: Annotated[tuple[Number, ...], msgspec.Meta(max_length=MOST_IDS)]
    registers: bool = False


class Pull(msgspec.Struct, array_like=True, frozen=True):
    """A request; at most 64 numbers and registers in all."""

    nonce: Annotated[bytes, msgspec.Meta(min_length=NONCE_BYTES, max_length=NONCE_BYTES)]
    wants: Annotated[tuple[Want, ...], msgspec.Meta(max_length=MOST_IDS)]

    @property
    def size(self) -> int:
        return sum(len(want.numbers) + want.registers for want in self.wants)
