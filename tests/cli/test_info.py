from __future__ import annotations

import json
from pathlib import Path

import shoal as package
from tests.cli.conftest import Shoal


def test_info_in_words_and_as_json(shoal: Shoal) -> None:
    found = json.loads(shoal("info", "--json").out)
    assert found["version"] == package.__version__
    assert Path(found["library"]).exists()
    assert found["speed"] > 1
    lines = shoal("info").out.splitlines()
    assert [line.split()[0] for line in lines] == list(found)


def test_version(shoal: Shoal) -> None:
    assert shoal("--version") == (0, f"shoal {package.__version__}\n", "")
