"""`shoal invite`: one line that a friend pastes to join."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.network import NetworkOptions, SecretFile, Swarm


def invite(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Where this swarm is reached, e.g. tcp/host:7447.")
    ],
    swarm: Swarm = None,
    secret_file: SecretFile = None,
    json: options.Json = False,
) -> None:
    """Print one line that a friend pastes to join this swarm.

    With --swarm-secret-file the line holds the secret: send it only to whom you would tell it.

    \b
    Example:
      shoal invite tcp/example.org:7447 --swarm herring
    """
    from shoal.swarm.membership import Invitation

    chosen = NetworkOptions(swarm=swarm, secret_file=secret_file).joining()
    invitation = str(Invitation(address, chosen.swarm, chosen.secret))
    if json:
        from shoal.cli.output import print_json

        print_json(
            {
                "invitation": invitation,
                "address": address,
                "swarm": chosen.swarm,
                "secret": bool(chosen.secret),
            }
        )
        return
    print(f"shoal peers --join '{invitation}'")
    if sys.stdout.isatty():
        print("That shows who is there; evolve, train and contribute take the same --join.", file=sys.stderr)
