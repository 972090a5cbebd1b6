"""Redcode without a language model: operators that each know one style of playing, and one that knows none.

    source = builtin_mutators()["bomber"]("new", None, random.Random(1))

They stand in for models with different priors, cost nothing, and are deterministic from the generator they
are given. They write ICWS'94 without P-space.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Literal

from shoal.corewar import Settings, Warrior, assemble, disassemble
from shoal.errors import AssemblyError, ConfigError
from shoal.evolve.mutators.editing import Program
from shoal.evolve.mutators.styles import STYLES, Style

__all__ = ["STYLES", "Mutator", "builtin_mutators"]

ATTEMPTS = 8
"""Tries to make a mutation that differs from its parent."""


class Mutator:
    """One style as an operator. Its text assembles; a mutation differs unless chance undid it eight times."""

    def __init__(self, style: Style, settings: Settings) -> None:
        if settings.standard == "88":
            raise ConfigError("the builtin mutators write ICWS'94: choose a '94 hill, or a model")
        self.style = style
        self.settings = settings

    @property
    def name(self) -> str:
        return self.style.name

    def __call__(self, task: Literal["new", "mutate"], parent_source: str | None, rng: random.Random) -> str:
        """A new program, or a changed parent; a parent that does not assemble gives a new program."""
        parent = self._assembled(parent_source) if task == "mutate" and parent_source is not None else None
        if parent is None:
            return self._new(rng)
        for _ in range(ATTEMPTS):
            child = self._child(parent, rng)
            if child.digest != parent.digest:
                break
        return disassemble(child)

    def _new(self, rng: random.Random) -> str:
        head = f";redcode-94\n;name {self.name} {rng.getrandbits(20):05x}\n"
        source = head + self.style.new(rng, self.settings)
        if self._assembled(source) is not None:
            return source
        # Only on hills with short programs: the style's first part, as long as is allowed.
        size = self.settings.core_size
        roomy = assemble(source, Settings(core_size=size, length=min(100, size)))
        return disassemble(self._warrior(self._program(roomy, rng)))

    def _child(self, parent: Warrior, rng: random.Random) -> Warrior:
        program = self._program(parent, rng)
        edits = 1
        while edits < 6 and rng.random() < self.style.boldness:
            edits += 1
        for _ in range(edits):
            program.edit()
        return self._warrior(program)

    def _program(self, warrior: Warrior, rng: random.Random) -> Program:
        code = list(warrior.code[: self.settings.length])
        return Program(code, min(warrior.start, len(code) - 1), self.style, self.settings, rng)

    def _warrior(self, program: Program) -> Warrior:
        name, size = f"{self.name} {program.rng.getrandbits(20):05x}", self.settings.core_size
        return Warrior(tuple(program.code), program.start, name=name, author="Shoal", core_size=size)

    def _assembled(self, source: str) -> Warrior | None:
        for lenient in (False, True):
            try:
                return assemble(source, self.settings, lenient=lenient)
            except AssemblyError:
                continue
        return None


def builtin_mutators(settings: Settings = Settings()) -> Mapping[str, Mutator]:
    """All of them by name, for programs under `settings`."""
    return {style.name: Mutator(style, settings) for style in STYLES}
