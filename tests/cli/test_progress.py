"""What is shown of a run while it goes on: on terminals of any width, in pipes, for programs, quietly."""

from __future__ import annotations

import json
import sys
from io import StringIO
from typing import Any

import msgspec
import pytest

from shoal.cli import search_terminal, train_terminal
from shoal.cli.progress import MOST_NODES, Manner, ProgressDisplay, View, amount, clock
from shoal.evolve.crew import SearchStanding
from shoal.node.standing import Progress, Traffic
from shoal.train.crew import TrainStanding
from tests.cli.conftest import Shoal

HOSTILE = "evil\x1b[2J\x1b]0;owned\x07\r\n\x9b31mname\u202e"


def search(name: str = "2-replicator", **changes: Any) -> SearchStanding:
    figures: dict[str, Any] = {
        "name": name, "model": "builtin:replicator", "done": 0.4, "work": 321, "spent": 100, "allowed": 250,
        "traffic": Traffic(3, 2, 15, 1, 12), "per_second": 16.52, "seconds_left": 75.0, "round": 3, "rounds": 5,
        "coverage": 0.44, "qd_score": 14.2, "best": 1.48,
    }  # fmt: skip
    return SearchStanding(**{**figures, **changes})


def progress(*nodes: SearchStanding, seconds: float = 62.0) -> Progress[SearchStanding]:
    return Progress(424, 1000, "calls", seconds, nodes)


def test_everything_is_shown_where_there_is_room() -> None:
    title, _, head, row = View(search_terminal.COLUMNS).table(progress(search()), 160)
    assert title == "424 of 1000 calls; 1:02 so far, about 1:15 left"
    assert (
        head.split()
        == (
            "node round evaluations/s coverage QD-score best peers shared received rejected used calls time left"
        ).split()
    )
    assert row.split() == "2-replicator 3/5 16.5 44% 14.20 1.48 3 2 15 1 12 100/250 1:15".split()


def test_eighty_columns_hold_all_figures_of_both_views() -> None:
    _, _, head, row = View(search_terminal.COLUMNS).table(progress(search()), 79)
    assert len(head) <= 79
    assert len(row) <= 79
    assert head.split() == "node rnd ev/s cover QD best peer out in bad used calls left".split()
    node = TrainStanding(
        name="1-tiny-llama", model="tiny:llama", step=12, steps=40, spent=12_345, work=12_345, allowed=50_000,
        traffic=Traffic(2, 160, 316, 0, 152), per_second=396.4, reward_local=0.75, reward_held_out=0.48,
    )  # fmt: skip
    _, _, head, row = View(train_terminal.COLUMNS).table(Progress(36, 120, "steps", 9.0, (node,)), 79)
    assert head.split() == "node step tok/s rew held peer out in bad used tokens left".split()
    assert row.split() == "1-tiny-llama 12/40 396 0.75 0.48 2 160 316 0 152 12.3k/50.0k -".split()


@pytest.mark.parametrize("width", range(10, 170, 7))
def test_no_line_is_longer_than_the_terminal(width: int) -> None:
    nodes = (search("3-" + "x" * 40), search(trouble="no room " * 50, ended=True), search(HOSTILE))
    lines = View(search_terminal.COLUMNS).table(progress(*nodes), width)
    assert max(map(len, lines)) <= width
    if width >= 30:
        assert "rnd" in lines[2] or "round" in lines[2]
        assert "left" in lines[2]


def test_names_and_troubles_cannot_act_upon_a_terminal() -> None:
    shown = progress(search(HOSTILE, trouble=HOSTILE, model=HOSTILE))
    for text in (
        "\n".join(View(search_terminal.COLUMNS).table(shown, 120)),
        "\n".join(View(search_terminal.COLUMNS).lines(shown)),
    ):
        assert not [c for c in text if not c.isprintable() and c != "\n"]
        assert "owned" not in text


def test_lines_in_a_pipe_have_the_same_figures() -> None:
    first, line = View(search_terminal.COLUMNS).lines(progress(search()))
    assert first.startswith("424 of 1000 calls")
    assert line == (
        "  2-replicator: round 3/5, 16.5 evaluations/s, coverage 44%, QD-score 14.20, best 1.48, peers 3, "
        "2 shared, 15 received, 1 rejected, 12 used, 100/250 calls, 1:15 left"
    )


