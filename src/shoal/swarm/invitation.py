"""An invitation: one line that says how to join a swarm, to be pasted where an address may stand.

    shoal://tcp/host:port/swarm-name          the address of one node, and the name of the swarm
    shoal://tls/host:port/swarm-name?secret=… with the swarm's secret, for eyes that may have it

It proves nothing and grants nothing by itself: it saves typing. Parsing is strict and bounded.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote, unquote

from shoal.errors import ConfigError
from shoal.swarm.transport.addresses import parse_address

PREFIX = "shoal://"
MOST_CHARACTERS = 1000
_FORM = re.compile(
    r"shoal://(?P<scheme>tcp|tls|nats)/(?P<place>[^/?#\s]+)/(?P<swarm>[^/?#\s]+)(\?secret=(?P<secret>[^?#&\s]+))?"
)


@dataclass(frozen=True, slots=True)
class Invitation:
    """Where to join (an address as people type it), which swarm, and its secret ("": it has none)."""

    address: str
    swarm: str
    secret: str = ""

    def __str__(self) -> str:
        address = parse_address(self.address)
        if address.scheme not in ("tcp", "tls", "nats"):
            raise ConfigError(
                f"{self.address} reaches no other machine: invite to tcp/host:port or tls/host:port"
            )
        text = f"{PREFIX}{address.scheme}/{address.host}:{address.port}/{quote(self.swarm, safe='')}"
        return f"{text}?secret={quote(self.secret, safe='')}" if self.secret else text

    def __repr__(self) -> str:
        return f"Invitation({self.address!r}, {self.swarm!r}{', with a secret' if self.secret else ''})"


def parse_invitation(text: str) -> Invitation:
    """Reads an invitation; ConfigError says what one looks like. The secret is never repeated in it."""
    found = _FORM.fullmatch(text) if len(text) <= MOST_CHARACTERS else None
    if found is None:
        raise ConfigError("this is not an invitation: it reads shoal://tcp/host:port/swarm-name")
    scheme, place = found["scheme"], found["place"]
    address = f"nats://{place}" if scheme == "nats" else f"{scheme}/{place}"
    parse_address(address)  # raises where it is none
    return Invitation(address, unquote(found["swarm"]), unquote(found["secret"] or ""))
