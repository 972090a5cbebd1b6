"""Core War: an assembler for Redcode and a simulator that agree with pMARS, as a library.

    from shoal.corewar import assemble, fight, hill, starter_set

    warriors = starter_set()
    result = fight([warriors["dwarf"], warriors["paper"]], hill("94nop"), rounds=100, seed=1)
    for standing in result.standings():
        print(standing.name, standing.wins, standing.ties, standing.losses)

Usable alone: it needs numpy and nothing else of Shoal.
"""

from shoal.corewar.battle import Result, Standing, fight, fight_all
from shoal.corewar.instruction import Instruction, Mode, Modifier, Opcode
from shoal.corewar.recording import Event, Recording, Snapshot, record, snapshot
from shoal.corewar.redcode import assemble, disassemble, listing
from shoal.corewar.settings import HILLS, Settings, hill
from shoal.corewar.warrior import Warrior
from shoal.corewar.warriors import starter_names, starter_set, starter_source
from shoal.errors import AssemblyError

__all__ = [
    "HILLS",
    "AssemblyError",
    "Event",
    "Instruction",
    "Mode",
    "Modifier",
    "Opcode",
    "Recording",
    "Result",
    "Settings",
    "Snapshot",
    "Standing",
    "Warrior",
    "assemble",
    "disassemble",
    "fight",
    "fight_all",
    "hill",
    "listing",
    "record",
    "snapshot",
    "starter_names",
    "starter_set",
    "starter_source",
]
