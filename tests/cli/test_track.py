"""`shoal track`."""

from __future__ import annotations

import json
import shutil
import threading
import time
from collections import Counter
from pathlib import Path

import pytest

from shoal.cli import track as track_verb
from tests.cli.conftest import Shoal
from tests.trackers.journals import add, make_run


def points(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_search(shoal: Shoal, search_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "metrics.jsonl"
    done = shoal("track", search_run, "--to", f"jsonl:{out}")
    assert done.code == 0, done.err
    assert done.out == ""
    found = points(out)
    assert f"{len(found)} points of 2 nodes written to jsonl:" in done.err
    assert {one["series"] for one in found} == {"1-bomber", "2-random"}
    assert {name for one in found for name in one} == {"series", "step", "cells", "best", "fitness_placed"}


def test_training(shoal: Shoal, training_run: Path, tmp_path: Path) -> None:
    out = tmp_path / "metrics.jsonl"
    assert shoal("track", training_run, "--to", f"jsonl:{out}", "--follow").code == 0, "it has ended"
    found = points(out)
    steps = Counter(one["series"] for one in found if "reward_local" in one)
    assert steps == {"1-table-small": 6, "2-table-even": 6, "3-table-wide": 6}
    names = {name for one in found for name in one}
    assert names >= {"reward_external", "reward_batch", "reward_held_out", "loss", "gradient_norm"}
    assert names >= {"used", "verified", "tokens", "informative_share"}


def test_several_runs_and_several_places(
    shoal: Shoal, search_run: Path, training_run: Path, tmp_path: Path
) -> None:
    first, second = tmp_path / "1.jsonl", tmp_path / "2.jsonl"
    runs = (search_run, training_run, search_run / ".." / "run")
    done = shoal("track", *runs, "--to", f"jsonl:{first}", "--to", f"jsonl:{second}")
    assert done.code == 0, done.err
    assert "5 nodes" in done.err, "a run that is given twice is read once"
    assert first.read_bytes() == second.read_bytes()
    assert {str(one["series"]).partition("/")[0] for one in points(first)} == {"run-1", "run-2"}


def test_following_ends_with_the_run(shoal: Shoal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(track_verb, "POLL_SECONDS", 0.02)
    run = make_run(tmp_path / "run", ["1-bomber"])
    (run / "config.toml").write_text('models = ["builtin:bomber"]\n')

    def go_on() -> None:
        for turn in range(1, 4):
            time.sleep(0.05)
            add(
                run,
                "1-bomber",
                {"turn": turn, "round": 0, "step": "propose", "cells": turn, "opponents": 1},
                ended=turn == 3,
            )

    writer = threading.Thread(target=go_on)
    writer.start()
    done = shoal("track", run, "--to", f"jsonl:{tmp_path / 'm.jsonl'}", "--follow")
    writer.join(60)
    assert done.code == 0, done.err
    assert [one["step"] for one in points(tmp_path / "m.jsonl")] == [1, 2, 3]


def test_an_interrupt_is_the_ordinary_end_of_following(
    shoal: Shoal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path / "run", ["1-bomber"])
    (run / "config.toml").write_text('models = ["builtin:bomber"]\n')
    add(run, "1-bomber", {"turn": 1, "round": 0, "step": "propose", "cells": 1, "opponents": 1})

    def interrupt(_: float) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", interrupt)
    done = shoal("track", run, "--to", f"jsonl:{tmp_path / 'm.jsonl'}", "--follow")
    assert done.code == 0
    assert "1 point of 1 node written" in done.err


def test_a_damaged_journal_is_told_after_all_else_was_written(
    shoal: Shoal, search_run: Path, tmp_path: Path
) -> None:
    run = tmp_path / "copy"
    shutil.copytree(search_run, run)
    journal = run / "nodes" / "1-bomber" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:20], b"x" + lines[20], *lines[21:]]))
    done = shoal("track", run, "--to", f"jsonl:{tmp_path / 'm.jsonl'}")
    assert done.code == 2
    assert "line 21" in done.err
    assert {one["series"] for one in points(tmp_path / "m.jsonl")} == {"1-bomber", "2-random"}


@pytest.mark.parametrize(
    ("to", "words"),
    [("excel:x", "there is no tracker 'excel'"), ("jsonl", "write it as"), ("jsonl:.", "name a new file")],
)
def test_places_that_cannot_be(shoal: Shoal, search_run: Path, to: str, words: str) -> None:
    done = shoal("track", search_run, "--to", to)
    assert done.code == 2
    assert words in done.err
    assert done.err.count("\n") == 1


def test_what_is_no_run(shoal: Shoal, tmp_path: Path) -> None:
    done = shoal("track", tmp_path, "--to", f"jsonl:{tmp_path / 'm.jsonl'}")
    assert done.code == 2
    assert "not a run folder" in done.err
    assert not (tmp_path / "m.jsonl").exists()
