"""The options by which a command takes part in a swarm, and what they add up to."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from shoal.errors import ConfigError

if TYPE_CHECKING:
    from shoal.node.network import Network
    from shoal.swarm.settings import ExchangeSettings
    from shoal.swarm.transport import TlsFiles, Transport

MOST_SECRET_BYTES = 4096

Join = Annotated[
    list[str] | None,
    typer.Option(
        "--join",
        metavar="ADDRESS",
        help="A node to join at, e.g. tcp/host:7447, or an invitation; may be repeated.",
    ),
]
Listen = Annotated[
    list[str] | None,
    typer.Option(
        "--listen", metavar="ADDRESS", help="Where others can reach this node, e.g. tcp/0.0.0.0:7447."
    ),
]
Advertise = Annotated[
    list[str] | None,
    typer.Option(
        "--advertise", metavar="ADDRESS", help="What others are told to dial, where it is not --listen."
    ),
]
Engine = Annotated[str, typer.Option("--transport", metavar="NAME", help="zenoh or nats.")]
Swarm = Annotated[str | None, typer.Option("--swarm", metavar="NAME", help="Name of the swarm.")]
SecretFile = Annotated[
    Path | None,
    typer.Option("--swarm-secret-file", metavar="FILE", help="File with the secret of a closed swarm."),
]
Allow = Annotated[
    list[str] | None,
    typer.Option("--allow", metavar="KEY", help="Take items from this node id only; may be repeated."),
]
TlsAuthority = Annotated[
    Path | None, typer.Option("--tls-authority", metavar="FILE", help="Certificate of the swarm's authority.")
]
TlsCertificate = Annotated[
    Path | None, typer.Option("--tls-certificate", metavar="FILE", help="Certificate of this node.")
]
TlsKey = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="Private key of this node's certificate.")
]
KeyFile = Annotated[
    Path | None, typer.Option("--key", metavar="FILE", help="Identity of this node, created on first use.")
]

DEFAULT_SWARM = "shoal"


def home() -> Path:
    """Where identity and accounts are kept: SHOAL_HOME, else the user's data folder."""
    if chosen := os.environ.get("SHOAL_HOME"):
        return Path(chosen)
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "shoal"


def key_path(given: Path | None) -> Path:
    return given if given is not None else home() / "identity.key"


@dataclass(frozen=True, slots=True)
class Joining:
    """Addresses, swarm and secret, with invitations taken apart."""

    join: tuple[str, ...]
    listen: tuple[str, ...]
    advertise: tuple[str, ...]
    transport: str
    swarm: str
    secret: str
    allow: tuple[str, ...]
    tls: TlsFiles | None

    def open(self, node_id: str) -> Transport:
        from shoal.swarm.transport import open_transport

        return open_transport(
            self.transport,
            swarm=self.swarm,
            node_id=node_id,
            listen=self.listen,
            join=self.join,
            advertise=self.advertise,
            tls=self.tls,
        )

    def settings(self) -> ExchangeSettings:
        from shoal.swarm.settings import ExchangeSettings

        return ExchangeSettings(swarm=self.swarm, secret=self.secret, allow=self.allow)


def joining_from(
    join: list[str] | None = None,
    listen: list[str] | None = None,
    advertise: list[str] | None = None,
    transport: str = "zenoh",
    swarm: str | None = None,
    secret_file: Path | None = None,
    allow: list[str] | None = None,
    tls: tuple[Path | None, Path | None, Path | None] = (None, None, None),
) -> Joining:
    """What the options say together. An invitation gives the swarm and its secret unless an option does."""
    from shoal.swarm.invitation import PREFIX, parse_invitation

    _refuse_nameless(swarm)
    addresses, secret = [], _read_secret(secret_file)
    for text in join or ():
        if text.startswith(PREFIX):
            invitation = parse_invitation(text)
            addresses.append(invitation.address)
            swarm = swarm or invitation.swarm
            secret = secret or invitation.secret
        else:
            addresses.append(text)
    return Joining(
        tuple(addresses),
        tuple(listen or ()),
        tuple(advertise or ()),
        transport,
        swarm or DEFAULT_SWARM,
        secret,
        tuple(allow or ()),
        _tls_files(*tls),
    )


def _refuse_nameless(swarm: str | None) -> None:
    if swarm is not None and not swarm.strip():
        raise ConfigError("--swarm is empty: give the swarm a name, e.g. --swarm herring")


def _read_secret(path: Path | None) -> str:
    if path is None:
        return ""
    try:
        with path.open("rb") as file:
            content = file.read(MOST_SECRET_BYTES + 1)
    except OSError as error:
        raise ConfigError(f"the swarm's secret {path} cannot be read: {error.strerror}") from None
    secret = content.decode("utf-8", "replace").strip()
    if not secret or len(content) > MOST_SECRET_BYTES:
        raise ConfigError(f"{path} holds no usable secret: put one line of text into it")
    return secret


def _tls_files(authority: Path | None, certificate: Path | None, key: Path | None) -> TlsFiles | None:
    if authority is None and certificate is None and key is None:
        return None
    if authority is None or certificate is None or key is None:
        raise ConfigError("TLS needs all three of --tls-authority, --tls-certificate and --tls-key")
    from shoal.swarm.transport import TlsFiles

    return TlsFiles(authority, certificate, key)


def network_from(
    nodes: int,
    join: list[str] | None,
    listen: list[str] | None,
    advertise: list[str] | None,
    transport: str,
    swarm: str | None,
    secret_file: Path | None,
    allow: list[str] | None,
    tls: tuple[Path | None, Path | None, Path | None],
    key: Path | None,
    *,
    in_process: bool,
) -> Network:
    """How the nodes reach others. Without addresses and names the run is a swarm of its own. ConfigError
    where an address, a node id or a file can be seen to be wrong, before anything is started."""
    from shoal.node.network import Network
    from shoal.swarm.identity import Identity
    from shoal.swarm.membership import check_allowed
    from shoal.swarm.transport import check_transport

    _refuse_nameless(swarm)
    is_private = not (join or listen or swarm or secret_file)
    if in_process and not is_private:
        raise ConfigError("--in-process has no network: leave it out to join others")
    if is_private and (allow or key is not None or any(file is not None for file in tls)):
        raise ConfigError(
            "--allow, --key and --tls-… are for a swarm with others: say which by --join, --listen or --swarm"
        )
    if is_private:
        check_transport(transport)
        return Network(transport=transport)
    if nodes > 1 and key is not None:
        raise ConfigError("--key is the identity of one node: run one node with it")
    chosen = joining_from(join, listen, advertise, transport, swarm, secret_file, allow, tls)
    check_transport(
        transport, listen=chosen.listen, join=chosen.join, advertise=chosen.advertise, tls=chosen.tls
    )
    check_allowed(chosen.allow)
    if nodes == 1 and key_path(key).exists():
        Identity.load(key_path(key))  # raises if it is damaged or open to others
    authority, certificate, tls_key = tls
    files = None
    if authority is not None and certificate is not None and tls_key is not None:
        files = (str(authority), str(certificate), str(tls_key))
    return Network(
        chosen.join,
        chosen.listen,
        chosen.advertise,
        chosen.transport,
        chosen.swarm,
        chosen.secret,
        chosen.allow,
        files,
        str(key) if key is not None else None,
        str(key_path(None)) if nodes == 1 else None,
    )
