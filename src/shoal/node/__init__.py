"""The one loop, produce → share → gather → verify → absorb, and what drives it. Knows verbs, not
applications."""

from shoal.node.application import (
    Application,
    ExchangeLike,
    Explains,
    GiveUp,
    Judged,
    Own,
    Proposal,
    Restarts,
    Snapshots,
    Turn,
    Verdict,
)
from shoal.node.drive import Stop, run_in_field, run_in_threads, run_in_turns
from shoal.node.node import Node, NodeSettings, Status
from shoal.node.outside import Call, Delayed, Finished, Inline, Outside, Reply, Threads

__all__ = [
    "Application",
    "Call",
    "Delayed",
    "ExchangeLike",
    "Explains",
    "Finished",
    "GiveUp",
    "Inline",
    "Judged",
    "Node",
    "NodeSettings",
    "Outside",
    "Own",
    "Proposal",
    "Reply",
    "Restarts",
    "Snapshots",
    "Status",
    "Stop",
    "Threads",
    "Turn",
    "Verdict",
    "run_in_field",
    "run_in_threads",
    "run_in_turns",
]
