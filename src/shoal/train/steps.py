"""What a trainer asks of the outside, and what comes back: plain data, as the journal keeps it.

    Sample     write completions of own tasks, score them      then: share, gather, one step of learning
    Evaluate   answer the held-out tasks

Answers carry texts, token ids and scores, so that resuming samples nothing again: it takes the same steps of
learning on the same data.
"""

from __future__ import annotations

import msgspec

from shoal.policy.base import Sampled
from shoal.train.rollouts import TaskName


class Sample(msgspec.Struct, frozen=True, tag="sample"):
    """Step `step`, counted from 1. The tasks are named `counter`, `counter` + 1 …, of the start at `epoch`,
    one of each entry of `families` in turn."""

    step: int
    epoch: int
    counter: int
    families: tuple[str, ...]
    seed: int


class Evaluate(msgspec.Struct, frozen=True, tag="evaluate"):
    """Where the policy stands after `step` steps."""

    step: int


Request = Sample | Evaluate


class OwnGroup(msgspec.Struct, frozen=True):
    """`scores` are raw, from 0 to 1."""

    task: TaskName
    question: str
    completions: tuple[Sampled, ...]
    scores: tuple[float, ...]


class SampledGroups(msgspec.Struct, frozen=True, tag="sampled", omit_defaults=True):
    """`refused`: tasks that could not be posed or scored, by reason. `cpu`: seconds of this process."""

    groups: tuple[OwnGroup, ...]
    tokens: int = 0
    cpu: float = 0.0
    refused: dict[str, int] = {}


class Right(msgspec.Struct, frozen=True):
    """How many of how many held-out tasks were answered rightly, which ones, and the sum of rewards."""

    right: int
    total: int
    reward: float
    solved: tuple[int, ...] = ()


class Evaluated(msgspec.Struct, frozen=True, tag="evaluated"):
    """By family."""

    families: dict[str, Right]
    tokens: int = 0
    cpu: float = 0.0


Answer = SampledGroups | Evaluated


class Evidence(msgspec.Struct, frozen=True):
    """What the verifier found: one reward per completion of a foreign group."""

    rewards: tuple[float, ...]
