"""What nodes of a training swarm share: a question's name and one author's completions of it, as text.

No weights, no gradients, no token ids, no answer key. The receiver makes question and key anew from the
task's name, whose seed depends on who sent it, and scores the completions itself.
"""

from __future__ import annotations

from typing import Annotated

import msgspec

from shoal.runs.seeds import derive_integer
from shoal.swarm import Kind, Kinds

MOST_GROUP_BYTES = 256 << 10
MOST_COMPLETIONS = 64
MOST_TOKENS = 8192
SEED_BITS = 62

LogProb = Annotated[float, msgspec.Meta(ge=-1e6, le=0.0)]


class Completion(msgspec.Struct, array_like=True, frozen=True):
    """One answer. `finished`: its author's model ended it by itself, so the receiver restores its own end
    token after it, and only then. `log_probs`, one per token of the author's tokenizer, are there only where
    the author sends them. New fields go to the end, with a default."""

    text: str
    finished: bool
    log_probs: Annotated[tuple[LogProb, ...], msgspec.Meta(max_length=MOST_TOKENS)] = ()


class TaskName(msgspec.Struct, array_like=True, frozen=True):
    """What a task is called everywhere. `parameters` is the canonical JSON of the generator's settings."""

    family: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    version: Annotated[str, msgspec.Meta(max_length=64)]
    parameters: Annotated[str, msgspec.Meta(max_length=4096)]
    counter: Annotated[int, msgspec.Meta(ge=0, le=1 << 62)]


class RolloutGroup(msgspec.Struct, array_like=True, frozen=True):
    """All completions of one question by one author. `model`, `tokenizer` and `temperature` are claims; the
    latter two matter only under the importance estimator."""

    task: TaskName
    question: str
    completions: Annotated[tuple[Completion, ...], msgspec.Meta(min_length=1, max_length=MOST_COMPLETIONS)]
    model: Annotated[str, msgspec.Meta(max_length=256)] = ""
    tokenizer: Annotated[str, msgspec.Meta(max_length=64)] = ""
    temperature: Annotated[float, msgspec.Meta(gt=0, le=100)] = 1.0


def task_seed(author: str, epoch: int, counter: int) -> int:
    """The seed of an author's `counter`-th task since it started at `epoch`. It follows from who sends it, so
    nobody picks an easy task or passes on another's work as his own."""
    return derive_integer(epoch, "task", author, counter, bits=SEED_BITS)


def rollout_kinds() -> Kinds:
    return Kinds([Kind("rollouts", RolloutGroup, MOST_GROUP_BYTES, "log")])
