"""Doing an experiment's runs side by side, each in a process of its own. A run that has an outcome is not
done again, one that was interrupted goes on in its folder, and one that fails is recorded while the others go
on. However this process ends, its children end with it."""

from __future__ import annotations

import math
import multiprocessing
import os
import shutil
import signal
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from multiprocessing import connection, resource_tracker
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

import msgspec

from shoal.applications import APPLICATIONS
from shoal.errors import RunError, ShoalError
from shoal.lab.experiment import CONTESTS, Experiment, Trial
from shoal.node.drive import Stop
from shoal.node.running import run_crew

Advance = Callable[[float], None]
Task = Callable[[Trial, Stop, Advance], bytes | None]
"""Does a run in `trial.folder`, from its beginning or from where it was left, and gives its result as JSON;
None if it was stopped. `advance` hears now and then of the share that is done, 0 to 1. Another process has to
find it, so it is a function of a module."""

LONGEST_WAIT = 0.2
SECONDS_BETWEEN_ADVANCES = 0.5
SECONDS_BETWEEN_MARKS = 10.0
SHARE_OF_RUN = 0.9
"""The part of a run's time that its search or training takes; its champions' contests have the rest."""


@dataclass(frozen=True, slots=True)
class Progress:
    """The state of the experiment, told now and then and when a run has `ended`: because it `failed`, was
    `stopped`, or is done. `seconds_left` is None until there is something to go by."""

    finished: int
    total: int
    share: float
    seconds_left: float | None
    ended: Trial | None = None
    seconds: float = 0.0
    failed: str = ""
    stopped: bool = False


class _Message(msgspec.Struct):
    """From a child: `share` while it runs; `ended` with the last one, `failed` if it did."""

    share: float = 0.0
    ended: bool = False
    failed: str = ""


@dataclass(slots=True)
class _Running:
    trial: Trial
    process: SpawnProcess
    started: float
    share: float = 0.0
    share_at_start: float = 0.0
    heard: bool = False
    failed: str | None = None


def run_trials(
    experiment: Experiment,
    task: Task,
    *,
    workers: int,
    stop: Stop,
    tell: Callable[[Progress], None] = lambda _: None,
) -> bool:
    """Does all unfinished runs of the experiment, `workers` at a time. True once every run has an outcome."""
    total = len(experiment.trials())
    waiting = deque(experiment.unfinished())
    running: dict[Connection, _Running] = {}
    pace = _Pace(total, total - len(waiting))
    asked_to_stop = False
    try:
        while running or (waiting and not stop.requested):
            while waiting and len(running) < workers and not stop.requested:
                receiving, one = _start(experiment, task, waiting.popleft())
                running[receiving] = one
            if stop.requested and not asked_to_stop:
                asked_to_stop = True
                for one in running.values():
                    one.process.terminate()
            experiment.mark_time(SECONDS_BETWEEN_MARKS)
            ready = set(connection.wait(list(running), LONGEST_WAIT))
            for receiving, one in [entry for entry in running.items() if entry[0] in ready]:
                if _listen(receiving, one):
                    tell(pace.progress(running.values()))
                    continue
                del running[receiving]
                receiving.close()
                done = _conclude(experiment, one, asked_to_stop)
                if done:
                    pace.finish(one)
                seconds, failed = time.monotonic() - one.started, one.failed or ""
                progress = pace.progress(running.values())
                stopped = not done and not failed
                tell(replace(progress, ended=one.trial, seconds=seconds, failed=failed, stopped=stopped))
    finally:
        for one in running.values():
            one.process.kill()
            one.process.join()
        experiment.mark_time()
    return not experiment.unfinished()


class _Pace:
    def __init__(self, total: int, finished: int) -> None:
        self.total = total
        self.finished = finished
        self._began = time.monotonic()
        self._gained = 0.0

    def finish(self, one: _Running) -> None:
        self._gained += 1 - one.share_at_start
        self.finished += 1

    def progress(self, running: Iterable[_Running]) -> Progress:
        shares = [(one.share, one.share - one.share_at_start) for one in running]
        done = self.finished + sum(share for share, _ in shares)
        gained = self._gained + sum(gain for _, gain in shares)
        passed = time.monotonic() - self._began
        left = passed * (self.total - done) / gained if gained > 0.05 and passed > 1 else None
        return Progress(self.finished, self.total, done / self.total, left)


