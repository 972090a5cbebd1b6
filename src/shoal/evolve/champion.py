"""What nodes of a search share: the champion of a round, as text with what its author says about it.

Only `source` and `domain` are used. The rest are claims: kept in the journal for people, and part of nothing
that a receiver computes.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from shoal.swarm import Kind, Kinds

MOST_CHAMPION_BYTES = 64 << 10

Finite = Annotated[float, msgspec.Meta(ge=-1e12, le=1e12)]
"""What a journal can hold: JSON has no infinity, and a claim must not be able to stop its receiver."""


class Champion(msgspec.Struct, array_like=True, frozen=True):
    """New fields go to the end, with a default."""

    domain: str
    source: str
    round: int = 0
    model: str = ""
    fitness: Finite = 0.0


def champion_kinds() -> Kinds:
    return Kinds([Kind("champion", Champion, MOST_CHAMPION_BYTES, "latest")])
