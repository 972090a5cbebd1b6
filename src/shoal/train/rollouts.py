"""Rollout groups as items of a swarm: their kind, the seeds of their tasks, their place in a pool.

No weights, gradients, token ids or answer keys travel: the receiver makes question and key anew.
"""

from __future__ import annotations

from shoal.policy.pool import Pooled
from shoal.runs.seeds import derive_integer
from shoal.runs.training import MOST_GROUP_BYTES, RolloutGroup, SentGroup
from shoal.swarm import Kind, Kinds, Received

SEED_BITS = 62
ROLLOUTS = Kind("rollouts", RolloutGroup, MOST_GROUP_BYTES, "log", SentGroup)

ReceivedGroup = Received[RolloutGroup]
PooledGroup = Pooled[ReceivedGroup]


def task_seed(author: str, epoch: int, counter: int) -> int:
    """The seed of an author's `counter`-th task since it started at `epoch`. It follows from the sender, so
    nobody picks an easy task or passes on another's work as their own."""
    return derive_integer(epoch, "task", author, counter, bits=SEED_BITS)


def rollout_kinds() -> Kinds:
    return Kinds([ROLLOUTS])


def pooled(received: ReceivedGroup, step: int) -> PooledGroup:
    """A received group as it waits to be drawn; it came at `step`."""
    group, task = received.item, received.item.task
    order = (received.author, received.epoch, received.seq, received.index)
    topic = f"{task.family} {task.parameters}"
    texts = sum(len(one.text.encode()) + 8 * len(one.log_probs) for one in group.completions)
    size = texts + len(group.question.encode()) + len(task.parameters) + 512
    # Not with the topic: "{}" and "{ }" are the same parameters, and would be two tasks of one seed.
    return Pooled(order, f"{received.epoch} {task.counter}", topic, received, size, step)
