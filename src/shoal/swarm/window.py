"""Windows: which numbers of a stream were seen, a bit for each of the last few hundred.

Guarantee: constant memory, and the answer depends only on the set of marked numbers, never on their order, as
long as they lie within `span` of the newest.
"""

from __future__ import annotations

BEHIND = (1 << 62) - 1


class Window:
    """The numbers seen in (floor, newest]; everything at or below `floor` is out of reach for good.
    `contiguous` is the largest number up to which nothing above the floor is missing."""

    __slots__ = ("_bits", "contiguous", "floor", "newest")

    def __init__(self, floor: int = 0) -> None:
        self.floor = floor
        self.newest = floor
        self.contiguous = floor
        self._bits = 0  # bit i stands for the number newest - i

    def __contains__(self, number: int) -> bool:
        return self.floor < number <= self.newest and bool(self._bits >> (self.newest - number) & 1)

    def mark(self, number: int, span: int) -> None:
        """Notes a number as seen; the window moves up with the newest and keeps `span` numbers."""
        if number > self.newest:
            shift = number - self.newest
            self._bits = (self._bits << shift) | 1 if shift < span else 1
            self.newest = number
            self.floor = max(self.floor, number - span)
        elif number > self.floor:
            self._bits |= 1 << (self.newest - number)
        self._tidy()

    def settle(self, number: int) -> None:
        """Closes all gaps up to `number`, which are no longer worth asking for."""
        if number > self.newest:
            self.newest, self._bits = number, 0
        self.floor = max(self.floor, number)
        self._tidy()

    def missing(self, claimed: int, span: int, limit: int) -> list[int]:
        """Numbers up to `claimed` that were not seen and lie within `span`, newest first. Of more than
        `limit`, half are the oldest: they are about to fall out of others' stores."""
        lowest = max(self.floor, max(claimed, self.newest) - span)
        if claimed <= lowest or limit < 1:
            return []
        # Bit i stands for the number claimed - i, and is set if that is missing.
        ahead = min(claimed - self.newest, span)  # a claim of a billion must not shift by that much
        seen = self._bits << ahead if ahead > 0 else self._bits >> -ahead
        gaps = ~seen & ((1 << (claimed - lowest)) - 1)
        count = gaps.bit_count()
        oldest: list[int] = []
        while count > limit and len(oldest) < limit // 2:
            place = gaps.bit_length() - 1
            oldest.append(claimed - place)
            gaps ^= 1 << place
        newest: list[int] = []
        while gaps and len(newest) + len(oldest) < limit:
            lowest_bit = gaps & -gaps
            newest.append(claimed - lowest_bit.bit_length() + 1)
            gaps ^= lowest_bit
        return newest + oldest[::-1]

    @property
    def behind(self) -> int:
        """If there is a gap, a bit for each of the 62 numbers before the newest, the nearest first."""
        return self._bits >> 1 & BEHIND if self.contiguous < self.newest else 0

    def _tidy(self) -> None:
        reach = (1 << (self.newest - self.floor)) - 1
        self._bits &= reach
        self.contiguous = self.newest - (self._bits ^ reach).bit_length()


EMPTY = Window()  # a stream without any seen number, for reading only
