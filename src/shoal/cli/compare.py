"""`shoal compare`: the DEI paper's experiment as one command."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli import rules

if TYPE_CHECKING:
    from shoal.lab.experiment import Plan
    from shoal.lab.running import Progress
    from shoal.runs.results import ArmResults, Estimate, Group, Metric, Results

MOST_SEEDS = 1000
IN_TERMINAL = ("coverage_common", "qd_score_common", "generality", "qd_score", "valid", "calls")
"""The metrics that the terminal has room for; the report has all."""


def compare(
    config: Annotated[
        Path | None, typer.Argument(metavar="CONFIG.toml", help="Settings of the search, as for evolve.")
    ] = None,
    models: Annotated[
        str | None, typer.Option("--models", metavar="SPEC,…", help="One node per model; two or more differ.")
    ] = None,
    seeds: Annotated[
        int, typer.Option("--seeds", metavar="K", min=1, max=MOST_SEEDS, help="Runs of each arm.")
    ] = 5,
    calls: Annotated[
        int | None, typer.Option("--calls", metavar="N", min=1, help="Calls of each run, over all its nodes.")
    ] = None,
    rounds: Annotated[
        int | None, typer.Option("--rounds", metavar="R", min=1, help="Rounds of each run.")
    ] = None,
    out: Annotated[
        Path,
        typer.Option("--out", metavar="DIR", help="Folder of the experiment; there, it is gone on with."),
    ] = Path("runs/compare"),
    arms: Annotated[
        str | None,
        typer.Option(
            "--arms",
            metavar="NAME,…",
            help="Of solo, homogeneous, heterogeneous, no-sharing, opponents-only, seeds-only, from-scratch.",
        ),
    ] = None,
    held_out: Annotated[
        Path | None,
        typer.Option("--held-out", metavar="DIR", help="Programs that take no part, to test the best on."),
    ] = None,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any other setting; may be repeated."),
    ] = None,
    workers: Annotated[
        int | None,
        typer.Option(
            "--workers", metavar="N", min=1, max=1024, help="Runs at a time, by default one per core."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show the arms and settings, run nothing.")
    ] = False,
    json: rules.Json = False,
) -> None:
    """Compare many models with one, at the same number of calls.

    Runs solo and homogeneous once per model, heterogeneous, and its controls, with several seeds each,
    and writes DIR/report.html, DIR/results.md and DIR/results.json. Interrupted in any way, the same
    command goes on. More seeds or arms may be added to what is there.

    \b
    Examples:
      shoal compare --calls 400 --seeds 5
      shoal compare --models builtin:bomber,builtin:scanner --arms solo,homogeneous,heterogeneous
      shoal compare search.toml --held-out warriors/ --out runs/paper
    """
    from shoal.cli.evolve import settings_from
    from shoal.lab.compare import FAMILIES, plan_comparison

    settings = settings_from(config, models, rounds, calls, None, held_out, changes or [])
    families = FAMILIES if arms is None else [name.strip() for name in arms.split(",") if name.strip()]
    plan = plan_comparison(settings, seeds, families)
    if dry_run:
        _show_plan(plan, json)
        return
    _carry_out(plan, out, workers or _cores(), json)


def _carry_out(plan: Plan, out: Path, workers: int, json: bool) -> None:
    from shoal.cli import INTERRUPTED, UNUSABLE
    from shoal.cli.output import note, print_json
    from shoal.lab.compare import run_arm
    from shoal.lab.experiment import Experiment
    from shoal.lab.findings import findings
    from shoal.lab.running import run_trials
    from shoal.node.drive import Stop
    from shoal.report.experiment import write_report
    from shoal.runs.results import write_results

    with Experiment.begin(out, plan) as experiment:
        if experiment.unfinished():
            experiment.begin_session(["shoal", *sys.argv[1:]], workers)
        with Stop() as stop, _progress() as tell:
            complete = run_trials(experiment, run_arm, workers=workers, stop=stop, tell=tell)
        results = findings(experiment)
        write_results(experiment.path, results)
        report = write_report(experiment.path)
    if json:
        import msgspec

        print_json(msgspec.to_builtins(results))
    else:
        print_results(results)
        print(f"report: {report}")
    if not complete:
        for failure in results.failures:
            note(f"{failure.arm}, seed {failure.seed} failed: {failure.message}")
        note(f"{results.missing} of {len(experiment.trials())} runs are missing; the same command goes on.")
        raise typer.Exit(INTERRUPTED if stop.requested else UNUSABLE)


def print_results(results: Results) -> None:
    """The main columns of the table and what follows from it."""
    from shoal.cli.output import clean, print_table

    metrics = [metric for metric in results.metrics if metric.name in IN_TERMINAL]
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


def _show_plan(plan: Plan, json: bool) -> None:
    from shoal.cli.output import print_json, print_table

    if json:
        import msgspec

        print_json(msgspec.to_builtins(plan))
        return
    print_table(
        ["arm", "nodes", "calls", "what it is"],
        [[arm.name, len(arm.settings["models"]), arm.settings["calls"], arm.title] for arm in plan.arms],
    )
    print(f"{len(plan.arms)} arms × {len(plan.seeds)} seeds = {len(plan.arms) * len(plan.seeds)} runs")


@contextmanager
def _progress() -> Iterator[Callable[[Progress], None]]:
    """A bar with an estimate where standard error is a terminal, else a line for each run that ends."""
    from shoal.cli.output import clean, note
    from shoal.report.page import duration

    def ended(progress: Progress) -> str:
        trial = progress.ended
        assert trial is not None
        how = f"failed: {clean(progress.failed, 200)}" if progress.failed else duration(progress.seconds)
        left = f"; about {duration(progress.seconds_left)} left" if progress.seconds_left else ""
        return f"{progress.finished}/{progress.total} {trial.arm}, seed {trial.seed}: {how}{left}"

    if not sys.stderr.isatty():
        yield lambda progress: note(ended(progress)) if progress.ended else None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bar

    columns = (TextColumn("{task.fields[runs]} runs"), BarColumn(), TextColumn("{task.fields[left]}"))
    with Bar(*columns, console=Console(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=1.0, runs="0", left="")

        def tell(progress: Progress) -> None:
            left = f"about {duration(progress.seconds_left)} left" if progress.seconds_left else ""
            runs = f"{progress.finished}/{progress.total}"
            bar.update(task, completed=progress.share, runs=runs, left=left)
            if progress.failed:
                bar.console.print(ended(progress), markup=False, highlight=False)

        yield tell


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
