"""`shoal invite`: one line that a friend pastes to join, and the certificates of a swarm with TLS."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.cli import options
from shoal.cli.network import NetworkOptions, SecretFile, Swarm
from shoal.cli.options import option
from shoal.errors import ConfigError

if TYPE_CHECKING:
    from shoal.swarm.transport.certificates import Issued


def invite(
    address: Annotated[
        str, typer.Argument(metavar="ADDRESS", help="Where this swarm is reached, e.g. tcp/host:7447.")
    ],
    swarm: Swarm = None,
    secret_file: SecretFile = None,
    tls: Annotated[
        Path | None, option("--tls", "DIR", "Make certificates there, for an ADDRESS with tls/.")
    ] = None,
    node: Annotated[
        list[str] | None,
        option("--node", "NAME[=HOST]", "With --tls: a node to make files for; may be repeated."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Print one line that a friend pastes to join this swarm.

    With --swarm-secret-file the line holds the secret: send it only to people you would tell it.

    With --tls the swarm gets an authority, and each node a certificate and a key: the one that listens at
    ADDRESS, and every --node. Run it again to add nodes; files that exist are kept as they are.

    \b
    Examples:
      shoal invite tcp/example.org:7447 --swarm herring
      shoal invite tls/example.org:7447 --swarm herring --tls herring-tls --node alice --node bob
    """
    from shoal.swarm.membership import Invitation
    from shoal.swarm.transport.addresses import parse_address

    if tls is not None:
        address = str(parse_address(address, secure=True))
    chosen = NetworkOptions(swarm=swarm, secret_file=secret_file).network()
    invitation = str(Invitation(address, chosen.swarm, chosen.secret))
    if node and tls is None:
        raise ConfigError("--node names whom to make certificates for: say where to put them with --tls DIR")
    issued = _issue(tls, address, node or []) if tls is not None else []
    if json:
        from shoal.cli.output import print_json

        found = {"invitation": invitation, "address": address, "swarm": chosen.swarm}
        nodes = [
            {
                "name": one.name,
                "authority": str(one.files.authority),
                "certificate": str(one.files.certificate),
                "key": str(one.files.key),
                "new": one.is_new,
            }
            for one in issued
        ]
        print_json({**found, "secret": bool(chosen.secret), **({"nodes": nodes} if issued else {})})
    elif issued:
        _print_nodes(issued, address, invitation)
    else:
        print(f"shoal peers --join '{invitation}'")
        if sys.stdout.isatty():
            note = "That shows who is there; evolve, train and contribute take the same --join."
            print(note, file=sys.stderr)


def _issue(folder: Path, address: str, nodes: list[str]) -> list[Issued]:
    """The files of the node that listens at the address, then those of all others."""
    from shoal.swarm.transport.addresses import parse_address
    from shoal.swarm.transport.certificates import issue_certificates

    place = parse_address(address)
    if place.scheme != "tls":
        raise ConfigError(f"--tls is for an address like tls/host:7447, and {address} is another kind")
    host = place.host.strip("[]")
    hosts = {re.sub(r"[^A-Za-z0-9._-]", "-", f"ip-{host}" if ":" in host else host): [host]}
    for text in nodes:
        name, _, listens = text.partition("=")
        if name in hosts:
            raise ConfigError(f"--node {name} is named twice, or is the name of the node at {address}")
        hosts[name] = [one for one in listens.split(",") if one]
    return issue_certificates(folder, hosts)


def _print_nodes(issued: list[Issued], address: str, invitation: str) -> None:
    authority = issued[0].files.authority
    print(f"{authority.with_suffix('.key')} signs the swarm's certificates: keep it, give it to nobody.")
    port = address.rpartition(":")[2]
    for number, (name, files, is_new) in enumerate(issued):
        whom = f"the node at {address}" if number == 0 else name
        print(f"\nFor {whom} ({'new' if is_new else 'was there'}), from {authority.parent}:")
        shown = " ".join(path.name for path in (files.authority, files.certificate, files.key))
        print(f"  files  {shown}")
        verb = f"relay --listen tls/0.0.0.0:{port}" if number == 0 else f"peers --join '{invitation}'"
        options = f"--tls-authority {files.authority.name} --tls-certificate {files.certificate.name}"
        print(f"  start  shoal {verb} {options} --tls-key {files.key.name}")
