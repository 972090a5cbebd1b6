"""Moments as people write them: a span from the start, such as 90s or 1h30m; a time of day, such as 23:30; a
date and time, such as 2027-01-31T08:00 or with a zone behind it. Without a zone they are this machine's.

The text is what a run keeps. Together with the time of the start it gives the same moment on every resume."""

from __future__ import annotations

import re
from datetime import datetime, time as TimeOfDay, timedelta

from shoal.errors import ConfigError

LONGEST_SPAN = 366 * 86_400.0
_SPAN = re.compile(r"(?:(\d+(?:\.\d+)?)d)?(?:(\d+(?:\.\d+)?)h)?(?:(\d+(?:\.\d+)?)m)?(?:(\d+(?:\.\d+)?)s)?")
_UNITS = (86_400.0, 3600.0, 60.0, 1.0)
_WAYS = (
    "write a span such as 90s, 10m or 2h, a time such as 23:30, or a date and time such as 2027-01-31T08:00"
)


def span_of(text: str) -> float | None:
    """The seconds of a span; None if the text is none."""
    found = _SPAN.fullmatch(text) if text and len(text) <= 40 else None
    if found is None:
        return None
    return sum(float(part) * unit for part, unit in zip(found.groups(), _UNITS, strict=True) if part)


def moment(text: str, began: float) -> float:
    """The moment in seconds since 1970 for what began then; ConfigError says how to write it. A time of day
    is the next one after the beginning."""
    span = span_of(text)
    if span is not None:
        if not 0 < span <= LONGEST_SPAN:
            raise ConfigError(f"until: {text} is not between a moment and a year: {_WAYS}")
        return began + span
    try:
        if ":" in text and "-" not in text and "T" not in text.upper():
            return _next(TimeOfDay.fromisoformat(text), began)
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError, OSError):
        raise ConfigError(f"until: {text[:80]!r} is no moment: {_WAYS}") from None


def _next(time: TimeOfDay, began: float) -> float:
    start = datetime.fromtimestamp(began, time.tzinfo)
    for days in (0, 1, 2):
        found = datetime.combine(start.date() + timedelta(days=days), time).timestamp()
        if found > began:
            return found
    raise ValueError(f"{time} never comes")
