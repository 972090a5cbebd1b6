"""The site builds without a warning, needs nothing from elsewhere, and leaves no page out."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from bench.row import Row
from markdown_it import MarkdownIt

from tests.docs.pages import PAGES, ROOT


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if importlib.util.find_spec("mkdocs") is None or importlib.util.find_spec("material") is None:
        assert os.environ.get("CI") != "true", "the site cannot be built: pip install 'shoal-swarm[docs]'"
        pytest.skip("the site needs mkdocs-material: pip install 'shoal-swarm[docs]'")
    folder = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    assert "WARNING" not in said, said
    return folder


class Loaded(HTMLParser):
    """Addresses that a browser fetches when it opens the page; links that a reader may follow are not."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        wanted = attributes.get("src", "")
        if tag == "link" and attributes.get("rel") not in ("canonical", "next", "prev"):
            wanted = attributes.get("href", "")
        self.addresses.append(wanted)


def test_every_page_is_built(site: Path) -> None:
    for page in PAGES[1:]:
        name = page.relative_to(ROOT / "docs").with_suffix(".html")
        built = site / (name.with_name("index.html") if page.name == "README.md" else name)
        assert built.is_file(), f"{page} is not in the site"


def test_pages_load_nothing_from_elsewhere(site: Path) -> None:
    pages = sorted(site.rglob("*.html"))
    assert pages
    for page in pages:
        loaded = Loaded()
        loaded.feed(page.read_text(encoding="utf-8"))
        outside = [address for address in loaded.addresses if re.match(r"(\w+:)?//", address)]
        assert not outside, f"{page.name} loads {outside}"
    for sheet in site.rglob("*.css"):
        assert not re.findall(r"url\(['\"]?(?:https?:)?//", sheet.read_text(encoding="utf-8")), sheet


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md", "ARCHITECTURE.md"])
def test_links_outside_of_the_site_lead_somewhere(name: str) -> None:
    for token in MarkdownIt().enable("table").parse((ROOT / name).read_text(encoding="utf-8")):
        for child in token.children or ():
            address = str(child.attrs.get("href", ""))
            if child.type == "link_open" and not re.match(r"\w+:", address):
                assert (ROOT / address.partition("#")[0]).exists(), f"{name}: {address} does not exist"


def test_benchmarks_tell_every_target_and_whether_it_is_met() -> None:
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    for entry in json.loads((ROOT / "bench" / "results.json").read_text()):
        row = Row(**{key: entry[key] for key in ("name", "value", "unit", "peer", "target")})
        if row.met is None:
            continue
        found = re.search(
            rf"^\| `{re.escape(row.name)}` \| ([^|]*) \|.*\| ([^|]*) \| ([^|]*) \|$", page, re.MULTILINE
        )
        assert found, f"docs/benchmarks.md lacks {row.name}"
        shown, target, verdict = (text.strip(" *") for text in found.groups())
        assert target == row.target, row.name
        assert verdict == ("met" if row.met else "missed"), f"{row.name} is {row.value}"
        assert float(shown) == pytest.approx(row.value, rel=0.1), f"{row.name}: write {row.value:.3g}"


def test_no_text_takes_a_comparison_for_the_papers_experiment() -> None:
    """Models and sizes are the user's: `compare` has the paper's conditions, not its experiment."""
    texts = [*PAGES, ROOT / "CHANGELOG.md", *sorted((ROOT / "src" / "shoal").rglob("*.py"))]
    promises = re.compile(
        r"experiment\s+as\s+one\s+command|(runs|is)\s+the\s+experiment\s+of\s+the\s+DEI\s+paper|the\s+DEI\s+experiment"
    )
    found = [path.name for path in texts if promises.search(path.read_text(encoding="utf-8"))]
    assert not found
