"""Our advantages against those that TRL's own trainer computes for the same rewards."""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("torch")
    pytest.importorskip("trl")

from shoal.policy.advantage import advantages
from tests.policy.small_models import byte_tokenizer, config_of

GROUP = 4
PROMPTS = 3


def trl_advantages(rewards: list[list[float]], scale: str, folder: Path) -> list[float]:
    """What a real trainer makes of completions whose rewards are given; its rollouts are made up here."""
    import transformers
    from datasets import Dataset
    from trl import GRPOConfig, GRPOTrainer

    tokenizer = byte_tokenizer()
    end = tokenizer.eos_token_id
    model = transformers.LlamaForCausalLM(config_of("llama", len(tokenizer), end))
    flat = [reward for group in rewards for reward in group]

    def rollout(prompts: list[Any], trainer: Any) -> dict[str, Any]:
        count = len(prompts)
        ids = [[5, 6, end]] * count
        return {
            "prompt_ids": [[1, 2]] * count,
            "completion_ids": ids,
            "logprobs": [[0.0] * len(one) for one in ids],
            "given": flat,
        }

    settings = GRPOConfig(
        output_dir=str(folder), use_cpu=True, bf16=False, gradient_checkpointing=False,
        per_device_train_batch_size=GROUP * PROMPTS, num_generations=GROUP, max_completion_length=4, beta=0.0,
        scale_rewards=scale, report_to=[], save_strategy="no", logging_strategy="no", disable_tqdm=True,
    )  # fmt: skip
    trainer = GRPOTrainer(
        model=model,
        args=settings,
        reward_funcs=lambda completions, given, **_: list(given),
        train_dataset=Dataset.from_dict({"prompt": [f"question {number}" for number in range(PROMPTS)]}),
        processing_class=tokenizer,
        rollout_func=rollout,
    )
    inputs = [{"prompt": f"question {number}"} for number in range(PROMPTS) for _ in range(GROUP)]
    trainer.model.train()
    output = trainer._generate_and_score_completions(inputs)
    return [float(one) for one in output["advantages"]]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("scale", ["group", "batch", "none"])
def test_advantages_are_those_of_trl(scale: Any, tmp_path: Path) -> None:
    source = random.Random(1)
    rewards = [
        [1.0, 0.0, 0.0, 0.0],
        [1.0, 1.0, 1.0, 1.0],
        [round(source.random(), 3) for _ in range(GROUP)],
    ]
    ours = [one for group in advantages(rewards, scale) for one in group]
    assert ours == pytest.approx(trl_advantages(rewards, scale, tmp_path), abs=1e-5)
