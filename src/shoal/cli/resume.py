"""`shoal resume`: goes on with a run that was stopped or killed."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.network import NetworkOptions, with_network


@with_network()
def resume(
    network: NetworkOptions,
    run: options.Run,
    in_process: Annotated[
        bool, typer.Option("--in-process", help="All nodes in one process, in virtual time.")
    ] = False,
    json: options.Json = False,
    quiet: options.Quiet = False,
) -> None:
    """Go on with a run that was stopped or killed.

    Nothing that was accepted is lost, and no call is paid for twice; a call that was under way when the
    process died counts as spent. Addresses and secrets are not kept in the folder: give them again.

    \b
    Example:
      shoal resume runs/first
    """
    from shoal.applications import settings_of
    from shoal.cli.running import run_and_report

    settings = settings_of(run)
    nodes = network.network_of_run(len(settings.node_names()), in_process=in_process)
    run_and_report(settings, run, nodes, in_process=in_process, json=json, quiet=quiet)
