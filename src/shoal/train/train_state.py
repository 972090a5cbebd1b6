"""Where a trainer stands: its policy, the pool of foreign groups, and its figures (plain data).

Only the trainer's `gather` and `absorb` change it. All of it can be written down and read back, so that
resuming need not begin at the first step.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import msgspec

from shoal.errors import RunError
from shoal.node import Verdict
from shoal.policy.base import Policy
from shoal.policy.pool import Entry, Kept, Order, Pool, PoolLimits
from shoal.swarm import Received
from shoal.train.steps import Evidence, Right

POLICY_FOLDER = "policy"


class Happened(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one turn did; journaled as its note, for people, reports and the dashboard.

    `reward_local` is the mean reward of own completions, `reward_external` that of the foreign ones trained
    on, and `reward_batch` that of all trained on, which is what the paper logs: filtered foreign groups lift
    it. `seen` groups arrived, `verified` were scored, of which `found` were informative and `used` trained
    on, the oldest after `oldest` steps. `dropped` and `refused` are by reason. `families` has the sum and
    number of own rewards. `cpu` is seconds of this process, `said` the line for people.
    """

    turn: int
    step: int
    kind: Literal["step", "evaluation", "missed"]
    own: int = 0
    own_informative: int = 0
    reward_local: float | None = None
    reward_external: float | None = None
    reward_batch: float | None = None
    families: dict[str, tuple[float, int]] = {}
    seen: int = 0
    pool: int = 0
    verified: int = 0
    found: int = 0
    used: int = 0
    oldest: int = 0
    used_authors: tuple[str, ...] = ()
    dropped: dict[str, int] = {}
    refused: dict[str, int] = {}
    loss: float | None = None
    gradient_norm: float | None = None
    trained_tokens: int = 0
    left_out: int = 0
    parts: dict[str, float] = {}
    tokens: int = 0
    cpu: float = 0.0
    held_out: dict[str, Right] = {}
    said: str = ""


class Figures(msgspec.Struct):
    """The plain part of the state. `step`: how many were taken; `evaluated`: at which step last; `uses`: how
    often each kind of task of others was trained on; `recent`: moving mean of the own reward by family;
    `failed`: turns in a row that came to nothing, and `trouble` what the last one said; `shunned`: authors
    whose groups took too long, and until which step nothing of theirs is looked at."""

    local: int
    external: int
    step: int = 0
    counter: int = 0
    evaluated: int = -1
    uses: dict[str, int] = {}
    recent: dict[str, float] = {}
    failed: int = 0
    trouble: str = ""
    shunned: dict[str, int] = {}
    last: Happened | None = None


@dataclass
class Gathered:
    """What this turn's walk came to; made by `gather`, used up by `absorb`."""

    chosen: list[Entry] = field(default_factory=list)
    ahead: dict[Order, Received] = field(default_factory=dict)
    """What is verified next, whatever comes of the first of it."""
    verdicts: dict[Order, Verdict[Evidence]] = field(default_factory=dict)
    """What is known already of that."""
    seen: int = 0
    verified: int = 0
    slow: int = 0
    seconds: float = 0.0
    """Spent on verifying, by this node's own clock; only `verify` looks at it, never what is replayed."""
    found: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)


@dataclass
class TrainState:
    policy: Policy
    figures: Figures
    pool: Pool
    gathered: Gathered = field(default_factory=Gathered)


def save(state: TrainState, folder: Path) -> None:
    """Weights and optimiser in a folder of their own, which plain transformers can load."""
    (folder / POLICY_FOLDER).mkdir()
    state.policy.save(folder / POLICY_FOLDER)
    (folder / "figures.json").write_bytes(msgspec.json.encode(state.figures, order="deterministic"))
    (folder / "pool.msgpack").write_bytes(msgspec.msgpack.encode(state.pool.keep()))


def restore(folder: Path, policy: Policy, limits: PoolLimits) -> TrainState:
    """`policy` is as it was before the first step; it takes the checkpoint's weights."""
    try:
        figures = msgspec.json.decode((folder / "figures.json").read_bytes(), type=Figures)
        kept = msgspec.msgpack.decode((folder / "pool.msgpack").read_bytes(), type=Kept)
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(f"{folder}: the checkpoint cannot be read: {error}. Remove it and resume.") from error
    policy.restore(folder / POLICY_FOLDER)
    return TrainState(policy, figures, Pool(limits, kept))
