"""Both samplers against `generate` of transformers, and against the probabilities they should follow."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
from transformers import TopPLogitsWarper

from shoal.policy.fast_sampler import FastSampler
from shoal.policy.sampler import Drawer, Drawn, PlainSampler
from shoal.policy.weights import Loaded
from tests.policy.small_models import KINDS, make_loaded, shake_adapters

PROMPTS = [[5, 9, 77, 30, 2, 8, 61], [14, 15, 16], [40, 41, 42, 43, 44, 45, 46, 47, 48, 49, 50], [7, 7, 7]]
NEW = 14


def drawer(temperature: float = 1.0, seed: int = 3, log_probs: bool = False, top_p: float = 1.0) -> Drawer:
    return Drawer(temperature, seed, torch.device("cpu"), log_probs, top_p)


def samplers(loaded: Loaded) -> list[FastSampler | PlainSampler]:
    plain = PlainSampler(loaded.model, loaded.ends)
    return [FastSampler(loaded.model, loaded.ends), plain] if FastSampler.serves(loaded.model) else [plain]


def generated(loaded: Loaded, prompt: list[int]) -> list[int]:
    ids = torch.tensor([prompt])
    output = loaded.model.generate(
        input_ids=ids,
        attention_mask=torch.ones_like(ids),
        do_sample=False,
        max_new_tokens=NEW,
        eos_token_id=sorted(loaded.ends),
        pad_token_id=loaded.end,
    )
    return [int(token) for token in output[0, len(prompt) :]]


def with_frequent_end(loaded: Loaded, every: int = 7) -> Loaded:
    """The same model, which now ends texts often: every seventh token is an end token."""
    return Loaded(
        loaded.folder,
        loaded.model,
        loaded.tokenizer,
        loaded.adapted,
        loaded.end,
        frozenset(range(0, len(loaded.tokenizer), every)),
        None,
        loaded.room,
    )


def check(drawn: list[list[Drawn]], loaded: Loaded) -> None:
    for prompt, rows in zip(PROMPTS, drawn, strict=True):
        expected = generated(loaded, prompt)
        for row in rows:
            assert row.ids == expected, f"prompt {prompt}"
            assert row.finished == (expected[-1] in loaded.ends)


@pytest.mark.parametrize("kind", [*KINDS, "sliding", "gemma3", "mamba"])
def test_greedy_is_generate(kind: str, tmp_path: Path) -> None:
    loaded = make_loaded(kind, tmp_path)
    assert FastSampler.serves(loaded.model) == (kind in ("llama", "qwen2", "qwen3", "mistral"))
    for sampler in samplers(loaded):
        check(sampler.sample(PROMPTS, 2, NEW, drawer(0.0)), loaded)


@pytest.mark.parametrize(("kind", "every"), [("llama", 5), ("qwen2", 5)])
def test_greedy_is_generate_when_rows_end_early(kind: str, every: int, tmp_path: Path) -> None:
    loaded = with_frequent_end(make_loaded(kind, tmp_path), every)
    for sampler in samplers(loaded):
        drawn = sampler.sample(PROMPTS, 3, NEW, drawer(0.0))
        check(drawn, loaded)
        assert len({len(rows[0].ids) for rows in drawn}) > 1, "the example should end at different times"


@pytest.mark.parametrize("kind", ["llama", "qwen3"])
def test_adapters_are_merged(kind: str, tmp_path: Path) -> None:
    loaded = make_loaded(kind, tmp_path, lora=4)
    plain = generated(loaded, PROMPTS[0])
    shake_adapters(loaded)
    assert generated(loaded, PROMPTS[0]) != plain, "the adapters should matter"
    for sampler in samplers(loaded):
        check(sampler.sample(PROMPTS, 2, NEW, drawer(0.0)), loaded)


@pytest.mark.parametrize("kind", ["llama", "qwen3", "gpt2", "gemma3"])
def test_log_probs_are_those_of_a_plain_forward_pass(kind: str, tmp_path: Path) -> None:
    """Rows that end at different times move about in the batch: their log-probs show whether each still
    attends to its own past."""
    loaded = with_frequent_end(make_loaded(kind, tmp_path), 3)
    for sampler in samplers(loaded):
        drawn = sampler.sample(PROMPTS, 8, NEW, drawer(1.6, log_probs=True))
        assert len({len(row.ids) for rows in drawn for row in rows}) > 4
        for prompt, rows in zip(PROMPTS, drawn, strict=True):
            for row in rows:
                with torch.no_grad():
                    logits = loaded.model(torch.tensor([[*prompt, *row.ids]])).logits[0] / 1.6
                expected = logits.log_softmax(-1)[len(prompt) - 1 : -1].gather(
                    1, torch.tensor(row.ids)[:, None]
                )
                assert torch.allclose(torch.tensor(row.log_probs), expected[:, 0], atol=1e-4)


def test_frequencies_follow_probabilities(tmp_path: Path) -> None:
    loaded = make_loaded("llama", tmp_path)
    count, temperature = 4000, 1.5
    with torch.no_grad():
        expected = (loaded.model(torch.tensor([PROMPTS[1]])).logits[0, -1] / temperature).softmax(-1)
    for sampler in samplers(loaded):
        drawn = sampler.sample([PROMPTS[1]], count, 1, drawer(temperature))
        found = Counter(row.ids[0] for row in drawn[0])
        distance = (
            sum(abs(found[token] / count - float(expected[token])) for token in range(len(expected))) / 2
        )
        # Under the null hypothesis the mean of this distance is at most sqrt(tokens / (2 pi count)) = 0.1.
        assert distance < 0.12
        likely = int(expected.argmax())
        error = (float(expected[likely]) * (1 - float(expected[likely])) / count) ** 0.5
        assert abs(found[likely] / count - float(expected[likely])) < 4 * error


def test_same_seed_same_texts_and_the_global_generator_rests(tmp_path: Path) -> None:
    loaded = make_loaded("llama", tmp_path)
    for sampler in samplers(loaded):
        state = torch.random.get_rng_state()
        runs = [
            [row.ids for rows in sampler.sample(PROMPTS, 4, NEW, drawer(seed=seed)) for row in rows]
            for seed in (5, 5, 6)
        ]
        assert runs[0] == runs[1] != runs[2]
        assert all(first != second for first, second in itertools.pairwise(runs[0]))
        assert torch.equal(torch.random.get_rng_state(), state)


@pytest.mark.parametrize("top_p", [0.05, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("temperature", [0.7, 2.0])
def test_top_p_draws_from_the_tokens_that_transformers_keeps(top_p: float, temperature: float) -> None:
    """Only those, all of them, as often as they should; log-probs are those of what was drawn from."""
    logits = torch.tensor([[3.0, 2.5, 2.0, 0.0, -1.0, 2.0], [0.0, 0.0, 0.0, 0.0, 9.0, 0.0]])
    kept = TopPLogitsWarper(top_p)(None, logits / temperature)
    expected = kept.log_softmax(-1)
    count = 3000
    rows = logits.repeat_interleave(count, 0)
    ids, log_probs = drawer(temperature, log_probs=True, top_p=top_p).draw(rows.clone())
    assert log_probs is not None
    assert torch.allclose(
        log_probs, expected.repeat_interleave(count, 0).gather(1, ids[:, None])[:, 0].double()
    )
    for row in range(2):
        found = torch.bincount(ids[row * count : (row + 1) * count], minlength=6) / count
        wanted = expected[row].exp()
        assert not found[wanted == 0].any()
        assert float((found - wanted).abs().max()) < 4 * (0.25 / count) ** 0.5


def test_a_top_p_of_one_is_the_old_way_bit_for_bit(tmp_path: Path) -> None:
    loaded = make_loaded("llama", tmp_path)
    for sampler in samplers(loaded):
        plain = sampler.sample(PROMPTS, 4, NEW, Drawer(1.3, 5, torch.device("cpu"), True))
        same = sampler.sample(PROMPTS, 4, NEW, drawer(1.3, 5, True, top_p=1.0))
        narrow = sampler.sample(PROMPTS, 4, NEW, drawer(1.3, 5, True, top_p=0.1))
        assert plain == same != narrow
        assert all(0 >= one > float("-inf") for rows in narrow for row in rows for one in row.log_probs)


def test_a_draw_beyond_the_last_sum_is_the_last_kept_token(monkeypatch: pytest.MonkeyPatch) -> None:
    """Random numbers of almost 1 may round to the whole sum: never to a token that is out."""
    monkeypatch.setattr(torch, "rand", lambda *shape, **options: torch.ones(shape[0], dtype=torch.float64))
    ids, log_probs = drawer(log_probs=True, top_p=0.6).draw(torch.tensor([[1.0, 5.0, 4.9, -3.0]]))
    assert ids.tolist() == [2]
    assert log_probs is not None
    assert float(log_probs) > -1
