"""Options that several verbs have in common."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    import msgspec

    from shoal.presets import Preset


def option(flag: str, metavar: str, help: str, **bounds: float) -> Any:
    """An option with a value; `bounds` are `min` and `max`."""
    return typer.Option(flag, metavar=metavar, help=help, **bounds)  # type: ignore[arg-type]


Config = Annotated[Path | None, typer.Argument(metavar="CONFIG.toml", help="Settings; options come on top.")]
Run = Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.")]
Json = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
Quiet = Annotated[bool, typer.Option("--quiet", help="Print nothing but errors and the result's place.")]
Set = Annotated[list[str] | None, option("--set", "KEY=VALUE", "One setting; may be repeated.")]
Seed = Annotated[int | None, option("--seed", "S", "Seed.", min=0)]
Out = Annotated[Path | None, option("--out", "RUN", "Run folder; else a new one in runs/.")]
InProcess = Annotated[
    bool, typer.Option("--in-process", help="All nodes in one process, in virtual time: reproducible.")
]
Paper = Annotated[bool, typer.Option("--paper", help="The set-up of the paper; the rest comes on top.")]
PresetName = Annotated[
    str | None, option("--preset", "NAME", "Another published set-up: `shoal presets` lists them.")
]
Until = Annotated[
    str | None,
    option("--until", "SPAN|TIME", "Nodes that are done stay for others: 90s, 2h, 23:30, an ISO time."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the settings and stop.")]
HeldOut = Annotated[
    Path | None, option("--held-out", "DIR", "Programs that take no part, to test the best one.")
]


def find_preset(paper: bool, name: str | None, application: str) -> Preset | None:
    """The preset that --paper or --preset means; None without them."""
    from shoal.errors import ConfigError
    from shoal.presets import PAPERS, find_preset

    if paper and name is not None:
        raise ConfigError(f"--paper is --preset {PAPERS[application]}: give one of the two")
    chosen = PAPERS[application] if paper else name
    return None if chosen is None else find_preset(chosen, application)


def tell_departures(preset: Preset | None, settings: msgspec.Struct) -> None:
    """Says on standard error which published choices the file and the options replace, one line each."""
    from shoal.cli.output import note

    for line in () if preset is None else preset.departures(settings):
        note(line)


def names(text: str) -> list[str]:
    """The entries of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def check_until(until: str | None) -> None:
    """ConfigError for a moment that is over, or no moment, before anything is started."""
    import time

    from shoal.errors import ConfigError
    from shoal.runs.moments import moment

    if until is not None and moment(until, now := time.time()) <= now:
        raise ConfigError(f"--until {until} is over: give a later time, or a span such as 2h")


def overrides(given: dict[str, object], more: list[str] | None) -> list[str]:
    """Options as `--set` would have them, then the ones of `--set` itself, which come last."""
    import json

    # Text, numbers and lists of text are written alike in JSON and in TOML.
    options = [f"{name}={json.dumps(value)}" for name, value in given.items() if value is not None]
    return [*options, *(more or [])]
