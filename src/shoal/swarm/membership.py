"""Which swarm a frame belongs to, and who may write in it.

A swarm is a name and, optionally, a secret. Two values follow from them:

- the *swarm id* stands in every header, so that frames of other swarms are dropped before any costly check;
- the *domain tag* is signed in front of the header but never sent. With a secret it is known to members
  only, so what an outsider signs is a signature of another message and fails the ordinary signature check:
  no second MAC, no extra bytes, and a member's signature still names its author. Keys of small order, the
  one way around this, are refused (`identity.usable_key`).

The secret is stretched (scrypt), because anyone who sees a frame can test guesses of it. It keeps writers
out; it does not hide what is written. `allow`, a list of node ids, narrows the writers further.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache

from shoal.errors import ConfigError
from shoal.swarm.identity import ID_BYTES, NodeId, id_bytes

SWARM_ID_BYTES = 16
DOMAIN = b"shoal frame 1\0"


@lru_cache(maxsize=256)
def _root(name: str, secret: str) -> bytes:
    salt = b"shoal swarm\0" + name.encode()
    if not secret:
        return hashlib.blake2b(salt, digest_size=32).digest()
    return hashlib.scrypt(secret.encode(), salt=salt, n=1 << 14, r=8, p=1, dklen=32, maxmem=1 << 26)


def check_allowed(allow: Iterable[NodeId]) -> None:
    """ConfigError names the first that is not a node id."""
    for node in allow:
        try:
            correct = len(id_bytes(node)) == ID_BYTES and node == node.lower()
        except ValueError:
            correct = False
        if not correct:
            raise ConfigError(f"{node!r} in the allow-list is not a node id (32 letters a-z and digits 2-7)")


class Membership:
    """What makes a frame one of this swarm."""

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
