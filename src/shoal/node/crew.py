"""The nodes of one run as their driver sees them, and the network between them. An application has one `Crew`
class. `Lockstep` runs a crew in this process in virtual time, `processes` one process per node."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Protocol

import msgspec

from shoal.node.application import ExchangeLike
from shoal.node.drive import Stop
from shoal.node.node import Node
from shoal.node.standing import StandingOf, StandingOut
from shoal.runs import RunFolder
from shoal.swarm import ExchangeSettings, Kinds
from shoal.swarm.membership import check_allowed
from shoal.swarm.transport import MOST_LINKS, TlsFiles, Transport, check_transport, open_transport


@dataclass(frozen=True)
class Seat:
    """One node at work. `close` frees everything that belongs to it."""

    node: Node[Any, Any, Any, Any]
    close: Callable[[], None]


class Watcher(Protocol[StandingOut]):
    """Reads a node's standing from its journal alone; the journal need not exist yet."""

    def look(self, *, ended: bool = False, trouble: str = "") -> StandingOut: ...


class Crew(Protocol[StandingOut]):
    """All nodes of a run, numbered in the order of `names`. Each process of the run makes its own crew from
    the settings, of `settings_type`. Progress is counted in `unit` (calls, steps), `total` of them. Unless it
    `shares`, no exchange is made. `is_free`: the run can be done anew without paying anybody. A process stays
    in the swarm for `linger` seconds after its node. `at_terminal`: the only node needs the terminal."""

    settings: Any
    unit: str
    total: int
    names: list[str]
    seed: int
    kinds: Kinds
    shares: bool
    is_free: bool
    linger: float
    at_terminal: bool

    def done(self, standings: Sequence[Any]) -> int:
        """Units that are done."""

    def check(self) -> None:
        """Raises a ShoalError where the run can be seen to be unusable, before anything is made."""

    def prepare(self, stop: Stop, tell: Tell) -> None:
        """Does the work that comes before any node starts. `tell` hears of models that are made meanwhile."""

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
"""Is called often, with a function that gives the standings of the nodes."""
Tell = Callable[[dict[str, float]], None]
"""Is told the share that is done, from 0 to 1, of each model that is being made."""


class Network(msgspec.Struct, frozen=True, omit_defaults=True):
    """The connections of a run's processes. The default is a swarm of its own on this machine. With addresses
    or a name the nodes are part of a larger one: the first listens, the others reach it through the first."""

    join: tuple[str, ...] = ()  # addresses of nodes of the swarm
    listen: tuple[str, ...] = ()  # addresses where others can reach the first node of the run
    advertise: tuple[str, ...] = ()  # the addresses that others dial, where they are not those of `listen`
    transport: str = "zenoh"  # the network engine: zenoh or nats
    swarm: str = ""  # name of the swarm; nodes of other swarms are not heard
    secret: str = ""  # secret of a closed swarm
    allow: tuple[str, ...] = ()  # node ids whose items are taken; empty: everyone's
    tls: tuple[str, str, str] | None = None  # files: certificate of the authority, own certificate, its key
    key: str | None = None  # file with the identity of a single node, in any case
    # File with the identity of a single node where no other one has it at the moment.
    machine_key: str | None = None
    wait_for: int = 0  # peers to be heard before the first turn
    # Links that each node dials to randomly drawn others, the gossip degree; by default 4. Fewer save traffic
    # and may split the swarm when nodes leave.
    degree: Annotated[int, msgspec.Meta(ge=1, le=MOST_LINKS)] | None = None

    @property
    def is_private(self) -> bool:
        return not (self.join or self.listen or self.swarm)

    @property
    def tls_files(self) -> TlsFiles | None:
        return None if self.tls is None else TlsFiles(*map(Path, self.tls))

    def check(self) -> None:
        """ConfigError for an address, a node id or a file that can be seen to be wrong; nothing is opened."""
        check_transport(
            self.transport,
            listen=self.listen,
            join=self.join,
            advertise=self.advertise,
            tls=self.tls_files,
            degree=self.degree,
        )
        check_allowed(self.allow)

    def open(self, node_id: str, swarm: str = "") -> Transport:
        """A connection to the swarm, or to one of another name."""
        return open_transport(
            self.transport,
            swarm=swarm or self.swarm,
            node_id=node_id,
            listen=self.listen,
            join=self.join,
            advertise=self.advertise,
            tls=self.tls_files,
            degree=self.degree,
        )

    def exchange_settings(self, swarm: str = "") -> ExchangeSettings:
        return ExchangeSettings(swarm=swarm or self.swarm, secret=self.secret, allow=self.allow)


PRIVATE_PROBATION = 1
"""Verified items that end probation in a swarm of one run."""


def private_swarm(swarm: str, members: tuple[str, ...]) -> ExchangeSettings:
    """A swarm of one run, closed to everybody else; its members need no probation."""
    return ExchangeSettings(
        swarm=swarm,
        allow=members,
        probation_items=PRIVATE_PROBATION,
        newcomers_per_minute=60_000.0,
        flush_seconds=0.0,
    )
