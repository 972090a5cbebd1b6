"""`shoal dashboard`: a live page about runs."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from shoal.dashboard.run_view import AxisView


def dashboard(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN…", help="Run folders, finished or not.")],
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Where to listen; this machine only by default.")
    ] = "127.0.0.1",
    port: Annotated[
        int, typer.Option("--port", metavar="N", min=0, max=65535, help="Port; 0 is any free one.")
    ] = 0,
    token: Annotated[
        str | None, typer.Option("--token", metavar="TEXT", help="Readers must know it. Others see it in ps.")
    ] = None,
    token_file: Annotated[
        Path | None, typer.Option("--token-file", metavar="FILE", help="The same, from a file.")
    ] = None,
    allow_host: Annotated[
        list[str] | None,
        typer.Option("--allow-host", metavar="NAME", help="A name by which readers reach it; repeatable."),
    ] = None,
) -> None:
    """Show runs in the browser while they go on: archives, replays, curves, who learns from whom.

    It only reads the run folders, so it may be started and stopped at any time, and on a copy. Without a
    token it answers on this machine alone.

    \b
    Examples:
      shoal dashboard runs/first
      shoal dashboard runs/first runs/second --port 8400
      shoal dashboard runs/first --host 0.0.0.0 --token-file token.txt
    """
    from shoal.dashboard.run_view import RunView
    from shoal.dashboard.watcher import Watcher
    from shoal.errors import ConfigError, how_to_install

    try:
        from shoal.dashboard.guard import check_binding, read_token
        from shoal.dashboard.server import serve
    except ModuleNotFoundError as error:
        raise ConfigError(
            f"the dashboard needs {error.name}, which is not installed: {how_to_install('web')}"
        ) from error
    secret = read_token(token, token_file)
    check_binding(host, secret)
    titles = ["/".join(run.absolute().parts[-2:]) for run in runs]
    watcher = Watcher([RunView(run, title, axes_of(run)) for run, title in zip(runs, titles, strict=True)])

    def say(address: str, _: object) -> None:
        print(f"{address}{'?token=…' if secret else ''}  (Ctrl-C ends it; the runs go on)", flush=True)

    with contextlib.suppress(KeyboardInterrupt):  # the ordinary end
        serve(watcher, host=host, port=port, token=secret, names=allow_host or (), ready=say)


def axes_of(run: Path) -> list[AxisView]:
    """The names of the bins of the run's archive; none where they cannot be told, e.g. because its domain is
    not installed here: the page then shows their numbers."""
    from shoal.applications import settings_of
    from shoal.dashboard.run_view import AxisView
    from shoal.errors import ShoalError

    settings = settings_of(run)
    if not hasattr(settings, "open_domain"):
        return []
    try:
        axes = settings.open_domain().axes
    except ShoalError:
        return []
    return [AxisView(axis.measure, tuple(axis.label(index) for index in range(axis.bins))) for axis in axes]
