"""Moments as people write them; the same text and start give the same moment on every resume."""

from __future__ import annotations

from datetime import datetime

import pytest
from hypothesis import given, strategies as st

from shoal.errors import ConfigError
from shoal.runs.moments import moment, span_of

NOON = datetime(2027, 1, 31, 12, 0).timestamp()


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("90s", 90), ("10m", 600), ("2h", 7200), ("1h30m", 5400), ("1.5h", 5400), ("1d", 86400), ("0.5s", 0.5)],
)
def test_spans_count_from_the_beginning(text: str, seconds: float) -> None:
    assert span_of(text) == seconds
    assert moment(text, 1000.0) == 1000.0 + seconds


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("23:30", datetime(2027, 1, 31, 23, 30)),
        ("12:00", datetime(2027, 2, 1, 12, 0)),
        ("08:15:30", datetime(2027, 2, 1, 8, 15, 30)),
        ("2027-01-31T08:00", datetime(2027, 1, 31, 8, 0)),
        ("2027-02-03 04:05:06", datetime(2027, 2, 3, 4, 5, 6)),
    ],
)
def test_times_are_those_of_this_machine(text: str, found: datetime) -> None:
    assert moment(text, NOON) == found.timestamp()


def test_a_zone_is_taken_as_it_stands() -> None:
    assert moment("2027-01-31T08:00+02:00", NOON) == moment("2027-01-31T06:00Z", NOON) == 1801375200.0


@pytest.mark.parametrize(
    "text",
    ["", "soon", "10", "10x", "0s", "367d", "-5m", "25:00", "2027-13-01", "s", "9" * 500 + "s", "1e9h"],
)
def test_anything_else_is_told(text: str) -> None:
    with pytest.raises(ConfigError, match=r"until: .*write a span such as 90s"):
        moment(text, NOON)


@given(st.text(max_size=50), st.floats(0, 4e9))
def test_any_text_is_a_moment_or_one_error(text: str, began: float) -> None:
    try:
        assert moment(text, began) == moment(text, began)
    except ConfigError as error:
        assert "\n" not in str(error)
