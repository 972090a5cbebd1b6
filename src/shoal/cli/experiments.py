"""Experiments from the command line: the runs with progress, and the table of results."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli.options import option

if TYPE_CHECKING:
    from shoal.lab.experiment import Plan
    from shoal.lab.running import Progress
    from shoal.runs.results import ArmResults, Estimate, Group, Metric, Results

MOST_SEEDS = 1000

Workers = Annotated[
    int | None, option("--workers", "N", "Runs at a time, by default one per core.", min=1, max=1024)
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show the arms, run nothing.")]


def carry_out(
    plan: Plan,
    out: Path,
    workers: int | None,
    in_terminal: Sequence[str],
    *,
    json: bool,
    quiet: bool,
) -> None:
    """Does the rest of the experiment in `out`, writes results and report, and prints the metrics
    `in_terminal`, or with `quiet` the report's place. Exits with 2 if a run failed and with 130 if it was
    stopped."""
    from shoal.applications import APPLICATIONS
    from shoal.cli import INTERRUPTED, UNUSABLE
    from shoal.cli.output import note, print_json
    from shoal.cli.running import announcing_stop
    from shoal.lab.experiment import Experiment
    from shoal.lab.running import run_arm, run_trials
    from shoal.node.drive import Stop
    from shoal.report.experiment import write_report
    from shoal.runs.results import write_results

    workers = workers or _cores()
    with Experiment.begin(out, plan) as experiment:
        if experiment.unfinished():
            experiment.begin_session(["shoal", *sys.argv[1:]], workers)
        with (
            Stop() as stop,
            _progress(quiet=quiet, json=json) as (tell, say),
            announcing_stop(stop, say),
        ):
            complete = run_trials(experiment, run_arm, workers=workers, stop=stop, tell=tell)
        application = APPLICATIONS[plan.arms[0].settings["application"]]
        results = application.load("findings")(experiment)
        write_results(experiment.path, results)
        report = write_report(experiment.path)
    if json:
        import msgspec

        print_json(msgspec.to_builtins(results))
    elif quiet:
        print(report)
    else:
        print_results(results, in_terminal)
        print(f"report: {report}")
    if not complete:
        for failure in results.failures:
            note(f"{failure.arm}, seed {failure.seed} failed: {failure.message}")
        note(f"{results.missing} of {len(experiment.trials())} runs are missing; the same command goes on.")
        raise typer.Exit(INTERRUPTED if stop.requested else UNUSABLE)


def print_results(results: Results, in_terminal: Sequence[str]) -> None:
    """The main columns of the table, and the sentences about it."""
    from shoal.cli.output import clean, print_table

    metrics = [metric for metric in results.metrics if metric.name in in_terminal]
    rows: list[ArmResults | Group] = [*results.arms, *results.groups]
    print_table(
        ["arm", *(f"{metric.title}{f' {metric.unit}' if metric.unit else ''}" for metric in metrics)],
        [[one.title, *(_cell(one.estimates.get(metric.name), metric) for metric in metrics)] for one in rows],
    )
    for sentence in results.sentences:
        print(f"\n{clean(sentence, 2000)}")
    print()


def _cell(estimate: Estimate | None, metric: Metric) -> str:
    if estimate is None:
        return "-"
    text = f"{estimate.value:,.{metric.digits}f}"
    if estimate.low is None or estimate.high is None or estimate.low == estimate.high:
        return text
    return f"{text} [{estimate.low:,.{metric.digits}f}, {estimate.high:,.{metric.digits}f}]"


def show_plan(plan: Plan, columns: Mapping[str, Callable[[dict[str, Any]], object]], json: bool) -> None:
    """The arms, with these columns from their settings."""
    from shoal.cli.output import LONGEST_LINE, print_json, print_table

    if json:
        import msgspec

        print_json(msgspec.to_builtins(plan))
        return
    print_table(
        ["arm", *columns, "description"],
        [[arm.name, *(of(arm.settings) for of in columns.values()), arm.title] for arm in plan.arms],
        longest=LONGEST_LINE,
    )
    print(f"{len(plan.arms)} arms × {len(plan.seeds)} seeds = {len(plan.arms) * len(plan.seeds)} runs")


@contextmanager
def _progress(
    *, quiet: bool, json: bool
) -> Iterator[tuple[Callable[[Progress], None], Callable[[str], None]]]:
    """Two functions: one shows the progress, one prints a line beside it. On a terminal the progress is a bar
    with an estimate, elsewhere a line for each run that ends: an object with `json`, nothing with `quiet`."""
    from shoal.cli.output import clean, note
    from shoal.report.page import duration

    def ended(progress: Progress) -> str:
        trial = progress.ended
        assert trial is not None
        if progress.stopped:
            return f"{trial.arm}, seed {trial.seed}: stopped after {duration(progress.seconds)}"
        how = f"failed: {clean(progress.failed, 200)}" if progress.failed else duration(progress.seconds)
        left = f"; about {duration(progress.seconds_left)} left" if progress.seconds_left else ""
        return f"{progress.finished}/{progress.total} {trial.arm}, seed {trial.seed}: {how}{left}"

    if quiet:
        yield lambda _: None, lambda _: None
        return
    if json:
        yield lambda progress: _print_object(progress) if progress.ended else None, lambda _: None
        return
    if not sys.stderr.isatty():
        yield lambda progress: note(ended(progress)) if progress.ended else None, note
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress as Bar, TextColumn

    columns = (TextColumn("{task.fields[runs]} runs"), BarColumn(), TextColumn("{task.fields[left]}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0, runs="0", left="")

        def tell(progress: Progress) -> None:
            left = f"about {duration(progress.seconds_left)} left" if progress.seconds_left else ""
            runs = f"{progress.finished}/{progress.total}"
            bar.update(task, completed=progress.share, runs=runs, left=left)
            if progress.failed or progress.stopped:
                bar.console.print(ended(progress), markup=False, highlight=False)

        yield tell, lambda text: bar.console.print(text, markup=False, highlight=False)


def _print_object(progress: Progress) -> None:
    import json

    assert progress.ended is not None
    found = {
        "finished": progress.finished,
        "total": progress.total,
        "arm": progress.ended.arm,
        "seed": progress.ended.seed,
        "seconds": progress.seconds,
        "seconds_left": progress.seconds_left,
        "failed": progress.failed,
        "stopped": progress.stopped,
    }
    print(json.dumps(found), file=sys.stderr, flush=True)


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
