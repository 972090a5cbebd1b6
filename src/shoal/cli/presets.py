"""`shoal presets`: published set-ups."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli import options


def presets(
    action: Annotated[str | None, typer.Argument(metavar="[show]", help="Else the list.")] = None,
    name: Annotated[str | None, typer.Argument(metavar="[NAME]", help="The preset to print.")] = None,
    json: options.Json = False,
) -> None:
    """List the set-ups of papers, or print one as a config file.

    A verb takes a preset by --preset NAME, and its own paper's by --paper. Values of a config file and
    options come on top. The printed file says where each value comes from.

    \b
    Examples:
      shoal presets
      shoal presets show dei > dei.toml
      shoal evolve --paper --models builtin:bomber,builtin:scanner --rounds 2 --dry-run
    """
    from shoal.cli.output import LONGEST_LINE, print_json, print_table
    from shoal.errors import ConfigError
    from shoal.presets import find_preset, presets as all_presets

    if action is not None:
        if action != "show" or name is None:
            raise ConfigError("give nothing, or `show NAME`: `shoal presets show dei`")
        preset = find_preset(name)
        if json:
            print_json(preset.table)
        else:
            print(preset.text, end="")
        return
    listed = all_presets()
    if json:
        fields = ("name", "title", "application", "about")
        print_json([{field: getattr(preset, field) for field in fields} for preset in listed])
        return
    print_table(
        ("name", "for", "title", "about"),
        [(one.name, f"shoal {one.application}", one.title, one.about) for one in listed],
        longest=LONGEST_LINE,
    )
