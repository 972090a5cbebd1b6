"""The files of the page, and the same page as one HTML file that opens from a disk without a network.

The single file holds styles, scripts and data, all within bounds. A content policy by hashes lets exactly
these scripts and styles run, and no request leave.
"""

from __future__ import annotations

import base64
import hashlib
import re
import zlib
from collections.abc import Sequence
from functools import cache
from importlib import resources
from pathlib import Path
from typing import Any

import msgspec

from shoal.dashboard.bounds import shown_line
from shoal.dashboard.messages import Cursor
from shoal.dashboard.replay import NoReplay, play, sources_of
from shoal.dashboard.run_view import RunView
from shoal.dashboard.view import CellView
from shoal.dashboard.watcher import Watcher
from shoal.runs.search import DomainFacts

TYPES = {
    ".html": "text/html; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}

MOST_PROGRAM_CHARACTERS = 3 << 20
MOST_ANCESTORS = 6
MOST_REPLAYS = 12
MOST_REPLAY_CHARACTERS = 3 << 19
CYCLES = 4000
OPPONENT = "starter:dwarf"

# The form that imports and exports in page/*.js have; a test holds them to it.
_IMPORT = re.compile(r'^import \{([^}]*)\} from "\./([a-z_]+\.js)";\n', re.MULTILINE)
_EXPORT = re.compile(r"^export (?=(?:async )?function|const|class|let)", re.MULTILINE)
_LINKS = re.compile(r'^ *<(?:link|script) [^>]*(?:href|src)="static/[^>]*>(?:</script>)?\n', re.MULTILINE)


@cache
def assets() -> dict[str, tuple[bytes, str]]:
    """Name → content and type. Nothing else can be asked for."""
    found = {}
    for file in (resources.files("shoal.dashboard") / "page").iterdir():
        suffix = "." + file.name.rpartition(".")[2]
        if suffix in TYPES:
            found[file.name] = (file.read_bytes(), TYPES[suffix])
    return found


def single_file(folder: Path, facts: DomainFacts | None = None) -> str:
    """The page about the run in `folder`, finished or not; `facts` are of its domain."""
    run = RunView(folder, facts=facts)
    watcher = Watcher([run])
    watcher.read_all()
    cells = _cells(run)
    data = {
        "message": watcher.message(Cursor()),
        "programs": _programs(run, cells),
        "replays": _replays(run, cells),
    }
    return page(data, run.title)


def page(data: dict[str, Any], title: str) -> str:
    script = bundled("app.js")
    style = assets()["style.css"][0].decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{_hash(script)}'; style-src 'sha256-{_hash(style)}'; "
        "base-uri 'none'; form-action 'none'"
    )
    # As `<` is written \u003c, the data can neither end their element nor begin a comment.
    encoded = msgspec.json.encode(data).decode()
    for character in "<>&\u2028\u2029":
        encoded = encoded.replace(character, f"\\u{ord(character):04x}")
    html = _LINKS.sub("", assets()["index.html"][0].decode())
    safe_title = shown_line(title, 100).replace("&", "&amp;").replace("<", "&lt;")
    html = html.replace("<title>Shoal</title>", f"<title>Shoal: {safe_title}</title>")
    head = f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n<style>{style}</style>\n</head>'
    tail = (
        f'<script type="application/json" id="data">{encoded}</script>\n'
        f'<script type="module">{script}</script>\n</body>'
    )
    return html.replace("</head>", head, 1).replace("</body>", tail, 1)


def bundled(entry: str) -> str:
    """The module and all that it imports as one script: browsers load no modules from a disk."""
    parts: list[str] = []
    done: set[str] = set()

    def add(name: str) -> None:
        if name in done:
            return
        done.add(name)
        source = assets()[name][0].decode()
        for match in _IMPORT.finditer(source):
            add(match[2])
        parts.append(f"// {name}\n{_EXPORT.sub('', _IMPORT.sub('', source))}")

    add(entry)
    script = "\n".join(parts)
    assert "</script" not in script.lower()
    assert "<!--" not in script
    return script


def _hash(text: str) -> str:
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _cells(run: RunView) -> list[CellView]:
    """All cells of all nodes: the best program of each cell first, in order of fitness, then the others."""
    everything = [
        cell
        for node in run.nodes.values()
        for grid in node.view.grids.values()
        for cell in grid.cells.values()
    ]
    everything.sort(key=lambda one: -one.fitness)
    best: dict[tuple[int, ...], CellView] = {}
    for cell in everything:
        best.setdefault(cell.cell, cell)
    return [*best.values(), *(cell for cell in everything if best[cell.cell] is not cell)]


def _programs(run: RunView, cells: Sequence[CellView]) -> dict[str, list[dict[str, Any]]]:
    """Digest → lineage."""
    found: dict[str, list[dict[str, Any]]] = {}
    room = MOST_PROGRAM_CHARACTERS
    for cell in cells:
        if cell.digest not in found:
            ancestors = run.lineage(cell.digest)[:MOST_ANCESTORS]
            room -= sum(len(one["source"]) for one in ancestors)
            if room < 0:
                break
            if ancestors:
                found[cell.digest] = ancestors
    return found


def _replays(run: RunView, cells: Sequence[CellView]) -> list[dict[str, str]]:
    """A round of each of the first few against a starter, deflated; none where the page has no replays."""
    found: list[dict[str, str]] = []
    room = MOST_REPLAY_CHARACTERS
    for digest in list(dict.fromkeys(cell.digest for cell in cells))[:MOST_REPLAYS]:
        try:
            recording = play(run, sources_of(run, digest, OPPONENT), 0, CYCLES)
        except NoReplay:
            continue
        text = base64.b64encode(zlib.compress(recording, 9)).decode()
        if len(text) <= room:
            room -= len(text)
            found.append({"program": digest, "opponent": OPPONENT, "seed": "0", "data": text})
    return found
