"""`shoal report`: a page about a run or an experiment, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shoal.report.markup import Markup


def report(
    folder: Annotated[
        Path,
        typer.Argument(
            metavar="RUN|DIR",
            help="A run, or a folder of `shoal compare` or `shoal sweep`, or one with its results.json.",
        ),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", metavar="FILE", help="Where to write it, else report.html in the folder."
        ),
    ] = None,
    interactive: Annotated[
        bool, typer.Option("--interactive", help="The page of `shoal dashboard`, with the run's data in it.")
    ] = False,
) -> None:
    """Write a page about a run or an experiment, finished or not.

    The page is one file that needs no network and can be sent around.

    \b
    Examples:
      shoal report runs/first
      shoal report runs/compare -o compare.html
      shoal report runs/first --interactive -o first.html
    """
    from shoal.runs.files import write_whole

    text = _interactive(folder) if interactive else _page(folder)
    path = out or folder / "report.html"
    _check_is_free(path)
    write_whole(path, text.encode())
    print(path)


def _check_is_free(path: Path) -> None:
    """Refuses to replace anything but an earlier page."""
    from shoal.errors import RunError

    if path.is_file():
        with path.open("rb") as file:
            beginning = file.read(15)
        if beginning and beginning.lower() != b"<!doctype html>":
            raise RunError(f"{path}: there is a file here that is no page: name another one with --out.")


def _page(folder: Path) -> str:
    from shoal.lab.experiment import MANIFEST
    from shoal.runs.folder import CONFIG
    from shoal.runs.results import RESULTS

    if (folder / MANIFEST).is_file():
        return _experiment(folder)
    if (folder / RESULTS).is_file() and not (folder / CONFIG).exists():
        return _results(folder)
    return _run(folder)


def _results(folder: Path) -> str:
    """Of an experiment whose runs are elsewhere, or gone."""
    from shoal.report.experiment import experiment_page
    from shoal.runs.results import read_results

    return experiment_page(read_results(folder))


def _experiment(folder: Path) -> str:
    from shoal.lab.experiment import Experiment
    from shoal.report.experiment import experiment_page

    experiment = Experiment.look(folder)
    if experiment.plan.arms[0].settings.get("application") == "train":
        from shoal.lab.sweep_findings import sweep_findings as findings
    else:
        from shoal.lab.findings import findings
    return experiment_page(findings(experiment))


def _interactive(folder: Path) -> str:
    from shoal.cli.dashboard import axes_of
    from shoal.dashboard.single_file import single_file

    return single_file(folder, axes_of(folder))


def _run(folder: Path) -> str:
    from shoal.report.page import page

    return page("/".join(folder.absolute().parts[-2:]), run_parts(folder))


def run_parts(folder: Path) -> list[Markup]:
    """What a page about a run, of either application, consists of."""
    import msgspec

    from shoal.cli.applications import application_of
    from shoal.runs.folder import VERSIONS

    name = "/".join(folder.absolute().parts[-2:])
    try:
        versions = msgspec.json.decode((folder / VERSIONS).read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError) as error:
        versions = {"unknown": f"{VERSIONS} cannot be read: {error}"}
    if application_of(folder) == "train":
        from shoal.report.train_run import train_run_parts
        from shoal.train import running as training
        from shoal.train.summary import summarise as summarise_training

        trained = msgspec.json.encode(summarise_training(folder))
        return train_run_parts(name, trained, msgspec.to_builtins(training.load_settings(folder)), versions)
    from shoal.evolve.running import load_settings
    from shoal.evolve.summary import summarise
    from shoal.report import run as search

    settings = msgspec.to_builtins(load_settings(folder))
    return search.run_parts(name, msgspec.json.encode(summarise(folder)), settings, versions)
