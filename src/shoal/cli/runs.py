"""`shoal runs`: the runs in a folder."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from shoal.cli import options


def runs(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="A folder with runs in it.")] = Path("runs"),
    json: options.Json = False,
) -> None:
    """List runs and experiments, newest first.

    "Stopped" runs go on with `shoal resume`; "finished" ones have nothing left to do. Age is the time since
    a run last wrote something.

    \b
    Examples:
      shoal runs
      shoal runs /data/runs --json
    """
    from shoal.cli.output import clean, note, print_json, print_table
    from shoal.cli.progress import amount
    from shoal.errors import RunError
    from shoal.runs.listing import ago, list_runs

    if not folder.is_dir():
        raise RunError(f"{folder}: there is no such folder. `shoal evolve` and `shoal train` fill runs/.")
    found = list_runs(folder)
    if json:
        import msgspec

        print_json(msgspec.to_builtins(found))
        return
    if not found:
        note(f"{folder}: no runs in it")
        return
    print_table(
        ("run", "application", "state", "age", "size", "nodes"),
        [
            (
                one.path,
                one.application or "-",
                one.state,
                ago(one.age),
                f"{amount(one.size)}B",
                one.nodes if one.kind == "run" else f"experiment, {one.done} of {one.runs} runs",
            )
            for one in found
        ],
        longest=200,
    )
    for one in found:
        if one.problem:
            note(f"shoal: {clean(one.problem, 300)}")
