"""All nodes of a run in this process, in virtual time: the same settings give the same run, bit for bit. In
each pass every node takes one turn, and then shared items are delivered. A pass waits for every answer, so
that no duration has an influence; the calls of all nodes go on beside each other."""

from __future__ import annotations

import time
from typing import Generic

from shoal.errors import ShoalError
from shoal.node.crew import Crew, Report, Seat, private_swarm
from shoal.node.drive import GRACE, Stop
from shoal.node.standing import StandingOf
from shoal.runs import RunFolder, derive, derive_integer, read
from shoal.swarm import Exchange, Identity, MemoryHub

PASS = 0.02
"""Virtual seconds between two turns of a node."""
LONGEST_WAIT = 0.2


class Lockstep(Generic[StandingOf]):
    """The nodes of one run. A node that fails is reported and left out; the others go on."""

    def __init__(self, crew: Crew[StandingOf], run: RunFolder) -> None:
        self._crew = crew
        self._now = _after(run, list(crew.names))
        self._ended: dict[str, str] = {}  # with the trouble that ended them, if any
        self._seats: dict[str, Seat] = {}
        self._watchers = [crew.watch(index, run.journal_path(name)) for index, name in enumerate(crew.names)]
        identities = [
            Identity(derive_integer(crew.seed, name, "identity", bits=256).to_bytes(32, "big"))
            for name in crew.names
        ]
        self._exchanges = self._connect(identities) if crew.shares else []
        for index, name in enumerate(crew.names):
            try:
                self._seats[name] = crew.take_seat(
                    index,
                    run,
                    author=identities[index].node_id,
                    now=self._now,
                    exchange=self._exchanges[index] if crew.shares else None,
                    real_time=False,
                )
            except ShoalError as error:
                self._ended[name] = str(error)

    def run(self, stop: Stop, report: Report[StandingOf]) -> list[StandingOf]:
        """Runs all nodes until they have ended or `stop` is requested, and returns their standings."""
        try:
            while self._running and not stop.requested:
                for name in self._running:
                    self._take_turn(name, stop)
                self._deliver()
                report(self.standings)
        except BaseException:
            for name in self._running:
                self._seats[name].node.abandon()
            raise
        until = time.monotonic() + GRACE
        for name in self._running:
            self._leave(name, stop.reason, until)
        for seat in self._seats.values():
            seat.close()
        return self.standings()

    @property
    def _running(self) -> list[str]:
        return [name for name in self._seats if name not in self._ended]

    def standings(self) -> list[StandingOf]:
        return [
            watcher.look(ended=name in self._ended, trouble=self._ended.get(name, ""))
            for name, watcher in zip(self._crew.names, self._watchers, strict=True)
        ]

    def _take_turn(self, name: str, stop: Stop) -> None:
        seat = self._seats[name]
        try:
            while (status := seat.node.step(self._now)) not in ("turned", "resting", "finished"):
                if status == "waiting":
                    if stop.requested:
                        return
                    seat.node.outside.wait(LONGEST_WAIT)
            if status == "finished":
                seat.node.close(self._now, seat.node.finished_because)
                self._ended[name] = seat.node.trouble
        except ShoalError as error:
            seat.node.abandon()
            self._ended[name] = str(error)

    def _leave(self, name: str, reason: str, until: float) -> None:
        """Ends a node that is not done. Calls under way may still end `until` then, as they are paid for."""
        seat = self._seats[name]
        try:
            while seat.node.unanswered and time.monotonic() < until:
                seat.node.outside.wait(LONGEST_WAIT)
                seat.node.collect(self._now)
            seat.node.close(self._now, reason)
        except ShoalError as error:
            seat.node.abandon()
            self._ended[name] = str(error)

    def _connect(self, identities: list[Identity]) -> list[Exchange]:
        hub, swarm = MemoryHub(), private_swarm("run", tuple(one.node_id for one in identities))
        return [
            Exchange(
                identity,
                hub.open(),
                self._crew.kinds,
                swarm,
                now=self._now,
                rng=derive(self._crew.seed, name, "exchange"),
            )
            for identity, name in zip(identities, self._crew.names, strict=True)
        ]

    def _deliver(self) -> None:
        # Twice: an item is sent in one tick and taken in, by those who ticked before, in the next.
        for _ in range(2):
            self._now += PASS / 2
            for exchange in self._exchanges:
                exchange.tick(self._now)


def _after(run: RunFolder, names: list[str]) -> float:
    """A time after all records of the journals: a restarted node must not repeat its earlier numbers."""
    journals = [path for path in map(run.journal_path, names) if path.exists()]
    return max((record.time for path in journals for record in read(path)), default=0.0) + 1.0
