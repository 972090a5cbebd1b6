"""Bad input and failures: one clear line each, and nothing that was learnt is lost."""

from __future__ import annotations

import errno
import math
import os
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ConfigError, RunError, TaskError, TrainError
from shoal.policy.base import Learning, LearningGroup, Learnt, Sampling
from shoal.policy.contributor import ChatModel, Person, Program, check_contributor, open_contributor
from shoal.policy.pool import PoolLimits
from shoal.policy.table import TablePolicy
from shoal.runs import RunFolder, load
from shoal.runs.journal import MemoryJournal
from shoal.train.crew import run
from shoal.train.prepared import read_prepared
from shoal.train.settings import NodeSettings, TrainSettings
from shoal.train.summary import summarise
from tests.train.small import make_node, run_to_end, small


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"tasks": ("sumz",)}, "sumz"),
        ({"tasks": ()}, "tasks: name at least one"),
        ({"models": ()}, "models: name at least one"),
        ({"local": 0, "external": 0}, "nothing to do"),
        ({"models": ("frozen:table:small",), "local": 0}, "only contributes"),
        ({"each": (NodeSettings(),) * 4}, "4 nodes are described"),
        ({"tokens": 3}, "fewer than one step"),
        ({"adaptive": True, "local": 0}, "adaptive"),
        (
            {"parameters": {"revers": {}}},
            "parameters.revers: no task is called 'revers'; did you mean reverse",
        ),
    ],
)
def test_what_is_wrong_with_settings_is_said_before_anything_starts(
    tmp_path: Path, changes: dict[str, Any], words: str
) -> None:
    with pytest.raises((ConfigError, TaskError)) as error:
        run(small(**changes), tmp_path / "run", in_process=True)
    assert words in str(error.value)
    assert "\n" not in str(error.value)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ("group=1", "group"),
        ("temperature=0", "temperature"),
        ("nodes=0", "nodes"),
        ("sharing='some'", "sharing"),
        ("lerning=1", "lerning"),
    ],
)
def test_options_are_checked_with_their_names(option: str, words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        load(TrainSettings, None, [option])


def test_bad_parameters_of_a_task_end_the_node_with_a_reason(tmp_path: Path) -> None:
    ended = run(small(nodes=1, parameters={"sums": {"terms": 99}}), tmp_path / "run", in_process=True)
    assert "terms" in ended
    assert "\n" not in ended


class Diverging(TablePolicy):
    """Its third step fails, as with a loss that is not a number."""

    steps = 0

    def learn(self, groups: Any, learning: Learning, temperature: float) -> Learnt:
        self.steps += 1
        if self.steps == 3:
            raise TrainError("the loss is nan: lower the learning rate")
        return super().learn(groups, learning, temperature)


def test_a_step_that_fails_is_said_and_the_next_one_is_taken() -> None:
    node = make_node(small(steps=5, evaluate_every=0), policy=lambda: Diverging("small"))
    lines, now = [], 1.0
    while (status := node.step(now)) != "finished":
        now += 0.01
        if status == "turned":
            lines.append(node.state.figures.last.said)
    assert len(lines) == 5
    assert "no step was taken: the loss is nan" in lines[2]
    assert not node.trouble


class AlwaysDiverging(TablePolicy):
    def learn(self, groups: Any, learning: Learning, temperature: float) -> Learnt:
        raise TrainError("the loss is nan: lower the learning rate")


def test_a_node_whose_steps_all_fail_gives_up() -> None:
    node = make_node(small(steps=50, evaluate_every=0), policy=lambda: AlwaysDiverging("small"))
    run_to_end(node)
    assert node.state.figures.step == 3
    assert node.trouble.startswith("the loss is nan")


def test_a_full_disk_stops_its_node_with_a_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    written = 0

    def write(descriptor: int, data: bytes) -> int:
        nonlocal written
        if os.readlink(f"/proc/self/fd/{descriptor}").endswith("1-table-small/journal.jsonl"):
            written += len(data)
            if written > 20_000:
                raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    monkeypatch.setattr("os.write", write)
    ended = run(small(steps=40, evaluate_every=0), tmp_path / "run", in_process=True)
    assert "1-table-small (table:small)" in ended
    assert "No space left" in ended
    monkeypatch.undo()
    nodes = summarise(tmp_path / "run").nodes
    assert 0 < nodes[0].steps < 40
    assert [node.steps for node in nodes[1:]] == [40, 40]
    assert run(small(steps=40, evaluate_every=0), tmp_path / "run", in_process=True) == "finished"
    assert [node.steps for node in summarise(tmp_path / "run").nodes] == [40, 40, 40]


def test_a_broken_checkpoint_is_passed_over_and_the_journal_replayed(tmp_path: Path) -> None:
    settings = small(nodes=1, steps=4, evaluate_every=0, checkpoint_every=2)
    run(settings, tmp_path / "run", in_process=True)
    folder = RunFolder.look(tmp_path / "run").node_folder("1-table-small")
    for checkpoint in folder.glob("checkpoint-*"):
        (checkpoint / "figures.json").write_bytes(b"{")
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    assert summarise(tmp_path / "run").nodes[0].steps == 4


def test_a_run_of_a_search_is_not_taken_for_one_of_training(tmp_path: Path) -> None:
    from shoal.evolve.crew import run as search
    from shoal.evolve.settings import EvolveSettings

    search(
        EvolveSettings(models=("builtin:bomber",), calls=2, rounds=1, repeats=1),
        tmp_path / "run",
        in_process=True,
    )
    with pytest.raises(ConfigError):
        summarise(tmp_path / "run")


def test_contributors_that_fail_say_why() -> None:
    sampling = Sampling(8, 1.0)
    with pytest.raises(Exception, match="code 3"):
        Program("sh -c 'exit 3'").sample(["1+1="], 2, sampling, 1)
    with pytest.raises(Exception, match="no-such-command"):
        Program("no-such-command").sample(["1+1="], 2, sampling, 1)
    with pytest.raises(ConfigError, match="name a command"):
        Program("")

    def gone(prompt: str) -> str:
        raise EOFError

    with pytest.raises(Exception, match="nobody is at the terminal"):
        Person(gone).sample(["1+1="], 2, sampling, 1)
    with pytest.raises(TrainError, match="only contributes"):
        Person(gone).learn([LearningGroup("?", (), ())], Learning(), 1.0)


def test_a_prefix_that_nobody_knows_is_answered_with_all_that_are_known() -> None:
    with pytest.raises(ConfigError, match=r"'nope': known are openai, .*, person, program$"):
        open_contributor("nope:")
    with pytest.raises(ConfigError, match=r"'nope': known are openai, .*, person, program$"):
        check_contributor("nope:")


def test_an_empty_answer_is_told_what_is_expected(capsys: pytest.CaptureFixture[str]) -> None:
    lines = iter(["", "2", "", "3", ""])
    Person(lambda _: next(lines)).sample(["1+1="], 4, Sampling(8, 1.0), 1)
    assert [line for line in capsys.readouterr().err.splitlines() if "expected" in line] == [
        "An answer is expected: at least two, 0 so far.",
        "An answer is expected: at least two, 1 so far.",
    ]


def test_contributors_write_groups() -> None:
    sampling = Sampling(8, 1.0)
    lines = iter(["2", "", "3", ""])
    (group,) = Person(lambda _: next(lines)).sample(["1+1="], 4, sampling, 1)
    assert [one.text for one in group] == ["2", "3"]
    (group,) = Program("cat").sample(["1+1="], 3, sampling, 1)
    assert [one.text for one in group] == ["1+1="] * 3
    model = open_contributor("fake:8")
    assert isinstance(model, ChatModel)
    assert [[one.text for one in group] for group in model.sample(["?", "!"], 2, sampling, 1)] == [
        ["8", "8"]
    ] * 2


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("", "no group"),
        ("{", "line 1"),
        ('{"family": "sums", "parameters": {}, "completions": [{"text": "1"}]}', "two completions"),
        ('{"family": 3}', "line 1"),
        (
            '{"family": "summs", "parameters": {}, "completions": [{"text": "1"}, {"text": "2"}]}',
            "line 1: no task is called 'summs'; did you mean sums",
        ),
    ],
)
def test_files_of_rollouts_are_read_with_care(tmp_path: Path, content: str, words: str) -> None:
    path = tmp_path / "rollouts.jsonl"
    path.write_text(content)
    with pytest.raises(ConfigError, match=words):
        read_prepared(path)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_prepared(tmp_path / "none")


