"""The state that the parts of one node's exchange have in common."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from shoal.swarm.accounts import Accounts
from shoal.swarm.authors import Authors
from shoal.swarm.codec import Codec
from shoal.swarm.identity import Identity, NodeId
from shoal.swarm.rejection import Tally
from shoal.swarm.settings import ExchangeSettings
from shoal.swarm.shards import Following
from shoal.swarm.transport.base import Transport


@dataclass(frozen=True, slots=True)
class Context:
    """One node: its key, its connection, its bounds, and its knowledge about others."""

    identity: Identity
    transport: Transport
    codec: Codec
    settings: ExchangeSettings
    accounts: Accounts
    authors: Authors
    following: Following
    tally: Tally
    rng: random.Random
    meter: Callable[[], float] | None = None  # the processor time of the thread that ticks; None: unmetered

    @property
    def me(self) -> NodeId:
        return self.identity.node_id

    def standing(self, node: NodeId) -> tuple[bool, float]:
        """Whether a node is established, and its weight. Compares as a rank."""
        return node in self.accounts.established, self.accounts.weight(node)
