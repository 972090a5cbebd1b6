"""The nodes of one run, as their driver sees them: names, and how one of them is put to work.

An application has one `Crew` class. `Lockstep` runs a crew in this process and in virtual time, `processes`
runs one process per node over the network; neither knows what the nodes do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec

from shoal.node.application import ExchangeLike
from shoal.node.drive import Stop
from shoal.node.node import Node
from shoal.node.standing import StandingOf, StandingOut
from shoal.runs import RunFolder
from shoal.swarm import ExchangeSettings, Kinds


class Seat(Protocol):
    """One node at work, with everything that belongs to it. `close` frees that."""

    @property
    def node(self) -> Node[Any, Any, Any, Any]: ...

    def close(self) -> None: ...


class Watcher(Protocol[StandingOut]):
    """Where a node stands, from its journal alone; the journal need not exist yet."""

    def look(self, *, ended: bool = False, trouble: str = "") -> StandingOut: ...


class Crew(Protocol[StandingOut]):
    """All nodes of a run. Nodes are numbered from 0, in the order of `names`. The class is made from the
    run's settings, of its `settings_type`, by each process that has to do with the run."""

    @property
    def settings(self) -> msgspec.Struct: ...
    @property
    def unit(self) -> str:
        """The unit of a run's progress: calls, steps."""

    @property
    def total(self) -> int:
        """How many of them the whole run has."""

    def done(self, standings: Sequence[Any]) -> int:
        """How many of them are done."""

    def check(self) -> None:
        """Raises a ShoalError where the run can be seen to be unusable, before anything is made."""

    def prepare(self, stop: Stop, tell: Tell) -> None:
        """Does the work that comes before any node starts. `tell` hears of models that are made
        meanwhile."""

    @property
    def names(self) -> Sequence[str]: ...
    @property
    def seed(self) -> int: ...
    @property
    def kinds(self) -> Kinds: ...
    @property
    def shares(self) -> bool:
        """False: the nodes know nothing of each other, and no exchange is made."""

    @property
    def is_free(self) -> bool:
        """Whether a run can be done anew without paying anybody for it."""

    @property
    def linger(self) -> float:
        """Seconds that a process stays in the swarm after its node has ended."""

    @property
    def at_terminal(self) -> bool:
        """Whether the one node needs the terminal, so that it cannot be a process of its own."""

    def take_seat(
        self,
        index: int,
        run: RunFolder,
        *,
        author: str,
        now: float,
        exchange: ExchangeLike | None,
        real_time: bool,
    ) -> Seat:
        """The node, new or resumed. `author` is its node id, also where nothing is shared. With `real_time`
        the node itself gives up calls that hang; in virtual time only the model's client can tell."""

    def watch(self, index: int, journal: Path) -> Watcher[StandingOut]: ...


Report = Callable[[Callable[[], list[StandingOf]]], None]
"""Is called often, with a function that finds out where the nodes stand."""
Tell = Callable[[dict[str, float]], None]
"""Is told of each model that is being made how much of it is done, from 0 to 1."""


def private_swarm(swarm: str, members: tuple[str, ...]) -> ExchangeSettings:
    """A swarm of one run, closed to everybody else; its members need no probation."""
    return ExchangeSettings(
        swarm=swarm, allow=members, probation_items=1, newcomers_per_minute=60_000.0, flush_seconds=0.0
    )
