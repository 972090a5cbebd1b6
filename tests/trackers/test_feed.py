"""Journals to trackers: each record once, also while they grow, whatever state they are in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from shoal.errors import RunError
from shoal.runs import RunFolder
from shoal.trackers import Feed, MemoryTracker
from tests.trackers.journals import add, make_run, start


def note(turn: int) -> dict[str, object]:
    return {"turn": turn, "round": 0, "step": "propose", "cells": turn, "best": 0.5, "opponents": 1}


def test_each_record_is_written_once(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["1-a", "2-b"])
    add(run, "1-a", note(1), note(2))
    tracker = MemoryTracker()
    feed = Feed([(run, ["1-a", "2-b"])], [tracker])
    assert feed.poll() == 2
    assert feed.poll() == 0
    add(run, "2-b", note(5))
    assert feed.poll() == 1
    assert [(series, step) for series, step, _ in tracker.logged] == [("1-a", 1), ("1-a", 2), ("2-b", 5)]
    assert tracker.logged[0][2] == {"cells": 1.0, "best": 0.5}
    again = MemoryTracker()
    Feed([(run, ["1-a", "2-b"])], [again]).poll()
    assert again.logged == tracker.logged, "nothing is remembered between two feeds"


def test_it_ends_when_every_node_has_begun_and_stopped(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["1-a"])
    feed = Feed([(run, ["1-a", "2-b"])], [MemoryTracker()])
    add(run, "1-a", note(1), ended=True)
    feed.poll()
    assert not feed.ended, "the second node has not begun"
    journal_folder = run / "nodes" / "2-b"
    journal_folder.mkdir()
    add(run, "2-b", ended=True)
    feed.poll()
    assert feed.ended
    with RunFolder.look(run).open_journal("2-b") as journal:
        start(journal, "2-b", "evolve")
    feed.poll()
    assert not feed.ended, "it was resumed"


def test_series_of_several_runs_are_told_apart(tmp_path: Path) -> None:
    runs = [make_run(tmp_path / place / "run", ["1-a"]) for place in ("x", "y")]
    for run in runs:
        add(run, "1-a", note(1))
    tracker = MemoryTracker()
    Feed([(run, ["1-a"]) for run in runs], [tracker]).poll()
    assert [series for series, _, _ in tracker.logged] == ["run-1/1-a", "run-2/1-a"]


def test_a_damaged_journal_is_read_up_to_there_and_others_go_on(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["1-a", "2-b"])
    add(run, "1-a", note(1))
    with (run / "nodes/1-a/journal.jsonl").open("ab") as file:
        file.write(b"not a record\n")
    add(run, "2-b", note(2))
    tracker = MemoryTracker()
    feed = Feed([(run, ["1-a", "2-b"])], [tracker])
    feed.poll()
    feed.poll()
    assert [(series, step) for series, step, _ in tracker.logged] == [("1-a", 1), ("2-b", 2)]
    assert len(feed.troubles) == 1
    assert "damaged" in feed.troubles[0]


def test_a_torn_end_is_waited_for(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["1-a"])
    add(run, "1-a", note(1))
    path = run / "nodes/1-a/journal.jsonl"
    whole = path.read_bytes()
    path.write_bytes(whole[:-10])
    tracker = MemoryTracker()
    feed = Feed([(run, ["1-a"])], [tracker])
    assert feed.poll() == 0
    path.write_bytes(whole)
    assert feed.poll() == 1
    assert not feed.troubles


def test_notes_that_cannot_be_read_are_counted(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["1-a"])
    add(run, "1-a", {"turn": 1, "cells": "many"}, note(2))
    feed = Feed([(run, ["1-a"])], [MemoryTracker()])
    assert feed.poll() == 1
    assert feed.unread == 1


def test_a_pipe_in_place_of_a_journal_is_not_waited_for(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", [])
    (run / "nodes/1-a").mkdir()
    os.mkfifo(run / "nodes/1-a/journal.jsonl")
    feed = Feed([(run, ["1-a"])], [MemoryTracker()])
    assert feed.poll() == 0
    assert "not a regular file" in feed.troubles[0]


def test_what_a_tracker_raises_is_not_the_journals_trouble(tmp_path: Path) -> None:
    class Full(MemoryTracker):
        def log(self, *_: object) -> None:
            raise OSError(28, "No space left on device")

    run = make_run(tmp_path / "run", ["1-a"])
    add(run, "1-a", note(1))
    with pytest.raises(OSError, match="No space"):
        Feed([(run, ["1-a"])], [Full()]).poll()


def test_a_name_that_leads_elsewhere_is_refused(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["1-a"])
    with pytest.raises(RunError, match="node name"):
        Feed([(run, ["../../elsewhere"])], [MemoryTracker()])


def test_reading_changes_nothing_in_the_run(tmp_path: Path) -> None:
    run = make_run(tmp_path / "run", ["1-a"])
    add(run, "1-a", note(1))
    before = {path: path.read_bytes() for path in run.rglob("*") if path.is_file()}
    Feed([(run, ["1-a"])], [MemoryTracker()]).poll()
    assert {path: path.read_bytes() for path in run.rglob("*") if path.is_file()} == before
