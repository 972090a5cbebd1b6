"""How the processes of a run reach each other, and others."""

from __future__ import annotations

import msgspec


class Network(msgspec.Struct, frozen=True, omit_defaults=True):
    """Nothing given: the run is a swarm of its own on this machine. With addresses or a name the nodes are
    part of a larger one: the first listens, the others reach it through the first."""

    join: tuple[str, ...] = ()
    listen: tuple[str, ...] = ()
    advertise: tuple[str, ...] = ()
    transport: str = "zenoh"
    swarm: str = ""
    secret: str = ""
    allow: tuple[str, ...] = ()
    tls: tuple[str, str, str] | None = None  # authority, certificate, key
    key: str | None = None  # identity of a single node, whatever else there is
    machine_key: str | None = None  # that of a single node where no other one has it at the moment
    wait_for: int = 0  # peers before the first turn

    @property
    def is_private(self) -> bool:
        return not (self.join or self.listen or self.swarm)
