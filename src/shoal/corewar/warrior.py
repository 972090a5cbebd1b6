"""A warrior: an assembled program with its name, ready to be loaded into a core."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from shoal.corewar.instruction import Instruction


@dataclass(frozen=True, slots=True)
class Warrior:
    """An assembled program. Equal `canonical` texts are the same load file. The numbers of `code` are reduced
    modulo `core_size`; execution begins at `start`, 0 <= start < core_size, which may lie outside of the
    code. `pin` is the P-space identification number."""

    code: tuple[Instruction, ...]
    start: int = 0
    pin: int | None = None
    name: str = "Unknown"
    author: str = "Anonymous"
    strategy: str = ""
    core_size: int = 8000

    def __len__(self) -> int:
        return len(self.code)

    @property
    def canonical(self) -> str:
        """The program without names, comments and labels: the same text, the same behaviour."""
        lines = [f"core {self.core_size}", f"start {self.start}"]
        if self.pin is not None:
            lines.append(f"pin {self.pin}")
        lines.extend(map(str, self.code))
        return "\n".join(lines) + "\n"

    @property
    def digest(self) -> str:
        """SHA-256 of `canonical` in hexadecimal: the identity of the load file."""
        return hashlib.sha256(self.canonical.encode("ascii")).hexdigest()
