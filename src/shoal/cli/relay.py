"""`shoal relay`: a node that carries messages for others and does nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from shoal.cli.network import NetworkOptions, with_network
from shoal.cli.options import option
from shoal.errors import ConfigError

if TYPE_CHECKING:
    from shoal.node.crew import Network

REPORT_SECONDS = 60.0


@with_network("join", "listen", "advertise", "swarm", "tls_authority", "tls_certificate", "tls_key", "degree")
def relay(
    network: NetworkOptions,
    seconds: Annotated[float | None, option("--seconds", "S", "End after so long.")] = None,
) -> None:
    """Carry messages between nodes that join here, and nothing else.

    A relay holds no key of the swarm and takes part in nothing: it can drop messages but not forge them. It
    carries every swarm whose nodes join here.

    \b
    Example:
      shoal relay --listen tcp/0.0.0.0:7447
    """
    import secrets
    import signal
    import threading

    from shoal.cli.output import note

    if not network.listen:
        raise ConfigError("a relay needs an address where others reach it: --listen tcp/0.0.0.0:7447")
    chosen = network.network()
    ended = threading.Event()
    transport = chosen.open("relay-" + secrets.token_hex(8))
    try:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, lambda *_: ended.set())
        print(f"relaying at {', '.join(shown_addresses(chosen, transport.endpoints()))}", flush=True)
        ended.wait(seconds)
    finally:
        transport.close()
    note("relay ended")


def shown_addresses(chosen: Network, endpoints: Sequence[str]) -> list[str]:
    """The addresses that others dial: the advertised ones, else those it listens at, with their actual ports.
    "Every interface" stays in the address, as only the others know which interface leads here."""
    from dataclasses import replace

    from shoal.swarm.transport.addresses import parse_address

    if chosen.advertise:
        return list(endpoints)
    shown = []
    for text, endpoint in zip(chosen.listen, endpoints, strict=True):
        asked, found = (parse_address(one, secure=chosen.tls is not None) for one in (text, endpoint))
        shown.append(str(replace(found, host=asked.host) if asked.is_wildcard else found))
    return shown
