"""What a run leaves behind and goes on from: run folder, journal, checkpoints, config, budgets, seeds."""

from shoal.runs.checkpoint import Checkpoints, Found
from shoal.runs.config import load, parse, to_toml
from shoal.runs.folder import RunFolder, load_settings
from shoal.runs.journal import Follower, Journal, JournalLike, MemoryJournal, Record, Sync, read
from shoal.runs.ledger import Ledger, sum_up
from shoal.runs.seeds import derive, derive_integer

__all__ = [
    "Checkpoints",
    "Follower",
    "Found",
    "Journal",
    "JournalLike",
    "Ledger",
    "MemoryJournal",
    "Record",
    "RunFolder",
    "Sync",
    "derive",
    "derive_integer",
    "load",
    "load_settings",
    "parse",
    "read",
    "sum_up",
    "to_toml",
]
