"""The swarm: nodes that share items over any transport, signed, bounded and never waiting for each other.

    from shoal.swarm import ExchangeSettings, Identity, Kind, Kinds, LiveExchange, MemoryHub

    kinds = Kinds([Kind("champion", Champion, max_bytes=64 << 10, keep="latest")])
    with LiveExchange(Identity.create(), MemoryHub().open(), kinds, ExchangeSettings()) as exchange:
        exchange.share(Champion(...))
        for received in exchange.gather():
            ...

Names are loaded when first used, so that importing one module of this room does not load all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.lazy import lazily

if TYPE_CHECKING:
    from shoal.swarm.accounts import Account as Account
    from shoal.swarm.accounts import Accounts as Accounts
    from shoal.swarm.accounts import Credit as Credit
    from shoal.swarm.authors import Peer as Peer
    from shoal.swarm.authors import Place as Place
    from shoal.swarm.authors import Received as Received
    from shoal.swarm.exchange import Exchange as Exchange
    from shoal.swarm.exchange import Receipt as Receipt
    from shoal.swarm.identity import Identity as Identity
    from shoal.swarm.identity import NodeId as NodeId
    from shoal.swarm.identity import short_name as short_name
    from shoal.swarm.kinds import Kind as Kind
    from shoal.swarm.kinds import Kinds as Kinds
    from shoal.swarm.live import LiveExchange as LiveExchange
    from shoal.swarm.rejection import Rejection as Rejection
    from shoal.swarm.settings import ExchangeSettings as ExchangeSettings
    from shoal.swarm.transport.memory import MemoryHub as MemoryHub
    from shoal.swarm.transport.memory import MemoryTransport as MemoryTransport

__all__, __getattr__ = lazily(
    __name__,
    {
        "accounts": ("Account", "Accounts", "Credit"),
        "authors": ("Peer", "Place", "Received"),
        "exchange": ("Exchange", "Receipt"),
        "identity": ("Identity", "NodeId", "short_name"),
        "kinds": ("Kind", "Kinds"),
        "live": ("LiveExchange",),
        "rejection": ("Rejection",),
        "settings": ("ExchangeSettings",),
        "transport.memory": ("MemoryHub", "MemoryTransport"),
    },
)
