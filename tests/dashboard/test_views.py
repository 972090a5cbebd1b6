"""Journals become bounded views, and views become messages."""

from __future__ import annotations

import os
from pathlib import Path

import msgspec
import pytest

from shoal.dashboard.bounds import MOST_POINTS, Curves, Series, shown, shown_line
from shoal.dashboard.messages import Cursor
from shoal.dashboard.run_view import RunView, ancestors
from shoal.dashboard.search_view import Programs
from shoal.dashboard.view import Kept
from shoal.dashboard.watcher import Watcher
from shoal.errors import RunError
from tests.dashboard.samples import HOSTILE, NodeWriter, long_search, new_run, training, two_node_search


def watched(*runs: Path) -> Watcher:
    watcher = Watcher([RunView(run, run.name) for run in runs])
    watcher.read_all()
    return watcher


def node_of(told: dict, name: str) -> dict:
    return next(node for node in told["nodes"] if node["name"] == name)


def test_a_search_is_folded_into_cells_counts_and_uses(tmp_path: Path) -> None:
    run, digests = two_node_search(tmp_path / "run")
    told = watched(run).message(Cursor())
    assert told["kind"] == "everything"
    first, second = node_of(told, "1-bomber"), node_of(told, "2-scanner")
    cells = {tuple(cell[0]): cell[1:3] for cell in first["grids"]["now"]["cells"]}
    assert cells == {(0, 1): [0.5, digests["parent"]], (2, 3): [1.5, digests["child"]]}
    assert first["head"]["spent"] == {"calls": 2, "tokens": 20}
    assert first["head"]["shared"] == 1
    assert first["head"]["not_shared"] == {"size": 1}
    # The round under way has the visitor; the complete one what was there before.
    assert [cell[2] for cell in second["grids"]["now"]["cells"]] == [digests["child"]]
    assert [cell[2] for cell in second["grids"]["complete"]["cells"]] == [digests["own"]]
    assert second["head"]["used"] == {"keyoffirst": 1}
    assert second["head"]["rejected"] == {"does not assemble": 1}
    assert told["runs"][0]["authors"] == {"keyoffirst": "1-bomber"}, "matched by what it wrote"


def test_a_lineage_goes_from_the_program_to_its_ancestors(tmp_path: Path) -> None:
    run, digests = two_node_search(tmp_path / "run")
    found = watched(run).runs[0].lineage(digests["child"])
    assert [one["digest"] for one in found] == [digests["child"], digests["parent"]]
    assert found[0]["node"] == "1-bomber", "told by its maker, not by the node that received it"
    assert watched(run).runs[0].lineage("../../config.toml") == []


def test_a_lineage_that_goes_in_circles_ends() -> None:
    programs = {name: Kept(name, "x", "m", "n", 0, parent, 1) for name, parent in (("a", "b"), ("b", "a"))}
    assert [one.digest for one in ancestors(programs.get, "a")] == ["a", "b"]


def test_training_is_folded_into_curves_and_rollouts(tmp_path: Path) -> None:
    told = watched(training(tmp_path / "run")).message(Cursor())
    node = node_of(told, "1-table-small")
    assert node["curves"]["Reward of own completions"]["points"] == [1, 0.5, 2, 0.5, 3, 0.5, 4, 0.5, 5, 0.5]
    assert node["curves"]["Held-out reward"]["points"] == [5, 0.75]
    assert node["curves"]["Loss part: kl"]["points"][1] == pytest.approx(0.1)
    foreign = [group for group in node["rollouts"] if group["author"]]
    assert [completion[2] for completion in foreign[0]["completions"]] == [1.0, 0.0]
    assert foreign[0]["verdict"] == "accepted"
    assert node["head"]["used"] == {"stranger": 5}
    assert node["head"]["totals"]["seen"] == 3, "groups also arrive while it evaluates"


def test_only_changes_are_told(tmp_path: Path) -> None:
    run, _ = two_node_search(tmp_path / "run")
    watcher, cursor = watched(run), Cursor()
    watcher.message(cursor)
    assert watcher.message(cursor) is None
    writer = NodeWriter(run, "1-bomber")
    writer.turn = 4
    writer.propose((5, 5), 2.0, "new one")
    watcher.read_all()
    told = watcher.message(cursor)
    assert told is not None
    assert told["kind"] == "changes"
    assert [node["name"] for node in told["nodes"]] == ["1-bomber"]
    grid = node_of(told, "1-bomber")["grids"]["now"]
    assert [tuple(cell[0]) for cell in grid["cells"]] == [(5, 5)]
    assert not grid["fresh"]
    assert len(node_of(told, "1-bomber")["curves"]["Cells filled"]["points"]) == 2
    writer.close()


