"""One codec for all simulated nodes, so that a frame is taken apart and its signature checked once for all.

What a frame *is* (its author, whether it is authentic, its items) does not depend on who looks; what a node
does with it (age, replay, quotas, budgets) is still decided by each. In the field there is no such sharing.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.swarm.frame import Bundle, Codec, Contents, Frame
from shoal.swarm.kinds import Kinds
from shoal.swarm.membership import Membership
from shoal.swarm.rejection import Rejection


class SharedCodec(Codec):
    """Remembers the last messages, whatever came of them."""

    def __init__(
        self, membership: Membership, kinds: Kinds, compress: bool = False, most: int = 1 << 16
    ) -> None:
        super().__init__(membership, kinds, compress)
        self._most = most
        self._read: dict[bytes, Frame | Bundle | Rejection] = {}
        self.verified = 0

    def read(self, message: bytes) -> Frame | Bundle | Rejection:
        known = self._read.get(message)
        if known is None:
            known = super().read(message)
            if isinstance(known, Bundle):
                return known  # for one receiver only
            self._read[message] = known
            if len(self._read) > self._most:
                del self._read[next(iter(self._read))]
        return known

    def authentic(self, frame: Frame) -> bool:
        if frame.verdict is None:
            self.verified += 1
        return super().authentic(frame)

    def contents(self, frame: Frame) -> Contents | Rejection:
        if frame.contents is None:
            frame.contents = super().contents(frame)
        return frame.contents

    def single(
        self, frame: Frame, kind: str, decoder: msgspec.msgpack.Decoder[Any]
    ) -> msgspec.Struct | Rejection:
        if frame.control is None:
            frame.control = super().single(frame, kind, decoder)
        return frame.control
