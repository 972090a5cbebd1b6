"""`shoal cache`: the models that Shoal made or unpacked, their sizes, and their removal."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli import options


def cache(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="[NAME]…", help="Models or entries; else all of them.")
    ] = None,
    clear: Annotated[bool, typer.Option("--clear", help="Remove them, without asking.")] = False,
    json: options.Json = False,
) -> None:
    """Show the models that Shoal made or unpacked for training, and remove them.

    Removed models are made again when a run needs them. An entry that a running process uses is not removed,
    and neither are files that Shoal did not make. The place is SHOAL_CACHE, else the user's cache folder.

    \b
    Examples:
      shoal cache
      shoal cache --clear
      shoal cache --clear tiny:llama
    """
    from shoal.cli.output import LONGEST_LINE, print_json, print_table
    from shoal.errors import ConfigError
    from shoal.models.cache import cache_folder, cached, remove

    entries = cached()
    for name in names or ():
        if not any(name in (one.spec, one.path.name) for one in entries):
            known = ", ".join(dict.fromkeys(one.spec or one.path.name for one in entries)) or "nothing"
            raise ConfigError(f"{name} is not in the cache at {cache_folder()}: it holds {known}")
    chosen = [one for one in entries if not names or one.spec in names or one.path.name in names]
    kept: list[str] = []
    removed: list[str] = []
    for one in chosen if clear else ():
        try:
            remove(one)
            removed.append(str(one.path))
        except ConfigError as error:
            kept.append(str(error))
    total = sum(one.size for one in chosen)
    if json:
        rows = [
            {"model": one.spec, "purpose": one.purpose, "path": str(one.path), "bytes": one.size}
            for one in chosen
        ]
        print_json({"folder": str(cache_folder()), "bytes": total, "entries": rows, "removed": removed})
    elif clear:
        print(f"{len(removed)} of {len(chosen)} entries removed from {cache_folder()}.")
    elif chosen:
        print_table(
            ("model", "purpose", "MB", "entry"),
            [(one.spec or "-", one.purpose, one.size / 1e6, one.path.name) for one in chosen],
            longest=LONGEST_LINE,
        )
        print(f"\n{total / 1e6:.1f} MB in {cache_folder()}; `shoal cache --clear [NAME]` removes them.")
    else:
        print(f"The cache at {cache_folder()} is empty.")
    if kept:
        raise ConfigError("\n".join(kept))
