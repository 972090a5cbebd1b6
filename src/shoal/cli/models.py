"""`shoal models`: which models can be used here and now."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli import options


def models(
    specs: Annotated[
        list[str] | None, typer.Argument(metavar="[SPEC]…", help="Models to look at; else the known ones.")
    ] = None,
    json: options.Json = False,
) -> None:
    """List models: installed, with a key, reachable, at what price.

    No request is sent to any model and no key leaves this machine; an endpoint given by URL is reachable
    if something accepts connections there.

    \b
    Examples:
      shoal models
      shoal models 'http://127.0.0.1:8080/v1#name' openai:gpt-5-mini
    """
    import msgspec

    from shoal.cli.output import LONGEST_COMMAND, print_json, print_table
    from shoal.evolve.domains.corewar import CoreWar
    from shoal.models import catalogue
    from shoal.policy.table import CANDIDATES
    from shoal.train.settings import DEFAULT_MODELS

    listed = catalogue(specs or ())
    if json:
        print_json([msgspec.to_builtins(one) for one in listed])
        return
    print_table(
        ("model", "state", "price", "what it is, or what to do"),
        [
            (one.spec, one.status, one.price.shown or one.price.state, one.remedy or one.note)
            for one in listed
        ],
        longest=LONGEST_COMMAND,
    )
    if not specs:
        builtin = ", ".join(f"builtin:{name}" for name in CoreWar().operators)
        print(f"\nFor searches, without a model: {builtin}")
        tables = ", ".join(f"table:{name}" for name in CANDIDATES)
        print(f"For training: {', '.join(DEFAULT_MODELS)}; without torch {tables}")
