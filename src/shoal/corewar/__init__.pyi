from shoal.corewar.battle import (
    Result as Result,
    Standing as Standing,
    fight as fight,
    fight_all as fight_all,
)
from shoal.corewar.instruction import (
    Instruction as Instruction,
    Mode as Mode,
    Modifier as Modifier,
    Opcode as Opcode,
)
from shoal.corewar.recording import (
    Event as Event,
    Recording as Recording,
    Snapshot as Snapshot,
    record as record,
    snapshot as snapshot,
)
from shoal.corewar.redcode import assemble as assemble, disassemble as disassemble, listing as listing
from shoal.corewar.settings import HILLS as HILLS, Settings as Settings, hill as hill
from shoal.corewar.warrior import Warrior as Warrior
from shoal.corewar.warriors import (
    starter_names as starter_names,
    starter_set as starter_set,
    starter_source as starter_source,
)
from shoal.errors import AssemblyError as AssemblyError
