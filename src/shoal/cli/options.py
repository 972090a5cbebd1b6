"""Options that several verbs have in common."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer


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
DryRun = Annotated[bool, typer.Option("--dry-run", help="Print the settings and stop.")]
HeldOut = Annotated[
    Path | None, option("--held-out", "DIR", "Programs that take no part, to test the best one.")
]


def names(text: str) -> list[str]:
    """The entries of a list with commas."""
    return [name.strip() for name in text.split(",") if name.strip()]


def overrides(given: dict[str, object], more: list[str] | None) -> list[str]:
    """Options as `--set` would have them, then the ones of `--set` itself, which come last."""
    import json

    # Text, numbers and lists of text are written alike in JSON and in TOML.
    options = [f"{name}={json.dumps(value)}" for name, value in given.items() if value is not None]
    return [*options, *(more or [])]
