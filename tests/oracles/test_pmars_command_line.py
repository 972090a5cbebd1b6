"""What `shoal battle -k` and `shoal assemble` print, byte by byte against pMARS."""

from __future__ import annotations

import random
import subprocess
from pathlib import Path

import pytest

from shoal.cli import main
from shoal.corewar.warriors import starter_names, starter_source
from tests.oracles.pmars import PMARS, needs_pmars

pytestmark = needs_pmars

FREE = {  # programs without ;assert, for cores of any size
    "imp": "mov 0, 1\n",
    "dwarf": "add #4, 3\nmov 2, @2\njmp -2\ndat #0, #0\n",
    "wait": "jmp 0\n",
    "dead": "dat 0, 0\n",
    "split": "spl 0\nmov -1, <-3\n",
}


def pmars(*arguments: str) -> tuple[int, str]:
    done = subprocess.run([str(PMARS), *arguments], capture_output=True, text=True, timeout=60)
    return done.returncode, done.stdout


@pytest.fixture
def starters(tmp_path: Path) -> dict[str, str]:
    for name in starter_names():
        (tmp_path / f"{name}.red").write_text(starter_source(name))
    return {name: str(tmp_path / f"{name}.red") for name in starter_names()}


@pytest.fixture
def free(tmp_path: Path) -> dict[str, str]:
    for name, source in FREE.items():
        (tmp_path / f"{name}.red").write_text(f";name {name}\n{source}")
    return {name: str(tmp_path / f"{name}.red") for name in FREE}


def agree(capsys: pytest.CaptureFixture[str], *arguments: str) -> None:
    code = main(["battle", "-b", "-k", *arguments])
    assert (code, capsys.readouterr().out) == pmars("-b", "-k", *arguments), arguments


@pytest.mark.parametrize("count", [1, 2, 3, 5, 14])
@pytest.mark.parametrize(
    "options", [("-f",), ("-F", "4000"), ("-f", "-p", "64", "-c", "3000"), ("-F", "333", "-d", "300", "-o")]
)
def test_starter_warriors(
    count: int, options: tuple[str, ...], starters: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    rng = random.Random(count)
    for rounds in ("0", "1", "12"):
        files = rng.sample(list(starters.values()), count)
        agree(capsys, *options, "-r", rounds, *files)


@pytest.mark.parametrize(
    "options",
    [
        ("-f",),
        ("-f", "-l", "50"),
        ("-f", "-l", "200"),
        ("-f", "-d", "1000"),
        ("-F", "25", "-s", "80", "-l", "5", "-c", "800"),
        ("-f", "-s", "800", "-l", "20", "-S", "7", "-p", "8"),
        ("-f", "-s", "8191", "-c", "500", "-p", "1"),
        ("-f", "-8"),
    ],
)
def test_every_pair_under_options(
    options: tuple[str, ...], free: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    for first in free.values():
        agree(capsys, *options, "-r", "7", first)
        for second in free.values():
            agree(capsys, *options, first, "-r", "7", second)


def test_all_places(free: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for first in free.values():
        for second in free.values():
            agree(capsys, "-P", "-s", "80", "-l", "5", "-c", "800", first, second)


def test_refusals_have_the_same_exit_code(free: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    imp = free["imp"]
    for arguments in (
        ("-l", "200", "-d", "100", imp),
        ("-F", "50", imp, imp),
        ("-F", "200", "-f", imp, imp),
        ("-d", "4000", imp, imp, imp),
        ("-P", imp),
        ("-S", "9000", imp),
        ("-r", "-5", imp),
        ("-s", "80", imp),
        (str(Path(imp).with_name("bad.red")), imp),
    ):
        Path(imp).with_name("bad.red").write_text("mov nothing, 1\n")
        agree(capsys, *arguments)


@pytest.mark.parametrize("options", [(), ("-l", "60"), ("-c", "5", "-p", "3", "-S", "9")])
def test_listings(
    options: tuple[str, ...], starters: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    several = [starters[name] for name in ("imp", "dwarf", "paper")]
    for files in [*([file] for file in starters.values()), several]:
        code = main(["assemble", *options, *files])
        assert (code, capsys.readouterr().out) == pmars("-r", "0", *options, *files), files


def test_listings_under_88_rules(free: dict[str, str], capsys: pytest.CaptureFixture[str]) -> None:
    for file in free.values():
        code = main(["assemble", "-8", file])
        assert (code, capsys.readouterr().out) == pmars("-r", "0", "-8", file)


def test_constants_of_the_rules(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    names = "CORESIZE MAXCYCLES MAXPROCESSES MAXLENGTH MINDISTANCE PSPACESIZE WARRIORS ROUNDS".split()
    source = tmp_path / "constants.red"
    source.write_text("".join(f"dat {name}/2, {name}-1\n" for name in names))
    for options in (
        (),
        ("-l", "50"),
        ("-d", "300"),
        ("-l", "20", "-d", "30"),
        ("-s", "800"),
        ("-s", "801"),  # P-space is not a sixteenth of a core that cannot be divided by 16
        ("-s", "8191"),
        ("-S", "33"),
    ):
        code = main(["assemble", *options, str(source)])
        assert (code, capsys.readouterr().out) == pmars("-r", "0", *options, str(source)), options
