"""The work of a step: its completions, their weights and the micro-batches.

Weights are settled over all groups of the step. Completions that cannot change the gradient (advantage 0
without a KL penalty, foreign ones that the estimator leaves out) only count in the normalisation.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from shoal.errors import TrainError
from shoal.policy.base import Learning, LearningGroup
from shoal.policy.log_probs import Piece
from shoal.policy.loss import shares
from shoal.policy.prompt import Encoding

MOST_FOREIGN_TOKENS = 2048
"""Longer foreign completions are left out: memory must not depend on what others send."""
MOST_TOKENS = 2048
"""Completion tokens of one group that are computed together; a larger group is split."""


@dataclass(frozen=True, slots=True)
class Part:
    """One completion to learn from. `author` are its author's log-probs, if they can be compared with ours;
    `banded`: it is left out if this policy finds it too unlikely."""

    ids: list[int]
    advantage: float
    share: float
    banded: bool = False
    author: tuple[float, ...] = ()


@dataclass(slots=True)
class Work:
    prompt: list[int]
    parts: list[Part] = field(default_factory=list)

    def piece(self) -> Piece:
        return Piece(self.prompt, [part.ids for part in self.parts])

    @property
    def tokens(self) -> int:
        return len(self.prompt) + sum(len(part.ids) for part in self.parts)


@dataclass(frozen=True, slots=True)
class Plan:
    """`batches` are computed one after the other; `dropped` counts foreign completions that were left out."""

    batches: list[list[Work]]
    dropped: int


def plan(groups: Sequence[LearningGroup], encoding: Encoding, learning: Learning, room: int) -> Plan:
    """The work of a step. `room` is the most tokens that the model can hold."""
    dropped = 0
    works: list[Work] = []
    lengths: list[int] = []
    chosen: list[tuple[Work, LearningGroup, int, list[int], int]] = []
    for group in groups:
        group.check()
        work = Work(encoding.prompt(group.question))
        works.append(work)
        for place, completion in enumerate(group.completions):
            own = not group.foreign and completion.ids
            ids = list(own or encoding.completion(completion.text, completion.finished))
            fits = len(work.prompt) + len(ids) <= room
            if group.foreign and not (fits and len(ids) <= MOST_FOREIGN_TOKENS):
                dropped += 1
                continue
            if not fits:
                found = f"prompt and completion have {len(work.prompt) + len(ids)} tokens, more than {room}"
                raise TrainError(f"{found}: lower max_new_tokens or ask shorter questions")
            chosen.append((work, group, place, ids, len(lengths)))
            lengths.append(len(ids))
    weight = shares(lengths, learning.loss, learning.constant_length)
    for work, group, place, ids, number in chosen:
        advantage = group.advantages[place]
        if group.foreign and learning.foreign == "positive" and advantage <= 0:
            dropped += advantage < 0
            continue
        if not ids or (advantage == 0 and learning.kl == 0):
            continue
        author: tuple[float, ...] = ()
        if group.foreign and learning.foreign == "truncated" and group.tokenizer == encoding.digest:
            known = tuple(group.completions[place].log_probs)
            # A text that was cut into other tokens may have another number of them.
            author = known if len(known) == len(ids) and all(map(math.isfinite, known)) else ()
        banded = group.foreign and learning.foreign in ("band", "truncated") and not author
        work.parts.append(Part(ids, advantage, weight[number], banded, author))
    busy = [part for work in works for part in _split(work)]
    if learning.micro_groups > 1:
        # Rows of one batch are padded to the longest: those of like length go together.
        busy.sort(key=lambda work: work.tokens)
    size = max(learning.micro_groups, 1)
    return Plan([busy[start : start + size] for start in range(0, len(busy), size)], dropped)


def _split(work: Work) -> list[Work]:
    """The same work in pieces of bounded size, with the same sum."""
    pieces: list[Work] = []
    room = 0
    for part in work.parts:
        if not pieces or len(part.ids) > room:
            pieces.append(Work(work.prompt))
            room = MOST_TOKENS
        pieces[-1].parts.append(part)
        room -= len(part.ids)
    return pieces
