"""The engine under AddressSanitizer and UBSan, with random load files."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

import shoal.corewar.mars

SOURCES = Path(shoal.corewar.mars.__file__).parent
FUZZER = Path(__file__).with_name("fuzz_engine.c")


def play_watched(folder: Path, handlers: int, rounds: int) -> str:
    """Compiles engine and fuzzer together, with so many specialised handlers, and runs them."""
    compiler = shutil.which("gcc") or shutil.which("clang")
    if compiler is None:
        if os.environ.get("CI") == "true":
            pytest.fail("no gcc or clang to build the watched engine with")
        pytest.skip("no gcc or clang to build the watched engine with")
    for source in (*SOURCES.glob("*.[ch]"), FUZZER):
        shutil.copy(source, folder)
    hot = (SOURCES / "hot_codes.h").read_text().splitlines()
    chosen = [line for line in hot if line.startswith("HOT(")][:handlers]
    assert chosen
    (folder / "hot_codes.h").write_text("\n".join(chosen) + "\n")
    build = [compiler, "-O1", "-w", "-std=gnu11", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
    done = subprocess.run(
        [*build, "-o", "fuzz", "fuzz_engine.c"], cwd=folder, capture_output=True, text=True, timeout=240
    )
    if "sanitize" in done.stderr and done.returncode and os.environ.get("CI") != "true":
        pytest.skip(f"the compiler has no sanitizers: {done.stderr.splitlines()[0]}")
    assert done.returncode == 0, done.stderr
    done = subprocess.run(
        ["./fuzz", "1", str(rounds)], cwd=folder, capture_output=True, text=True, timeout=900
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_100_000_random_load_files_stay_inside_of_their_memory(tmp_path: Path) -> None:
    files = int(play_watched(tmp_path, handlers=48, rounds=30_000).split()[0])
    assert files >= 100_000


@pytest.mark.soak
def test_every_handler_stays_inside_of_its_memory(tmp_path: Path) -> None:
    files = int(play_watched(tmp_path, handlers=250, rounds=1_000_000).split()[0])
    assert files >= 1_000_000
