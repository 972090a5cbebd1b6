"""Hostile text on its whole way: a peer signs it, a swarm carries it, a search and a training run accept and use it,
and then every view of the run shows it. It must be there to be seen, and do nothing."""

from __future__ import annotations

import csv
import json
import os
import pty
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from shoal.cli import main
from shoal.runs import to_toml
from shoal.runs.foreign import STACKED, UNSEEN
from shoal.runs.tables import FORMULA_SIGNS
from tests.dashboard.hostile_peer import MARK, MODEL, TEXTS
from tests.docs.pages import ROOT
from tests.evolve.small import small as small_search
from tests.processes import Watched, wait_until
from tests.train.small import small as small_training

pytestmark = pytest.mark.timeout(280)

DOMAIN = "tests.dashboard.texts:Texts"
PATIENCE = 120.0
LONGEST_LINE = 600
IN_COLOUR = 3
"""The first few views of each run are also looked at on a terminal."""


OUTCOMES = ("accepted", "rejected", "passed over")


class Run(NamedTuple):
    """A run that a hostile peer took part in, the peer's id, and everything that the run printed."""

    folder: Path
    author: str
    said: str


def outcome(verdict: dict[str, Any]) -> str:
    if verdict["accepted"]:
        return "accepted"
    return "passed over" if verdict["passed_over"] else "rejected"


def start(*words: object) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", *map(str, words)],
        cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def run_with_the_peer(
    folder: Path, verb: str, items: str, settings: Any, enough: Callable[[Watched, str], bool]
) -> Run:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        place = f"tcp/127.0.0.1:{probe.getsockname()[1]}"
    config, out = folder / "config.toml", folder / "run"
    config.write_text(to_toml(settings))
    key = ("--key", folder / "identity.key") if len(settings.node_names()) == 1 else ()
    run = start("shoal.cli", verb, config, "--out", out, "--listen", place, *key)
    peer = start("tests.dashboard.hostile_peer", place, "--items", items, "--seconds", "200")
    try:
        assert peer.stdout is not None
        first = peer.stdout.readline()
        assert first, peer.communicate(timeout=PATIENCE)[1]
        author = str(json.loads(first)["id"])
        paths = [out / "nodes" / name / "journal.jsonl" for name in settings.node_names()]
        journals = [Watched(path, "verdict", "note") for path in paths]
        wait_until(lambda: all(enough(journal, author) for journal in journals), "use of its items", PATIENCE)
        run.send_signal(signal.SIGINT)
        printed, errors = run.communicate(timeout=PATIENCE)
        return Run(out, author, printed + errors)
    finally:
        for process in (run, peer):
            process.kill()
            process.communicate(timeout=PATIENCE)


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings = small_search(
        models=("builtin:digits", "builtin:digits"), domain=DOMAIN, options={}, calls=400_000, rounds=20_000,
        finalists=1, opponents=("a",),
    )  # fmt: skip

    def enough(journal: Watched, author: str) -> bool:
        placed = [
            one["digest"]
            for note in journal.contents("note")
            for one in note["note"].get("placed", ())
            if one.get("node") == author
        ]
        return len(set(placed)) >= len(TEXTS)

    return run_with_the_peer(tmp_path_factory.mktemp("search"), "evolve", "champion", settings, enough)


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Run:
    settings = small_training(
        nodes=1, models=("table:small",), local=2, external=2, steps=1_000_000,
        evaluate_every=0, checkpoint_every=0,
    )  # fmt: skip

    def enough(journal: Watched, author: str) -> bool:
        used = sum(author in note["note"].get("used_authors", ()) for note in journal.contents("note"))
        outcomes = {outcome(one) for one in journal.contents("verdict") if one["author"] == author}
        return used >= 3 and outcomes >= set(OUTCOMES)

    return run_with_the_peer(tmp_path_factory.mktemp("training"), "train", "rollouts", settings, enough)


def turn_with(run: Run, wanted: str) -> str:
    """Node and turn of a verdict with this outcome about an item of the peer."""
    found = [
        f"{journal.parent.name}:{one['turn']}"
        for journal in sorted(run.folder.glob("nodes/*/journal.jsonl"))
        for one in Watched(journal, "verdict").contents("verdict")
        if one["author"] == run.author and outcome(one) == wanted
    ]
    assert found
    return found[0]


def cell_of(run: Run) -> str:
    """A cell of the common archive that a program of the peer holds."""
    from shoal.evolve.history import read_run

    cells = [cell for cell, elite in read_run(run.folder).common.items() if MARK in elite.source]
    assert cells
    return ",".join(map(str, cells[0]))


