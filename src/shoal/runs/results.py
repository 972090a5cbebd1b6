"""The results of an experiment, as `results.json`: written by `lab`, read by `report`, knowing neither. The
same runs give the same bytes; only `made` tells how and when it came about."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, TypeVar

import msgspec

from shoal.errors import RunError
from shoal.files import write_whole
from shoal.runs.markup import element, number, table, with_sign
from shoal.runs.papers import BesidePaper
from shoal.runs.search import Axis, Contest, Placed
from shoal.runs.tables import MOST_ROWS, data_frame

RESULTS = "results.json"
EXPERIMENT = "experiment.json"
"""The plan of an experiment, which marks its folder."""
FORMAT = "shoal.results"
VERSION = 2

Expected = TypeVar("Expected")


class Estimate(msgspec.Struct, frozen=True):
    """The mean of `runs` runs and its 95 % interval; one run has none."""

    value: float
    low: float | None
    high: float | None
    runs: int

    def shown(self, digits: int, *, signed: bool = False) -> str:
        """ "1.5 [0.2, 2.8]", or "+1.5 [0.2, 2.8]" for a difference; an interval without width is left out."""
        text = with_sign(self.value, digits) if signed else number(self.value, digits)
        if self.low is None or self.high is None or (self.low == self.high and not signed):
            return text
        return f"{text} [{number(self.low, digits)}, {number(self.high, digits)}]"


class Metric(msgspec.Struct, frozen=True):
    """A number of each run, result or effort. `better` is "greater", "less", or "" where neither is."""

    name: str
    title: str
    meaning: str
    unit: str = ""
    digits: int = 2
    better: str = ""
    kind: Literal["outcome", "effort"] = "outcome"

    @property
    def heading(self) -> str:
        return f"{self.title} ({self.unit})" if self.unit else self.title


class RunValues(msgspec.Struct, frozen=True):
    seed: int
    values: dict[str, float | None]


class ArmResults(msgspec.Struct, frozen=True):
    """An arm's finished runs; a metric that some of them lack is not estimated."""

    name: str
    title: str
    family: str
    runs: list[RunValues]
    estimates: dict[str, Estimate]


class Group(msgspec.Struct, frozen=True):
    """A row of several arms: "mean of the solo arms". `chosen` names the arm it takes for each metric."""

    name: str
    title: str
    estimates: dict[str, Estimate]
    chosen: dict[str, str] = {}


class Difference(msgspec.Struct, frozen=True):
    """Our arm less the other, paired by seed."""

    metric: str
    ours: str
    against: str
    difference: Estimate
    superiority: float
    verdict: str

    @property
    def is_shown(self) -> bool:
        return self.verdict in ("greater", "less")

    def judgement(self, metric: Metric) -> str:
        """ "better", "worse", or nothing where neither can be said."""
        if not metric.better or not self.is_shown:
            return ""
        return "better" if self.verdict == metric.better else "worse"


class Curve(msgspec.Struct, frozen=True):
    """A metric along `x`; `low` and `high` are empty where there is no interval."""

    chart: str
    title: str
    x: list[float]
    value: list[float]
    low: list[float]
    high: list[float]


class Chart(msgspec.Struct, frozen=True, omit_defaults=True):
    """The frame of the curves with its name. One that stands `beside_paper` names the `source`, the paper's
    figure, or "" where the paper has none; `told` says what lines and bands are. `digits` are those of the
    values in its legend."""

    name: str
    title: str
    x_title: str
    y_title: str
    beside_paper: bool = False
    source: str = ""
    told: str = ""
    digits: int = 1


class ArchiveMap(msgspec.Struct, frozen=True):
    """The merged archive of one run of `models`. `evaluation` says against whom its numbers were found."""

    arm: str
    title: str
    seed: int
    evaluation: str
    models: list[str]
    axes: list[Axis]
    cells: list[Placed]


class Exhibit(msgspec.Struct, frozen=True):
    """A program worth showing, and where it came from. Its text may come from anyone."""

    arm: str
    seed: int
    fitness: float
    source: str
    contest: Contest | None = None


class Failure(msgspec.Struct, frozen=True):
    arm: str
    seed: int
    message: str


class Session(msgspec.Struct, frozen=True):
    """One time that the command ran. If it was killed, `seconds` lacks its last ones."""

    started_at: str
    seconds: float
    workers: int
    command: list[str]
    versions: dict[str, str]


class Made(msgspec.Struct, frozen=True):
    sessions: list[Session]
    run_seconds: float


class Results(msgspec.Struct, frozen=True):
    """The runs were searches ("evolve") or training swarms ("train"). Results of 0.1 have no `beside`."""

    title: str
    seeds: list[int]
    settings: dict[str, Any]
    metrics: list[Metric]
    arms: list[ArmResults]
    groups: list[Group]
    differences: list[Difference]
    sentences: list[str]
    charts: list[Chart]
    curves: list[Curve]
    maps: list[ArchiveMap]
    best: Exhibit | None
    failures: list[Failure]
    missing: int
    made: Made
    application: Literal["evolve", "train"] = "evolve"
    beside: BesidePaper | None = None
    format: str = FORMAT
    version: int = VERSION

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame` with one row per arm, seed and metric."""
        rows = [
            {"arm": arm.name, "seed": run.seed, "metric": metric, "value": value}
            for arm in self.arms
            for run in arm.runs
            for metric, value in run.values.items()
        ]
        return data_frame(rows, ("arm", "seed", "metric", "value"))

    def _repr_html_(self) -> str:
        metrics = [metric for metric in self.metrics if metric.kind == "outcome"]
        rows = [
            [arm.title, str(len(arm.runs))]
            + [
                arm.estimates[one.name].shown(one.digits) if one.name in arm.estimates else "–"
                for one in metrics
            ]
            for arm in self.arms[:MOST_ROWS]
        ]
        headings = ("arm", "runs", *(metric.heading for metric in metrics))
        return element("div", element("p", self.title), table(headings, rows))


def write_results(folder: Path, results: Results) -> Path:
    path = folder / RESULTS
    write_json(path, results)
    return path


def read_results(folder: Path) -> Results:
    """The results in `folder`; RunError says why there are none."""
    path = folder / RESULTS
    results = read_json(path, Results, "these are not the results of an experiment")
    if (results.format, results.version) != (FORMAT, VERSION):
        raise RunError(
            f"{path}: this is {results.format} version {results.version}, not {FORMAT} version {VERSION}. "
            "Run the experiment's command again: its finished runs are kept, the results written anew."
        )
    return results


def write_json(path: Path, value: object) -> None:
    write_whole(path, msgspec.json.format(msgspec.json.encode(value), indent=1) + b"\n")


def read_json(path: Path, expected: type[Expected], refusal: str) -> Expected:
    """The value at `path`; RunError with `refusal` for any other content."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=expected)
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror}.") from error
    except msgspec.DecodeError as error:
        raise RunError(f"{path}: {refusal}: {error}.") from error
