"""The verbs, in the order in which `shoal --help` lists them. Modules of verbs import nothing heavy."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal import __version__
from shoal.cli.assemble import assemble
from shoal.cli.battle import battle
from shoal.cli.cache import cache
from shoal.cli.compare import compare
from shoal.cli.contribute import contribute
from shoal.cli.dashboard import dashboard
from shoal.cli.demo import demo
from shoal.cli.doctor import doctor
from shoal.cli.evolve import evolve
from shoal.cli.export import export
from shoal.cli.info import info
from shoal.cli.invite import invite
from shoal.cli.merge import merge
from shoal.cli.models import models
from shoal.cli.peers import peers
from shoal.cli.relay import relay
from shoal.cli.report import report
from shoal.cli.resume import resume
from shoal.cli.runs import runs
from shoal.cli.show import show
from shoal.cli.sweep import sweep
from shoal.cli.tournament import tournament
from shoal.cli.track import track
from shoal.cli.train import train
from shoal.cli.watch import watch

# Plain help and plain tracebacks: loading rich for them would double the time until they appear.
app = typer.Typer(
    name="shoal",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    add_completion=True,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        print(f"shoal {__version__}")
        raise typer.Exit


@app.callback()
def shoal(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version.")
    ] = False,
) -> None:
    """Different models learn and search together by sharing experience instead of weights.

    \b
    Try:
      shoal demo
      shoal evolve
      shoal train
      shoal battle @dwarf @paper -r 100
      shoal tournament
      shoal watch @dwarf @paper
    """


for verb in (
    demo,
    evolve,
    train,
    contribute,
    resume,
    runs,
    show,
    merge,
    compare,
    sweep,
    report,
    export,
    track,
    models,
    cache,
    dashboard,
    battle,
    assemble,
    tournament,
    watch,
    relay,
    peers,
    invite,
    doctor,
    info,
):
    app.command()(verb)
