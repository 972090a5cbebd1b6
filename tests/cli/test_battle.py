from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from shoal.corewar import fight, starter_set
from tests.cli.conftest import Shoal

IMP = "mov 0, 1\n"


def test_the_json_holds_what_the_library_says(shoal: Shoal) -> None:
    done = shoal("battle", "@dwarf", "@paper", "-r", 20, "-c", 5000, "--seed", 3, "--json", "--stats")
    found = json.loads(done.out)
    known = starter_set()
    from shoal.corewar import Settings

    result = fight(
        [known["dwarf"], known["paper"]], Settings(cycles=5000), rounds=20, seed=3, statistics=True
    )
    for entry, standing in zip(found["warriors"], result.standings(), strict=True):
        assert entry["name"] == standing.name
        assert entry["survived"] == list(standing.survived)
        assert [entry[key] for key in ("wins", "losses", "ties", "points")] == [
            standing.wins, standing.losses, standing.ties, standing.points
        ]  # fmt: skip
    assert [entry["file"] for entry in found["warriors"]] == ["@dwarf", "@paper"]
    assert found["warriors"][1]["coverage"] == pytest.approx(float(result.coverage[:, 1].mean()))
    assert found["warriors"][1]["share"] == pytest.approx(float(result.share[:, 1].mean()))
    assert (found["rounds"], found["seed"], found["settings"]["cycles"]) == (20, 3, 5000)
    assert found["instructions"] == result.instructions


def test_statistics_are_off_without_the_option(shoal: Shoal) -> None:
    assert "coverage" not in shoal("battle", "@imp", "@imp", "--json", "-c", 100).out


def test_in_a_pipe_it_prints_aligned_lines(shoal: Shoal) -> None:
    lines = shoal("battle", "@imp", "@imp", "-c", 100, "-r", 2).out.splitlines()
    assert lines[0] == "warrior  author  wins  losses  ties  points"
    assert lines[1] == "Imp      Shoal      0       0     2       2"
    assert lines[3].startswith("2 rounds, seed 0; core 8000, cycles 100,")


def test_options_stand_anywhere_and_take_their_number_either_way(shoal: Shoal) -> None:
    expected = shoal("battle", "-k", "-f", "-r", "10", "@imp", "@dwarf")
    assert expected.code == 0
    for order in (
        ("@imp", "-r10", "@dwarf", "-fk"),
        ("-bkfr10", "@imp", "@dwarf"),
        ("@imp", "@dwarf", "-b", "-k", "-f", "--rounds", "10"),
    ):
        assert shoal("battle", *order) == expected


def test_the_distance_follows_the_length_when_it_is_not_given(shoal: Shoal) -> None:
    def settings(*options: object) -> dict[str, int]:
        return json.loads(shoal("battle", "@imp", "-c", 10, "--json", *options).out)["settings"]  # type: ignore[no-any-return]

    assert settings("-l", 50)["distance"] == 50
    assert settings("-l", 200)["distance"] == 200
    assert settings("-d", 300)["distance"] == 300
    assert settings("-l", 20, "-d", 40)["distance"] == 40


def test_letters_change_single_rules_of_a_hill(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "imp.red").write_text(IMP)
    found = json.loads(shoal("battle", tmp_path / "imp.red", "--hill", "nano", "-c", 5, "--json").out)
    assert (found["settings"]["core_size"], found["settings"]["cycles"]) == (80, 5)


def test_all_places_are_as_many_rounds_as_there_are_places(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "imp.red").write_text(IMP)
    imp = tmp_path / "imp.red"
    assert json.loads(shoal("battle", imp, imp, "--hill", "nano", "-P", "--json").out)["rounds"] == 142
    assert shoal("battle", imp, imp, "--hill", "nano", "-P", "-r", 142, "-k").code == 0
    done = shoal("battle", imp, imp, "--hill", "nano", "-P", "-r", 10)
    assert done.code == 2
    assert "142 rounds" in done.err


def test_programs_see_the_number_of_warriors_and_rounds(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "a.red").write_text(";assert WARRIORS == 2 && ROUNDS == 7\nmov 0, 1\n")
    assert shoal("battle", tmp_path / "a.red", "@imp", "-r", 7, "-k").code == 0
    assert shoal("battle", tmp_path / "a.red", "@imp", "-r", 8, "-k").code == 3


def test_a_file_goes_before_a_starter_warrior_of_its_name(
    shoal: Shoal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "@imp").write_text(";name Mine\nmov 0, 1\n")
    monkeypatch.chdir(tmp_path)
    assert shoal("battle", "@imp", "-c", 10).out.splitlines()[1].startswith("Mine")


def test_best_first(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "dat.red").write_text(";name Dat\ndat 0, 0\n")
    lines = shoal("battle", tmp_path / "dat.red", "@imp", "-o").out.splitlines()
    assert lines[1].startswith("Imp")


def test_standard_input(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "shoal.cli", "battle", "-", "@imp", "-k", "-r", "3"]
    done = subprocess.run(command, input=b"dat 0, 0\n", capture_output=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"0 0\n3 0\n", b"")


