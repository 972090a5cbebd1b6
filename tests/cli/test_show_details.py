"""`shoal show` with --cell, --lineage and --rollout: what is there, and what is said when it is not."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.cli import show_details
from shoal.cli.output import clean_lines
from shoal.errors import ConfigError
from shoal.evolve.programs import Made, difference, find_program, lineage_of
from shoal.runs import Journal, read
from tests.cli.conftest import Done, Shoal

HOSTILE = "\x1b[31mred\x1b]0;title\x07\x9b2J\x00\u202etxet" + "x" * (1 << 20)


def fails(done: Done, *words: str) -> None:
    assert done.code == 2
    assert done.out == ""
    assert done.err.count("\n") == 1
    for word in words:
        assert word in done.err


def a_cell(shoal: Shoal, run: Path) -> dict[str, Any]:
    """A cell whose program was made from another one."""
    cells = json.loads(shoal("show", run, "--json").out)["cells_common"]
    for cell in cells:
        found = json.loads(shoal("show", run, "--cell", ",".join(map(str, cell["cell"])), "--json").out)
        assert found["program"]["digest"] == cell["digest"]
        assert found["fitness"] == pytest.approx(cell["fitness"])
        assert found["program"]["node"] == cell["node"]
        if found["program"]["parent"]:
            return dict(found)
    raise AssertionError("no program of this run has a parent")


def test_a_cell_and_its_lineage(shoal: Shoal, search_run: Path) -> None:
    found = a_cell(shoal, search_run)
    place = ",".join(map(str, found["cell"]))
    program = found["program"]
    text = shoal("show", search_run, "--cell", place).out
    assert text.startswith(f"cell     {place} (spawned ")
    assert program["digest"] in text
    assert f"made by  {program['model']} at {program['node']}, round {program['round'] + 1}," in text
    assert "s of the run's own clock" in text
    assert program["source"].splitlines()[-1].strip() in text

    lineage = json.loads(shoal("show", search_run, "--lineage", program["digest"][:12], "--json").out)
    digests = [one["program"]["digest"] for one in lineage["ancestors"]]
    assert digests[:2] == [program["digest"], program["parent"]]
    assert lineage["complete"]
    assert lineage["ancestors"][-1]["difference"] == []
    changed = lineage["ancestors"][0]["difference"]
    assert changed
    assert all(line[0] in "+-" for line in changed)
    text = shoal("show", search_run, "--lineage", program["digest"]).out
    assert f"{program['model']} at {program['node']}, round {program['round'] + 1}," in text
    assert "round 0" not in text
    assert text.startswith(program["digest"][:12])
    assert text.index(program["digest"][:12]) < text.index(program["parent"][:12]), "newest first"


def test_the_round_of_a_stranger_is_not_made_up() -> None:
    assert show_details._maker(Made("d", "", "peer", "b" * 64, 0)) == f"peer at {'b' * 23}…"
    assert show_details._maker(Made("d", "", "starter", "", 0)) == "starter"
    assert show_details._maker(Made("d", "", "builtin:imp", "1-imp", 0)) == "builtin:imp at 1-imp, round 1"


def test_what_there_is_instead_of_a_cell_or_a_digest(shoal: Shoal, search_run: Path) -> None:
    fails(shoal("show", search_run, "--cell", "9,9"), "cell 9,9 holds nothing", "6 × 6", "filled: 0,0")
    fails(shoal("show", search_run, "--cell", "3"), "cell 3 holds nothing")
    fails(shoal("show", search_run, "--cell", "x,y"), "such as 2,5")
    fails(shoal("show", search_run, "--cell", "-1,2"), "such as 2,5")
    fails(shoal("show", search_run, "--lineage", "zz"), "no program begins with 'zz'", "the newest")
    fails(shoal("show", search_run, "--lineage", ""), "no program begins with ''")
    fails(shoal("show", search_run, "--rollout", "1:2"), "is a search run")
    fails(shoal("show", search_run, "--cell", "0,0", "--best"), "--best and --cell: give one of them")


def test_rollouts(shoal: Shoal, training_run: Path) -> None:
    found = json.loads(shoal("show", training_run, "--rollout", "1-table-small:3", "--json").out)
    own = [group for group in found["groups"] if group["verdict"] == "own"]
    foreign = [group for group in found["groups"] if group["verdict"] != "own"]
    assert (found["node"], found["turn"], len(own)) == ("1-table-small", 3, 4)
    assert all(len(group["completions"]) == 4 for group in own)
    assert all(completion["score"] in (0.0, 1.0) for group in own for completion in group["completions"])
    assert foreign
    assert {group["verdict"] for group in foreign} == {"accepted"}
    assert all(group["author"] and group["model"].startswith("table:") for group in foreign)
    text = shoal("show", training_run, "--rollout", "1:3").out
    assert text.startswith(f"1-table-small, turn 3: {len(found['groups'])} groups")
    assert f"? {own[0]['question']}" in text


def test_what_there_is_instead_of_a_rollout(shoal: Shoal, training_run: Path) -> None:
    fails(shoal("show", training_run, "--rollout", "1:99"), "no rollouts of turn 99: there are 2–4, 6–8")
    fails(shoal("show", training_run, "--rollout", "9-x:2"), "no node '9-x'", "1-table-small, 2-table-even")
    fails(shoal("show", training_run, "--rollout", "1"), "NODE:TURN")
    fails(shoal("show", training_run, "--rollout", "1:x"), "NODE:TURN")
    fails(shoal("show", training_run, "--cell", "1,1"), "is a training run, which has no --cell")


def test_hostile_text_cannot_reach_the_terminal(shoal: Shoal, training_run: Path, tmp_path: Path) -> None:
    """A completion and a question of a megabyte with escapes: neutralised and cut for people, whole in JSON."""
    run = tmp_path / "copy"
    shutil.copytree(training_run, run)
    path = run / "nodes" / "1-table-small" / "journal.jsonl"
    records = list(read(path))
    path.unlink()
    with Journal(path) as journal:
        for record in records:
            payload = msgspec.json.decode(record.payload)
            if record.kind == "answered" and payload["turn"] == 2:
                group = payload["answer"]["groups"][0]
                group["question"] = f"what\n{HOSTILE}"
                group["completions"][0]["text"] = HOSTILE
            journal.append(record.kind, record.time, payload)
    done = shoal("show", run, "--rollout", "1:2")
    assert done.code == 0
    assert max(len(line) for line in done.out.splitlines()) < 600
    assert all(c.isprintable() or c == "\n" for c in done.out)
    assert "redtxetxxx" in done.out
    whole = shoal("show", run, "--rollout", "1:2", "--json").out
    assert whole.isascii()
    assert "\x1b" not in whole
    assert json.loads(whole)["groups"][0]["completions"][0]["text"] == HOSTILE


def made(digest: str, parent: str | None, source: str = "") -> Made:
    return Made(digest, source or f"{digest}\nsame\n", "m", "n", 1, parent, 2.0, 0.5)


def test_lineages_are_bounded_and_survive_a_circle() -> None:
    programs = {f"{n:04}": made(f"{n:04}", f"{n - 1:04}" if n else None) for n in range(50)}
    some = lineage_of(programs, "0049", most=20)
    assert [one.program.digest for one in some.ancestors] == [f"{n:04}" for n in range(49, 29, -1)]
    assert not some.complete
    assert some.ancestors[0].difference == ["-0048", "+0049"]
    assert lineage_of(programs, "0010").complete
    circle = {"a": made("a", "b"), "b": made("b", "a")}
    assert [one.program.digest for one in lineage_of(circle, "a").ancestors] == ["a", "b"]
    assert len(lineage_of({"a": made("a", "gone")}, "a").ancestors) == 1


def test_the_beginning_of_a_digest_must_be_enough() -> None:
    programs = {name: made(name, None) for name in ("abc1", "abc2", "d000")}
    assert find_program(programs, "D").digest == "d000"
    with pytest.raises(ConfigError, match="2 programs begin with abc"):
        find_program(programs, "abc")


def test_differences_of_lines() -> None:
    assert difference("a\nb\nc\n", "a\nB\nc\nd\n") == ["-b", "+B", "+d"]
    assert difference("same", "same") == []
    assert len(difference("x\n" * 100_000, "y\n" * 100_000)) == 4000


def test_cleaned_lines_keep_their_indentation_and_their_bounds() -> None:
    assert clean_lines("a\n  b\n\tc\x1b[1m!\n", 9) == ["a", "  b", "        c!"]
    assert clean_lines("a\nb\nc\nd", 2) == ["a", "b", "… 2 more lines"]
    (line,) = clean_lines("y" * (1 << 20), 5, most=20)
    assert line == "y" * 19 + "…"
    (line,) = clean_lines("\x1b[0m" * (1 << 18), 5, most=20)
    assert line == "…"
    (line,) = clean_lines(" " * 1000 + "z" * 1000, 5, most=20)
    assert len(line) <= 20
