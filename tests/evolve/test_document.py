"""docs/evolve.md is true: its code runs, and it names every setting with its default."""

from __future__ import annotations

import re
import runpy
import tempfile
from pathlib import Path

import pytest

from shoal.evolve.domains.corewar import CoreWarOptions
from shoal.evolve.settings import EvolveSettings

PAGE = (Path(__file__).parents[2] / "docs" / "evolve.md").read_text()


def test_the_code_on_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    (block,) = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "page.py").write_text(block)
    runpy.run_path(str(tmp_path / "page.py"))


def test_every_setting_is_in_the_table_with_its_default() -> None:
    rows = [line.split("|")[1:3] for line in PAGE.splitlines() if line.startswith("| `")]
    defaults: dict[str, str] = {}
    for names, values in rows:
        found = re.findall(r"`\[?(\w+)\]?`", names)
        shown = [value.strip(" `").removesuffix(" s") for value in values.split(", ")]
        defaults |= dict(zip(found, shown if len(shown) == len(found) else shown * len(found), strict=True))
    internal = {"application", "checkpoint_every", "prices"}
    assert defaults.keys() == set(EvolveSettings.__struct_fields__) - internal
    settings = EvolveSettings()
    for name, shown in defaults.items():
        value = getattr(settings, name)
        if isinstance(value, bool | int | float) or value is None:
            written = (
                "–" if value is None else str(value).lower() if isinstance(value, bool) else f"{value:g}"
            )
            assert {shown, shown.removesuffix(".0")} & {written}, (
                f"{name}: the page says {shown}, it is {written}"
            )
    assert all(f"`{name}`" in PAGE for name in CoreWarOptions.__struct_fields__)
