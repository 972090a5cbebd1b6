"""The options by which a command takes part in a swarm, and the `Network` they add up to."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from shoal.cli.options import option
from shoal.errors import ConfigError

if TYPE_CHECKING:
    from shoal.node.crew import Network

MOST_SECRET_BYTES = 4096
DEFAULT_SWARM = "shoal"

Join = Annotated[
    list[str] | None,
    option("--join", "ADDRESS", "A node to join at, e.g. tcp/host:7447, or an invitation; may be repeated."),
]
Listen = Annotated[
    list[str] | None,
    option("--listen", "ADDRESS", "Where others can reach this node, e.g. tcp/0.0.0.0:7447."),
]
Advertise = Annotated[
    list[str] | None,
    option("--advertise", "ADDRESS", "The address that others dial, where it is not --listen."),
]
Engine = Annotated[str, option("--transport", "NAME", "zenoh or nats.")]
Swarm = Annotated[str | None, option("--swarm", "NAME", "Name of the swarm.")]
SecretFile = Annotated[
    Path | None, option("--swarm-secret-file", "FILE", "File with the secret of a closed swarm.")
]
Allow = Annotated[
    list[str] | None, option("--allow", "KEY", "Take items from this node id only; may be repeated.")
]
TlsAuthority = Annotated[
    Path | None, option("--tls-authority", "FILE", "Certificate of the swarm's authority.")
]
TlsCertificate = Annotated[Path | None, option("--tls-certificate", "FILE", "Certificate of this node.")]
TlsKey = Annotated[Path | None, option("--tls-key", "FILE", "Private key of this node's certificate.")]
KeyFile = Annotated[Path | None, option("--key", "FILE", "Identity of this node, created on first use.")]
Degree = Annotated[
    int | None,
    option("--degree", "N", "Links that a node dials to random others, by default 4.", min=1, max=32),
]
WaitFor = Annotated[int, option("--wait-for", "N", "Wait for N peers before the first turn.", min=0)]


def home() -> Path:
    """The folder of identity and accounts: SHOAL_HOME, else the user's data folder."""
    if chosen := os.environ.get("SHOAL_HOME"):
        return Path(chosen)
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "shoal"


def key_path(given: Path | None) -> Path:
    return given if given is not None else home() / "identity.key"


@dataclass(frozen=True)
class NetworkOptions:
    """The options as they were typed."""

    join: Join = None
    listen: Listen = None
    advertise: Advertise = None
    transport: Engine = "zenoh"
    swarm: Swarm = None
    secret_file: SecretFile = None
    allow: Allow = None
    tls_authority: TlsAuthority = None
    tls_certificate: TlsCertificate = None
    tls_key: TlsKey = None
    key: KeyFile = None
    wait_for: WaitFor = 0
    degree: Degree = None

    @property
    def names_a_swarm(self) -> bool:
        return bool(self.join or self.listen or self.swarm or self.secret_file)

    def network(self) -> Network:
        """The network they describe. An invitation gives the swarm and its secret unless an option does."""
        from shoal.node.crew import Network
        from shoal.swarm.membership import PREFIX, parse_invitation

        if self.swarm is not None and not self.swarm.strip():
            raise ConfigError("--swarm is empty: give the swarm a name, e.g. --swarm herring")
        swarm, addresses, secret = self.swarm, [], _read_secret(self.secret_file)
        for text in self.join or ():
            if text.startswith(PREFIX):
                invitation = parse_invitation(text)
                addresses.append(invitation.address)
                swarm = swarm or invitation.swarm
                secret = secret or invitation.secret
            else:
                addresses.append(text)
        files = [str(file) for file in self.tls_files if file is not None]
        if len(files) not in (0, 3):
            raise ConfigError("TLS needs all three of --tls-authority, --tls-certificate and --tls-key")
        return Network(
            join=tuple(addresses),
            listen=tuple(self.listen or ()),
            advertise=tuple(self.advertise or ()),
            transport=self.transport,
            swarm=swarm or DEFAULT_SWARM,
            secret=secret,
            allow=tuple(self.allow or ()),
            tls=(files[0], files[1], files[2]) if files else None,
            key=str(self.key) if self.key is not None else None,
            wait_for=self.wait_for,
            degree=self.degree,
        )

    @property
    def tls_files(self) -> tuple[Path | None, ...]:
        return self.tls_authority, self.tls_certificate, self.tls_key

    def network_of_run(self, nodes: int, *, in_process: bool = False) -> Network:
        """The same for the nodes of a run. Without addresses and names the run is a swarm of its own.
        ConfigError where an option can be seen to be wrong, before anything starts."""
        from msgspec.structs import replace

        from shoal.node.crew import Network
        from shoal.swarm.identity import Identity

        network = self.network()
        joins = self.names_a_swarm
        if in_process and (joins or self.wait_for or self.degree):
            raise ConfigError("--in-process has no network: leave it out to join others")
        if not joins:
            if self.allow or self.key is not None or any(file is not None for file in self.tls_files):
                raise ConfigError(
                    "--allow, --key and --tls-… are for a swarm with others: say which by --join, --listen "
                    "or --swarm"
                )
            if self.wait_for >= max(nodes, 1) and self.wait_for:
                raise ConfigError(
                    f"--wait-for {self.wait_for}: in a swarm of its own this run has {nodes - 1} "
                    f"peers for each node: join others with --join or --swarm"
                )
            network = Network(transport=self.transport, wait_for=self.wait_for, degree=self.degree)
        elif nodes == 1:
            if key_path(self.key).exists():
                Identity.load(key_path(self.key))  # raises if it is damaged or open to others
            network = replace(network, machine_key=str(key_path(None)))
        elif self.key is not None:
            raise ConfigError("--key is the identity of one node: run one node with it")
        network.check()
        return network


def with_network(*names: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Gives a verb the network options of these names (none: all of them); they reach it together, as its
    argument `network`."""
    wanted = [field.name for field in fields(NetworkOptions) if not names or field.name in names]

    def decorate(verb: Callable[..., None]) -> Callable[..., None]:
        own = inspect.signature(verb, eval_str=True).parameters.values()
        options = inspect.signature(NetworkOptions, eval_str=True).parameters
        shown = [one for one in own if one.name != "network"] + [options[name] for name in wanted]

        @functools.wraps(verb)
        def with_options(**given: Any) -> None:
            chosen = {name: given.pop(name) for name in wanted if name in given}
            verb(**given, network=NetworkOptions(**chosen))

        plain = [one.replace(kind=inspect.Parameter.KEYWORD_ONLY) for one in shown]
        with_options.__signature__ = inspect.Signature(plain)  # type: ignore[attr-defined]
        with_options.__annotations__ = {one.name: one.annotation for one in plain}
        return with_options

    return decorate


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
