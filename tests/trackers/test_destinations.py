"""Each kind of tracker puts the numbers where its own program finds them."""

from __future__ import annotations

import json
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from shoal.errors import ConfigError
from shoal.trackers import open_tracker
from shoal.trackers.destinations import folder_name


def test_lines(tmp_path: Path) -> None:
    path = tmp_path / "new" / "metrics.jsonl"
    tracker = open_tracker(f"jsonl:{path}")
    tracker.log("1-a", 3, {"best": 0.5})
    assert json.loads(path.read_text()) == {"series": "1-a", "step": 3, "best": 0.5}, "readable at once"
    tracker.log("1-a", 4, {"best": 1.0, "cells": 2.0})
    tracker.close()
    assert [json.loads(line)["step"] for line in path.read_text().splitlines()] == [3, 4]
    with pytest.raises(ConfigError, match="name a new file"):
        open_tracker(f"jsonl:{path}")


@pytest.mark.parametrize("destination", ["", "jsonl", "jsonl:", "excel:sheet", ":x"])
def test_what_is_no_destination_is_told_the_forms(destination: str) -> None:
    with pytest.raises(ConfigError, match=r"tensorboard:DIR, jsonl:FILE"):
        open_tracker(destination)


@pytest.mark.parametrize("kind", ["tensorboard", "wandb", "trackio"])
def test_a_missing_package_is_one_teaching_line(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.partition(".")[0] == kind]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, kind, None)
    with pytest.raises(ConfigError) as raised:
        open_tracker(f"{kind}:x")
    assert f"pip install 'shoal-swarm[{kind}]'" in str(raised.value)
    assert "\n" not in str(raised.value)


def test_a_disk_that_takes_no_more_is_one_error_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tensorboard")
    traced: list[object] = []
    monkeypatch.setattr(threading, "excepthook", traced.append)
    tracker = open_tracker(f"tensorboard:{tmp_path / 'curves'}")
    tracker.log("1-bomber", 1, {"cells": 4.0})
    (tmp_path / "curves").rename(tmp_path / "gone")  # what is written next fails in the library's own thread

    def go_on() -> None:
        for step in range(2, 100):
            tracker.log("1-bomber", step, {"cells": 4.0})
            time.sleep(0.1)

    with pytest.raises(FileNotFoundError):
        go_on()
    with suppress(OSError):
        tracker.close()
    assert not traced
    assert threading.excepthook == traced.append


def test_tensorboard_reads_its_event_files(tmp_path: Path) -> None:
    loader = pytest.importorskip("tensorboard.backend.event_processing.event_file_loader")
    tracker = open_tracker(f"tensorboard:{tmp_path}")
    tracker.log("run/1-a", 3, {"best": 0.5, "cells": 2.0})
    tracker.log("run/1-a", 4, {"best": 0.75})
    tracker.log("run/2-b", 1, {"best": 0.25})
    tracker.close()
    (file,) = (tmp_path / "run" / "1-a").iterdir()
    found = []
    for event in loader.EventFileLoader(str(file)).Load():
        for value in event.summary.value:
            found.append((event.step, value.tag, value.tensor.float_val[0]))
    assert found == [(3, "best", 0.5), (3, "cells", 2.0), (4, "best", 0.75)]
    assert len(list((tmp_path / "run" / "2-b").iterdir())) == 1
    again = open_tracker(f"tensorboard:{tmp_path}")
    with pytest.raises(ConfigError, match="has curves already"):
        again.log("run/1-a", 5, {"best": 1.0})
    again.close()


def test_folder_names_stay_inside() -> None:
    assert [folder_name(part) for part in ("1-a", "..", "", "a b", "é\x1b[0m")] == [
        "1-a",
        "-",
        "-",
        "a-b",
        "-0m",
    ]


class FakeRun:
    def __init__(self) -> None:
        self.logged: list[tuple[int, dict[str, float]]] = []
        self.finished = False

    def log(self, metrics: dict[str, float], step: int | None = None) -> None:
        assert step is not None
        assert not self.finished
        self.logged.append((step, metrics))

    def finish(self) -> None:
        self.finished = True


class FakeModule(ModuleType):
    """As much of wandb and trackio as is used."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.runs: list[tuple[dict[str, Any], FakeRun]] = []

    def init(self, **given: Any) -> FakeRun:
        allowed = {"project", "name", "group"} | ({"reinit"} if self.__name__ == "wandb" else set())
        assert given.keys() <= allowed
        run = FakeRun()
        self.runs.append((given, run))
        return run


@pytest.mark.parametrize("kind", ["wandb", "trackio"])
def test_hosted_trackers_have_one_run_per_series(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeModule(kind)
    monkeypatch.setitem(sys.modules, kind, fake)
    tracker = open_tracker(f"{kind}:fish")
    assert tracker.name == kind
    tracker.log("run/1-a", 9, {"best": 0.5})
    tracker.log("run/2-b", 1, {"best": 0.25})
    tracker.log("run/1-a", 10, {"best": 0.5})
    tracker.close()
    (first, first_run), (second, second_run) = fake.runs
    assert (first["project"], first["name"], first["group"]) == ("fish", "run/1-a", "run")
    assert second["name"] == "run/2-b"
    assert [step for step, _ in first_run.logged] == [9, 10]
    assert second_run.logged == [(1, {"best": 0.25})]
    assert first_run.finished
    assert second_run.finished
    assert first.get("reinit") == ("create_new" if kind == "wandb" else None)


def test_a_hosted_tracker_that_does_not_begin_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(FakeModule):
        def init(self, **given: Any) -> FakeRun:
            raise RuntimeError("No API key configured. Use `wandb login`.\nmore")

    monkeypatch.setitem(sys.modules, "wandb", Refusing("wandb"))
    tracker = open_tracker("wandb:fish")
    with pytest.raises(ConfigError, match=r"wandb:fish: it did not begin: No API key configured"):
        tracker.log("1-a", 1, {"best": 0.5})
    tracker.close()
