"""Running untrusted text or code in a confined process, for any caller. Knows processes, not tasks.

A caller writes a `Service`, names it in `Orders`, and asks it through a `Worker`:

    orders = Orders(os.getpid(), "my_package.service:make", settings, (), 1 << 30, 0.5, 600)
    worker = Worker(orders, [])
    replies, retiring = worker.ask([msgspec.Raw(msgspec.msgpack.encode("a request"))], seconds=5.0)

Names are loaded when first used: a worker's own process does not need all of them.
"""

from shoal.lazy import lazily

__all__, __getattr__ = lazily(__name__, __file__)
