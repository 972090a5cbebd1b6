"""`shoal dashboard`: a live page about runs."""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli.options import option

if TYPE_CHECKING:
    from shoal.dashboard.watcher import Watcher
    from shoal.runs.search import DomainFacts


def dashboard(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN|DIR…", help="Run folders, or folders of runs.")],
    host: Annotated[
        str, option("--host", "ADDRESS", "Where to listen; this machine only by default.")
    ] = "127.0.0.1",
    port: Annotated[int, option("--port", "N", "Port; 0 is any free one.", min=0, max=65535)] = 0,
    token: Annotated[
        str | None, option("--token", "TEXT", "Readers must know it. Others see it in ps.")
    ] = None,
    token_file: Annotated[Path | None, option("--token-file", "FILE", "The same, from a file.")] = None,
    allow_host: Annotated[
        list[str] | None, option("--allow-host", "NAME", "A name by which readers reach it; repeatable.")
    ] = None,
) -> None:
    """Show runs in the browser while they go on: archives, replays, curves, who learns from whom.

    It only reads the run folders, so it may be started and stopped at any time, and on a copy. Of a folder
    of runs it shows all, and new ones as they appear. Without a token it answers on this machine alone.

    \b
    Examples:
      shoal dashboard runs
      shoal dashboard runs/first runs/second --port 8400
      shoal dashboard runs/first --host 0.0.0.0 --token-file token.txt
    """
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
    watcher = watch(runs)

    def say(address: str, _: object) -> None:
        print(f"{address}{'?token=…' if secret else ''}  (Ctrl-C ends it; the runs go on)", flush=True)

    with contextlib.suppress(KeyboardInterrupt):  # the ordinary end
        serve(watcher, host=host, port=port, token=secret, names=allow_host or (), ready=say)


def watch(paths: list[Path]) -> Watcher:
    """A watcher of these runs, and of all runs in these folders; RunError if there is none."""
    from shoal.dashboard.run_view import RunView
    from shoal.dashboard.watcher import Watcher
    from shoal.errors import RunError
    from shoal.runs.listing import find_runs

    folders = [path for path in paths if path.is_dir() and find_runs(path)]
    runs = [RunView(path, facts=facts_of(path)) for path in paths if path not in folders]
    watcher = Watcher(runs, folders, lambda path: RunView(path, facts=facts_of(path)))
    watcher.look_for_runs()
    if not watcher.runs:
        raise RunError(" ".join(watcher.notices))
    return watcher


def facts_of(run: Path) -> DomainFacts:
    """The domain of a run as a page shows it. One that is not installed here has no names for its bins."""
    from shoal.applications import settings_of
    from shoal.errors import ShoalError
    from shoal.runs.search import DomainFacts

    settings = settings_of(run)
    with contextlib.suppress(ShoalError):
        if hasattr(settings, "open_domain"):
            domain = settings.open_domain()
            return DomainFacts(domain.axes, domain.words, domain.views)
    return DomainFacts()
