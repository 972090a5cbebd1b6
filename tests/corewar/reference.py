"""The specification of the simulator, in plain Python: ICWS'94 as pMARS executes it.

Slow and readable on purpose. The C engine must agree with it on every number it reports; the tests compare
both with pMARS. Where the standard leaves a choice, pMARS's is taken:

- an operand is resolved completely, with its decrement or increment, A before B;
- the executing instruction is a copy: an immediate operand reads the copy, even if the A operand has
  just changed the cell;
- the value an operand refers to is taken after its decrement and before its increment;
- a zero divisor kills the process, after the half of the result that exists was written;
- SPL first queues the next instruction, then the new process if the limit allows.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import add, floordiv, mod, mul, sub

from shoal.corewar.instruction import EMPTY, Instruction, Mode, Modifier, Opcode
from shoal.corewar.settings import Settings
from shoal.corewar.warrior import Warrior

BY_A_FIELD = (Mode.A_INDIRECT, Mode.A_DECREMENT, Mode.A_INCREMENT)
DECREMENTS = (Mode.A_DECREMENT, Mode.B_DECREMENT)
INCREMENTS = (Mode.A_INCREMENT, Mode.B_INCREMENT)

# Which fields of source and target a modifier pairs, and so which fields of the target are written.
PAIRS: dict[Modifier, tuple[tuple[str, str], ...]] = {
    Modifier.A: (("a", "a"),),
    Modifier.B: (("b", "b"),),
    Modifier.AB: (("a", "b"),),
    Modifier.BA: (("b", "a"),),
    Modifier.F: (("a", "a"), ("b", "b")),
    Modifier.X: (("b", "a"), ("a", "b")),
    Modifier.I: (("a", "a"), ("b", "b")),
}


ARITHMETIC = {
    Opcode.ADD: add, Opcode.SUB: sub, Opcode.MUL: mul, Opcode.DIV: floordiv, Opcode.MOD: mod
}  # fmt: skip


@dataclass(slots=True)
class Fighter:
    """A warrior in a round, and its counts."""

    queue: deque[int]
    pspace: list[int]
    last_result: int
    executed: int = 0
    spawned: int = 0
    queued_at: set[int] = field(default_factory=set)

    @property
    def coverage(self) -> int:
        return len(self.queued_at)


@dataclass(slots=True)
class Round:
    """One round: the core and the fighters by index. `play` runs it to its end."""

    settings: Settings
    core: list[Instruction]
    fighters: list[Fighter]
    order: list[int]

    def play(self, steps: int | None = None) -> None:
        """Plays to the end of the round, or at most `steps` instructions."""
        alone = len(self.order) == 1
        for _ in range(self.settings.cycles):
            for index in list(self.order):
                if steps is not None:
                    if steps == 0:
                        return
                    steps -= 1
                fighter = self.fighters[index]
                self.execute(fighter)
                if not fighter.queue:
                    self.order.remove(index)
                    if len(self.order) == 1 and self.settings.stop == "decision" and not alone:
                        return
            if not self.order:
                return

    def execute(self, fighter: Fighter) -> None:
        """Executes the next instruction of one warrior."""
        pc = fighter.queue.popleft()
        fighter.executed += 1
        for count, address in enumerate(self.effect(fighter, pc, self.core[pc])):
            if len(fighter.queue) < self.settings.processes:
                address %= self.settings.core_size
                fighter.queue.append(address)
                fighter.queued_at.add(address)
                fighter.spawned += count  # the second address of SPL is the new process

    def resolve(self, pc: int, instruction: Instruction, mode: Mode, number: int) -> tuple[int, Instruction]:
        """The address that an operand names, and a copy of what stands there."""
        if mode is Mode.IMMEDIATE:
            return pc, instruction
        size = self.settings.core_size
        pointer = (pc + number) % size
        if mode is Mode.DIRECT:
            return pointer, self.core[pointer]
        name = "a" if mode in BY_A_FIELD else "b"
        if mode in DECREMENTS:
            self.change(pointer, name, getattr(self.core[pointer], name) - 1)
        address = (pointer + getattr(self.core[pointer], name)) % size
        copy = self.core[address]
        if mode in INCREMENTS:
            self.change(pointer, name, getattr(self.core[pointer], name) + 1)
        return address, copy

    def change(self, address: int, name: str, value: int) -> None:
        """Sets one field of a cell, modulo the core size."""
        value %= self.settings.core_size
        cell = self.core[address]
        self.core[address] = cell._replace(a=value) if name == "a" else cell._replace(b=value)

    def effect(self, fighter: Fighter, pc: int, instruction: Instruction) -> list[int]:
        """Carries out an instruction; returns where the process goes on (nowhere: it died), and for
        SPL also where the new process begins."""
        opcode, modifier = instruction.opcode, instruction.modifier
        a_address, source = self.resolve(pc, instruction, instruction.a_mode, instruction.a)
        b_address, target = self.resolve(pc, instruction, instruction.b_mode, instruction.b)
        values = [(getattr(source, one), getattr(target, other), other) for one, other in PAIRS[modifier]]

        match opcode:
            case Opcode.DAT:
                return []
            case Opcode.NOP:
                return [pc + 1]
            case Opcode.JMP:
                return [a_address]
            case Opcode.SPL:
                return [pc + 1, a_address]
            case Opcode.MOV:
                if modifier is Modifier.I:
                    self.core[b_address] = source
                else:
                    for left, _, name in values:
                        self.change(b_address, name, left)
            case Opcode.ADD | Opcode.SUB | Opcode.MUL:
                for left, right, name in values:
                    self.change(b_address, name, ARITHMETIC[opcode](right, left))
            case Opcode.DIV | Opcode.MOD:
                for left, right, name in values:
                    if left:
                        self.change(b_address, name, ARITHMETIC[opcode](right, left))
                if not all(left for left, _, _ in values):
                    return []
            case Opcode.JMZ | Opcode.JMN:
                zero = all(right == 0 for _, right, _ in values)
                return [a_address if zero == (opcode is Opcode.JMZ) else pc + 1]
            case Opcode.DJN:
                for _, _, name in values:
                    self.change(b_address, name, getattr(self.core[b_address], name) - 1)
                return [pc + 1 if all(right == 1 for _, right, _ in values) else a_address]
            case Opcode.CMP | Opcode.SEQ | Opcode.SNE:
                if modifier is Modifier.I:
                    equal = source == target
                else:
                    equal = all(left == right for left, right, _ in values)
                return [pc + 1 + (equal != (opcode is Opcode.SNE))]
            case Opcode.SLT:
                return [pc + 1 + all(left < right for left, right, _ in values)]
            case Opcode.LDP | Opcode.STP:
                # The modifiers .F, .X and .I do what .B does; cell 0 is never shared.
                one, name = PAIRS[modifier if modifier <= Modifier.BA else Modifier.B][0]
                left, right = getattr(source, one), getattr(target, name)
                index = (left if opcode is Opcode.LDP else right) % len(fighter.pspace)
                if opcode is Opcode.LDP:
                    self.change(b_address, name, fighter.pspace[index] if index else fighter.last_result)
                elif index:
                    fighter.pspace[index] = left
                else:
                    fighter.last_result = left
        return [pc + 1]


def play(
    warriors: Sequence[Warrior],
    positions: Sequence[Sequence[int]],
    settings: Settings,
    *,
    first_round: int = 0,
    steps: int | None = None,
) -> list[Round]:
    """Plays one round per row of `positions`, in order, with P-space kept from round to round."""
    size = settings.core_size
    shared: dict[int, list[int]] = {}
    pspaces = []
    for warrior in warriors:
        own = [0] * settings.pspace_size
        pspaces.append(own if warrior.pin is None else shared.setdefault(warrior.pin, own))
    last_results = [size - 1] * len(warriors)
    rounds = []
    for number, row in enumerate(positions, start=first_round):
        core = [EMPTY] * size
        fighters = []
        for warrior, position, pspace, last_result in zip(warriors, row, pspaces, last_results, strict=True):
            for offset, instruction in enumerate(warrior.code):
                core[(position + offset) % size] = instruction
            fighters.append(Fighter(deque([(position + warrior.start) % size]), pspace, last_result))
        order = [(number + k) % len(warriors) for k in range(len(warriors))]
        one = Round(settings, core, fighters, order)
        one.play(steps)
        last_results = [len(one.order) % size if fighter.queue else 0 for fighter in fighters]
        rounds.append(one)
    return rounds
