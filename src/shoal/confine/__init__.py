"""Running untrusted text or code in a confined process, for any caller. Knows processes, not tasks.

A caller writes a `Service`, names it in `Orders`, and asks it through a `Worker`:

    orders = Orders(os.getpid(), "my_package.service:make", settings, (), 1 << 30, 0.5, 600)
    worker = Worker(orders, [])
    replies, retiring = worker.ask([msgspec.Raw(msgspec.msgpack.encode("a request"))], seconds=5.0)

Names are loaded when first used: a worker's own process does not need all of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from shoal.lazy import lazily

if TYPE_CHECKING:
    from shoal.confine.process import IdleError as IdleError
    from shoal.confine.process import StoppedError as StoppedError
    from shoal.confine.process import Worker as Worker
    from shoal.confine.wire import Coverage as Coverage
    from shoal.confine.wire import Orders as Orders
    from shoal.confine.worker import Service as Service

__all__, __getattr__ = lazily(
    __name__,
    {
        "process": ("IdleError", "StoppedError", "Worker"),
        "wire": ("Coverage", "Orders"),
        "worker": ("Service",),
    },
)
