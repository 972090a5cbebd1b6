"""A step of training with the constants of the SAPO paper, against its equations in plain torch.

The plain lines import nothing of the loss, the advantages or the optimiser of Shoal: completions one by one,
without packing or padding, the group's advantages, the clipped loss as a mean over all tokens, torch's Adam.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("torch")
    pytest.importorskip("transformers")

import msgspec
import torch
from transformers import AutoModelForCausalLM

from shoal.policy.base import Completions, Sampled, Sampling
from shoal.policy.language_model import LanguageModelPolicy
from shoal.policy.specification import open_policy
from shoal.presets import find_preset
from shoal.runs.training import Completion
from shoal.train.settings import TrainSettings
from tests.policy.small_models import byte_tokenizer, config_of
from tests.train.small import Mailbox, honest_group, make_node, received, run_to_end, true_question

PROMPT = """Given a problem, your task is to answer the question by thinking step-by-step in a clear and specific manner.
Once you have thought about the reasoning process, provide the answer in the following format:
<answer>answer here</answer>
Do not explain your reasoning inside the answer tags, provide only the final answer. When an example is provided, you should strictly follow the format of the output/answer in that example.
"""
TEMPLATE = "{% for one in messages %}[{{ one['role'] }}]{{ one['content'] }}{% endfor %}[assistant]"
WRITTEN = ("<answer>{right}</answer>", "so <answer>0{right}1</answer>", "{right}", "<answer>no</answer>")
"""The completions of an own group; the first is right, and the third is not between tags."""
FOREIGN = ("I say <answer>{right}</answer>", "<answer>{right}</answer>", "<answer>?</answer>")


def plain_step(
    model: Any, groups: Sequence[tuple[str, Sequence[str], Sequence[float]]], learning: dict[str, Any]
) -> tuple[float, list[torch.Tensor]]:
    """Loss and gradient of the last inner step; the model takes all of them."""
    tokenizer = byte_tokenizer()
    rows, old = [], None
    for question, texts, rewards in groups:
        reward = torch.tensor(rewards, dtype=torch.float64)
        advantages = (reward - reward.mean()) / (reward.std() + 1e-8)
        prompt = tokenizer.encode(f"[system]{PROMPT}[user]{question}[assistant]")
        rows += [
            (prompt, [*tokenizer.encode(text), tokenizer.eos_token_id], a)
            for text, a in zip(texts, advantages, strict=True)
        ]
    total = sum(len(ids) for _, ids, _ in rows)
    optimiser = torch.optim.Adam(
        model.parameters(), lr=learning["lr"], betas=learning["betas"], eps=learning["eps"]
    )
    for _ in range(learning["inner"]):
        optimiser.zero_grad()
        logits = [
            model(torch.tensor([prompt + ids])).logits[0, len(prompt) - 1 : -1] for prompt, ids, _ in rows
        ]
        new = [
            logit.log_softmax(-1).gather(1, torch.tensor(ids)[:, None])[:, 0]
            for logit, (_, ids, _) in zip(logits, rows, strict=True)
        ]
        old = old or [one.detach() for one in new]
        ratios = [torch.exp(one - before) for one, before in zip(new, old, strict=True)]
        loss = (
            -sum(
                torch.min(ratio * a, ratio.clamp(1 - 0.2, 1 + 0.28) * a).sum()
                for ratio, (_, _, a) in zip(ratios, rows, strict=True)
            )
            / total
        )
        loss.backward()
        optimiser.step()
    return loss.item(), [weight.grad.clone() for weight in model.parameters()]


class Scripted(LanguageModelPolicy):
    """Writes what the test wants, and keeps the gradient of each update."""

    gradients: list[torch.Tensor]

    def sample(self, questions: Sequence[str], group: int, sampling: Sampling, seed: int) -> Completions:
        found = []
        for question in questions:
            first, second = question.rstrip("=").split("+")
            texts = [text.format(right=int(first) + int(second)) for text in WRITTEN]
            found.append([Sampled(text, True, tuple(self.encoding.completion(text, True))) for text in texts])
        return found

    def _gradient(self, *given: Any) -> Any:
        result = super()._gradient(*given)
        self.gradients = [weight.grad.clone() for weight in self._weights if weight.grad is not None]
        return result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("model")
    tokenizer = byte_tokenizer()
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(path)
    with torch.random.fork_rng():
        torch.manual_seed(7)
        config = config_of("llama", len(tokenizer) + 8, tokenizer.eos_token_id)
        config.max_position_embeddings = 1024
        model = AutoModelForCausalLM.from_config(config)
        for name, weight in model.named_parameters():  # larger than at birth, for gradients worth clipping
            torch.nn.init.normal_(weight, mean=float("norm" in name), std=0.4)
    model.save_pretrained(path)
    return path


def a_step(folder: Path, **changes: Any) -> tuple[Any, Scripted, list[tuple[str, list[str], list[float]]]]:
    """One step of a node with the preset's settings on sums: the note, the policy, and the groups with the
    rewards that they should get, own ones first."""
    given = {"tasks": ("sums",), "models": (f"local:{folder}",), "nodes": 1, "steps": 1, "evaluate_every": 0}
    preset = find_preset("sapo").settings(TrainSettings, given)
    settings = msgspec.structs.replace(
        preset, local=2, external=2, group=4, learning=msgspec.structs.replace(preset.learning, **changes)
    )
    chosen = {"rendering": settings.prompt, "system": settings.system, "precision": settings.precision}
    opened = open_policy(f"local:{folder}", device="cpu", **chosen)
    assert isinstance(opened, LanguageModelPolicy)
    policy = Scripted(opened.model, opened._loaded, opened.encoding._render)
    mailbox, groups = Mailbox(), []
    for counter, author in enumerate("ab", start=1):
        right = true_question(author, counter).answer
        texts = [text.format(right=right) for text in FOREIGN]
        written = tuple([Completion(text, True) for text in texts])
        group = honest_group(author, counter, completions=written)
        mailbox.waiting.append(received(group, author, counter))
        groups.append((group.question, texts, [1.0, 1.0, 0.0]))
    node = make_node(settings, mailbox, policy=lambda: policy)
    run_to_end(node)
    own = [
        (shared.question, [one.text for one in shared.completions], [1.0, 0.0, 0.0, 0.0])
        for shared in mailbox.shared
    ]
    return node.state.figures.last, policy, [*own, *groups]


def test_loss_gradient_and_weights_are_those_of_the_equations(folder: Path) -> None:
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    before = [weight.detach().clone() for weight in model.parameters()]
    note, policy, groups = a_step(folder)
    constants = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "inner": 1}
    loss, gradient = plain_step(model, groups, constants)
    assert (note.own, note.used, note.reward_local) == (2, 2, 0.25)
    assert note.loss == pytest.approx(loss, abs=1e-6)
    norm = torch.cat([one.flatten() for one in gradient]).norm().item()
    assert note.gradient_norm == pytest.approx(norm, rel=1e-4)
    assert norm > 1.2, "a clipped gradient would be seen"
    assert len(policy.gradients) == len(gradient)
    for ours, plain in zip(policy.gradients, gradient, strict=True):
        assert torch.allclose(ours, plain, atol=2e-6)
    # Adam divides a gradient by itself at first: where it is not rounding, weights move by the learning rate.
    moved = 0
    for ours, plain, old, slope in zip(policy._weights, model.parameters(), before, gradient, strict=True):
        clear = slope.abs() > 1e-4
        assert torch.allclose(ours[clear], plain[clear], atol=2e-6)
        assert torch.allclose((plain - old)[clear].abs(), torch.tensor(1e-3), rtol=1e-2)
        moved += int(clear.sum())
    assert moved > 5000


def test_inner_steps_and_adam_with_other_constants(folder: Path) -> None:
    """Several updates on one batch, far enough for the clipping to act, with numbers of Adam of our own."""
    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
    changes = {
        "learning_rate": 0.004,
        "adam_beta1": 0.7,
        "adam_beta2": 0.9,
        "adam_epsilon": 1e-2,
        "inner_steps": 3,
    }
    note, policy, groups = a_step(folder, **changes)
    constants = {"lr": 0.004, "betas": (0.7, 0.9), "eps": 1e-2, "inner": 3}
    loss, _ = plain_step(model, groups, constants)
    assert note.parts["clipped"] > 0.05
    assert note.loss == pytest.approx(loss, abs=1e-4)
    for ours, plain in zip(policy._weights, model.parameters(), strict=True):
        assert torch.allclose(ours, plain, atol=1e-4)
