"""Serving: answers to the pulls of others, within what one asker and all of them together may cost."""

from __future__ import annotations

from shoal.swarm.authors import Author, Authors
from shoal.swarm.frame import Bundle, Frame, encode
from shoal.swarm.identity import id_text
from shoal.swarm.pull import MOST_ANSWER_BYTES, Pull, Want
from shoal.swarm.quota import Bucket
from shoal.swarm.settings import ExchangeSettings

ALL_ASKERS = 4
"""All askers together get so many times what one gets."""


class Serving:
    """What one node gives to others."""

    __slots__ = ("_all", "_authors", "_settings", "refused", "served")

    def __init__(self, settings: ExchangeSettings, authors: Authors, now: float) -> None:
        self._settings = settings
        self._authors = authors
        self._all = Bucket(ALL_ASKERS * settings.serve_bytes_per_second, now)
        self.served = 0
        self.refused = 0

    def answer(self, pull: Pull, asker: Author, now: float) -> bytes | None:
        """The bundle for a verified pull; None where nothing is held or the asker had its share."""
        frames = self._frames(pull)
        if not frames:
            return None
        size = sum(frame.size for frame in frames)
        rate = self._settings.serve_bytes_per_second
        burst = max(rate, 2.0 * MOST_ANSWER_BYTES)
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
