"""All nodes of a run in this process, in virtual time: the same settings give the same archives, bit for bit.

In each pass every node takes one turn, and then what was shared is delivered. A node whose answer is not
there yet is waited for, so that the order of things does not depend on how long anything takes; meanwhile
the calls and battles of all nodes go on beside each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from shoal.errors import ShoalError
from shoal.evolve.champion import champion_kinds
from shoal.evolve.seat import NodeProgress, Seat, private_swarm, take_seat
from shoal.evolve.settings import EvolveSettings
from shoal.node import Stop
from shoal.runs import RunFolder, derive, derive_integer, read
from shoal.swarm import Exchange, Identity, MemoryHub

PASS = 0.02
"""Virtual seconds between two turns of a node."""
LONGEST_WAIT = 0.2
GRACE = 30.0

Report = Callable[[list[NodeProgress]], None]


class Lockstep:
    """The nodes of one run. A node that fails is reported and left out; the others go on."""

    def __init__(self, settings: EvolveSettings, run: RunFolder) -> None:
        self.settings = settings
        self.names = settings.node_names()
        self.ended: dict[str, NodeProgress] = {}
        self._now = _after(run, self.names)
        self._exchanges: list[Exchange] = []
        self._seats: list[Seat] = []
        domain = settings.open_domain()
        exchanges = self._connect() if settings.sharing != "off" else [None] * len(self.names)
        for index, (name, exchange) in enumerate(zip(self.names, exchanges, strict=True)):
            try:
                seat = take_seat(
                    settings, index, run, domain=domain, now=self._now, exchange=exchange, real_time=False
                )
            except ShoalError as error:
                self.ended[name] = NodeProgress(name, settings.models[index], ended=True, trouble=str(error))
                continue
            self._seats.append(seat)

    def run(self, stop: Stop, report: Report) -> list[NodeProgress]:
        """Until all nodes have ended or `stop` is requested; where each of them stands then."""
        try:
            while self._running and not stop.requested:
                for seat in self._running:
                    self._take_turn(seat, stop)
                self._deliver()
                report(self.progress())
        except BaseException:
            for seat in self._running:
                seat.node.abandon()
            raise
        for seat in self._running:
            self._leave(seat, stop.reason)
        for seat in self._seats:
            seat.close()
        return self.progress()

    @property
    def _running(self) -> list[Seat]:
        return [seat for seat in self._seats if seat.name not in self.ended]

    def progress(self) -> list[NodeProgress]:
        standing = {seat.name: seat.progress() for seat in self._seats} | self.ended
        return [standing[name] for name in self.names]

    def _take_turn(self, seat: Seat, stop: Stop) -> None:
        try:
            while (status := seat.node.step(self._now)) not in ("turned", "finished"):
                if status == "waiting":
                    if stop.requested:
                        return
                    seat.node.outside.wait(LONGEST_WAIT)
            if status == "finished":
                reason = seat.node.finished_because
                seat.node.close(self._now, seat.why_it_ended() or reason)
                self.ended[seat.name] = seat.progress(ended=True, trouble=seat.why_it_ended())
        except ShoalError as error:
            seat.node.abandon()
            self.ended[seat.name] = seat.progress(ended=True, trouble=str(error))

    def _leave(self, seat: Seat, reason: str) -> None:
        """Ends a node that is not done; calls under way may still end, as they are paid for."""
        until = time.monotonic() + GRACE
        try:
            while seat.node.unanswered and time.monotonic() < until:
                seat.node.outside.wait(LONGEST_WAIT)
                seat.node.collect(self._now)
            seat.node.close(self._now, reason)
        except ShoalError as error:
            seat.node.abandon()
            self.ended[seat.name] = seat.progress(ended=True, trouble=str(error))

    def _connect(self) -> list[Exchange]:
        seed = self.settings.seed
        identities = [
            Identity(derive_integer(seed, name, "identity", bits=256).to_bytes(32, "big"))
            for name in self.names
        ]
        hub, swarm = MemoryHub(), private_swarm("run", tuple(one.node_id for one in identities))
        self._exchanges = [
            Exchange(
                identity,
                hub.open(),
                champion_kinds(),
                swarm,
                now=self._now,
                rng=derive(seed, name, "exchange"),
            )
            for identity, name in zip(identities, self.names, strict=True)
        ]
        return self._exchanges

    def _deliver(self) -> None:
        # Twice: an item is sent in one tick and taken in, by those who ticked before, in the next.
        for _ in range(2):
            self._now += PASS / 2
            for exchange in self._exchanges:
                exchange.tick(self._now)


def _after(run: RunFolder, names: list[str]) -> float:
    """A time after all that is in the journals: a restarted node must not repeat its earlier numbers."""
    latest = 0.0
    for name in names:
        if run.journal_path(name).exists():
            for record in read(run.journal_path(name)):
                latest = max(latest, record.time)
    return latest + 1.0
