"""An experiment: named arms × seeds, one folder, finished run by run.

    experiment.json             the plan: arms with their settings, seeds; written first
    sessions.json               when and with what the command ran
    runs/<arm>/<seed>/          the folder of one run, filled by the arm's task
    outcomes/<arm>/<seed>.json  the result of a finished run
    failures/<arm>/<seed>.txt   the reason of the last failure; the run is tried again the next time
    contests/                   results of champions that runs have in common, so that none is found twice
    .owner                      locked by the process that runs it

Every file is whole or not there, so a kill at any moment costs only the time of the runs under way.
"""

from __future__ import annotations

import os
import re
import time
from pathlib import Path
from typing import Any

import msgspec

from shoal.applications import APPLICATIONS
from shoal.errors import ConfigError, RunError
from shoal.files import write_whole
from shoal.runs.folder import versions
from shoal.runs.lock import Owner, claim, release
from shoal.runs.results import EXPERIMENT, Failure, Session, read_json, write_json

SESSIONS = "sessions.json"
CONTESTS = "contests"
FORMAT = "shoal.experiment"
VERSION = 1
MOST_FAILURE_CHARACTERS = 20_000
_ARM_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


class Arm(msgspec.Struct, frozen=True):
    """One way to do it. `name` is also a folder's; `settings` is all that its runs depend on but the seed."""

    name: str
    title: str
    family: str
    settings: dict[str, Any]


class Plan(msgspec.Struct, frozen=True):
    """The arms and seeds. All runs depend on `common` beside their arm's settings."""

    title: str
    arms: tuple[Arm, ...]
    seeds: tuple[int, ...]
    common: dict[str, Any] = {}

    def __post_init__(self) -> None:
        names = [arm.name for arm in self.arms]
        if not names or not self.seeds:
            raise ConfigError("an experiment needs one or more arms and one or more seeds")
        if len(set(names)) < len(names) or len(set(self.seeds)) < len(self.seeds):
            raise ConfigError("an arm or a seed of the experiment is named twice: each may be there once")
        for name in names:
            if not _ARM_NAME.fullmatch(name):
                raise ConfigError(f"arm {name!r}: use small letters, digits, '-', '_' or '.', at most 100")


class Trial(msgspec.Struct, frozen=True):
    """One arm with one seed; its run lives in `folder`."""

    arm: str
    seed: int
    settings: dict[str, Any]
    common: dict[str, Any]
    folder: str


class TrialResult(msgspec.Struct, frozen=True):
    """The result of a run, and the `seconds` of work in the session that finished it."""

    seconds: float
    result: msgspec.Raw


class _Manifest(msgspec.Struct, frozen=True):
    plan: Plan
    format: str = FORMAT
    version: int = VERSION


class Experiment(Owner):
    """Made by `begin`, which owns the folder until `close`, or by `look` for reading only."""

    def __init__(self, path: Path, plan: Plan, lock: int | None) -> None:
        self.path = path
        self.plan = plan
        self._owned = lock
        self._session: Session | None = None
        self._began = time.monotonic()
        self._earlier = _read_sessions(path)

    @classmethod
    def begin(cls, path: Path, plan: Plan) -> Experiment:
        """Starts the experiment at `path`, or goes on with it. More arms and seeds may be added to one that
        is there; RunError names the first other thing that differs."""
        path = path.absolute()
        if not (path / EXPERIMENT).is_file() and path.exists() and (not path.is_dir() or any(path.iterdir())):
            raise RunError(f"{path}: this is not empty and not an experiment. Name a new folder.")
        path.mkdir(parents=True, exist_ok=True)
        lock = claim(
            path / ".owner",
            os.O_RDWR | os.O_CREAT,
            f"{path}: another process is running this experiment. Stop it first; reading needs no lock.",
        )
        try:
            if (path / EXPERIMENT).is_file():
                _refuse_other(path, _read_plan(path), plan)
            write_json(path / EXPERIMENT, _Manifest(plan))
        except BaseException:
            release(lock)
            raise
        return cls(path, plan, lock)

    @classmethod
    def look(cls, path: Path) -> Experiment:
        """The experiment for reading, also while another process runs it."""
        path = path.absolute()
        return cls(path, _read_plan(path), None)

    def trials(self) -> list[Trial]:
        """All of them, seed by seed, so that a half-done experiment has all arms of its first seeds."""
        runs, common = self.path / "runs", self.plan.common
        return [
            Trial(arm.name, seed, arm.settings, common, str(runs / arm.name / str(seed)))
            for seed in self.plan.seeds
            for arm in self.plan.arms
        ]

    def unfinished(self) -> list[Trial]:
        return [trial for trial in self.trials() if not self.outcome_path(trial.arm, trial.seed).is_file()]

    def outcome_path(self, arm: str, seed: int) -> Path:
        return self.path / "outcomes" / arm / f"{seed}.json"

    def failure_path(self, arm: str, seed: int) -> Path:
        return self.path / "failures" / arm / f"{seed}.txt"

    def outcome(self, arm: str, seed: int) -> TrialResult | None:
        path = self.outcome_path(arm, seed)
        try:
            return msgspec.json.decode(path.read_bytes(), type=TrialResult)
        except FileNotFoundError:
            return None
        except (OSError, msgspec.DecodeError) as error:
            remedy = "Delete it, and the run is done again."
            raise RunError(f"{path}: cannot be read: {error}. {remedy}") from error

    def record(self, trial: Trial, result: bytes, seconds: float) -> None:
        outcome = TrialResult(round(seconds, 3), msgspec.Raw(result))
        write_whole(self.outcome_path(trial.arm, trial.seed), msgspec.json.encode(outcome) + b"\n")
        self.failure_path(trial.arm, trial.seed).unlink(missing_ok=True)

    def record_failure(self, trial: Trial, message: str) -> None:
        kept = message[:MOST_FAILURE_CHARACTERS].encode("utf-8", "replace")
        write_whole(self.failure_path(trial.arm, trial.seed), kept + b"\n")

    def failures(self) -> list[Failure]:
        """The runs whose last attempt failed, with the first line of the message."""
        found = []
        for trial in self.unfinished():
            path = self.failure_path(trial.arm, trial.seed)
            if path.is_file():
                first = path.read_text("utf-8", "replace").strip().partition("\n")[0]
                found.append(Failure(trial.arm, trial.seed, first))
        return found

    def begin_session(self, command: list[str], workers: int) -> None:
        started = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
        self._began = time.monotonic()
        self._session = Session(started, 0.0, workers, command, versions())
        self.mark_time()

    def mark_time(self, every: float = 0.0) -> None:
        """Writes down how long this session has lasted, at most once in `every` seconds."""
        seconds = round(time.monotonic() - self._began, 1)
        if self._session is not None and seconds >= self._session.seconds + every:
            self._session = msgspec.structs.replace(self._session, seconds=seconds)
            write_json(self.path / SESSIONS, self.sessions())

    def sessions(self) -> list[Session]:
        return [*self._earlier, *([self._session] if self._session else [])]


