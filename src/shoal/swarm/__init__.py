"""The swarm: nodes that share items over any transport, signed, bounded and never waiting for each other.

from shoal.swarm import ExchangeSettings, Identity, Kind, Kinds, LiveExchange, MemoryHub

kinds = Kinds([Kind("champion", Champion, max_bytes=64 << 10, keep="latest")])
with LiveExchange(Identity.create(), MemoryHub().open(), kinds, ExchangeSettings()) as exchange:
    exchange.share(Champion(...))
    for received in exchange.gather():
        ...
"""

from shoal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
