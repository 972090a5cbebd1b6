"""Packed log-probs and gradients against padded ones, and both against a plain forward pass."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch

from shoal.policy.log_probs import PackedScorer, PaddedScorer, Piece, Scorer, packs, window
from shoal.policy.weights import Loaded
from tests.policy.small_models import KINDS, make_loaded, shake_adapters

# The end token, which is the padding token too, stands within prompts and completions.
END = 260
PIECES = [
    Piece([5, 9, END, 77, 30, 2, 8], [[1, 2, 3], [4, END], [END], [6, 7, 8, 9, 10, END]]),
    Piece([11, 12], [[13, 14, 15, 16], [17, 18, END]]),
    Piece([20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30], [[31], [32, 33, 34, END], [35, 36, 37, 38, 39]]),
]


def one_by_one(loaded: Loaded, temperature: float) -> torch.Tensor:
    found = []
    for piece in PIECES:
        for completion in piece.completions:
            ids = torch.tensor([[*piece.prompt, *completion]])
            logits = loaded.model(input_ids=ids).logits[0] / temperature
            chosen = logits.log_softmax(-1)[len(piece.prompt) - 1 : -1]
            found.append(chosen.gather(1, torch.tensor(completion)[:, None])[:, 0])
    return torch.cat(found)


@pytest.mark.parametrize("kind", [*KINDS, "gemma3"])
@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_packed_is_padded_is_plain(kind: str, temperature: float, tmp_path: Path) -> None:
    loaded = make_loaded(kind, tmp_path)
    assert packs(loaded.model, 256)
    with torch.no_grad():
        expected = one_by_one(loaded, temperature)
        for scorer in (PackedScorer(loaded.model), PaddedScorer(loaded.model)):
            found = scorer.log_probs(PIECES, temperature)
            # A float holds seven digits, and log-probs of these models go down to -50.
            assert torch.allclose(found, expected, atol=1e-5, rtol=2e-6), type(scorer)


@pytest.mark.parametrize("kind", ["mamba", "sliding"])
def test_padded_serves_models_that_cannot_be_packed(kind: str, tmp_path: Path) -> None:
    loaded = make_loaded(kind, tmp_path)
    assert not packs(loaded.model, 256) or window(loaded.model) == 6
    with torch.no_grad():
        found = PaddedScorer(loaded.model).log_probs(PIECES, 1.0)
        assert torch.allclose(found, one_by_one(loaded, 1.0), atol=1e-5, rtol=2e-6)


def gradient(loaded: Loaded, scorer: Scorer, batches: list[list[Piece]]) -> torch.Tensor:
    loaded.model.zero_grad()
    seen = 0
    for batch in batches:
        log_probs = scorer.log_probs(batch, 1.0)
        # Any smooth function of single log-probs will do, if it weighs them differently.
        weight = torch.sin(torch.arange(seen, seen + len(log_probs)))
        (log_probs.exp() * weight + 0.01 * log_probs * weight).sum().backward()
        seen += len(log_probs)
    return torch.cat([weight.grad.flatten() for _, weight in loaded.trainable()])


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2"])
@pytest.mark.parametrize("lora", [0, 4])
def test_gradients_do_not_depend_on_the_way(kind: str, lora: int, tmp_path: Path) -> None:
    loaded = make_loaded(kind, tmp_path, lora=lora)
    if lora:
        shake_adapters(loaded)
    packed, padded = PackedScorer(loaded.model), PaddedScorer(loaded.model)
    expected = gradient(loaded, padded, [PIECES])
    largest = float(expected.abs().max())
    for scorer, batches in (
        (packed, [PIECES]),
        (packed, [[piece] for piece in PIECES]),
        (padded, [[piece] for piece in PIECES]),
    ):
        assert torch.allclose(gradient(loaded, scorer, batches), expected, atol=1e-5 * max(largest, 1.0))


def test_no_completion_sees_another(tmp_path: Path) -> None:
    loaded = make_loaded("llama", tmp_path)
    scorer = PackedScorer(loaded.model)
    with torch.no_grad():
        before = scorer.log_probs([Piece([5, 6, 7], [[1, 2, 3], [4, 5, 6]])], 1.0)
        after = scorer.log_probs([Piece([5, 6, 7], [[90, 91, 92], [4, 5, 6]])], 1.0)
    assert torch.allclose(before[3:], after[3:], atol=1e-6)
    assert not torch.allclose(before[:3], after[:3], atol=1e-2)
