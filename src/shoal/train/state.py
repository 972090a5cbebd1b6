"""The state of a trainer: its policy, the pool of foreign groups, and its figures (plain data). Only `gather`
and `absorb` change it. All of it can be written down and read back.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from shoal.errors import RunError
from shoal.policy.base import Policy
from shoal.policy.pool import Pool, PoolLimits, PoolSnapshot
from shoal.runs.training import TrainNote
from shoal.train.answering import Judging
from shoal.train.rollouts import PooledGroup, ReceivedGroup

POLICY_FOLDER = "policy"


class Figures(msgspec.Struct):
    """The plain part of the state. `step`: steps taken; `evaluated`: the step of the last evaluation; `uses`:
    the times that each topic of others' tasks was trained on; `recent`: moving mean of the own reward by
    family; `failed`: turns in a row without a result, with the last one's reason in `trouble`; `shunned`:
    authors whose groups took too long, with the step until which their groups are left alone; `judging`: the
    dealings with judges, of which nothing is learnt."""

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
    last: TrainNote | None = None
    judging: Judging = msgspec.field(default_factory=Judging)


@dataclass
class Gathered:
    """The result of this turn's walk: made by `gather`, used up by `absorb`."""

    seen: int = 0
    dropped: Counter[str] = field(default_factory=Counter)
    chosen: list[PooledGroup] = field(default_factory=list)


@dataclass
class TrainState:
    policy: Policy
    figures: Figures
    pool: Pool[ReceivedGroup]
    gathered: Gathered = field(default_factory=Gathered)


def save(state: TrainState, folder: Path) -> None:
    """Weights and optimiser in a folder of their own, which plain transformers can load."""
    (folder / POLICY_FOLDER).mkdir()
    state.policy.save(folder / POLICY_FOLDER)
    (folder / "figures.json").write_bytes(msgspec.json.encode(state.figures, order="deterministic"))
    (folder / "pool.msgpack").write_bytes(msgspec.msgpack.encode(state.pool.snapshot()))


def restore(folder: Path, policy: Policy, limits: PoolLimits) -> TrainState:
    """`policy` is as it was before the first step; it takes the checkpoint's weights."""
    try:
        figures = msgspec.json.decode((folder / "figures.json").read_bytes(), type=Figures)
        content = (folder / "pool.msgpack").read_bytes()
        pool = msgspec.msgpack.decode(content, type=PoolSnapshot[ReceivedGroup])
    except (OSError, msgspec.MsgspecError) as error:
        raise RunError(f"{folder}: the checkpoint cannot be read: {error}. Remove it and resume.") from error
    policy.restore(folder / POLICY_FOLDER)
    return TrainState(policy, figures, Pool(limits, pool))
