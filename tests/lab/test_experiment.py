"""An experiment is finished run by run, is the same one or refused, and survives being killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec
import pytest

from shoal.errors import ConfigError, RunError
from shoal.evolve.settings import EvolveSettings
from shoal.lab.compare import plan_comparison
from shoal.lab.experiment import Arm, Experiment, Plan
from shoal.lab.running import Progress, run_trials
from shoal.node.drive import Stop
from tests.lab.tasks import STEPS, count, fail_once_in_three, plan

pytestmark = pytest.mark.timeout(120)


def outcomes(folder: Path) -> dict[tuple[str, int], bytes]:
    experiment = Experiment.look(folder)
    found = {
        (trial.arm, trial.seed): experiment.outcome(trial.arm, trial.seed) for trial in experiment.trials()
    }
    return {key: bytes(outcome.result) for key, outcome in found.items() if outcome}


def start(folder: Path) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "tests.lab.tasks", str(folder)]
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0, start_new_session=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"running\n", process.communicate(timeout=30)[1]
    return process


def test_every_run_has_an_outcome_and_none_is_done_twice(tmp_path: Path) -> None:
    told: list[Progress] = []
    with Experiment.begin(tmp_path / "e", plan(seeds=2)) as experiment:
        experiment.begin_session(["shoal", "test"], 2)
        assert run_trials(experiment, count, workers=2, stop=Stop(), tell=told.append)
        assert [(one.finished, one.failed) for one in told if one.ended] == [(n, "") for n in range(1, 5)]
        assert told[-1].share == 1
        told.clear()
        assert run_trials(experiment, count, workers=2, stop=Stop(), tell=told.append)
        assert told == []
    assert len(outcomes(tmp_path / "e")) == 4
    (session,) = Experiment.look(tmp_path / "e").sessions()
    assert session.seconds > 0
    assert session.command == ["shoal", "test"]


def test_a_run_that_fails_is_reported_and_the_others_go_on(tmp_path: Path) -> None:
    with Experiment.begin(tmp_path / "e", plan(seeds=2)) as experiment:
        assert not run_trials(experiment, fail_once_in_three, workers=2, stop=Stop())
        assert {(one.arm, one.seed, one.message) for one in experiment.failures()} == {
            ("plain", 1, "ValueError: seed 1 is <unlucky>"),
            ("strong", 1, "its process ended with exit code 7 and no word"),
        }
        assert len(outcomes(tmp_path / "e")) == 2
        assert "Traceback" in experiment.failure_path("plain", 1).read_text()
        assert run_trials(experiment, count, workers=1, stop=Stop()), "a failed run is tried again"
        assert experiment.failures() == []


def test_killed_again_and_again_it_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    undisturbed = start(tmp_path / "undisturbed")
    for delay in (0.3, 0.7):
        process = start(tmp_path / "killed")
        time.sleep(delay)
        process.send_signal(signal.SIGKILL)
        process.communicate(timeout=30)
    steps = list((tmp_path / "killed" / "runs").rglob("[0-9]"))
    time.sleep(0.4)
    assert len(list((tmp_path / "killed" / "runs").rglob("[0-9]"))) <= len(steps) + 2, "children went on"
    process = start(tmp_path / "killed")
    assert process.communicate(timeout=60)[0] == b"True\n"
    assert undisturbed.communicate(timeout=60)[0] == b"True\n"
    assert outcomes(tmp_path / "killed") == outcomes(tmp_path / "undisturbed")


def test_asked_to_stop_it_stops_its_runs_and_goes_on_later(tmp_path: Path) -> None:
    process = start(tmp_path / "e")
    while not list((tmp_path / "e" / "runs").rglob("[0-9]")):
        time.sleep(0.02)
    os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: the children get it too
    assert process.communicate(timeout=30) == (b"False\n", b"")
    begun = len(list((tmp_path / "e" / "runs").rglob("[0-9]")))
    assert 0 < begun < 4 * STEPS
    assert Experiment.look(tmp_path / "e").failures() == []
    assert start(tmp_path / "e").communicate(timeout=60)[0] == b"True\n"


def test_a_run_that_was_stopped_is_not_told_like_one_that_is_done(tmp_path: Path) -> None:
    stop = Stop()
    told: list[Progress] = []

    def tell(progress: Progress) -> None:
        stop.request()
        if progress.ended is not None:
            told.append(progress)

    with Experiment.begin(tmp_path / "e", plan(seeds=1, pause=0.3)) as experiment:
        assert not run_trials(experiment, count, workers=2, stop=stop, tell=tell)
    assert [(one.stopped, one.failed, one.finished) for one in told] == [(True, "", 0)] * 2
    told.clear()
    with Experiment.begin(tmp_path / "e", plan(seeds=1, pause=0.3)) as experiment:
        assert run_trials(experiment, count, workers=2, stop=Stop(), tell=tell)
    assert [(one.stopped, one.finished) for one in told] == [(False, 1), (False, 2)]


def test_another_experiment_in_the_same_folder_is_refused(tmp_path: Path) -> None:
    Experiment.begin(tmp_path / "e", plan(calls=60)).close()
    with pytest.raises(RunError, match=r"calls is 60 there and 80 now \(arm plain\).*new folder"):
        Experiment.begin(tmp_path / "e", plan(calls=80))
    with pytest.raises(RunError, match="it has seed 2 that is not asked for"):
        Experiment.begin(tmp_path / "e", plan(seeds=2, calls=60))
    fewer = Plan("A test", plan(calls=60).arms[:1], (0, 1, 2))
    with pytest.raises(RunError, match="it has an arm strong that is not asked for"):
        Experiment.begin(tmp_path / "e", fewer)
    common = Plan("A test", plan(calls=60).arms, (0, 1, 2), {"held_out": "abc"})
    with pytest.raises(RunError, match='held_out is null there and "abc" now'):
        Experiment.begin(tmp_path / "e", common)


def test_seeds_can_be_added_to_an_experiment(tmp_path: Path) -> None:
    Experiment.begin(tmp_path / "e", plan(seeds=2)).close()
    with Experiment.begin(tmp_path / "e", plan(seeds=4)) as experiment:
        assert len(experiment.unfinished()) == 8


def test_only_one_process_runs_it_and_only_in_its_own_folder(tmp_path: Path) -> None:
    with (
        Experiment.begin(tmp_path / "e", plan()),
        pytest.raises(RunError, match="another process is running this"),
    ):
        Experiment.begin(tmp_path / "e", plan())
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letter.txt").write_text("dear")
    with pytest.raises(RunError, match="not empty and not an experiment"):
        Experiment.begin(tmp_path / "mine", plan())
    with pytest.raises(RunError, match="cannot be read"):
        Experiment.look(tmp_path / "mine")


def test_a_plan_that_makes_no_sense_is_refused() -> None:
    arm = Arm("a", "A", "", {})
    for arms, seeds in [((), (1,)), ((arm,), ()), ((arm, arm), (1,)), ((arm,), (1, 1))]:
        with pytest.raises(ConfigError):
            Plan("", arms, seeds)
    with pytest.raises(ConfigError, match="small letters"):
        Plan("", (Arm("../up", "A", "", {}),), (1,))


def test_a_setting_that_is_newer_than_the_experiment_has_its_default_there(tmp_path: Path) -> None:
    new = plan_comparison(EvolveSettings(models=("builtin:bomber", "builtin:scanner"), calls=60), 1)
    old = msgspec.structs.replace(
        new,
        arms=tuple(
            msgspec.structs.replace(
                arm, settings={key: value for key, value in arm.settings.items() if key != "held_out_size"}
            )
            for arm in new.arms
        ),
    )
    Experiment.begin(tmp_path / "e", old).close()
    Experiment.begin(tmp_path / "e", new).close()
    Experiment.begin(tmp_path / "f", old).close()
    other = plan_comparison(
        EvolveSettings(models=("builtin:bomber", "builtin:scanner"), calls=60, held_out_size="all"), 1
    )
    with pytest.raises(RunError, match='held_out_size is 20 there and "all" now'):
        Experiment.begin(tmp_path / "f", other)
