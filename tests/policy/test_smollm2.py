"""A real model from its GGUF file: unpacked, sampled, trained, saved, and opened by plain transformers."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("torch")
    pytest.importorskip("transformers")

import torch
import transformers

from shoal.models.presets import PRESETS
from shoal.policy.base import Learning, LearningGroup, Sampled, Sampling
from shoal.policy.language_model import LanguageModelPolicy
from shoal.policy.log_probs import packs
from shoal.policy.prompt import tokenizer_digest
from shoal.policy.specification import open_policy


@pytest.mark.skipif(
    os.environ.get("CI") != "true" and PRESETS["smollm2"].find() is None, reason="SmolLM2 is not installed"
)
def test_smollm2_from_its_file_to_a_folder_that_everybody_opens(tmp_path: Path) -> None:
    policy = open_policy("local:smollm2", rendering="chat", device="cpu")
    assert isinstance(policy, LanguageModelPolicy)
    loaded = policy._loaded
    question = "What is 3 + 4?"
    prompt = policy.encoding.prompt(question)
    assert packs(loaded.model, len(loaded.tokenizer))
    ((sampled,),) = policy.sample([question], 1, Sampling(max_new_tokens=10, temperature=0.0), 0)
    ids = torch.tensor([prompt])
    expected = loaded.model.generate(
        input_ids=ids, attention_mask=torch.ones_like(ids), do_sample=False, max_new_tokens=10
    )
    assert list(sampled.ids) == expected[0, len(prompt) :].tolist()
    right = LearningGroup(
        question, [Sampled("<answer>7</answer>", True), Sampled("8", True)], [1.0, -1.0], True
    )
    assert policy.learn([right], Learning(learning_rate=1e-5), 1.0).gradient_norm > 0
    policy.save(tmp_path / "saved")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "saved").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    with torch.no_grad():
        assert torch.equal(model(ids).logits, loaded.model(ids).logits)
    assert tokenizer_digest(tokenizer) == policy.tokenizer
    assert tokenizer.decode(prompt).endswith("<|im_start|>assistant\n")
