"""The page in a real browser: chromium, driven by Playwright, with nothing but this machine to talk to."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from shoal.corewar import starter_source
from tests.dashboard.samples import (
    HOSTILE,
    NodeWriter,
    long_search,
    new_run,
    training,
    two_node_search,
    visit,
)

if os.environ.get("CI") != "true":
    pytest.importorskip("starlette", reason="the extra `web` is not installed")
from tests.dashboard.serving import served

CHROMIUM = next(
    (path for name in ("chromium", "chromium-browser", "google-chrome") if (path := shutil.which(name))), None
)
try:
    from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright
except ModuleNotFoundError:
    sync_playwright = None  # type: ignore[assignment]

MISSING = (
    "playwright is not installed (pip install playwright)" if sync_playwright is None
    else "no chromium (tests/dashboard/install_chromium.sh)" if CHROMIUM is None else ""
)  # fmt: skip
pytestmark = pytest.mark.skipif(
    bool(MISSING) and os.environ.get("CI") != "true", reason=MISSING or "there is one"
)

OPTIONS = [
    "--no-sandbox", "--headless=new", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
]  # fmt: skip
PATIENCE = 30_000
REFUSED = "net::ERR_CONNECTION_REFUSED"


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    assert not MISSING, MISSING
    with sync_playwright() as playwright:
        one = playwright.chromium.launch(executable_path=CHROMIUM, args=OPTIONS)
        yield one
        one.close()


@contextmanager
def opened(browser: Browser, address: str, *, allowed: str = "\0", **options: Any) -> Iterator[Page]:
    """A page that must not complain, nor ask anyone but this machine."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    complaints: list[str] = []
    requests: list[str] = []

    def note(message: ConsoleMessage) -> None:
        if message.type in ("error", "warning") and allowed not in message.text:
            complaints.append(message.text)

    page.on("console", note)
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on("request", lambda request: requests.append(request.url))
    page.goto(address)
    yield page
    owned = page.evaluate("window.owned")
    context.close()
    assert owned is None, "foreign text was run"
    assert not complaints
    here = ("http://127.0.0.1:", "file:///", "data:", "blob:")
    assert not [url for url in requests if not url.startswith(here)]


def cell(page: Page, key: str) -> Any:
    return page.locator(f'[data-cell="{key}"]')


def wait_for_text(page: Page, selector: str, text: str) -> None:
    page.wait_for_function(
        "([selector, text]) => (document.querySelector(selector)?.textContent || '').includes(text)",
        arg=[selector, text],
    )


def test_a_live_run_from_the_first_cell_to_the_replay(browser: Browser, tmp_path: Path) -> None:
    run = new_run(tmp_path / "run")
    writer, other = NodeWriter(run, "1-bomber"), NodeWriter(run, "2-scanner")
    writer.open_round()
    other.open_round()
    with (
        served(run, training(tmp_path / "training")) as one,
        opened(browser, f"{one.address}#/0/archive") as page,
    ):
        wait_for_text(page, "#status", "live")
        assert page.locator(".cell").count() == 36
        assert page.locator(".cell:not(.unfilled)").count() == 0
        page.evaluate("window.sameDocument = true")

        parent = writer.propose((3, 2), 1.25, starter_source("dwarf"))
        cell(page, "3,2").locator("text=1.25").wait_for()
        assert page.evaluate("window.sameDocument"), "the cell filled without a reload"

        writer.propose(
            (3, 2), 1.75, starter_source("dwarf").replace("Dwarf", "Giant"), parent=parent, result="improved"
        )
        cell(page, "3,2").locator("text=1.75").wait_for()
        cell(page, "3,2").click()
        wait_for_text(page, "pre.source", "Giant")
        wait_for_text(page, "pre.difference", "+ ;name Giant")
        assert page.locator(".difference .removed").count() >= 1
        assert "spawned 100–1000, coverage 100–500" in page.inner_text(".panel h2")

        page.click("#replay")
        wait_for_text(page, "#replay-state", "Instruction 0")
        page.click("#step")
        wait_for_text(page, "#replay-state", "Instruction 1,")
        page.click("#step")
        wait_for_text(page, "#replay-state", "Instruction 2,")
        page.select_option("#speed", "1000")
        page.click("#play")
        page.wait_for_function("() => Number(document.querySelector('input[type=range]').value) > 3000")
        assert page.evaluate(
            "() => new Set(document.querySelector('canvas').getContext('2d').getImageData(0, 0, 300, 300).data).size > 8"
        )

        page.click("nav >> text=Archive")
        other.propose((1, 1), 0.25, starter_source("imp"))
        cell(page, "1,1").locator("text=0.25").wait_for()
        page.select_option("#choose-node", "2-scanner")
        assert page.locator(".cell:not(.unfilled)").count() == 1
        page.select_option("#choose-colour", "model")
        page.select_option("#choose-colour", "age")

        page.select_option("#run", "1")
        page.click("nav >> text=Training")
        page.locator("svg.chart").first.wait_for()
        assert page.locator("text=Held-out reward").count() == 1
        page.locator("summary").first.click()
        assert "<script>window.owned=1</script>" in page.inner_text("pre.question >> nth=0")
        for view in ("Budget", "Swarm"):
            page.click(f"nav >> text={view}")
            page.locator(f"h1:has-text('{view}')").wait_for()
    writer.close()
    other.close()


