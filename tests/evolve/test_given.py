"""Prompts and programs that are given as files: read once, kept in the settings, refused in one clear line."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

import shoal as package
from shoal.errors import ConfigError, RunError
from shoal.evolve.crew import SearchCrew, run
from shoal.evolve.domains.corewar import CoreWar
from shoal.evolve.given import MOST_PROGRAM_BYTES, MOST_PROGRAMS, MOST_PROMPT_BYTES
from shoal.evolve.prompts import Template
from shoal.evolve.rounds import STARTER
from shoal.evolve.settings import EvolveSettings
from shoal.runs import RunFolder, parse, to_toml
from tests.evolve.small import RULES, archives, histories, small
from tests.models.server import Handler, Misbehaving

SYSTEM = "You write warriors.\nModes: # $ * @ { < } >, and {single} braces are text.\n"
NEW = "Create a warrior. Wrap it in ```."
MUTATE = "Change this warrior so that it wins."
DWARF = ";name Dwarf Avan\xe7ado\nadd.ab #4, 3\nmov.i 2, @2\njmp -2\ndat 0, 0\n"
JUMP = "jmp 0, 0\n"


@pytest.fixture
def texts(tmp_path: Path) -> Path:
    """A folder as DRQ has it: its files have no header and no places, and one of them is not used."""
    folder = tmp_path / "prompts"
    folder.mkdir()
    named = {
        "system_prompt_0": SYSTEM,
        "new_prompt_0": NEW,
        "mutate_prompt_0": MUTATE,
        "crossover_prompt_0": "x",
    }
    for name, text in named.items():
        (folder / f"{name}.txt").write_text(text)
    return folder


@pytest.fixture
def humans(tmp_path: Path) -> Path:
    """Warriors of people: one with a comment in another encoding, one that is none, and other files."""
    folder = tmp_path / "humans"
    folder.mkdir()
    (folder / "dwarf.red").write_bytes(DWARF.encode("latin-1"))
    (folder / "jump.RED").write_text(JUMP)
    (folder / "wrong.red").write_text("dat #0 #0\n")
    (folder / "README.md").write_text("about them")
    (folder / "deeper.red").mkdir()
    return folder


def settle(**changes: Any) -> tuple[EvolveSettings, list[str]]:
    told: list[str] = []
    return small(**changes).settled(told.append), told


# Prompts.


def test_a_folder_of_prompts_is_taken_as_it_is(texts: Path) -> None:
    settings, told = settle(prompts=str(texts))
    domain = CoreWar()
    prompts = settings.prompts_for(domain)
    assert prompts.ask_new().system == SYSTEM
    assert prompts.ask_new().user == NEW
    assert prompts.ask_mutate("jmp 0").user == f"{MUTATE}\n\n\njmp 0"
    assert prompts.informed == domain.prompts.informed, "the others stay ours"
    assert prompts.repair == domain.prompts.repair
    assert prompts.new.id == f"new_prompt_0:{prompts.new.digest[:12]}", "its version is its digest"
    assert told == [
        f"prompts: left out of {texts}, as it is none of system, new, mutate, informed, repair: "
        "crossover_prompt_0.txt"
    ]


def test_a_file_for_a_part_may_state_places_and_a_version(texts: Path) -> None:
    own = texts / "mine.md"
    own.write_text("<!-- version 7 -->\nBetter than\n{{program}}\nplease. {{feedback}}")
    settings, _ = settle(prompts={"informed": str(own)})
    prompts = settings.prompts_for(CoreWar())
    assert prompts.informed.id.startswith("mine@7:")
    assert prompts.ask_mutate("jmp 0", "it lost").user == "Better than\njmp 0\nplease. it lost"
    own.write_text("Repair it: {{problems}}")
    prompts = settle(prompts={"repair": str(own)})[0].prompts_for(CoreWar())
    assert prompts.ask_repair("jump 0", "no opcode").user == "Repair it: no opcode\n\n\njump 0"


def test_our_own_texts_can_be_copied_and_given_back(tmp_path: Path) -> None:
    from importlib import resources

    for part in ("system", "new", "mutate", "informed", "repair"):
        text = (resources.files("shoal.evolve.prompts") / f"corewar-{part}.md").read_text()
        (tmp_path / f"{part}.md").write_text(text)
    given, ours = settle(prompts=str(tmp_path))[0].prompts_for(CoreWar()), CoreWar().prompts
    for part in ("system", "new", "mutate", "informed", "repair"):
        assert getattr(given, part).text == getattr(ours, part).text
        assert getattr(given, part).version == getattr(ours, part).version


def test_the_texts_are_kept_in_the_settings(texts: Path) -> None:
    settings, _ = settle(prompts=str(texts))
    config = to_toml(settings)
    shutil.rmtree(texts)
    again = parse(EvolveSettings, config)
    assert again == settings
    assert again.settled() == settings, "no file is read again"
    assert again.prompts_for(CoreWar()).ask_new().system == SYSTEM
    headed = small(prompts={"new": Template("x", "<!-- version 3 -->\nnew")}).settled()
    assert headed.settled() == headed, "a text that was read is not read as a file"


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ("no-such-folder", "prompts: no-such-folder is not a folder"),
        ("empty", "prompts: empty holds none: its files begin with system, new, mutate, informed, repair"),
        ("twice", "prompts: twice/new.md and twice/new_2.txt may both be the prompt new: name the one you mean"),
        ({"mutat": "x"}, "prompts.mutat: there is no such prompt: known are system, new, mutate, informed, repair"),
        ({"new": "missing.md"}, "prompts.new: there is no missing.md"),
        ({"new": "empty"}, "prompts.new: empty is not a file"),
        ({"new": "pipe"}, "prompts.new: pipe is not a file"),
        ({"new": "latin.txt"}, "prompts.new: latin.txt is no text in UTF-8 (byte 3)"),
        ({"new": "huge.txt"}, f"prompts.new: huge.txt is larger than {MOST_PROMPT_BYTES} bytes"),
        ({"new": "blank.txt"}, "prompts.new: blank.txt: the prompt is empty"),
        ({"mutate": "place.txt"}, "prompts.mutate: place.txt: {{score}} is no place of the prompt mutate: known are {{program}}"),
        ({"system": "place.txt"}, "{{program}} is no place of the prompt system: known are none"),
        ({"new": "nul\0name"}, "prompts.new: there is no nul"),
        ({"new": "x" * 5000}, "prompts.new: "),
    ],
)  # fmt: skip
def test_prompts_that_cannot_be_used_are_named(
    given: Any, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("empty", "twice"):
        Path(name).mkdir()
    for name in ("new.md", "new_2.txt"):
        Path("twice", name).write_text("text")
    os.mkfifo("pipe")
    Path("latin.txt").write_bytes("caf\xe9".encode("latin-1"))
    Path("huge.txt").write_text("x" * (MOST_PROMPT_BYTES + 1))
    Path("blank.txt").write_text(" \n")
    Path("place.txt").write_text("{{program}} {{score}}")
    with pytest.raises(ConfigError) as caught:
        small(prompts=given).settled()
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


class Writer(Handler):
    """An endpoint that writes a warrior of its own for each call, in prose and fences."""

    def _completion(self, body: dict[str, Any], text: str = "", model: str = "") -> dict[str, Any]:
        number = sum(self.server.calls.values())
        return super()._completion(
            body, f"Here it is:\n```redcode\nspl 0\nadd.ab #{number}, 1\nmov 0, 1\n```"
        )


def test_prompts_and_warriors_of_others_run_with_a_model_behind_an_endpoint(
    texts: Path, humans: Path
) -> None:
    folder = texts.parent / "run"
    with Misbehaving() as server:
        server.RequestHandlerClass = Writer
        settings = small(
            models=(f"{server.root}/v1#writer",), calls=12, rounds=2, prompts=str(texts),
            opponents=("imp", str(humans)), starters=(str(humans / "jump.RED"),), grammar=False,
        )  # fmt: skip
        assert run(settings, folder, in_process=True) == "finished"
        asked = [body["messages"] for _, body in server.seen]
    (node,) = histories(folder)
    assert (node.spent["calls"], node.valid) == (12, 12)
    assert {message[0]["content"] for message in asked} == {SYSTEM}
    users = [message[1]["content"] for message in asked]
    assert NEW in users
    changed = [user for user in users if user != NEW]
    assert changed
    domain = CoreWar.from_options(RULES)
    for user in changed:
        assert user.startswith(f"{MUTATE}\n\n\n")
        domain.parse(user.removeprefix(MUTATE))


# Programs.


def test_opponents_and_starters_are_names_files_and_folders(humans: Path) -> None:
    settings, told = settle(opponents=("imp", str(humans)), starters=(str(humans / "jump.RED"), "clear"))
    dwarf, jump = str(humans / "dwarf.red"), str(humans / "jump.RED")
    assert settings.opponents == ("imp", dwarf, jump)
    assert settings.starters == (jump, "clear")
    assert settings.programs == {dwarf: DWARF.replace("\xe7", "�"), jump: JUMP}
    (line,) = told
    assert line.startswith(f"opponents: left out, as it is no program here: {humans / 'wrong.red'} (line 1")
    mine = EvolveSettings(programs={"mine": JUMP}, opponents=("mine",)).settled()
    assert mine.sources(CoreWar())["mine"] == JUMP


def test_opponents_are_met_and_starters_are_placed(humans: Path, tmp_path: Path) -> None:
    settings, _ = settle(models=("builtin:random",), calls=9, opponents=(str(humans / "dwarf.red"),), starters=(str(humans),))  # fmt: skip
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    domain = settings.open_domain()
    dwarf, jump = (
        domain.parse((humans / name).read_text("latin-1")).digest for name in ("dwarf.red", "jump.RED")
    )
    (node,) = histories(tmp_path / "run")
    opened = [event.note for event in node.events if event.note.step == "open"]
    assert len(opened) == 3
    for number, note in enumerate(opened):
        champions = {one.digest for one in node.state.course.champions[:number]}
        assert note.opponents == len({dwarf, *champions})
        assert note.evaluations == len({dwarf, jump, *champions})
    assert {placed.model for placed in opened[0].placed} == {STARTER}
    assert {placed.digest for placed in opened[0].placed} <= {dwarf, jump}


@pytest.mark.filterwarnings("ignore:prompts. left out")
def test_a_run_does_not_depend_on_files_that_change(humans: Path, texts: Path, tmp_path: Path) -> None:
    settings = small(
        models=("builtin:random",), calls=40, look_ahead=1, prompts=str(texts),
        opponents=(str(humans / "dwarf.red"),), starters=(str(humans / "jump.RED"),),
    )  # fmt: skip
    assert run(settings, tmp_path / "whole", in_process=True) == "finished"
    with RunFolder.create(tmp_path / "run", to_toml(settings.settled())) as opened:
        seat = SearchCrew(settings.settled()).take_seat(
            0, opened, author="", now=1.0, exchange=None, real_time=False
        )
        while seat.node.turns < 12:
            if seat.node.step(1.0) == "waiting":
                seat.node.outside.wait(1.0)
        while seat.node.unanswered:  # a call that was never answered would be spent, and change the rest
            seat.node.outside.wait(1.0)
            seat.node.collect(1.0)
        seat.node.abandon()
    (humans / "dwarf.red").write_text(JUMP)
    with pytest.raises(RunError, match=r"other settings here \(programs\)"):
        package.run_search(tmp_path / "run", in_process=True, **_given(settings))
    shutil.rmtree(humans)
    shutil.rmtree(texts)
    summary: Any = package.resume_run(tmp_path / "run", in_process=True)
    assert summary.finished
    assert archives(tmp_path / "run") == archives(tmp_path / "whole")


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('opponents = ["secret.red"]', "opponents: 'secret.red' is neither a starter nor under programs: the config of a run holds the texts"),
        ('starters = ["."]', "starters: '.' is neither a starter nor under programs"),
        ('prompts = "."', "prompts: '.' is no text: the config of a run holds the texts themselves"),
        ('[prompts]\nsystem = "secret.txt"', "prompts.system: 'secret.txt' is no text"),
    ],
)  # fmt: skip
def test_the_run_folder_of_a_stranger_makes_no_file_read(
    line: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("secret.txt").write_text("the password")
    Path("secret.red").write_text(JUMP)
    RunFolder.create(tmp_path / "run", f'models = ["builtin:bomber"]\n{line}\n').close()
    with pytest.raises(ConfigError) as caught:
        package.resume_run(tmp_path / "run", in_process=True)
    assert said in str(caught.value)


def _given(settings: EvolveSettings) -> dict[str, Any]:
    return {name: getattr(settings, name) for name in settings.__struct_fields__ if name != "application"}


def test_what_is_left_out_is_a_warning_in_python(humans: Path, tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="left out, as it is no program here"):
        package.run_search(
            tmp_path / "run", models="builtin:bomber", calls=2, rounds=1, repeats=1, options=RULES,
            opponents=[str(humans)], in_process=True,
        )  # fmt: skip


@pytest.mark.parametrize("key", ["opponents", "starters"])
@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("nobody", "no starter is called 'nobody': known are "),
        ("nobody", "and there is no file or folder of this name"),
        ("", "no starter is called ''"),
        ("a\0b", "no starter is called"),
        ("x" * 5000, "no starter is called"),
        ("humans/wrong.red", "humans/wrong.red is no program: line 1"),
        ("bad", "bad holds no program: bad/wrong.red (line 1"),
        ("none", "none holds no .red files: name a folder of programs"),
        ("huge.red", f"huge.red is larger than {MOST_PROGRAM_BYTES} bytes"),
        ("pipe.red", "pipe.red is not a file"),
        ("many", f"{MOST_PROGRAMS + 1} programs with "),
    ],
)
def test_programs_that_cannot_be_used_are_named(
    key: str, entry: str, said: str, humans: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(humans.parent)
    for name in ("bad", "none", *(["many"] if entry == "many" else [])):
        Path(name).mkdir()
    shutil.copy(humans / "wrong.red", "bad")
    Path("huge.red").write_text(";" * (MOST_PROGRAM_BYTES + 1))
    os.mkfifo("pipe.red")
    if entry == "many":
        for number in range(MOST_PROGRAMS + 1):
            Path("many", f"{number}.red").write_text(JUMP)
    with pytest.raises(ConfigError) as caught:
        small(**{key: (entry,)}).settled()
    assert str(caught.value).startswith(f"{key}: ")
    assert said in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_text_that_is_no_program_is_named_before_anything_starts() -> None:
    for key in ("opponents", "starters"):
        settings = small(programs={"mine": "no redcode"}, **{key: ("mine",)})
        with pytest.raises(ConfigError, match=f"{key}: mine is no program"):
            settings.check()


# Bin edges.


def test_bin_edges_shape_the_archive(tmp_path: Path) -> None:
    options = {**RULES, "edges": {"spawned": [1, 3], "coverage": [5.5]}}
    settings = small(options=options).settled()
    assert settings.options["edges"] == {"spawned": [1.0, 3.0], "coverage": [5.5]}
    assert [axis.edges for axis in settings.open_domain().axes] == [(1.0, 3.0), (5.5,)]
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    summary: Any = package.read_summary(tmp_path / "run")
    assert summary.capacity == 6
    assert [axis.edges for axis in summary.axes] == [(1.0, 3.0), (5.5,)]
    assert all(cell.cell[0] <= 2 and cell.cell[1] <= 1 for cell in summary.cells_raw)
    json.dumps([list(cell.cell) for cell in summary.cells_raw])


def test_without_edges_the_options_are_those_of_older_runs() -> None:
    assert "edges" not in small().settled().options
    given = small(options={**RULES, "edges": {"spawned": (1, 10, 100, 1000, 10_000)}}).settled()
    assert given.open_domain().axes == CoreWar().axes


@pytest.mark.parametrize(
    ("edges", "said"),
    [
        ({"spawnd": [1]}, "options.edges: no axis is called 'spawnd': known are spawned, coverage, length, opcodes"),
        ({"spawned": []}, "options.edges.spawned: "),
        ({"spawned": [3, 1]}, "each larger than the one before"),
        ({"spawned": [1, 1]}, "each larger than the one before"),
        ({"spawned": list(range(1000))}, "options.edges.spawned: 1000 edges: give 99 at most"),
        ({"spawned": "1"}, "options.edges"),
        ({"spawned": [float("inf")]}, "options.edges.spawned: "),
    ],
)  # fmt: skip
def test_edges_that_make_no_bins_are_named(edges: Any, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        small(options={**RULES, "edges": edges}).check()
    assert said in str(caught.value)
