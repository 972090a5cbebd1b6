"""`shoal report`: a page about a run or an experiment, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def report(
    folder: Annotated[Path, typer.Argument(metavar="RUN|DIR", help="A run, or a folder of `shoal compare`.")],
    out: Annotated[
        Path | None,
        typer.Option(
            "-o", "--out", metavar="FILE", help="Where to write it, else report.html in the folder."
        ),
    ] = None,
) -> None:
    """Write a page about a run or an experiment, finished or not.

    The page is one file that needs no network and can be sent around.

    \b
    Examples:
      shoal report runs/first
      shoal report runs/compare -o compare.html
    """
    from shoal.lab.experiment import MANIFEST
    from shoal.runs.files import write_whole

    text = _experiment(folder) if (folder / MANIFEST).is_file() else _run(folder)
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


def _experiment(folder: Path) -> str:
    from shoal.lab.experiment import Experiment
    from shoal.lab.findings import findings
    from shoal.report.experiment import experiment_page

    return experiment_page(findings(Experiment.look(folder)))


def _run(folder: Path) -> str:
    import msgspec

    from shoal.evolve.running import load_settings
    from shoal.evolve.summary import summarise
    from shoal.report.run import run_page
    from shoal.runs.folder import VERSIONS

    settings = msgspec.to_builtins(load_settings(folder))
    summary = msgspec.json.encode(summarise(folder))
    try:
        versions = msgspec.json.decode((folder / VERSIONS).read_bytes(), type=dict[str, str])
    except (OSError, msgspec.DecodeError) as error:
        versions = {"unknown": f"{VERSIONS} cannot be read: {error}"}
    return run_page("/".join(folder.absolute().parts[-2:]), summary, settings, versions)
