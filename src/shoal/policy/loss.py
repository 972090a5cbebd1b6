"""The clipped policy loss, over a flat list of completion tokens.

Every loss type is a sum over tokens, each token weighted by the share of its completion. `shares` computes
these from the lengths of the whole step, before anything is cut into micro-batches; so the losses of
micro-batches, and their gradients, add up to those of the step.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from shoal.policy.base import Learning, LossType


@dataclass(frozen=True, slots=True)
class Loss:
    """`value` carries the gradient. `clipped`: tokens on which the clipping acted. `divergence`: sum over
    tokens of the estimate of the KL divergence from the reference."""

    value: Tensor
    clipped: float
    divergence: float


def shares(lengths: Sequence[int], loss: LossType, constant_length: int = 0) -> list[float]:
    """The weight of each token of each completion of a step.

    dapo and bnpo: one over all tokens (the step is the batch, so both are the same). grpo: every completion
    counts alike. dr_grpo: one over completions times `constant_length` (0: the longest of the step)."""
    count = max(len(lengths), 1)
    if loss in ("dapo", "bnpo"):
        return [1.0 / max(sum(lengths), 1)] * len(lengths)
    if loss == "grpo":
        return [1.0 / (count * max(length, 1)) for length in lengths]
    return [1.0 / (count * max(constant_length or max(lengths, default=1), 1))] * len(lengths)


def policy_loss(
    log_probs: Tensor,
    advantages: Tensor,
    share: Tensor,
    rows: Tensor,
    learning: Learning,
    *,
    old: Tensor | None = None,
    weights: Tensor | None = None,
    reference: Tensor | None = None,
) -> Loss:
    """The loss of some completions of a step.

    log_probs   one per token, with gradient; `rows` names the completion of each token
    advantages  one per completion; so is `share`, which `shares` computes
    old         log-probs under the policy that wrote the tokens; None: this policy, just now (ratio 1)
    weights     one per token, on the policy's part only; 0 leaves a token out
    reference   log-probs under the reference, needed for a KL penalty (the k3 estimator)
    """
    log_ratio = log_probs - (log_probs.detach() if old is None else old)
    if learning.level == "sequence":  # the ratio is the geometric mean over its completion
        total = log_ratio.new_zeros(advantages.shape[0])
        length = torch.zeros_like(total).index_add(0, rows, torch.ones_like(log_ratio))
        log_ratio = (total.index_add(0, rows, log_ratio) / length.clamp(min=1.0))[rows]
    ratio = torch.exp(log_ratio)
    advantage = advantages[rows]
    free = ratio * advantage
    bounded = torch.clamp(ratio, 1 - learning.clip_low, 1 + learning.clip_high) * advantage
    losses = -torch.min(free, bounded)
    if weights is not None:
        losses = losses * weights
    divergence = 0.0
    if learning.kl != 0.0:
        if reference is None:
            raise ValueError("a KL penalty needs the log-probs of a reference")
        difference = reference - log_probs
        penalty = torch.exp(difference) - difference - 1
        if weights is not None:
            penalty = penalty * (weights > 0)
        losses = losses + learning.kl * penalty
        divergence = float(penalty.detach().sum())
    return Loss((losses * share[rows]).sum(), float((bounded < free).sum()), divergence)
