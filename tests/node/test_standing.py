"""Where nodes stand: figures from a journal, and how fast and how long from what was seen before."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from shoal.node.standing import Pace, Standing, Tally, Traffic, longest_left
from shoal.runs.journal import Journal
from shoal.runs.records import (
    Answered,
    Arrived,
    Asked,
    Content,
    Note,
    Shared,
    SharedItem,
    Started,
    TurnBegun,
    VerdictGiven,
    kind_of,
)
from shoal.swarm.presence import PRESENCE, Presence

NOTHING = msgspec.Raw(b"null")


def arrived(author: str, seq: int) -> Arrived:
    return Arrived(author, 1, "item", seq, 0, 0.0, 0.0, "00", NOTHING)


def verdict(author: str, seq: int, accepted: bool) -> VerdictGiven:
    return VerdictGiven(1, author, 1, "item", seq, 0, accepted)


RECORDS: list[Content] = [
    Started(0, "a", "example", "0", 1, {"calls": 10}),
    Asked(1, 1, {"calls": 3}, NOTHING),
    Answered(1, 1, NOTHING, {"calls": 2}),
    Shared(1, (SharedItem("item"), SharedItem("item", "too large"))),
    arrived("b", 1),
    arrived("b", 2),
    arrived("c", 1),
    TurnBegun(1),
    verdict("b", 1, True),
    verdict("c", 1, False),
    Note(1, msgspec.Raw(b'{"said":"first"}')),
    Asked(2, 1, {"calls": 3}, NOTHING),
]


def write(path: Path, records: list[Content]) -> None:
    with Journal(path) as journal:
        for record in records:
            journal.append(kind_of(record), 0.0, record)


def test_the_figures_of_a_recorded_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    tally = Tally(path)
    assert list(tally.read()) == [], "the journal need not be there yet"
    assert tally.traffic(0) == Traffic()
    write(path, RECORDS)
    assert [bytes(note) for note in tally.read()] == [b'{"said":"first"}']
    assert tally.traffic(used=1) == Traffic(peers=2, shared=1, received=3, rejected=1, used=1)
    assert tally.ledger.spent == {"calls": 2}, "what is asked and not settled is not spent yet"
    assert tally.ledger.budget == {"calls": 10}
    write(path, [Answered(2, 1, NOTHING), TurnBegun(2), arrived("d", 1)])
    assert list(tally.read()) == []
    assert tally.ledger.spent == {"calls": 5}
    assert tally.traffic(1).peers == 3


def test_peers_that_have_sent_nothing_yet_are_seen_too(tmp_path: Path) -> None:
    write(tmp_path / "journal.jsonl", RECORDS)
    Presence(tmp_path / PRESENCE, most=10).note(["b", "c", "d", "e"])
    tally = Tally(tmp_path / "journal.jsonl")
    list(tally.read())
    assert tally.traffic(0).peers == 4


def test_a_damaged_journal_is_read_up_to_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, RECORDS)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:6]) + lines[6].replace(b'"c"', b'"d"') + b"".join(lines[7:]))
    tally = Tally(path)
    assert list(tally.read()) == []
    assert tally.traffic(0).received == 2
    assert "record 7 is damaged" in tally.trouble
    assert list(tally.read()) == []


def at(done: float, work: int = 0, *, ended: bool = False, trouble: str = "") -> Standing:
    return Standing(name="a", model="m", done=done, work=work, ended=ended, trouble=trouble)


def test_speed_and_time_left_follow_from_progress_so_far() -> None:
    pace = Pace()

    def look(seconds: float, one: Standing) -> tuple[float | None, float | None]:
        (found,) = pace.of([one], seconds)
        return found.per_second, found.seconds_left

    assert look(0, at(0.0)) == (None, None)
    assert look(30, at(0.0)) == (None, None), "a model that is being loaded is no slow node"
    assert look(40, at(0.1, 10))[0] == pytest.approx(10 / 40)
    # From the first progress on.
    assert look(50, at(0.2, 20)) == (pytest.approx(1.0), pytest.approx(80))
    assert look(60, at(0.2, 20)) == (pytest.approx(0.5), pytest.approx(160)), "it stands still"
    assert look(70, at(1.0, 100, ended=True)) == (pytest.approx(0.5), 0.0)


def test_what_was_done_before_a_resume_does_not_count() -> None:
    pace = Pace()
    pace.of([at(0.5, 1000)], 0)
    pace.of([at(0.6, 1100)], 10)
    (found,) = pace.of([at(0.7, 1200)], 20)
    assert found.per_second == pytest.approx(10)
    assert found.seconds_left == pytest.approx(30)


def test_a_run_takes_as_long_as_its_slowest_node() -> None:
    def left(seconds: float | None, trouble: str = "") -> Standing:
        return Standing(name="a", model="m", seconds_left=seconds, trouble=trouble)

    assert longest_left([]) is None
    assert longest_left([left(3), left(7)]) == 7
    assert longest_left([left(3), left(None)]) is None
    assert longest_left([left(3), left(None, "gone")]) == 3
