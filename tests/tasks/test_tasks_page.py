"""docs/tasks.md is true: its code runs, and it names what there is."""

from __future__ import annotations

import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

from shoal.tasks.corewar import BeatWarrior
from shoal.tasks.gym import SPECIALTIES
from shoal.tasks.registry import open_task
from shoal.tasks.sums import BUILTIN

PAGE = (Path(__file__).parents[2] / "docs" / "tasks.md").read_text()


def test_the_code_on_the_page_runs(tmp_path: Path) -> None:
    files, family, use = re.findall(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
    (tmp_path / "files.py").write_text(files)
    (tmp_path / "vowels.py").write_text(family)
    (tmp_path / "use.py").write_text(use)
    runpy.run_path(str(tmp_path / "vowels.py"))
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    subprocess.run([sys.executable, "files.py"], cwd=tmp_path, env=environment, check=True, timeout=120)
    run = subprocess.run(
        [sys.executable, "use.py"], cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    assert "(1.0, 0.0)" in run.stdout


def test_families_and_settings_are_named() -> None:
    for name in BUILTIN:
        (row,) = [line for line in PAGE.splitlines() if line.startswith(f"| `{name}`")]
        for setting, value in open_task(name).parameters.items():
            assert f"`{setting}` (" in row
            assert setting == "alphabet" or str(value) in row
    assert all(f"`{name}`" in PAGE for name in SPECIALTIES)
    for setting, value in BeatWarrior().parameters.items():
        assert f"`{setting}`" in PAGE
        assert setting in ("opponents", "parent") or re.search(rf"`{setting}` \(`?{value}`?\)", PAGE), setting
