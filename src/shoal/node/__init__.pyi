from shoal.node.application import (
    Application as Application,
    ExchangeLike as ExchangeLike,
    Explains as Explains,
    GiveUp as GiveUp,
    Judged as Judged,
    Own as Own,
    Proposal as Proposal,
    Rest as Rest,
    Restarts as Restarts,
    Snapshots as Snapshots,
    Turn as Turn,
    Verdict as Verdict,
)
from shoal.node.crew import Network as Network
from shoal.node.drive import (
    Stop as Stop,
    run_in_field as run_in_field,
    run_in_threads as run_in_threads,
    run_in_turns as run_in_turns,
)
from shoal.node.node import Node as Node, NodeSettings as NodeSettings, Status as Status
from shoal.node.outside import (
    Call as Call,
    Delayed as Delayed,
    Finished as Finished,
    Inline as Inline,
    Outside as Outside,
    Reply as Reply,
    Threads as Threads,
)