def test_a_lost_connection_is_told_and_made_good(browser: Browser, tmp_path: Path) -> None:
    run, _ = two_node_search(tmp_path / "run")
    writer = NodeWriter(run, "1-bomber")
    writer.turn = 4
    with served(run) as one:
        port = one.port
        page_manager = opened(browser, f"{one.address}#/0/archive", allowed="net::ERR_")
        page = page_manager.__enter__()
        cell(page, "2,3").locator("text=1.50").wait_for()
    wait_for_text(page, "#status", "connection lost, reconnecting")
    writer.propose((5, 0), 2.5, "made while nobody looked")
    with served(run, port=port):
        wait_for_text(page, "#status", "live")
        cell(page, "5,0").locator("text=2.50").wait_for()
        page_manager.__exit__(None, None, None)
    writer.close()


def test_rounds_count_from_one_and_a_strangers_is_not_made_up(browser: Browser, tmp_path: Path) -> None:
    run, _ = two_node_search(tmp_path / "run")
    writer = NodeWriter(run, "2-scanner")
    writer.turn = 6
    writer.open_round(2, *visit("keyofstranger", "ab" * 32, starter_source("imp"), (4, 1), 1.1))
    writer.close()
    with served(run) as one, opened(browser, f"{one.address}#/0/archive") as page:
        cell(page, "2,3").click()
        wait_for_text(page, "ol.lineage", "round 1")
        cell(page, "4,1").click()
        wait_for_text(page, "ol.lineage", "peer")
        assert "round" not in page.inner_text("ol.lineage")
        low, high = (cell(page, key).bounding_box() for key in ("2,3", "4,1"))
        assert low is not None
        assert high is not None
        assert high["y"] < low["y"], "the first axis goes upward"
        assert high["x"] < low["x"], "the second one across"


def test_hostile_programs_are_shown_as_text(browser: Browser, tmp_path: Path) -> None:
    run, _ = two_node_search(tmp_path / "run")
    writer = NodeWriter(run, "1-bomber")
    writer.turn = 4
    writer.propose((4, 4), 1.0, f"{HOSTILE}\n" + "x" * 1_000_000)
    writer.put("missed", {"turn": 6, "attempt": 1, "reason": HOSTILE})
    writer.put("stopped", {"turn": 6, "reason": HOSTILE})
    writer.close()
    # The replay of what is no program is refused with 404, which chromium logs.
    with served(run) as one, opened(browser, f"{one.address}#/0/archive", allowed="404") as page:
        cell(page, "4,4").click()
        wait_for_text(page, "pre.source", "<script>window.owned=1</script>")
        source = page.inner_text("pre.source")
        assert "␛[31mred" in source
        assert len(source) < 70_000
        page.click("#replay")
        wait_for_text(page, "#replay-state", "No replay")
        page.click("nav >> text=Swarm")
        wait_for_text(page, ".events", "<script>window.owned=1</script>")
        assert page.locator("main script, main img").count() == 0


def test_everything_can_be_reached_with_the_keyboard(browser: Browser, tmp_path: Path) -> None:
    run, _ = two_node_search(tmp_path / "run")
    with served(run) as one, opened(browser, f"{one.address}#/0/archive") as page:
        cell(page, "2,3").locator("text=1.50").wait_for()
        cell(page, "3,3").focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        wait_for_text(page, "pre.source", "Child")
        assert cell(page, "2,3").get_attribute("aria-pressed") == "true"
        assert "fitness 1.5" in (cell(page, "2,3").get_attribute("aria-label") or "")
        for _ in range(80):  # on to the button, as with the tab key
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.id") == "replay":
                break
        page.keyboard.press("Enter")
        wait_for_text(page, "#replay-state", "Instruction 0")


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1440, "dark")])
def test_every_view_fits_its_screen(browser: Browser, tmp_path: Path, width: int, scheme: str) -> None:
    run, _ = two_node_search(tmp_path / "run")
    size = {"width": width, "height": 844}
    with (
        served(run, training(tmp_path / "training")) as one,
        opened(browser, f"{one.address}#/0/swarm", viewport=size, color_scheme=scheme) as page,
    ):
        for view, mark in (
            ("0/swarm", "table"),
            ("0/archive", ".cell"),
            ("0/replay", "canvas"),
            ("0/budget", "svg.chart"),
            ("1/train", "svg.chart"),
        ):
            page.goto(f"{one.address}#/{view}")
            page.locator(f"main {mark}").first.wait_for()
            assert page.evaluate("document.documentElement.scrollWidth") <= width, view


