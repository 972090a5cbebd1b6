"""One measured number."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Row:
    """`value` in `unit`; a ratio names the `peer` it was measured against in the same run, and `target`
    is what was hoped for ("" where nothing was), e.g. ">= 2.0"."""

    name: str
    value: float
    unit: str
    peer: str = ""
    target: str = ""

    @property
    def met(self) -> bool | None:
        """Whether the target is met; None where there is none."""
        if not self.target:
            return None
        relation, bound = self.target.split()
        return self.value >= float(bound) if relation == ">=" else self.value <= float(bound)
