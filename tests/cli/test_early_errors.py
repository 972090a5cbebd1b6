"""What can be seen to be wrong is said in one line, before there is a run folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cli.progress import ProgressDisplay
from shoal.cli.search_terminal import COLUMNS
from tests.cli.conftest import Shoal
from tests.cli.test_progress import progress, search

ONE = ("evolve", "--calls", "8", "--rounds", "1", "--models", "builtin:bomber")
JOIN = ("--join", "tcp/127.0.0.1:1")
ID = "hpe7dn3jfeo3owvou4v7wbip4oltwgrj"
FILE = "file:574d4eaaec9a066b"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((*ONE, "--join", "nonsense"), "address 'nonsense' has no port"),
        ((*ONE, "--listen", "tcp/foo"), "address 'tcp/foo' has no port"),
        ((*ONE, *JOIN, "--advertise", "x"), "address 'x' has no port"),
        ((*ONE, *JOIN, "--allow", "xyz"), "'xyz' in the allow-list is not a node id"),
        ((*ONE, *JOIN, "--allow", ID, "--allow", ID.upper()), "in the allow-list is not a node id"),
        ((*ONE, *JOIN, "--key", __file__), "the key file"),
        ((*ONE, "--transport", "pigeon"), "it is not known"),
        ((*ONE, "--transport", "nats", "--listen", "tcp/h:1"), "a NATS node does not listen"),
        ((*ONE, "--swarm", ""), "--swarm is empty"),
        (("evolve", "--models", "local:./nope.gguf"), "models[0]: local:./nope.gguf is not a GGUF file"),
        (("evolve", "--models", "builtin:bomber,cassette:no.jsonl"), "models[1]: there is no cassette"),
        (("evolve", "--models", "openai:gpt-5-mini"), "openai:gpt-5-mini needs a key"),
        (("evolve", "--set", "replay='elsewhere'"), "there is no cassette at elsewhere"),
        (("train", "--models", "tiny:nope"), "there is no policy tiny:nope"),
        (("train", "--models", "tiny:llama,table:none"), "node 2: there is no policy table:none"),
        (("train", "--models", "tiny:llama?lora=abc"), "lora is 'abc'"),
        (("train", "--models", "tiny:llama?server=http://h:1"), "a server takes over adapters only"),
        (("train", "--models", "local:./nope"), "local:./nope is not a GGUF file"),
        (("train", "--models", "nothing"), "'nothing' does not name a policy"),
        (
            ("train", "--models", "table:", "--tasks", FILE),
            f"task '{FILE}': no file with this hash is configured",
        ),
        (
            ("train", "--models", "table:", "--tasks", FILE, "--set", f"files.{FILE}=none.jsonl"),
            "node 1: the questions of none.jsonl cannot be read",
        ),
        (
            ("train", "--models", "table:", "--tasks", FILE, "--set", "files.mine=none.jsonl"),
            "files.mine: a file goes by the name of its task",
        ),
        (("train", "--models", "table:", "--join", "nonsense"), "address 'nonsense' has no port"),
        (("contribute", *JOIN, "--model", "local:nope"), "local:nope is not a GGUF file"),
        (("contribute", *JOIN, "--model", "program:"), "name a command after the colon"),
        (("contribute", *JOIN, "--rollouts", "nofile"), "there is no such file or run folder"),
    ],
)
def test_one_line_and_no_run_folder(
    arguments: tuple[str, ...],
    words: str,
    shoal: Shoal,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    monkeypatch.delenv("SHOAL_KEY_FILE", raising=False)
    done = shoal(*arguments)
    assert done.code == 2
    assert done.out == ""
    (line,) = done.err.splitlines()
    assert line.startswith("shoal: ")
    assert words in line
    assert not list(tmp_path.iterdir())


def test_a_trouble_is_told_once_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    broken = progress(search(trouble="no room", ended=True))
    with ProgressDisplay(COLUMNS) as display:
        display.show(broken)
        display.show(broken)
    display.tell_troubles()
    assert capsys.readouterr().err.count("no room") == 1


def test_a_search_without_a_call_prints_no_empty_tables(shoal: Shoal, tmp_path: Path) -> None:
    """The address is of no machine, which only the node itself can find."""
    arguments = (*ONE, "--listen", "tcp/192.0.2.1:7447", "--key", tmp_path / "key", "--out", tmp_path / "run")
    done = shoal(*arguments)
    assert done.code == 2
    assert done.err.count("cannot listen on tcp/192.0.2.1:7447") == 1
    assert done.out == ""


@pytest.mark.parametrize("verb", ["show", "resume", "report"])
def test_an_empty_config_does_not_pass_for_a_search(shoal: Shoal, tmp_path: Path, verb: str) -> None:
    (tmp_path / "run" / "nodes").mkdir(parents=True)
    (tmp_path / "run" / "config.toml").touch()
    done = shoal(verb, tmp_path / "run")
    assert done.code == 2
    (line,) = done.err.splitlines()
    assert "config.toml: it is empty" in line
    assert not list((tmp_path / "run" / "nodes").iterdir())
