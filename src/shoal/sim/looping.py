"""A node of the one loop in the simulator: the same code as in the field, driven by virtual time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.node.node import Node
from shoal.runs.journal import MemoryJournal
from shoal.swarm.exchange import Exchange

AnyNode = Node[Any, Any, Any, Any]
MakeNode = Callable[[MemoryJournal, Exchange, float], AnyNode]

NEVER = 1e15


class Looping:
    """Takes a turn every `interval` seconds of virtual time.

    A node that is restarted has a new exchange and nothing but its journal, from which it is made anew, as
    in the field.
    """

    def __init__(self, make: MakeNode, interval: float) -> None:
        self.journal = MemoryJournal()
        self.node: AnyNode | None = None
        self.restarts = -1
        self._make = make
        self._interval = interval
        self._exchange: Exchange | None = None

    def act(self, exchange: Exchange, now: float) -> float:
        if self.node is None or exchange is not self._exchange:
            self.node = self._make(self.journal, exchange, now)
            self._exchange = exchange
            self.restarts += 1
        return NEVER if self.node.advance(now) == "finished" else now + self._interval
