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

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.swarm.accounts import Account, Accounts, Outcome
    from shoal.swarm.authors import Peer, Received
    from shoal.swarm.exchange import Exchange, Receipt
    from shoal.swarm.identity import Identity, NodeId, short_name
    from shoal.swarm.kinds import Kind, Kinds
    from shoal.swarm.live import LiveExchange
    from shoal.swarm.rejection import Rejection
    from shoal.swarm.settings import ExchangeSettings
    from shoal.swarm.transport.memory import MemoryHub, MemoryTransport

__all__ = [
    "Account",
    "Accounts",
    "Exchange",
    "ExchangeSettings",
    "Identity",
    "Kind",
    "Kinds",
    "LiveExchange",
    "MemoryHub",
    "MemoryTransport",
    "NodeId",
    "Outcome",
    "Peer",
    "Receipt",
    "Received",
    "Rejection",
    "short_name",
]

_MODULES = {
    "accounts": ("Account", "Accounts", "Outcome"),
    "authors": ("Peer", "Received"),
    "exchange": ("Exchange", "Receipt"),
    "identity": ("Identity", "NodeId", "short_name"),
    "kinds": ("Kind", "Kinds"),
    "live": ("LiveExchange",),
    "rejection": ("Rejection",),
    "settings": ("ExchangeSettings",),
    "transport.memory": ("MemoryHub", "MemoryTransport"),
}
_PLACE = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name not in _PLACE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_PLACE[name]}"), name)