def test_a_single_file_opens_from_the_disk(browser: Browser, tmp_path: Path) -> None:
    from shoal.cli.dashboard import facts_of
    from shoal.dashboard.single_file import single_file

    run, _ = two_node_search(tmp_path / "run")
    (tmp_path / "page.html").write_text(single_file(run, facts_of(run)), encoding="utf-8")
    (tmp_path / "training.html").write_text(single_file(training(tmp_path / "training")), encoding="utf-8")
    with opened(browser, f"file://{tmp_path}/page.html#/0/archive") as page:
        wait_for_text(page, "#status", "from a file")
        page.locator(".cell:has-text('1.50')").click()
        wait_for_text(page, "pre.source", "Child")
        page.click("#replay")
        wait_for_text(page, "#replay-state", "Instruction 0")
        page.click("#step")
        wait_for_text(page, "#replay-state", "Instruction 1,")
        page.click("nav >> text=Budget")
        page.locator("h1:has-text('Budget')").wait_for()
    with opened(browser, f"file://{tmp_path}/training.html#/0/train") as page:
        page.locator("summary").first.click()
        assert "<script>window.owned=1</script>" in page.inner_text("pre.question >> nth=0")


def test_the_token_opens_the_page(browser: Browser, tmp_path: Path) -> None:
    run, _ = two_node_search(tmp_path / "run")
    with (
        served(run, token="correct-horse-battery") as one,
        opened(browser, f"{one.address}?token=correct-horse-battery") as page,
    ):
        wait_for_text(page, "#status", "live")
        assert "token" not in page.url
        page.reload()
        wait_for_text(page, "#status", "live")


def test_a_real_search_is_watched_while_it_goes_on(browser: Browser, tmp_path: Path) -> None:
    run = tmp_path / "run"
    command = [
        sys.executable, "-m", "shoal.cli", "evolve", "--models", "builtin:bomber,builtin:scanner", "--calls", "60", "--rounds", "2",
        "--in-process", "--out", str(run), "--set", "repeats=4", "--set", "options.cycles=8000",
    ]  # fmt: skip
    search = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        until = time.monotonic() + 60
        while not (run / "nodes").is_dir():
            assert time.monotonic() < until, search.stderr.read() if search.poll() else "no run folder"  # type: ignore[union-attr]
            time.sleep(0.05)
        with served(run) as one, opened(browser, f"{one.address}#/0/swarm") as page:
            page.wait_for_function(
                "() => [...document.querySelectorAll('main td')].filter((one) => one.textContent === 'finished').length === 2",
                timeout=60_000,
            )
            page.click("nav >> text=Archive")
            page.locator(".cell:not(.unfilled)").first.click()
            page.locator("pre.source").wait_for()
    finally:
        search.kill()
        search.wait(30)


def load(browser: Browser, run: Path) -> tuple[float, float, float]:
    """Seconds to the first view and to all of it, and the longest time that the page did not answer."""
    with served(run) as one, opened(browser, "about:blank") as page:
        began = time.monotonic()
        page.goto(f"{one.address}#/0/archive")
        page.locator(".cell:not(.unfilled)").first.wait_for()
        first = time.monotonic() - began
        longest = 0.0
        while "live" not in page.inner_text("#status"):
            before = time.monotonic()
            page.evaluate("() => new Promise((done) => requestAnimationFrame(() => done(1)))")
            longest = max(longest, time.monotonic() - before)
            time.sleep(0.1)
        return first, time.monotonic() - began, longest


def test_a_long_run_is_shown_soon(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, whole, longest = load(browser, long_search(tmp_path / "run", 2, 5000))
    with capsys.disabled():
        print(
            f"\n2 x 5,000 records: first view {first:.2f} s, all {whole:.2f} s, longest frame {longest:.2f} s"
        )


@pytest.mark.soak
def test_ten_nodes_with_a_hundred_thousand_records_each(
    browser: Browser, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, whole, longest = load(browser, long_search(tmp_path / "run", 10, 100_000))
    with capsys.disabled():
        print(
            f"\n10 x 100,000 records: first view {first:.2f} s, all {whole:.2f} s, longest frame {longest:.2f} s"
        )
