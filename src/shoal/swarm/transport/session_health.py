"""When a session should be opened anew although nobody asked for it.

Two things are visible from here, and only from here:

- *lonely*: no link to anybody for a while, although others are known. The engine goes on dialling the same
  dead neighbours for ever.
- *stalled*: this process did not run for longer than a lease (frozen, suspended, starved). Its neighbours
  have given up its links, and what the engine takes up again on waking is half dead: some hear it, some do
  not. A new session is whole; but not at once, while everybody is busy dialling each other again.
"""

from __future__ import annotations

import random
from collections.abc import Callable

LOOK_SECONDS = 1.0
"""Between two checks."""
STALL_SECONDS = 6.0
"""A gap between two checks that means: more than a lease of 5 s was missed."""
AFTER_STALL_SECONDS = (4.0, 8.0)
LONELY_SECONDS = 10.0
PAUSE_SECONDS = 30.0
"""Between two new sessions for loneliness."""


class SessionHealth:
    """What is known about the health of one node's sessions."""

    def __init__(self, rng: random.Random) -> None:
        self._rng = rng
        self._checked: float | None = None
        self._linked = 0.0
        self._due: float | None = None
        self._patient_until = 0.0

    def opened(self, now: float) -> None:
        """A new session is open: whatever was wrong with the last one is over."""
        self._checked = self._linked = now
        self._due = None

    def check(self, now: float, has_link: Callable[[], bool], has_others: Callable[[], bool]) -> bool:
        """Whether to open a new session now; to be called about every `LOOK_SECONDS`."""
        if self._checked is not None and now - self._checked > STALL_SECONDS:
            self._due = now + self._rng.uniform(*AFTER_STALL_SECONDS)
            self._linked = now
        self._checked = now
        if self._due is not None:
            return now >= self._due
        if has_link():
            self._linked = now
        elif now - self._linked > LONELY_SECONDS and now > self._patient_until and has_others():
            self._patient_until = now + PAUSE_SECONDS
            return True
        return False
