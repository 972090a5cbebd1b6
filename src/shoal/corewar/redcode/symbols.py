"""Names and what they stand for while a source is assembled."""

from __future__ import annotations

from shoal.corewar.redcode.limits import LABELS_AT_ONCE
from shoal.corewar.redcode.tokens import Token
from shoal.corewar.settings import Settings

REFERENCE_VERSION = 92
"""Value of VERSION: the release of the reference assembler whose language this is, times 100."""


class Symbols:
    """`labels` are addresses, `texts` the lines of EQUs, `values` constants and FOR counters.

    `pending` are labels that were read but do not name anything yet.
    """

    def __init__(self, settings: Settings, *, warriors: int, rounds: int) -> None:
        self.labels: dict[str, int] = {}
        self.texts: dict[str, list[list[Token]]] = {}
        self.pending: list[str] = []
        self.constants = frozenset(
            values := {
                "CORESIZE": str(settings.core_size),
                "MAXPROCESSES": str(settings.processes),
                "MAXCYCLES": str(settings.cycles),
                "MAXLENGTH": str(settings.length),
                "MINDISTANCE": str(settings.distance),
                "PSPACESIZE": str(settings.pspace_size),
                "VERSION": str(REFERENCE_VERSION),
                "WARRIORS": str(warriors),
                "ROUNDS": str(rounds),
            }
        )
        self.values: dict[str, str] = values

    def await_meaning(self, label: str) -> bool:
        """Keeps a label until the next instruction, EQU or FOR; False when there are too many."""
        if len(self.pending) >= LABELS_AT_ONCE:
            return False
        self.pending.append(label)
        return True

    def name_address(self, address: int) -> None:
        """The pending labels name this address."""
        for label in self.pending:
            self.labels[label] = address
        self.pending.clear()

    def name_text(self, text: list[list[Token]]) -> None:
        """The pending labels stand for this text."""
        for label in self.pending:
            self.texts[label] = text
        self.pending.clear()

    def known_count(self) -> int:
        return len(self.labels) + len(self.texts) + len(self.values)

    def known(self) -> list[str]:
        """Every name a program could have meant, for a hint in a message."""
        return [*self.labels, *self.texts, *self.values]
