from __future__ import annotations

import json
from pathlib import Path

import pytest

from shoal.corewar import assemble, listing, starter_names, starter_source
from tests.cli.conftest import Shoal


@pytest.mark.parametrize("name", starter_names())
def test_it_prints_the_listing(name: str, shoal: Shoal) -> None:
    assert shoal("assemble", f"@{name}").out == listing(assemble(starter_source(name)))


def test_the_source_form_assembles_to_the_same_program(shoal: Shoal) -> None:
    done = shoal("assemble", "@paper", "--source")
    assert assemble(done.out).canonical == assemble(starter_source("paper")).canonical


def test_json_of_a_program(shoal: Shoal) -> None:
    found = json.loads(shoal("assemble", "@imp", "--json").out)
    imp = assemble(starter_source("imp"))
    assert found["digest"] == imp.digest
    assert (found["name"], found["author"], found["start"], found["pin"]) == ("Imp", "Shoal", 0, None)
    assert (found["length"], found["code"]) == (1, ["MOV.I $0, $1"])


def test_json_of_problems(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "bad.red").write_text("mov nothing, 1\n")
    done = shoal("assemble", tmp_path / "bad.red", "--json")
    assert (done.code, done.err) == (3, "")
    (problem,) = json.loads(done.out)["problems"]
    assert set(problem) == {"line", "column", "message", "remedy", "source"}
    assert (problem["line"], problem["source"]) == (1, "mov nothing, 1")


def test_several_files_are_all_tried(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "bad.red").write_text("mov nothing, 1\n")
    done = shoal("assemble", tmp_path / "bad.red", "@imp")
    assert done.code == 3
    assert done.out.startswith('Program "Imp"')
    assert "bad.red: line 1" in done.err
    assert done.err.splitlines()[-1] == "1 of 2 programs do not assemble"


def test_lenient_accepts_a_missing_operand(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "dat.red").write_text(";assert 1\ndat\n")
    assert shoal("assemble", tmp_path / "dat.red").code == 3
    assert shoal("assemble", tmp_path / "dat.red", "--lenient").code == 0


def test_warnings_go_to_standard_error(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "odd.red").write_text(";assert 1\norg 7\nmov 0, 1\n")
    done = shoal("assemble", tmp_path / "odd.red")
    assert done.code == 0
    assert done.err.startswith("warning: ")
    assert "warning" not in done.out


def test_a_listing_is_harmless_on_a_terminal(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "a.red").write_bytes(b";name \x1b[2JRed\n;author \x1b[31m\n;assert 1\nmov 0, 1\n")
    for form in ((), ("--source",), ("--json",)):
        assert "\x1b" not in shoal("assemble", tmp_path / "a.red", *form).out
