"""The verbs, in the order in which `shoal --help` lists them. Modules of verbs import nothing heavy."""

from __future__ import annotations

from importlib import import_module
from typing import Annotated

import typer

from shoal import __version__

VERBS = (
    "demo", "evolve", "train", "contribute", "judge", "resume", "runs", "show", "merge", "compare", "sweep",
    "report", "export", "track", "models", "presets", "cache", "dashboard", "battle", "assemble",
    "tournament", "watch", "relay", "peers", "invite", "doctor", "info",
)  # fmt: skip
"""Each is a function in the module of its name."""

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


for verb in VERBS:
    app.command()(getattr(import_module(f"shoal.cli.{verb}"), verb))
