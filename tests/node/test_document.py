"""docs/write-an-application.md runs as it stands, and builds the application that ships."""

import dataclasses
import re
import runpy
import tempfile
from pathlib import Path

import pytest
from examples import hypotenuses as example

from shoal.node import Inline, Node
from shoal.runs import MemoryJournal

PAGE = Path(__file__).parents[2] / "docs" / "write-an-application.md"


def test_the_code_on_the_page_runs_and_is_the_example(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    blocks = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 7
    program = tmp_path / "page.py"
    program.write_text("\n".join(blocks))
    page = runpy.run_path(str(program))

    def state(application, search_legs) -> dict[str, object]:
        node = Node(application, Inline(search_legs), name="a", seed=9, journal=MemoryJournal(), now=0.0)
        while node.advance(0.0) != "finished":
            pass
        return dataclasses.asdict(node.state)

    of_page = state(page["Hypotenuses"](80), page["search_legs"])
    assert of_page == state(example.Hypotenuses(80), example.search_legs)
