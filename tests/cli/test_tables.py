"""Tables of results on terminals: nothing is cut, however narrow they are."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.cli import output
from shoal.cli.output import LONGEST_NAME, blocks, print_table
from tests.cli.conftest import Shoal

HEADINGS = ("node", "held-out", "own groups", "informative %", "what to do")


@pytest.fixture
def narrow(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.mark.parametrize("columns", [20, 40, 50, 60, 80, 200])
def test_every_cell_is_shown_whole(
    columns: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))
    rows = [("1-tiny-llama", "0.412", 123456, 62.5, "install it"), ("2-qwen", "0.5", 7, None, "-")]
    print_table(HEADINGS, rows)
    lines = capsys.readouterr().out.splitlines()
    for cell in ("1-tiny-llama", "0.412", "123456", "62.5", "install it", "2-qwen"):
        assert any(cell in line for line in lines)
    assert "…" not in "".join(lines)
    assert max(map(len, lines)) <= columns


def test_headings_fold_before_the_table_becomes_blocks(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(output, "on_terminal", lambda: True)
    monkeypatch.setenv("COLUMNS", "60")
    print_table(HEADINGS, [("1-tiny-llama", "0.412", 123, 62.5, "rest")])
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["1-tiny-llama", "0.412", "123", "62.5", "rest"] in lines
    assert ["node", "held-out", "groups", "%", "do"] in lines


def test_a_value_goes_below_its_heading_where_it_fits_only_there() -> None:
    assert blocks(("model", "state", "what to do"), [("m", "absent", "pip install x")], 20) == [
        "", "model m", "  state       absent", "  what to do", "    pip install x", "",
    ]  # fmt: skip
    assert blocks(("model", "to do"), [("m", "pip install abcdefgh")], 20)[2:4] == [
        "  to do", "pip install abcdefgh",
    ]  # fmt: skip


@pytest.mark.usefixtures("narrow")
def test_the_summaries_of_runs_fit_eighty_columns(shoal: Shoal, search_run: Path, training_run: Path) -> None:
    for run in (search_run, training_run):
        done = shoal("show", run)
        assert done.code == 0
        assert "…" not in done.out


@pytest.mark.usefixtures("narrow")
def test_commands_that_install_models_are_whole(shoal: Shoal) -> None:
    from shoal.models import PRESETS

    command = PRESETS["qwen2.5-coder-1.5b"].command()
    assert len(command) > LONGEST_NAME
    done = shoal("models", "local:qwen2.5-coder-1.5b")
    if "not installed" in done.out:
        assert command in done.out.splitlines()


def test_the_last_column_is_whole_in_a_pipe(capsys: pytest.CaptureFixture[str]) -> None:
    command = f"pip install {'x' * 200}"
    print_table(("model", "to do"), [("m" * 200, command), ("n", "nothing")], longest=4000)
    head, first, last = capsys.readouterr().out.splitlines()
    assert first == f"{'m' * (LONGEST_NAME - 1)}…  {command}"
    assert head.index("to do") == last.index("nothing") == first.index("pip")


@pytest.mark.usefixtures("narrow")
def test_node_ids_can_be_copied(shoal: Shoal, tmp_path: Path) -> None:
    from shoal.swarm.accounts import Accounts

    author = "hpe7dn3jfeo3owvou4v7wbip4oltwgrj"
    for node in ("1-bomber", "2-scanner"):
        folder = tmp_path / "nodes" / node
        folder.mkdir(parents=True)
        accounts = Accounts()
        accounts.of(author).received = 3
        accounts.save(folder / "accounts.json")
    done = shoal("peers", tmp_path)
    assert done.out.count(author) == 2