def _start(experiment: Experiment, task: Task, trial: Trial) -> tuple[Connection, _Running]:
    context = multiprocessing.get_context("spawn")  # a fork would copy threads' locks in any state
    receiving, sending = context.Pipe(duplex=False)
    process = context.Process(
        target=_child, args=(task, str(experiment.path), trial, sending), name=f"{trial.arm}/{trial.seed}"
    )
    Path(trial.folder).parent.mkdir(parents=True, exist_ok=True)
    # Ctrl-C reaches children too. They inherit it blocked, and stop when this process asks them to. The
    # tracker that comes with the first child would unblock it again, so it is started before.
    resource_tracker.ensure_running()
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    sending.close()
    return receiving, _Running(trial, process, time.monotonic())


def _listen(receiving: Connection, one: _Running) -> bool:
    """Takes one message; False if it was the last one or the child has died."""
    try:
        message = msgspec.msgpack.decode(receiving.recv_bytes(), type=_Message)
    except EOFError:
        return False
    if not one.heard and not message.ended:
        one.heard, one.share_at_start = True, message.share
    one.share = message.share
    if message.ended:
        one.failed = message.failed
    return not message.ended


def _conclude(experiment: Experiment, one: _Running, asked_to_stop: bool) -> bool:
    """Whether the run has an outcome. Records a failure unless it was asked to stop."""
    one.process.join()
    if experiment.outcome_path(one.trial.arm, one.trial.seed).is_file():
        one.failed = ""
        return True
    if one.failed is None and asked_to_stop:
        return False
    if one.failed is None:
        one.failed = f"its process ended with exit code {one.process.exitcode} and no word"
    if one.failed:
        experiment.record_failure(one.trial, one.failed)
        one.failed = one.failed.partition("\n")[0]
    return False


def _child(task: Task, path: str, trial: Trial, sending: Connection) -> None:
    """A run in its own process: does the task and writes the outcome itself."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    last = -math.inf

    def advance(share: float) -> None:
        nonlocal last
        if time.monotonic() - last >= SECONDS_BETWEEN_ADVANCES:
            last = time.monotonic()
            sending.send_bytes(msgspec.msgpack.encode(_Message(min(max(share, 0.0), 1.0))))

    failed = ""
    began = time.monotonic()
    try:
        with Stop() as stop:
            result = task(trial, stop, advance)
        if result is not None:
            Experiment.look(Path(path)).record(trial, result, time.monotonic() - began)
    except ShoalError as error:
        failed = f"{error}\n{traceback.format_exc()}"
    except Exception as error:  # whatever a task does wrong costs this run and no other
        failed = f"{type(error).__name__}: {error}\n{traceback.format_exc()}"
    sending.send_bytes(msgspec.msgpack.encode(_Message(1.0, ended=True, failed=failed)))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        connection.wait([parent.sentinel])
        os._exit(1)  # as a kill would; the run's own files are made for that


def run_arm(trial: Trial, stop: Stop, advance: Advance) -> bytes | None:
    """The task of an arm: one run, all its nodes in this process, in virtual time; the result is its summary.
    An interrupted run that costs nothing is done anew, so that an interruption never changes a result. One
    that is paid for goes on from where it was: calls without a recorded answer are lost."""
    application = APPLICATIONS[trial.settings["application"]]
    crew_type = application.load("crew")
    settings = msgspec.convert({**trial.settings, "seed": trial.seed}, crew_type.settings_type)
    crew, folder = crew_type(settings), Path(trial.folder)
    if crew.is_free and folder.exists():
        shutil.rmtree(folder)

    reason = run_crew(
        crew,
        folder,
        in_process=True,
        stop=stop,
        progress=lambda one: advance(SHARE_OF_RUN * one.done / one.total),
    )

    def goes_on(share: float) -> bool:
        advance(SHARE_OF_RUN + (1 - SHARE_OF_RUN) * share)
        return not stop.requested

    if reason == "finished":
        cache = folder.parents[2] / CONTESTS
        found = application.load("outcome")(folder, cache, goes_on)
        return None if found is None else msgspec.json.encode(found)
    if stop.requested:
        return None
    raise RunError(f"{folder}: the run ended before all its {crew.unit} were done: {reason}")