def digest_of(run: Run) -> str:
    from shoal.evolve.history import read_run

    return str(next(elite.digest for _, elite in read_run(run.folder).common.items() if MARK in elite.source))


def on_a_terminal(*words: object) -> str:
    """What a command writes to a terminal."""
    leader, follower = pty.openpty()
    command = subprocess.Popen(
        [sys.executable, "-m", "shoal.cli", *map(str, words)],
        cwd=ROOT, stdout=follower, stderr=subprocess.DEVNULL, env={**os.environ, "COLUMNS": "120"},
    )  # fmt: skip
    os.close(follower)
    written = b""
    try:
        while piece := os.read(leader, 1 << 16):
            written += piece
    except OSError:  # the end of a terminal whose other side is closed
        pass
    finally:
        os.close(leader)
    assert command.wait(PATIENCE) == 0
    text = written.decode().replace("\r\n", "\n")
    return re.sub(r"\x1b\[[0-9;]*m", "", text)  # colours are our own: nothing else may be left


def assert_inert(text: str, *, longest: int = LONGEST_LINE) -> None:
    assert not UNSEEN.search(text), ascii(UNSEEN.search(text))
    assert not STACKED.search(text)
    assert max(map(len, text.splitlines()), default=0) <= longest


# The terminal


def views_of_search(run: Run) -> list[tuple[object, ...]]:
    return [
        ("show", run.folder, "--cell", cell_of(run)),
        ("show", run.folder, "--lineage", digest_of(run)[:12]),
        ("show", run.folder),
        ("peers", run.folder),
        ("runs", run.folder.parent),
    ]


def views_of_training(run: Run) -> list[tuple[object, ...]]:
    return [
        *(("show", run.folder, "--rollout", turn_with(run, outcome)) for outcome in OUTCOMES),
        ("show", run.folder),
        ("peers", run.folder),
        ("runs", run.folder.parent),
    ]


