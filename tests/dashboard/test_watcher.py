"""Folders of runs are followed; what a run's page has is said by its application and its domain."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.cli import main
from shoal.cli.dashboard import facts_of, watch
from shoal.dashboard import watcher as watching
from shoal.dashboard.messages import Cursor
from shoal.dashboard.run_view import RunView
from shoal.dashboard.watcher import Watcher
from shoal.runs.search import Axis, DomainFacts, Words
from tests.dashboard.samples import CONFIG, NodeWriter, new_run, training, two_node_search


def titles(watcher: Watcher) -> list[str]:
    return [run.folder.path.name for run in watcher.runs]


def told(watcher: Watcher, cursor: Cursor | None = None) -> dict[str, Any]:
    found = watcher.message(cursor or Cursor())
    assert found is not None
    return found


def test_new_runs_are_picked_up_and_keep_their_numbers(tmp_path: Path) -> None:
    two_node_search(tmp_path / "first")
    watcher, cursor = watch([tmp_path]), Cursor()
    watcher.read_all()
    assert titles(watcher) == ["first"]
    told(watcher, cursor)
    training(tmp_path / "a second")
    watcher.look_for_runs()
    watcher.read_all()
    assert titles(watcher) == ["first", "a second"]
    change = told(watcher, cursor)
    assert [about["tabs"] for about in change["runs"]] == [
        ("swarm", "archive", "replay", "budget"),
        ("swarm", "train", "budget"),
    ]
    assert {node["run"] for node in change["nodes"]} == {1}
    watcher.look_for_runs()
    assert watcher.message(cursor) is None


def test_runs_beyond_the_most_are_counted_on_the_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watching, "MOST_RUNS", 2)
    for name in "abcd":
        new_run(tmp_path / name)
    watcher = watch([tmp_path])
    assert len(watcher.runs) == 2
    assert told(watcher)["notices"] == ["2 more runs are not shown: 2 are the most"]
    given = Watcher([RunView(tmp_path / name) for name in "abc"])
    given.look_for_runs()
    assert (titles(given), given.notices) == (["a", "b"], ["1 more run is not shown: 2 are the most"])


def test_a_run_that_cannot_be_opened_is_named_and_the_others_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (new_run(tmp_path / "broken") / "config.toml").write_text("[[[")
    assert main(["dashboard", str(tmp_path)]) == 2
    assert "not the config of a run" in capsys.readouterr().err
    new_run(tmp_path / "good")
    watcher = watch([tmp_path])
    assert titles(watcher) == ["good"]
    assert "broken/config.toml" in watcher.notices[0]


def test_a_run_that_is_named_and_lies_in_a_named_folder_is_shown_once(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    assert titles(watch([run, tmp_path])) == ["run"]


def test_a_folder_that_goes_away_ends_nothing(tmp_path: Path) -> None:
    new_run(tmp_path / "runs" / "run")
    watcher = watch([tmp_path / "runs"])
    (tmp_path / "runs").rename(tmp_path / "moved")
    watcher.look_for_runs()
    watcher.read_all()
    assert titles(watcher) == ["run"]


def test_a_domain_brings_its_words_and_tabs(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    about = RunView(run, facts=facts_of(run)).about()
    assert about["words"] == {"program": "warrior", "programs": "warriors", "plays": "battles"}
    assert [axis["measure"] for axis in about["axes"]] == ["spawned", "coverage"]
    assert about["axes"][0]["labels"][0] == "<1"
    assert "replay" in about["tabs"]
    assert "dwarf" in about["starters"]
    assert about["repeats"] == 20
    facts = DomainFacts((Axis("length", (5.0,)),), Words(program="tour", programs="tours", plays="trips"))
    other = RunView(run, facts=facts).about()
    assert "replay" not in other["tabs"]
    assert other["starters"] == []
    assert other["words"]["programs"] == "tours"
    assert other["axes"] == [{"measure": "length", "labels": ["<5", "≥5"]}]


@pytest.mark.parametrize("domain", ["nowhere:Domain", "not-installed"])
def test_a_domain_that_is_not_installed_still_shows(tmp_path: Path, domain: str) -> None:
    run = new_run(tmp_path / "run", CONFIG.replace('"corewar"', f'"{domain}"'))
    writer = NodeWriter(run, "1-bomber")
    writer.open_round()
    writer.propose((1, 2), 0.5, "anything")
    writer.close()
    watcher = watch([run])
    watcher.read_all()
    found = told(watcher)
    assert found["runs"][0]["tabs"] == ("swarm", "archive", "budget")
    assert found["runs"][0]["axes"] == []
    assert found["nodes"][0]["grids"]["now"]["cells"][0][0] == (1, 2)


def test_an_unknown_application_shows_its_records_and_budget(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run", 'application = "swim"\n')
    writer = NodeWriter(run, "1-fish", "swim")
    writer.ask({"anything": 1}, {"calls": 1})
    writer.answer([], {"calls": 1})
    writer.put("note", {"turn": 1, "note": "whatever"})
    writer.close()
    watcher = Watcher([RunView(run)])
    watcher.read_all()
    node = told(watcher)["nodes"][0]
    assert node["head"]["spent"] == {"calls": 1}
    assert node["head"]["unread"] == 0
    assert node["head"]["progress"] == "turn 1"
    assert told(watcher)["runs"][0]["tabs"] == ("swarm", "budget")