def test_a_journal_of_another_node_is_refused() -> None:
    journal = MemoryJournal()
    make_node(small(seed=1), journal=journal)
    with pytest.raises(RunError, match="seed"):
        make_node(small(seed=2), journal=journal)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"seed": -1}, "seed: Expected `int` >= 0"),
        ({"selection": "zz"}, "selection: Invalid enum value 'zz'"),
        ({"nodes": 0}, "nodes: Expected `int` >= 1"),
        ({"steps": math.nan}, "steps: Expected `int`"),
        ({"local": 1025}, "local: Expected `int` <= 1024"),
        ({"learning": Learning(learning_rate=1e300)}, "learning.learning_rate: Expected `float` <= 10"),
        ({"learning": Learning(inner_steps=0)}, "learning.inner_steps: Expected `int` >= 1"),
        ({"pool": PoolLimits(staleness=-1)}, "pool.staleness: Expected `int` >= 0"),
    ],
)
def test_bounds_hold_for_settings_made_in_python_too(change: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError) as raised:
        small(**change).check()
    assert words in str(raised.value)


def test_a_question_moves_no_cursor_of_the_person_who_reads_it(capsys: pytest.CaptureFixture[str]) -> None:
    lines = iter(["1", "2"])
    Person(lambda _: next(lines)).sample(["\x1b[31mQ\x07\u202e\x00\n1+1="], 2, Sampling(8, 1.0), 1)
    shown = capsys.readouterr().err
    assert "�[31mQ���\n1+1=" in shown
    assert "\x1b" not in shown
