"""Groups as they wait in a pool, without an application."""

from __future__ import annotations

from shoal.policy.pool import Pooled


def pooled(author: str, seq: int, step: int = 0, size: int = 600) -> Pooled[str]:
    """The `seq`-th group of an author, of a task of its own."""
    return Pooled((author, 1, seq, 0), f"task {seq}", f"topic {seq % 2}", f"{author} {seq}", size, step)
