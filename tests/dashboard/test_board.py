"""The board of a judge on the page: its figures, and strangers' names that do nothing."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from shoal.dashboard.bounds import MOST_POINTS
from shoal.dashboard.judge_view import MOST_CURVES, MOST_ENTRANTS, JudgeView
from shoal.dashboard.messages import Cursor
from shoal.dashboard.run_view import RunView
from shoal.dashboard.single_file import single_file
from shoal.dashboard.view import Authors
from shoal.dashboard.watcher import Watcher
from shoal.judge.summary import summarise
from tests.dashboard.test_browser import browser, opened, pytestmark as needs_browser
from tests.judge.test_summary import HOSTILE, judged_run

__all__ = ["browser"]


def head_of(folder: Path) -> dict[str, Any]:
    watcher = Watcher([RunView(folder)])
    watcher.read_all()
    told = watcher.message(Cursor())
    assert told is not None
    (node,) = told["nodes"]  # type: ignore[misc]
    assert isinstance(node, dict)
    return node


def test_the_page_has_the_figures_of_the_summary(tmp_path: Path) -> None:
    folder = judged_run(tmp_path / "run")
    node, summary = head_of(folder), summarise(folder)
    board = node["head"]["board"]
    assert node["head"]["unread"] == 0
    assert RunView(folder).tabs == ("swarm", "board", "budget")
    assert (board["judge"], board["asked"], board["right"]) == (summary.judge, summary.asked, summary.right)
    rows = [(one["author"], one["rounds"], one["right"], one["pass"], one["reward"]) for one in board["rows"]]
    assert rows == [
        (one.author, one.rounds, one.right, one.pass_at_1, one.reward) for one in summary.entrants
    ]
    first = node["curves"][board["rows"][0]["curve"]]
    assert first["points"][:10] == [1, 0, 2, 0, 3, 0, 4, 1, 5, 2]


def test_a_board_of_any_size_is_bounded(tmp_path: Path) -> None:
    node = head_of(judged_run(tmp_path / "run", nodes=300, rounds=20))
    board = node["head"]["board"]
    assert board["nodes"] == 300
    assert len(board["rows"]) == MOST_ENTRANTS
    curves = [title for title in node["curves"] if title.startswith("Node ")]
    assert len(curves) == MOST_CURVES
    assert all(len(curve["points"]) <= 2 * MOST_POINTS for curve in node["curves"].values())


def test_strangers_names_are_text_without_control_characters(tmp_path: Path) -> None:
    folder = judged_run(tmp_path / "run")
    (row,) = [one for one in head_of(folder)["head"]["board"]["rows"] if "script" in one["model"]]
    assert not set(row["model"]) & {"\x1b", "\u202e"}
    assert len(row["model"]) <= 80
    html = single_file(folder)
    assert "<script>alert(1)" not in html
    assert HOSTILE not in html


def test_a_note_of_another_shape_stops_nothing(tmp_path: Path) -> None:
    view = JudgeView("judge", "", Authors())
    assert view.head(0)["board"]["rows"] == []
    assert view.head(0)["result"] == "–"


@pytest.mark.usefixtures("browser")
class TestInABrowser:
    pytestmark = needs_browser

    def test_the_board_is_drawn_and_hostile_names_do_nothing(self, browser: Any, tmp_path: Path) -> None:
        folder = judged_run(tmp_path / "run", nodes=10)
        path = tmp_path / "page.html"
        path.write_text(single_file(folder))
        with opened(browser, f"{path.as_uri()}#/0/board", viewport={"width": 1280, "height": 900}) as page:
            page.wait_for_selector("table")
            assert page.locator("h1").inner_text() == "Board"
            assert page.locator("tbody tr").count() == 10
            assert "<script>alert(1)</script>" in page.locator("tbody").inner_text()
            assert page.locator("svg.chart").count() == 2
            page.screenshot(path=str(tmp_path / "board.png"), full_page=True)
        with opened(browser, f"{path.as_uri()}#/0/board", viewport={"width": 390, "height": 844}) as page:
            page.wait_for_selector("table")
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 390, "nothing but the table itself scrolls sideways"
            page.screenshot(path=str(tmp_path / "phone.png"), full_page=True)
