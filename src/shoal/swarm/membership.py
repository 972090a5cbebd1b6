"""Membership: the swarm that a frame belongs to, its writers, and the line that invites to it.

A swarm is a name and, optionally, a secret. Two values follow from them. The *swarm id* stands in every
header, so that frames of other swarms are dropped before any costly check. The *domain tag* is signed in
front of the header but never sent: with a secret only members know it, so an outsider's signature is one of
another message and fails the ordinary check. Keys of small order, the one way around this, are refused
(`identity.usable_key`). The secret is stretched (scrypt), because anyone who sees a frame can test guesses of
it. It keeps writers out and does not hide the content. `allow`, a list of node ids, narrows the writers.

An invitation saves typing; it proves nothing and grants nothing by itself:

    shoal://tcp/host:port/swarm-name          the address of one node, and the name of the swarm
    shoal://tls/host:port/swarm-name?secret=… with the swarm's secret, for those who may have it
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, unquote

from shoal.errors import ConfigError
from shoal.swarm.identity import NodeId
from shoal.swarm.transport.addresses import parse_address

SWARM_ID_BYTES = 16
DOMAIN = b"shoal frame 1\0"
PREFIX = "shoal://"
MOST_CHARACTERS = 1000
_NODE_ID = re.compile(r"[a-z2-7]{32}")
_INVITATION = re.compile(
    r"shoal://(?P<scheme>tcp|tls|nats)/(?P<place>[^/?#\s]+)/(?P<swarm>[^/?#\s]+)(\?secret=(?P<secret>[^?#&\s]+))?"
)


@lru_cache(maxsize=256)
def _root(name: str, secret: str) -> bytes:
    salt = b"shoal swarm\0" + name.encode()
    if not secret:
        return hashlib.blake2b(salt, digest_size=32).digest()
    return hashlib.scrypt(secret.encode(), salt=salt, n=1 << 14, r=8, p=1, dklen=32, maxmem=1 << 26)


def is_node_id(text: str) -> bool:
    return _NODE_ID.fullmatch(text) is not None


def check_allowed(allow: Iterable[NodeId]) -> None:
    """Raises a ConfigError that names the first that is not a node id."""
    for node in allow:
        if not is_node_id(node):
            raise ConfigError(f"{node!r} in the allow-list is not a node id (32 letters a-z and digits 2-7)")


class Membership:
    """The marks of a frame of this swarm."""

    __slots__ = ("allow", "domain_tag", "name", "swarm_id")

    def __init__(self, name: str, secret: str = "", allow: Iterable[NodeId] = ()) -> None:
        if not name:
            raise ConfigError('a swarm needs a name, e.g. `swarm = "my-experiment"`')
        root = _root(name, secret)
        self.name = name
        self.swarm_id = hashlib.blake2b(
            key=root, person=b"shoal swarm id", digest_size=SWARM_ID_BYTES
        ).digest()
        self.domain_tag = DOMAIN + hashlib.blake2b(key=root, person=b"shoal domain", digest_size=32).digest()
        self.allow = frozenset(allow)
        check_allowed(self.allow)

    def allows(self, node: NodeId) -> bool:
        return not self.allow or node in self.allow


@dataclass(frozen=True, slots=True)
class Invitation:
    """An address as people type it, the name of the swarm there, and its secret ("": it has none)."""

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
    """Reads an invitation; a ConfigError shows the form and never repeats the secret."""
    found = _INVITATION.fullmatch(text) if len(text) <= MOST_CHARACTERS else None
    if found is None:
        raise ConfigError("this is not an invitation: it reads shoal://tcp/host:port/swarm-name")
    scheme, place = found["scheme"], found["place"]
    address = f"nats://{place}" if scheme == "nats" else f"{scheme}/{place}"
    parse_address(address)  # raises if it is none
    return Invitation(address, unquote(found["swarm"]), unquote(found["secret"] or ""))
