"""A policy as a node sees it: it samples groups of completions, and learns from groups with advantages.

Nothing here needs torch. A policy renders questions into its own prompts, and encodes completions of others
with its own tokenizer, as if it had written them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal, Protocol

import msgspec

from shoal.errors import TrainError
from shoal.runs.training import Sampled as Sampled

LossType = Literal["dapo", "grpo", "bnpo", "dr_grpo"]
"""The average of token losses, named as in TRL. dapo: over all completion tokens of the step."""
Level = Literal["token", "sequence"]
Precision = Literal["auto", "fp32", "bf16"]
"""The numbers of the weights and of all that is computed from them. auto: fp32, but bf16 for weights below
adapters on a card that has it."""
Estimator = Literal["as-published", "truncated", "band", "positive"]
"""The use of foreign groups. as-published: as if this policy had just written them. truncated: capped
importance weights if the author sent log-probs and has the same tokenizer; else as "band". band: only
completions whose mean log-prob under this policy is within a band. positive: only those of advantage > 0."""


Completions = list[list[Sampled]]
"""The completions of each question."""


class Sampling(msgspec.Struct, frozen=True):
    """`temperature` 0 is greedy. `top_p` below 1 draws from the likeliest tokens alone, as few as have that
    probability together. With `log_probs`, log-probs come with the completions if the policy knows them. They
    are those of the distribution that was drawn from; learning scores tokens by the whole distribution."""

    max_new_tokens: int = 32
    temperature: float = 1.0
    log_probs: bool = False
    top_p: float = 1.0


class Learning(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The settings of a learning step."""

    # Adam's step size: 5e-4 suits tiny models; large ones want 1e-6 to 1e-5, adapters about 3e-4.
    learning_rate: Annotated[float, msgspec.Meta(ge=0, le=10)] = 5e-4
    loss: LossType = "dapo"  # the average of token losses, named as in TRL
    level: Level = "token"  # ratios of each token, or of whole completions
    clip_low: Annotated[float, msgspec.Meta(ge=0, le=1)] = 0.2  # the ratio may fall this far below 1
    clip_high: Annotated[float, msgspec.Meta(ge=0, le=100)] = 0.28  # the ratio may rise this far above 1
    # Updates on one batch; above 1, true old log-probs are taken, and clipping has an effect.
    inner_steps: Annotated[int, msgspec.Meta(ge=1, le=1000)] = 1
    # Weight of the penalty against the policy as it was loaded; 0: no reference is kept.
    kl: Annotated[float, msgspec.Meta(ge=0, le=1000)] = 0.0
    # Gradients of a larger norm are scaled down to this one; 0: none is.
    gradient_norm: Annotated[float, msgspec.Meta(ge=0, le=1e6)] = 1.0
    micro_groups: Annotated[int, msgspec.Meta(ge=1, le=1024)] = 1  # groups per forward pass: bounds memory
    # The use of foreign groups: as if this policy had just written them, with capped importance weights, only
    # completions that are likely here, or only those with an advantage above 0.
    foreign: Estimator = "as-published"
    band: float = -8.0  # least mean log-prob per token of a foreign completion, for "band"
    most_weight: Annotated[float, msgspec.Meta(gt=0, le=1000)] = 2.0  # cap of importance weights
    # Weight decay of AdamW; 0: the optimiser is plain Adam.
    weight_decay: Annotated[float, msgspec.Meta(ge=0, le=10)] = 0.0
    # Length of every completion for dr_grpo, best the run's max_new_tokens; 0: the longest of the step.
    constant_length: Annotated[int, msgspec.Meta(ge=0, le=1 << 20)] = 0
    adam_beta1: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.9  # decay of Adam's mean of gradients
    adam_beta2: Annotated[float, msgspec.Meta(ge=0, lt=1)] = 0.999  # decay of Adam's mean of their squares
    # Added to Adam's divisor, the root of that mean.
    adam_epsilon: Annotated[float, msgspec.Meta(gt=0, le=1)] = 1e-8


@dataclass(frozen=True, slots=True)
class LearningGroup:
    """One question with completions and their advantages. `foreign` groups have no ids: their texts are
    encoded here, with the end token after finished ones. Their `log_probs` are empty, or those of an author
    who says that it uses `tokenizer`."""

    question: str
    completions: Sequence[Sampled]
    advantages: Sequence[float]
    foreign: bool = False
    tokenizer: str = ""

    def check(self) -> None:
        """TrainError unless there is one finite advantage per completion."""
        count, given = len(self.completions), len(self.advantages)
        if count != given:
            raise TrainError(f"a group has {count} completions and {given} advantages")
        if not all(map(math.isfinite, self.advantages)):
            raise TrainError("a group has an advantage that is not a finite number: check its rewards")


@dataclass(frozen=True, slots=True)
class Learnt:
    """The figures of a step. `tokens`: completion tokens trained on; `dropped`: foreign completions that the
    estimator left out. `parts`: further figures for people, e.g. {"kl": 0.01, "clipped": 0.0}."""

    loss: float
    gradient_norm: float
    tokens: int
    dropped: int = 0
    parts: dict[str, float] = field(default_factory=dict)


class Policy(Protocol):
    """One model in training, opened by the spec `model`. Not thread-safe. `tokenizer` is a digest that two
    policies share if and only if they cut text into tokens alike; "" if there is no tokenizer."""

    model: str
    tokenizer: str

    def sample(self, questions: Sequence[str], group: int, sampling: Sampling, seed: int) -> Completions:
        """`group` completions of each question. The same weights and seed give the same texts."""

    def learn(self, groups: Sequence[LearningGroup], learning: Learning, temperature: float) -> Learnt:
        """One step on all groups together. A loss or gradient that is not finite raises TrainError and leaves
        weights and optimiser as they were. Groups whose advantages are all 0 count in the normalisation."""

    def save(self, folder: Path) -> None:
        """Writes everything that `restore` needs: weights, optimiser."""

    def restore(self, folder: Path) -> None: ...
