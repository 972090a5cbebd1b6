"""`shoal report`: a page about a run or an experiment, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shoal.runs.markup import Markup


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
    from shoal.files import write_whole

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
    from shoal.applications import APPLICATIONS
    from shoal.lab.experiment import Experiment
    from shoal.report.experiment import experiment_page
    from shoal.report.page import page
    from shoal.runs.folder import CONFIG
    from shoal.runs.results import EXPERIMENT, RESULTS, read_results

    if (folder / EXPERIMENT).is_file():
        experiment = Experiment.look(folder)
        application = APPLICATIONS[experiment.plan.arms[0].settings.get("application", "evolve")]
        return experiment_page(application.load("findings")(experiment))
    if (folder / RESULTS).is_file() and not (folder / CONFIG).exists():  # its runs are elsewhere, or gone
        return experiment_page(read_results(folder))
    return page("/".join(folder.absolute().parts[-2:]), run_parts(folder))


def _interactive(folder: Path) -> str:
    from shoal.cli.dashboard import facts_of
    from shoal.dashboard.single_file import single_file

    return single_file(folder, facts_of(folder))


def run_parts(folder: Path) -> list[Markup | None]:
    """The parts of a page about a run."""
    import msgspec

    from shoal.applications import application_of, settings_of
    from shoal.files import refuse_irregular
    from shoal.runs.folder import VERSIONS
    from shoal.runs.records import refusing

    name, application = "/".join(folder.absolute().parts[-2:]), application_of(folder)
    refuse_irregular(folder / VERSIONS)
    try:
        versions = msgspec.json.decode((folder / VERSIONS).read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError) as error:
        versions = {"unknown": f"{VERSIONS} cannot be read: {error}"}
    summary, settings = application.load("summarise")(folder), msgspec.to_builtins(settings_of(folder))
    with refusing(folder):
        parts: list[Markup | None] = application.load("report")(name, summary, settings, versions)
    return parts