def _read_plan(path: Path) -> Plan:
    file = path / EXPERIMENT
    manifest = read_json(file, _Manifest, "this is not an experiment")
    if (manifest.format, manifest.version) != (FORMAT, VERSION):
        raise RunError(
            f"{file}: this is {manifest.format} version {manifest.version}; this release goes on with "
            f"{FORMAT} version {VERSION} only. Name a new folder."
        )
    return manifest.plan


def _read_sessions(path: Path) -> list[Session]:
    try:
        return msgspec.json.decode((path / SESSIONS).read_bytes(), type=list[Session])
    except FileNotFoundError:
        return []
    except (OSError, msgspec.DecodeError) as error:
        raise RunError(f"{path / SESSIONS}: cannot be read: {error}. Delete it to go on.") from error


def _refuse_other(path: Path, there: Plan, wanted: Plan) -> None:
    """RunError unless `wanted` is the plan that is `there`, or more of it."""
    # Through JSON, so that a tuple and a list, or 1 and 1.0, do not count as different.
    there, wanted = (
        msgspec.json.decode(msgspec.json.encode(plan), type=Plan) for plan in (_completed(there), wanted)
    )
    now = {arm.name: arm.settings for arm in wanted.arms}
    differences = [_first_difference(there.common, wanted.common)]
    for arm in there.arms:
        if arm.name not in now:
            differences.append(f"it has an arm {arm.name} that is not asked for")
        elif found := _first_difference(arm.settings, now[arm.name]):
            differences.append(f"{found} (arm {arm.name})")
    left_out = [seed for seed in there.seeds if seed not in wanted.seeds]
    differences += [f"it has seed {seed} that is not asked for" for seed in left_out]
    if difference := next(filter(None, differences), ""):
        raise RunError(
            f"{path}: there is another experiment here: {difference}. "
            "Give the same settings to go on with it, or name a new folder."
        )


def _completed(plan: Plan) -> Plan:
    """The plan with the defaults of settings that it does not have because they are newer than it is."""
    arms = [msgspec.structs.replace(arm, settings=_with_defaults(arm.settings)) for arm in plan.arms]
    return msgspec.structs.replace(plan, arms=tuple(arms))


def _with_defaults(settings: dict[str, Any]) -> dict[str, Any]:
    application = APPLICATIONS.get(settings.get("application", ""))
    if application is None:
        return settings
    kind = application.load("crew").settings_type
    try:
        found: dict[str, Any] = msgspec.to_builtins(msgspec.convert({**settings, "seed": 0}, kind))
    except msgspec.ValidationError:  # settings of another release: the difference is named as it is
        return settings
    del found["seed"]
    return found


def _first_difference(there: dict[str, Any], wanted: dict[str, Any]) -> str:
    for key in sorted({*there, *wanted}):
        if there.get(key) != wanted.get(key):
            return f"{key} is {_shown(there.get(key))} there and {_shown(wanted.get(key))} now"
    return ""


def _shown(value: object) -> str:
    text = msgspec.json.encode(value).decode()
    return text if len(text) <= 80 else text[:79] + "…"
