from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.corewar import starter_names
from tests.cli.conftest import Shoal

FEW = ("@imp", "@dwarf", "@mice")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one.red").write_text(";name One\nmov 0, 1\n")
    (tmp_path / "two.red").write_text(";name Two\njmp 0\n")
    (tmp_path / "bad.red").write_text("mov nothing, 1\n")
    (tmp_path / "binary.red").write_bytes(b"\0\1")
    (tmp_path / "notes.txt").write_text("not a warrior")
    return tmp_path


def test_the_starter_set_meets_itself_by_default(shoal: Shoal) -> None:
    found = json.loads(shoal("tournament", "-r", 1, "--json").out)
    count = len(starter_names())
    assert len(found["rows"]) == count
    assert len(found["pairings"]) == count * (count - 1) // 2


def test_the_same_seed_gives_the_same_table(shoal: Shoal) -> None:
    first = shoal("tournament", *FEW, "-r", 10, "--seed", 4)
    assert shoal("tournament", *FEW, "-r", 10, "--seed", 4, "--threads", 1) == first
    assert first.out.splitlines()[0].split() == [
        "rank",
        "warrior",
        "author",
        "W",
        "L",
        "T",
        "points",
        "score",
    ]


def test_what_does_not_assemble_is_reported_and_left_out(shoal: Shoal, folder: Path) -> None:
    done = shoal("tournament", folder, "-r", 2, "--json")
    assert done.code == 0
    assert {row["name"] for row in json.loads(done.out)["rows"]} == {"One", "Two"}
    lines = done.err.splitlines()
    assert len(lines) == 3
    assert "bad.red: left out: line 1" in lines[0]
    assert "binary.red is a binary file" in lines[1]
    assert lines[2] == "2 of 4 programs are left out"


def test_exit_code_3_if_none_is_left(shoal: Shoal, folder: Path) -> None:
    assert shoal("tournament", folder / "bad.red").code == 3


def test_a_challenger_meets_all_but_itself(shoal: Shoal, folder: Path) -> None:
    done = shoal("tournament", folder / "one.red", folder / "two.red", "--challenger", folder / "one.red")
    lines = done.out.splitlines()
    assert [line.split()[0] for line in lines[:3]] == ["opponent", "Two", "all"]


def test_a_benchmark_ranks_the_challengers(shoal: Shoal, folder: Path) -> None:
    done = shoal("tournament", *FEW, "--against", folder, "-r", 5, "--json")
    found = json.loads(done.out)
    assert len(found["rows"]) == 3
    assert len(found["pairings"]) == 6


def test_the_matrix_has_a_row_and_a_column_for_each(shoal: Shoal) -> None:
    lines = shoal("tournament", *FEW, "-r", 5, "--matrix").out.splitlines()
    start = next(number for number, line in enumerate(lines) if line.startswith("scores against"))
    assert lines[start].split()[2:] == ["1", "2", "3"]
    assert [lines[start + row].split()[-4 + row] for row in (1, 2, 3)] == ["-", "-", "-"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("@imp",), "two or more"),
        (("nowhere.red",), "no such file"),
        (("@imp", "--against", "nowhere"), "no such file"),
        (("@imp", "@dwarf", "--challenger", "@imp", "--against", "."), "exclude each other"),
        (("@imp", "@dwarf", "--hill", "everest"), "no hill is called"),
        (("@imp", "--challenger", "@imp"), "at least one of each"),
    ],
)
def test_what_cannot_be_used_is_exit_code_2(arguments: tuple[str, ...], said: str, shoal: Shoal) -> None:
    done = shoal("tournament", *arguments)
    assert done.code == 2
    assert said in done.err