def test_a_reader_that_goes_away_is_no_error() -> None:
    command = f"'{sys.executable}' -m shoal.cli assemble $(printf '@paper %.0s' $(seq 500)) | head -n 1"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=120)
    assert done.stdout.startswith("Program")
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("nowhere.red",), "nowhere.red: there is no such file"),
        (("@nobody",), "no starter warrior is called 'nobody'"),
        ((".",), ". is a folder"),
        (("@dwarf", ""), "a name is empty"),
        (("@imp", "--hill", "everest"), "no hill is called 'everest'"),
        (("@imp", "-d", "50"), "distance 50 is less than length 100"),
        (("@imp", "-s", "80"), "more than the core size 80"),
        (("@imp", "-s", "999999"), "core_size is 999999"),
        (("@imp", "-p", "0"), "processes is 0"),
        (("@imp", "@imp", "@imp", "-d", "4000"), "3 warriors at distance 4000"),
        (("@imp",) * 65, "65 warriors"),
        (("@imp", "@imp", "-F", "50"), "fixed position 50"),
        (("@imp", "@imp", "-F", "1073741825"), "fixed position 1073741825"),
        (("@imp", "@imp", "-F", "200", "-f"), "exclude each other"),
        (("@imp", "-P"), "it takes exactly two"),
        (("-", "-"), "named twice"),
        (("a\0b",), "cannot be read"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_code_2(
    arguments: tuple[str, ...], said: str, shoal: Shoal
) -> None:
    done = shoal("battle", *arguments)
    assert done.code == 2
    assert done.out == ""
    assert said in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(
    "arguments",
    [
        ("@imp", "-r", "-5"),
        ("@imp", "-r", "many"),
        ("@imp", "-r", "1.5"),
        ("@imp", "-r", "99999999999999"),
        ("@imp", "--threads", "0"),
        ("@imp", "-Q"),
        (),
    ],
)
def test_wrong_options_are_exit_code_2(arguments: tuple[str, ...], shoal: Shoal) -> None:
    done = shoal("battle", *arguments)
    assert done.code == 2
    assert "Traceback" not in done.err


def test_binary_and_huge_files_are_one_line(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "binary").write_bytes(bytes(range(256)))
    (tmp_path / "huge").write_bytes(b";" * (1 << 20))
    for name, said in (("binary", "is a binary file"), ("huge", "is larger than")):
        done = shoal("battle", tmp_path / name)
        assert (done.code, len(done.err.splitlines())) == (2, 1)
        assert said in done.err


def test_a_program_that_does_not_assemble_is_exit_code_3(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "bad.red").write_text("mov 0, 1\nmov nothing, 1\n")
    done = shoal("battle", tmp_path / "bad.red", "@imp")
    assert done.code == 3
    assert done.err.startswith(f"{tmp_path / 'bad.red'}: line 2, column ")


@pytest.mark.parametrize("name", ["\x1b[31mRed\x1b[0m", "\x1b]0;title\x07Red", "\x9b31mRed", "R\x08e\u202ed"])
def test_names_cannot_act_upon_a_terminal(name: str, shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "a.red").write_bytes(f";name {name}\nmov 0, 1\n".encode())
    done = shoal("battle", tmp_path / "a.red", "-c", 10)
    assert done.out.splitlines()[1].startswith("Red ")


def test_names_are_not_markup(shoal: Shoal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("shoal.cli.output.on_terminal", lambda: True)
    (tmp_path / "a.red").write_text(";name [red]x[/nothing]\nmov 0, 1\n")
    done = shoal("battle", tmp_path / "a.red", "-c", 10)
    assert done.code == 0
    assert "[red]x[/nothing]" in done.out


def test_a_source_line_in_a_message_is_harmless(shoal: Shoal, tmp_path: Path) -> None:
    (tmp_path / "a.red").write_bytes(b"mov \x1b[31mnothing, 1\n")
    done = shoal("battle", tmp_path / "a.red")
    assert done.code == 3
    assert "\x1b" not in done.err


def run_apart(*arguments: str, **streams: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, "-m", "shoal.cli", *arguments], text=True, timeout=60, **streams)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full here")
def test_a_full_disk_is_one_clear_line() -> None:
    with open("/dev/full", "w") as full:
        done = run_apart("assemble", "@imp", stdout=full, stderr=subprocess.PIPE)
    assert done.returncode == 2
    assert done.stderr == "shoal: the output cannot be written: No space left on device\n"


def test_names_that_the_terminal_cannot_show_are_shown_escaped(tmp_path: Path) -> None:
    file = tmp_path / "uni.red"
    file.write_text(";name snow ☃\n jmp 0\n", encoding="utf-8")
    done = run_apart(
        "battle", str(file), "@imp", capture_output=True, env={**os.environ, "PYTHONIOENCODING": "ascii"}
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_file_without_instructions_is_told(tmp_path: Path, shoal: Shoal) -> None:
    file = tmp_path / "words.red"
    file.write_text("foo bar baz\n")
    assert "no instructions" in shoal("battle", file, "@imp").err
    assert "1 of 3 programs are left out" in shoal("tournament", file, "@imp", "@dwarf", "-r", 2).err


def test_two_forms_of_output_exclude_each_other(shoal: Shoal) -> None:
    assert shoal("battle", "@imp", "@dwarf", "-k", "--json").code == 2


def test_standard_input_is_read_once_only(shoal: Shoal) -> None:
    done = shoal("tournament", "-", "@dwarf", "--challenger", "-")
    assert done.code == 2
    assert "named twice" in done.err
