"""How fast nodes are and how long they will take, from how far they have come so far.

By the watcher's clock, so that it is the same for nodes in virtual time. What was done before the first look
(by an earlier process of a resumed run) and the time until a node's first progress (a model is being loaded)
do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import msgspec

from shoal.node.standing import Standing, StandingOf


@dataclass
class _Course:
    """From where on a node's progress is measured, and whether that was a moment at which it made some."""

    seconds: float
    work: int
    done: float
    moved: bool = False
    rate: float | None = None


class Pace:
    """`of` gives the standings with `per_second` and `seconds_left`; call it with growing `seconds`."""

    def __init__(self) -> None:
        self._courses: dict[str, _Course] = {}

    def of(self, standings: Sequence[StandingOf], seconds: float) -> list[StandingOf]:
        return [self._paced(one, seconds) for one in standings]

    def _paced(self, one: StandingOf, seconds: float) -> StandingOf:
        course = self._courses.setdefault(one.name, _Course(seconds, one.work, one.done))
        left: float | None = None
        elapsed = seconds - course.seconds
        if one.ended:
            left = 0.0
        elif elapsed > 0:
            if course.moved or one.work > course.work:
                course.rate = (one.work - course.work) / elapsed
            if one.done > course.done:
                left = max(0.0, (1.0 - one.done) * elapsed / (one.done - course.done))
        if not course.moved and _has_moved(one, course):
            self._courses[one.name] = _Course(seconds, one.work, one.done, moved=True, rate=course.rate)
        return msgspec.structs.replace(one, per_second=course.rate, seconds_left=left)


def _has_moved(one: Standing, course: _Course) -> bool:
    return one.work > course.work or one.done > course.done


def longest_left(standings: Sequence[Standing]) -> float | None:
    """How long the run will take: as long as its slowest node. None as long as one of them is unknown."""
    left = [one.seconds_left for one in standings if not one.trouble]
    return None if not left or None in left else max(one for one in left if one is not None)
