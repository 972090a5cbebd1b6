import os
import signal
from pathlib import Path

import msgspec
import pytest

from shoal.errors import RunError
from shoal.runs import RunFolder


def test_a_run_folder_holds_config_versions_and_nodes(tmp_path: Path) -> None:
    with RunFolder.create(tmp_path / "run", "seed = 1\n") as run:
        assert run.config_toml == "seed = 1\n"
        versions = msgspec.json.decode((run.path / "versions.json").read_bytes())
        assert {"shoal", "python", "platform", "numpy"} <= versions.keys()
        with run.open_journal("a") as journal:
            journal.append("kind", 0.0, 1)
        assert run.node_names() == ["a"]
        assert run.journal_path("a") == run.path / "nodes" / "a" / "journal.jsonl"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["run"]


def test_an_empty_folder_may_become_a_run_and_no_other(tmp_path: Path) -> None:
    empty, foreign, file = tmp_path / "empty", tmp_path / "foreign", tmp_path / "file"
    empty.mkdir()
    foreign.mkdir()
    (foreign / "thesis.txt").write_text("precious")
    file.write_text("precious")
    RunFolder.create(empty, "").close()
    with pytest.raises(RunError, match=r"there is a run in this folder. Resume it"):
        RunFolder.create(empty, "")
    for path in (foreign, file):
        with pytest.raises(RunError, match="not empty and not a run"):
            RunFolder.create(path, "")
    assert (foreign / "thesis.txt").read_text() == file.read_text() == "precious"
    with pytest.raises(RunError, match="not a run folder"):
        RunFolder.resume(foreign)
    with pytest.raises(RunError, match="no such run folder"):
        RunFolder.look(tmp_path / "nowhere")


def test_a_second_owner_is_refused_and_a_reader_is_not(tmp_path: Path) -> None:
    path = tmp_path / "run"
    with RunFolder.create(path, ""):
        with pytest.raises(RunError, match="another process is running this run"):
            RunFolder.resume(path)
        assert RunFolder.look(path).node_names() == []
    RunFolder.resume(path).close()


def test_a_killed_run_can_be_resumed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "run"
    ready, told = os.pipe()
    child = os.fork()
    if child == 0:
        RunFolder.create(path, "")
        os.write(told, b"x")
        signal.pause()
    os.read(ready, 1)
    with pytest.raises(RunError, match="another process"):
        RunFolder.resume(path)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    RunFolder.resume(path).close()


@pytest.mark.parametrize("name", ["", "..", ".hidden", "a/b", "/etc", "a" * 65, "a\n", "-x"])
def test_a_node_name_cannot_lead_elsewhere(tmp_path: Path, name: str) -> None:
    with RunFolder.create(tmp_path / "run", "") as run, pytest.raises(RunError, match="node name"):
        run.open_journal(name)


def test_a_folder_that_cannot_be_made_is_one_clear_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match="the run folder cannot be made"):
        RunFolder.create(tmp_path / "file" / "run", "")