def in_a_pipe(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    capsys.readouterr()
    assert main([str(word) for word in words]) == 0
    return capsys.readouterr().out


def test_a_search_in_a_pipe(search: Run, capsys: pytest.CaptureFixture[str]) -> None:
    told = [in_a_pipe(capsys, *words) for words in views_of_search(search)]
    for text in told:
        assert_inert(text)
    assert MARK in told[0]
    assert MARK in told[1]
    assert in_a_pipe(capsys, "show", search.folder, "--best") in programs(search), "a file gets it unchanged"


def programs(run: Run) -> set[str]:
    from shoal.evolve.history import read_run

    return {elite.source for _, elite in read_run(run.folder).common.items()}


def test_a_search_on_a_terminal(search: Run) -> None:
    for words in views_of_search(search)[:IN_COLOUR]:
        assert_inert(on_a_terminal(*words))
    best = on_a_terminal("show", search.folder, "--best")
    assert MARK in best
    assert_inert(best, longest=70_000)  # whole, as its lines are asked for


def test_a_training_run_in_a_pipe_and_on_a_terminal(
    training: Run, capsys: pytest.CaptureFixture[str]
) -> None:
    views = views_of_training(training)
    for words in views:
        assert_inert(in_a_pipe(capsys, *words))
    for words in views[:IN_COLOUR]:
        assert_inert(on_a_terminal(*words))
    shown = dict(zip(OUTCOMES, (in_a_pipe(capsys, *words) for words in views), strict=False))
    assert all(name in text for name, text in shown.items() if name != "accepted")
    assert shown["accepted"].count(MARK) > len(TEXTS)


@pytest.mark.parametrize("name", ["search", "training"])
def test_what_a_run_prints_while_it_goes_on(name: str, request: pytest.FixtureRequest) -> None:
    run: Run = request.getfixturevalue(name)
    assert "received" in run.said
    assert_inert(run.said)


@pytest.mark.parametrize("name", ["search", "training"])
def test_json_is_ascii(name: str, request: pytest.FixtureRequest, capsys: pytest.CaptureFixture[str]) -> None:
    run: Run = request.getfixturevalue(name)
    for words in views_of_search(run) if name == "search" else views_of_training(run):
        text = in_a_pipe(capsys, *words, "--json")
        json.loads(text)
        assert text.isascii()
        assert_inert(text, longest=1 << 20)


# Files


@pytest.mark.parametrize("name", ["search", "training"])
def test_exported_tables(
    name: str, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run: Run = request.getfixturevalue(name)
    for format in ("csv", "jsonl", "parquet"):
        if format == "parquet":
            pytest.importorskip("pyarrow")
        out = tmp_path / format
        assert_inert(in_a_pipe(capsys, "export", run.folder, "-o", out, "--format", format))
        for path in out.rglob("*"):
            assert re.fullmatch(r"[a-z0-9.-]+", path.name), path
    tables = list((tmp_path / "csv").glob("*.csv"))
    assert tables
    for path in tables:
        with path.open(encoding="utf-8", newline="") as file:
            rows = list(csv.reader(file))
        assert len({len(row) for row in rows}) <= 1, "no text adds a column"
        numbers = re.compile(r"-?[0-9.e+-]+")
        for cell in (cell for row in rows for cell in row):
            assert not cell.lstrip().startswith(FORMULA_SIGNS) or numbers.fullmatch(cell), cell[:80]
    if name == "search":
        exported = {path.read_text(encoding="utf-8") for path in (tmp_path / "csv" / "programs").iterdir()}
        assert any(MARK in source for source in exported)


# Pages


def test_reports_hold_no_markup_but_their_own(search: Run, training: Run, tmp_path: Path) -> None:
    for run in (search, training):
        assert main(["report", str(run.folder), "-o", str(tmp_path / "report.html")]) == 0
        text = (tmp_path / "report.html").read_text(encoding="utf-8")
        assert not UNSEEN.search(text)
        assert "<script" not in text
        assert "<img" not in text
    assert main(["report", str(search.folder), "-o", str(tmp_path / "report.html")]) == 0
    assert f"&lt;script&gt;{MARK}" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    from tests.dashboard import test_browser

    if test_browser.MISSING and os.environ.get("CI") != "true":
        pytest.skip(test_browser.MISSING)
    yield from test_browser.browser.__wrapped__()


def assert_inert_page(page: Any, width: int) -> None:
    """Nothing of a stranger's became an element, everything of it can be seen, and the page keeps its width."""
    assert page.evaluate("window.owned") is None
    strange = "script:not([type='module']):not([type='application/json']), img, iframe, object, embed, base"
    assert page.locator(strange).count() == 0
    assert page.locator("a:not([href^='#'])").count() == 0
    assert page.locator("[onerror], [onload], [onmouseover]").count() == 0
    text = page.inner_text("body")
    assert not UNSEEN.search(text.replace("\r", "")), ascii(UNSEEN.search(text))
    assert not STACKED.search(text)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


SIZE = {"width": 1200, "height": 900}


def walk(page: Any, address: str, run: Run, kind: str) -> None:
    """All tabs of the interactive page, everything opened that a person can open."""
    from tests.dashboard.test_browser import wait_for_text

    for tab in ("swarm", "archive" if kind == "search" else "train", "budget"):
        page.goto(f"{address}#/0/{tab}")
        page.locator("main h1").first.wait_for()
        assert_inert_page(page, SIZE["width"])
    if kind == "search":
        page.goto(f"{address}#/0/archive")
        page.locator(f'[data-cell="{cell_of(run)}"]').click()
        wait_for_text(page, "pre.source", MARK)
        assert_inert_page(page, SIZE["width"])
        page.hover("pre.source")
    else:
        page.goto(f"{address}#/0/train")
        wait_for_text(page, "#rollouts", "says it is")
        for summary in page.locator("#rollouts summary").all():
            summary.click()
            summary.hover()
        assert MARK in page.inner_text("#rollouts")
        assert_inert_page(page, SIZE["width"])
        assert page.locator("#rollouts bdi").count() > 0


@pytest.mark.parametrize("name", ["search", "training"])
def test_the_dashboard(name: str, browser: Any, request: pytest.FixtureRequest) -> None:
    from tests.dashboard.serving import served
    from tests.dashboard.test_browser import opened

    run: Run = request.getfixturevalue(name)
    with served(run.folder) as one, opened(browser, one.address, viewport=SIZE) as page:
        walk(page, one.address, run, name)


@pytest.mark.parametrize("name", ["search", "training"])
def test_the_pages_in_one_file(
    name: str, browser: Any, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    from tests.dashboard.test_browser import opened

    run: Run = request.getfixturevalue(name)
    assert main(["report", str(run.folder), "-o", str(tmp_path / "report.html")]) == 0
    assert main(["report", str(run.folder), "--interactive", "-o", str(tmp_path / "page.html")]) == 0
    with opened(browser, f"file://{tmp_path}/report.html", viewport=SIZE) as page:
        for summary in page.locator("summary").all():
            summary.click()
        assert_inert_page(page, SIZE["width"])
        assert (MARK in page.inner_text("body")) == (name == "search")
    with opened(browser, f"file://{tmp_path}/page.html", viewport=SIZE) as page:
        walk(page, f"file://{tmp_path}/page.html", run, name)


def test_the_model_that_it_claims_is_within_the_bounds() -> None:
    assert len(MODEL) <= 256
