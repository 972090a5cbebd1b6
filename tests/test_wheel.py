"""A wheel of this tree, in an environment of its own: installed and run without a compiler."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import shoal

ROOT = Path(__file__).parents[1]
TREE = ("pyproject.toml", "setup.py", "README.md", "LICENSE", "src")
MADE = ("*.so", "*.dylib", "*.egg-info", "__pycache__")
"""Left by an earlier build: a wheel must not depend on them."""


def run(*words: object, **environment: str) -> str:
    done = subprocess.run(
        [str(word) for word in words], env=environment, capture_output=True, text=True, timeout=240
    )
    assert done.returncode == 0, f"{words}:\n{done.stdout[-2000:]}\n{done.stderr[-4000:]}"
    return done.stdout


def build(folder: Path) -> Path:
    """A wheel of a copy of the tree, so that neither depends on what lies in the other. The build takes the
    setuptools of the tests: the versions are those of constraints.txt either way."""
    copy = folder / "tree"
    copy.mkdir()
    for name in TREE:
        if (ROOT / name).is_dir():
            shutil.copytree(ROOT / name, copy / name, ignore=shutil.ignore_patterns(*MADE))
        else:
            shutil.copy(ROOT / name, copy)
    pip = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation")
    run(*pip, "--wheel-dir", folder / "wheels", copy, **os.environ)
    (wheel,) = (folder / "wheels").iterdir()
    return wheel


def without_compiler(folder: Path, environment: Path) -> dict[str, str]:
    """The variables of a newcomer: nothing of this tree, no compiler, an empty home."""
    keep = ("LANG", "TMPDIR", "SSL_CERT_FILE", "http_proxy", "https_proxy", "no_proxy")
    return {
        **{name: value for name, value in os.environ.items() if name in keep or name.startswith("PIP_")},
        "PATH": str(environment / "bin"),
        "CC": "/bin/false",
        "HOME": str(folder / "home"),
        "OMP_NUM_THREADS": "1",
    }


def state_of(folder: Path, environment: Path, variables: dict[str, str]) -> str:
    """How the one run in a folder ended."""
    (found,) = json.loads(run(environment / "bin" / "shoal", "runs", folder, "--json", **variables))
    return str(found["state"])


def test_a_wheel_installs_and_runs_the_demo_without_a_compiler(tmp_path: Path) -> None:
    wheel = build(tmp_path)
    assert wheel.name.startswith(f"shoal_swarm-{shoal.__version__}-py3-none-"), "one wheel for every Python"
    source = ROOT / "src"
    ours = {
        path.relative_to(source).as_posix()
        for path in (source / "shoal").rglob("*")
        if path.is_file() and path.suffix not in (".pyc", ".so", ".dylib")
    }
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if name.startswith("shoal/")}
    assert packed - ours == {"shoal/corewar/mars/_engine.so"}
    assert not ours - packed, "files that only a clone would have"

    home = tmp_path / "clean"
    run(sys.executable, "-m", "venv", "--without-pip", home, **os.environ)
    clean = without_compiler(tmp_path, home)
    # The pip of the tests, for the other environment: its requirements come from pip's index, as wheels.
    pip = (sys.executable, "-m", "pip", "--python", home / "bin" / "python", "install", "--quiet")
    constraints = ("--constraint", ROOT / "constraints.txt")
    run(*pip, "--no-compile", "--only-binary", ":all:", *constraints, wheel, **clean)
    place = "import shoal, shoal.corewar.mars as mars; print(shoal.__file__, mars.__file__)"
    for file in run(home / "bin" / "python", "-c", place, **clean).split():
        assert Path(file).is_relative_to(home), "the wheel, and not this tree"

    # Without torch the demo searches. All processes of the run have to find everything in the wheel.
    said = run(home / "bin" / "shoal", "demo", "--out", tmp_path / "demo", **clean)
    assert "Search: " in said
    assert "Training was left out: it needs torch" in said
    assert (tmp_path / "demo" / "report.html").is_file()
    assert state_of(tmp_path / "demo", home, clean) == "finished"

    # torch is not installed once more, as it is large: the packages of the tests are looked up after those of
    # the clean environment. The line adds a folder and runs none of its .pth files, so no other shoal is found.
    libraries = next(home.glob("lib/python*/site-packages"))
    (libraries / "tests.pth").write_text(sysconfig.get_path("purelib") + "\n")
    assert Path(run(home / "bin" / "python", "-c", place, **clean).split()[0]).is_relative_to(home)
    trained = tmp_path / "trained" / "run"
    small = ("--nodes", "1", "--models", "tiny:llama", "--steps", "2")
    run(home / "bin" / "shoal", "train", *small, "--quiet", "--out", trained, **clean)
    assert state_of(trained.parent, home, clean) == "finished"
