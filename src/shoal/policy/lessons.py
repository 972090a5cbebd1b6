"""The short supervised training that makes random weights a policy worth rewarding.

A policy that never answers right gets no reward and learns nothing; one that always does has nothing left to
learn. So the weights first see right answers, until they can do the tasks, and then mostly answers to other
questions, until they give the right answer a few times in a hundred. Rewards can bring the ability out again.

Guarantee: the same model, tokenizer and settings give the same weights on one machine, whatever number of
threads torch has been given, and no global generator moves.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import msgspec

from shoal.runs.seeds import derive
from shoal.tasks.family import Family
from shoal.tasks.sums import BUILTIN

SEPARATOR = "\n"
"""Prompts are `question + SEPARATOR`."""
IGNORED = -100
"""A label that cross entropy passes over."""

Tell = Callable[[float], None]
"""Is told the part that is done, from 0 to 1."""


class Lesson(msgspec.Struct, frozen=True):
    """A builtin family with its settings, and its share of a batch in relation to others."""

    family: str
    parameters: dict[str, Any] = {}
    weight: int = 1

    def open(self) -> Family:
        return BUILTIN[self.family](self.parameters)


class WarmUp(msgspec.Struct, frozen=True):
    """`clean` steps on right answers, then `noisy` steps with a share `right` of them; `rows` rows each."""

    lessons: tuple[Lesson, ...]
    clean: int
    noisy: int
    right: float
    rows: int
    learning_rate: float
    seed: int


def lesson_texts(lessons: Sequence[Lesson], count: int, seed: int) -> list[str]:
    """Questions with right answers to train a tokenizer on; the same for the same seed."""
    rng = derive(seed, "texts")
    families = _families(lessons)
    return [SEPARATOR.join(_pair(rng.choice(families), rng)) for _ in range(count)]


def warm_up(model: Any, tokenizer: Any, settings: WarmUp, tell: Tell | None = None) -> None:
    import torch

    rng = derive(settings.seed, "warm-up")
    families = _families(settings.lessons)
    steps = settings.clean + settings.noisy
    rate = settings.learning_rate
    optimiser = torch.optim.AdamW(model.parameters(), lr=rate, betas=(0.9, 0.98), weight_decay=0.0)
    with _one_thread():
        model.train()
        for step in range(steps):
            right = 1.0 if step < settings.clean else settings.right
            rows = []
            for _ in range(settings.rows):
                family = rng.choice(families)
                question, answer = _pair(family, rng)
                if rng.random() >= right:
                    answer = _pair(family, rng)[1]
                rows.append((question, answer))
            for group in optimiser.param_groups:
                group["lr"] = rate * _share_of_rate(step, settings)
            optimiser.zero_grad(set_to_none=True)
            _backward(torch, model, tokenizer, rows)
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimiser.step()
            if tell is not None:
                tell((step + 1) / steps)
        model.eval()


def _share_of_rate(step: int, settings: WarmUp) -> float:
    """Rises over the first steps and then falls to a third; in the noisy part it falls from a half to 0."""
    if step < settings.clean:
        return min(1.0, (step + 1) / 20) * (1.0 - 0.67 * step / settings.clean)
    return 0.5 - 0.5 * (step - settings.clean) / settings.noisy


def _backward(torch: Any, model: Any, tokenizer: Any, rows: Sequence[tuple[str, str]]) -> None:
    """The gradient of the cross entropy of answers with their end token, a mean over all their tokens."""
    prompts = tokenizer([question + SEPARATOR for question, _ in rows], add_special_tokens=False)["input_ids"]
    answers = tokenizer([answer for _, answer in rows], add_special_tokens=False)["input_ids"]
    pairs = sorted(zip(prompts, answers, strict=True), key=lambda pair: len(pair[0]) + len(pair[1]))
    total = sum(len(answer) + 1 for answer in answers)
    # Short and long rows apart: half of a common batch would be padding.
    half = len(pairs) // 2
    for part in filter(None, (pairs[:half], pairs[half:])):
        (_summed_loss(torch, model, tokenizer, part) / total).backward()


def _summed_loss(torch: Any, model: Any, tokenizer: Any, pairs: Sequence[tuple[list[int], list[int]]]) -> Any:
    """Rows are padded on the right, where no token sees the padding."""
    width = max(len(prompt) + len(answer) for prompt, answer in pairs)
    ids = torch.full((len(pairs), width), tokenizer.pad_token_id)
    labels = torch.full((len(pairs), width), IGNORED)
    for index, (prompt, answer) in enumerate(pairs):
        row = torch.tensor([*prompt, *answer, tokenizer.eos_token_id])
        ids[index, : len(row) - 1] = row[:-1]
        labels[index, len(prompt) - 1 : len(row) - 1] = row[len(prompt) :]
    logits = model(input_ids=ids, attention_mask=torch.ones_like(ids), use_cache=False).logits
    return torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=IGNORED, reduction="sum"
    )


def _families(lessons: Sequence[Lesson]) -> list[Family]:
    return [family for lesson in lessons for family in [lesson.open()] * lesson.weight]


def _pair(family: Family, rng: random.Random) -> tuple[str, str]:
    puzzle = family.pose(rng.getrandbits(62))
    return puzzle.question, puzzle.answer


@contextmanager
def _one_thread() -> Iterator[None]:
    """With another number of threads, sums are rounded in another order."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
