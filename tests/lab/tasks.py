"""Tasks for experiments that do nothing but count; `python -m tests.lab.tasks FOLDER` runs one, to be killed."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import msgspec

from shoal.lab.experiment import Arm, Experiment, Plan, Trial
from shoal.lab.running import Advance, run_trials
from shoal.node.drive import Stop
from shoal.runs import derive

STEPS = 8


def plan(seeds: int = 3, **settings: object) -> Plan:
    arms = [
        Arm(name, name.title(), "test", {"factor": factor} | settings)
        for factor, name in ((1, "plain"), (3, "strong"))
    ]
    return Plan("A test", tuple(arms), tuple(range(seeds)))


def count(trial: Trial, stop: Stop, advance: Advance) -> bytes | None:
    """Adds up STEPS drawn numbers, one file each, and tallies the work so that tests see what was done twice."""
    folder = Path(trial.folder)
    folder.mkdir(parents=True, exist_ok=True)
    for step in range(STEPS):
        advance(step / STEPS)
        if stop.requested:
            return None
        if (folder / f"{step}").exists():
            continue
        time.sleep(float(trial.settings.get("pause", 0)))
        value = derive(trial.seed, trial.arm, step).random() * trial.settings["factor"]
        aside = folder / ".aside"
        aside.write_text(repr(value))
        aside.rename(folder / f"{step}")
    return msgspec.json.encode(sum(float((folder / f"{step}").read_text()) for step in range(STEPS)))


def fail_once_in_three(trial: Trial, stop: Stop, advance: Advance) -> bytes | None:
    if trial.seed == 1 and trial.arm == "plain":
        raise ValueError("seed 1 is <unlucky>")
    if trial.seed == 1:
        os._exit(7)
    return count(trial, stop, advance)


if __name__ == "__main__":
    with Experiment.begin(Path(sys.argv[1]), plan(seeds=2, pause=0.03)) as running, Stop() as wish:
        print("running", flush=True)
        print(run_trials(running, count, workers=2, stop=wish), flush=True)
