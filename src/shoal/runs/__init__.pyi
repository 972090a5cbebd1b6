from shoal.runs.checkpoint import Checkpoints as Checkpoints, Found as Found
from shoal.runs.config import load as load, parse as parse, to_toml as to_toml
from shoal.runs.folder import RunFolder as RunFolder, load_settings as load_settings
from shoal.runs.journal import (
    Follower as Follower,
    Journal as Journal,
    JournalLike as JournalLike,
    MemoryJournal as MemoryJournal,
    Record as Record,
    Sync as Sync,
    read as read,
)
from shoal.runs.ledger import Ledger as Ledger, sum_up as sum_up
from shoal.runs.results import Results as Results, read_results as read_results
from shoal.runs.seeds import derive as derive, derive_integer as derive_integer
