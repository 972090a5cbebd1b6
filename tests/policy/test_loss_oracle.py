"""Our loss against TRL's, in value and gradient; and our advantages against those that TRL computes."""

from __future__ import annotations

import os
from collections import defaultdict
from types import SimpleNamespace
from typing import Any

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("torch")
    pytest.importorskip("trl")

import torch

from shoal.policy.base import Learning
from shoal.policy.loss import policy_loss, shares

LOSSES = ("dapo", "grpo", "bnpo", "dr_grpo")
LENGTHS = [5, 1, 7, 3, 7, 2]
LONGEST = max(LENGTHS)


def trl_loss(
    log_probs: torch.Tensor,
    old: torch.Tensor | None,
    advantages: torch.Tensor,
    mask: torch.Tensor,
    loss_type: str,
    level: str,
    weights: torch.Tensor | None = None,
    reference: torch.Tensor | None = None,
    beta: float = 0.0,
) -> torch.Tensor:
    """TRL's method, called on a stand-in for its trainer."""
    from trl import GRPOTrainer

    accelerator = SimpleNamespace(
        num_processes=1,
        gather=lambda one: one.reshape(-1),
        gather_for_metrics=lambda one: one,
        reduce=lambda one, reduction=None: one,
        sync_gradients=True,
    )
    arguments = SimpleNamespace(
        delta=None,
        sapo_temperature_pos=1.0,
        sapo_temperature_neg=1.05,
        steps_per_generation=1,
        use_bias_correction_kl=False,
    )
    stand_in = SimpleNamespace(
        _get_per_token_logps_and_entropies=lambda *_, **__: (log_probs, torch.zeros_like(log_probs), None),
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        importance_sampling_level=level,
        beta=beta,
        loss_type=loss_type,
        epsilon_low=0.2,
        epsilon_high=0.28,
        args=arguments,
        use_vllm=weights is not None,
        vllm_importance_sampling_correction=weights is not None,
        vllm_importance_sampling_mode="token_truncate",
        model=SimpleNamespace(training=True),
        current_gradient_accumulation_steps=1,
        max_completion_length=LONGEST,
        accelerator=accelerator,
        _entropy_bonus_enabled=False,
        _metrics={"train": defaultdict(list), "eval": defaultdict(list)},
    )
    ids = torch.zeros(log_probs.shape[0], 1, dtype=torch.long)
    inputs: dict[str, Any] = {
        "prompt_ids": ids,
        "prompt_mask": ids + 1,
        "completion_ids": torch.zeros(log_probs.shape, dtype=torch.long),
        "completion_mask": mask,
        "advantages": advantages,
        "num_items_in_batch": mask.sum().float(),
    }
    if old is not None:
        inputs["old_per_token_logps"] = old
    if weights is not None:
        inputs["importance_sampling_ratio"] = weights
        inputs["sampling_per_token_logps"] = log_probs.detach()
    if reference is not None:
        inputs["ref_per_token_logps"] = reference
    loss: torch.Tensor = GRPOTrainer._compute_loss(stand_in, None, inputs)  # type: ignore[arg-type]
    return loss


def example(seed: int) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    shape = (len(LENGTHS), LONGEST)
    mask = (torch.arange(LONGEST)[None] < torch.tensor(LENGTHS)[:, None]).long()
    return {
        "log_probs": -3 * torch.rand(shape, generator=generator),
        "noise": 0.4 * torch.randn(shape, generator=generator),
        "reference": 0.4 * torch.randn(shape, generator=generator),
        "weights": 2 * torch.rand(shape, generator=generator),
        "advantages": torch.randn(len(LENGTHS), generator=generator),
        "mask": mask,
    }


def ours(
    flat: dict[str, torch.Tensor | None],
    advantages: torch.Tensor,
    rows: torch.Tensor,
    loss_type: str,
    level: str,
    kl: float,
    micro_batches: list[list[int]],
) -> torch.Tensor:
    """The sum over micro-batches of completions, each computed on its own tokens only."""
    share = torch.tensor(shares(LENGTHS, loss_type, LONGEST))  # type: ignore[arg-type]
    total = torch.zeros(())
    for batch in micro_batches:
        chosen = torch.isin(rows, torch.tensor(batch))
        numbers = torch.searchsorted(torch.tensor(batch), rows[chosen])
        picked = {name: None if one is None else one[chosen] for name, one in flat.items()}
        log_probs = picked.pop("log_probs")
        assert log_probs is not None
        total = (
            total
            + policy_loss(
                log_probs,
                advantages[batch],
                share[batch],
                numbers,
                Learning(level=level, kl=kl),  # type: ignore[arg-type]
                **picked,
            ).value
        )
    return total


@pytest.mark.parametrize("loss_type", LOSSES)
@pytest.mark.parametrize("level", ["token", "sequence"])
@pytest.mark.parametrize("case", ["fresh", "old", "weights", "kl", "all"])
@pytest.mark.parametrize("micro_batches", [[[0, 1, 2, 3, 4, 5]], [[0], [1, 4], [2, 3, 5]]])
def test_our_loss_is_trls(loss_type: str, level: str, case: str, micro_batches: list[list[int]]) -> None:
    for seed in range(3):
        given = example(seed)
        mask = given["mask"].bool()
        kl = 0.3 if case in ("kl", "all") else 0.0
        old = given["log_probs"] + given["noise"] if case in ("old", "all") else None
        weights = given["weights"] if case in ("weights", "all") else None
        reference = given["log_probs"] + given["reference"] if kl else None
        padded = given["log_probs"].clone().requires_grad_()
        expected = trl_loss(
            padded, old, given["advantages"], given["mask"], loss_type, level, weights, reference, kl
        )
        expected.backward()
        mine = given["log_probs"].clone().requires_grad_()
        rows = torch.arange(len(LENGTHS))[:, None].expand(-1, LONGEST)[mask]
        flat = {
            "log_probs": mine[mask],
            "old": None if old is None else old[mask],
            "weights": None if weights is None else weights[mask],
            "reference": None if reference is None else reference[mask],
        }
        found = ours(flat, given["advantages"], rows, loss_type, level, kl, micro_batches)
        found.backward()
        assert found.item() == pytest.approx(expected.item(), abs=1e-5)
        assert padded.grad is not None
        assert mine.grad is not None
        assert torch.allclose(mine.grad, padded.grad, atol=1e-5)
        if case == "old":
            assert float(mine.grad.abs().max()) > 1e-3


def test_clipping_is_counted() -> None:
    old = torch.tensor([-1.0, -1.0, -1.0])
    log_probs = torch.tensor([0.0, -3.0, -1.0])
    rows = torch.tensor([0, 1, 2])
    share = torch.ones(3)
    up = policy_loss(log_probs, torch.tensor([1.0, 1.0, 1.0]), share, rows, Learning(), old=old)
    down = policy_loss(log_probs, torch.tensor([-1.0, -1.0, -1.0]), share, rows, Learning(), old=old)
    assert (up.clipped, down.clipped) == (1.0, 1.0)


def test_a_penalty_without_reference_is_a_mistake() -> None:
    one = torch.zeros(1)
    with pytest.raises(ValueError, match="reference"):
        policy_loss(one, one, one, torch.zeros(1, dtype=torch.long), Learning(kl=0.1))