def test_a_node_that_begins_later_is_found(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    watcher, cursor = watched(run), Cursor()
    assert watcher.message(cursor)["runs"][0]["nodes"] == []
    NodeWriter(run, "1-bomber").close()
    watcher.read_all()
    assert watcher.message(cursor)["runs"][0]["nodes"] == ["1-bomber"]


def test_a_torn_journal_is_read_as_far_as_it_goes(tmp_path: Path) -> None:
    run, _ = two_node_search(tmp_path / "run")
    path = run / "nodes" / "1-bomber" / "journal.jsonl"
    whole = path.read_bytes()
    for cut in (0, 1, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        watcher = watched(run)
        node = watcher.runs[0].nodes["1-bomber"]
        assert node.trouble == ""
        assert node.records == whole[:cut].count(b"\n")
        path.write_bytes(whole)
        watcher.read_all()
        assert node.records == whole.count(b"\n"), "goes on once the line is complete"


def test_a_damaged_journal_is_named_and_the_others_are_read(tmp_path: Path) -> None:
    run, _ = two_node_search(tmp_path / "run")
    path = run / "nodes" / "1-bomber" / "journal.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"turn":2', b'"turn":9', 1))
    told = watched(run).message(Cursor())
    trouble = node_of(told, "1-bomber")["head"]["trouble"]
    assert "damaged" in trouble
    assert str(tmp_path) not in trouble
    assert node_of(told, "2-scanner")["head"]["trouble"] == ""


def test_what_is_not_understood_is_counted(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    writer = NodeWriter(run, "1-bomber")
    writer.put("note", {"turn": 1, "note": {"turn": "first"}})
    writer.put("asked", {"turn": 1})
    writer.put("invented", {"anything": [1]})
    writer.close()
    node = watched(run).runs[0].nodes["1-bomber"]
    assert (node.unread, node.records) == (2, 4)


def test_a_pipe_in_place_of_a_journal_is_not_waited_for(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    (run / "nodes" / "1-bomber").mkdir()
    os.mkfifo(run / "nodes" / "1-bomber" / "journal.jsonl")
    os.mkfifo(run / "nodes" / "1-bomber" / "accounts.json")
    assert "not a regular file" in watched(run).runs[0].nodes["1-bomber"].trouble


def test_accounts_are_shown_where_a_node_kept_them(tmp_path: Path) -> None:
    run, _ = two_node_search(tmp_path / "run")
    path = run / "nodes" / "2-scanner" / "accounts.json"
    path.write_text(
        '{"version": 1, "accounts": {"keyoffirst": {"received": 2, "used": 1, "rejected": {"size": 3}}}}'
    )
    found = node_of(watched(run).message(Cursor()), "2-scanner")["head"]["accounts"]
    assert found == [
        {
            "author": "keyoffirst",
            "received": 2,
            "verified": 0,
            "used": 1,
            "useful": 0,
            "passed_over": 0,
            "rejected": {"size": 3},
        }
    ]
    path.write_text("not JSON")
    assert node_of(watched(run).message(Cursor()), "2-scanner")["head"]["accounts"] == []


def test_what_is_no_run_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="not a run folder"):
        RunView(tmp_path, "x")


@pytest.mark.parametrize("kind", ["mean", "last"])
def test_a_curve_of_any_length_has_bounded_points(kind: str) -> None:
    series = Series(kind)  # type: ignore[arg-type]
    for step in range(100_000):
        series.add(step, step)
    assert MOST_POINTS // 2 <= len(series.points) < MOST_POINTS
    assert series.points == sorted(series.points)
    assert series.tip is None or series.tip[0] == 99_999
    last = series.tip or series.points[-1]
    assert last[1] == pytest.approx(99_999, rel=0.01)
    series.add(1, float("nan"))
    assert len(msgspec.json.encode(series.points)) < 50_000


def test_names_of_curves_are_bounded() -> None:
    curves = Curves(most=3)
    for index in range(100):
        curves.add(f"invented {index}", 0, 1.0)
    assert len(curves.by_title) == 3


def test_programs_make_room_for_newer_ones_but_elites_stay() -> None:
    programs = Programs(budget=100_000)
    for index in range(1000):
        programs.add(Kept(f"{index}", "x" * 1000, "m", "n", 0, None, 1), held={"0"})
    assert programs.size <= 100_000
    assert programs.get("0") is not None
    assert programs.get("1") is None
    assert programs.get("999") is not None


def test_strange_characters_are_made_visible_and_texts_are_cut() -> None:
    seen = shown(HOSTILE)
    assert "\x1b" not in seen
    assert "\u202e" not in seen
    assert "\u2028" not in seen
    assert "␛[31mred" in seen
    assert shown("x" * 1_000_000, 100) == "x" * 100 + "… (999900 more characters)"
    assert shown_line("a\nb\x00\ud800") == "a⏎b␀�"


def test_a_message_is_bounded_whatever_the_journal_holds(tmp_path: Path) -> None:
    run = new_run(tmp_path / "run", 'application = "train"\n')
    node = NodeWriter(run, "1-x", "train")
    for step in range(1, 30):
        node.train_step(step, "q" * 100_000, ["t" * 100_000] * 20, [0.0] * 20)
        node.put("missed", {"turn": step, "attempt": 1, "reason": f"{step}" * 1000})
    node.close()
    told = watched(run).message(Cursor())
    assert len(msgspec.json.encode(told)) < 400_000


def test_a_long_run_gives_a_small_message(tmp_path: Path) -> None:
    watcher = watched(long_search(tmp_path / "run", 1, 20_000))
    encoded = msgspec.json.encode(watcher.message(Cursor()))
    assert len(encoded) < 200_000
    assert watcher.runs[0].nodes["1-long"].records == 19_997


def test_node_names_that_could_lead_elsewhere_are_passed_over(tmp_path: Path) -> None:
    run, _ = two_node_search(tmp_path / "run")
    (run / "nodes" / "..evil").mkdir()
    assert set(watched(run).runs[0].nodes) == {"1-bomber", "2-scanner"}