def test_of_a_large_swarm_those_at_work_are_shown() -> None:
    nodes = [search(f"{number}-a", ended=number < 40) for number in range(100)]
    lines = View(search_terminal.COLUMNS).table(progress(*nodes), 120)
    assert len(lines) == 3 + MOST_NODES + 1
    assert lines[3].startswith("40-a")
    assert lines[-1] == "and 68 more nodes; 40 of all 100 have ended"
    assert len(View(search_terminal.COLUMNS).objects(progress(*nodes))) == 100


def shown(manner: Manner, capsys: pytest.CaptureFixture[str]) -> str:
    with ProgressDisplay(search_terminal.COLUMNS, manner) as display:
        for seconds in (0.0, 1.0, 2.0, 6.0, 7.0):
            display.show(progress(search(work=int(seconds)), seconds=seconds))
    out, err = capsys.readouterr()
    assert out == "", "standard output is for the result"
    return err


def test_plain_lines_objects_or_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Some at first, every few seconds, and at the end: also when an interrupt was the end."""
    assert [line.split(";")[1] for line in shown("people", capsys).splitlines()[::2]] == [
        " 0:00 so far, about 1:15 left", " 0:06 so far, about 1:15 left", " 0:07 so far, about 1:15 left",
    ]  # fmt: skip
    objects = [json.loads(line) for line in shown("programs", capsys).splitlines()]
    assert [one["evaluations"] for one in objects] == [0, 6, 7]
    assert objects[0].keys() >= {
        "seconds", "node", "model", "round", "evaluations_per_second", "coverage", "qd_score", "calls",
        "calls_allowed", "peers", "shared", "received", "rejected", "used", "seconds_left", "ended", "trouble",
    }  # fmt: skip
    assert shown("quiet", capsys) == ""


def test_models_that_are_being_made(capsys: pytest.CaptureFixture[str]) -> None:
    making = Progress(0, 120, "steps", 3.0, (), {"tiny:llama": 0.5, "tiny:gpt2": 0.25, "tiny:qwen": 0.0})
    (line,) = View(train_terminal.COLUMNS).table(making, 79)
    assert line == "making tiny:llama 50%, tiny:gpt2 25%, tiny:qwen 0% (first use); 0:03 so far"
    with ProgressDisplay(train_terminal.COLUMNS, "programs") as display:
        display.show(making)
    assert "tiny:gpt2 25%" in json.loads(capsys.readouterr().err)["doing"]


class Terminal(StringIO):
    def isatty(self) -> bool:
        return True


def test_on_a_terminal_the_table_fits_and_holds_no_foreign_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("TERM", "xterm")
    with ProgressDisplay(search_terminal.COLUMNS, keep=True) as display:
        display.show(progress(search(HOSTILE), search()))
    text = terminal.getvalue()
    assert "ev/s" in text
    assert "2-replicator" in text
    assert "owned" not in text
    assert "\x1b[2J" not in text


def test_where_somebody_types_nothing_is_redrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", "xterm")
    with ProgressDisplay(search_terminal.COLUMNS, live=False) as display:
        display.show(progress(search()))
        display.say("a line")
    assert "\x1b" not in terminal.getvalue()
    assert "a line\n" in terminal.getvalue()


def test_numbers_keep_their_columns_narrow() -> None:
    assert [amount(one) for one in (0, 9999, 12_345, 123_456, 1_234_567, 12_345_678_901)] == [
        "0", "9999", "12.3k", "123k", "1.2M", "12.3G",
    ]  # fmt: skip
    assert [clock(one) for one in (None, 0.2, 59.6, 3599, 7325)] == ["-", "0:00", "1:00", "59:59", "2h02"]


@pytest.mark.parametrize("verb", ["demo", "evolve", "train", "contribute", "resume", "compare", "sweep"])
def test_everything_that_takes_long_can_be_quiet(shoal: Shoal, verb: str) -> None:
    assert "--quiet" in shoal(verb, "--help").out


def test_figures_survive_their_journal_form() -> None:
    one = search()
    assert msgspec.json.decode(msgspec.json.encode(one), type=SearchStanding) == one
