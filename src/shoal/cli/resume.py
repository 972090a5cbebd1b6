"""`shoal resume`: goes on with a run that was stopped or killed."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli import joining
from shoal.cli.going_on import Quiet

if TYPE_CHECKING:
    from shoal.node.network import Network


def resume(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The run folder.")],
    in_process: Annotated[
        bool, typer.Option("--in-process", help="All nodes in one process, in virtual time.")
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print JSON for programs.")] = False,
    quiet: Quiet = False,
    join: joining.Join = None,
    listen: joining.Listen = None,
    advertise: joining.Advertise = None,
    transport: joining.Engine = "zenoh",
    swarm: joining.Swarm = None,
    secret_file: joining.SecretFile = None,
    allow: joining.Allow = None,
    tls_authority: joining.TlsAuthority = None,
    tls_certificate: joining.TlsCertificate = None,
    tls_key: joining.TlsKey = None,
    key: joining.KeyFile = None,
) -> None:
    """Go on with a run that was stopped or killed.

    Nothing that was accepted is lost, and no call is paid for twice; a call that was under way when the
    process died counts as spent. Addresses and secrets are not kept in the folder: give them again.

    \b
    Example:
      shoal resume runs/first
    """
    from shoal.cli.applications import application_of

    tls = (tls_authority, tls_certificate, tls_key)

    def network(nodes: int) -> Network:
        return joining.network_from(
            nodes, join, listen, advertise, transport, swarm, secret_file, allow, tls, key,
            in_process=in_process,
        )  # fmt: skip

    if application_of(run) == "train":
        from shoal.cli import train
        from shoal.train.running import load_settings as load_train_settings

        training = load_train_settings(run)
        train.run_resumably(
            training, run, network(training.nodes), in_process=in_process, json=json, quiet=quiet
        )
    else:
        from shoal.cli import evolve
        from shoal.evolve.running import load_settings

        search = load_settings(run)
        evolve.run_resumably(
            search, run, network(len(search.models)), in_process=in_process, json=json, quiet=quiet
        )
