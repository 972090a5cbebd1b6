"""The tiny policies: made from nothing, opened by plain transformers, different from each other."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from shoal.errors import ConfigError
from shoal.policy import tiny
from shoal.policy.lessons import SEPARATOR, lesson_texts
from shoal.policy.specification import open_policy
from shoal.policy.tiny import END, KINDS, PAD, make_tokenizer
from shoal.tasks.sums import BUILTIN

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")

TEXTS = lesson_texts(tiny.LESSONS, 1000, 0)


@pytest.fixture(scope="module", autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The smallest of them, made from nothing once for this module."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("SHOAL_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield tiny.tiny_folder("qwen")


@pytest.fixture(scope="module", params=sorted(KINDS))
def saved_tokenizer(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("tokenizer")
    make_tokenizer(request.param, TEXTS, 400).save_pretrained(folder)
    return transformers.AutoTokenizer.from_pretrained(folder)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.text() | st.sampled_from([END, PAD, f"a{END}b", "<0x41>", "▁", "Ġ", " a  b \r\n", "\x00"]))
def test_any_text_comes_back_as_it_was_and_never_ends_a_completion(saved_tokenizer: Any, text: str) -> None:
    ids = saved_tokenizer(text, add_special_tokens=False)["input_ids"]
    assert not {saved_tokenizer.eos_token_id, saved_tokenizer.pad_token_id} & set(ids)
    assert saved_tokenizer.decode(ids) == text
    assert saved_tokenizer.decode([*ids, saved_tokenizer.eos_token_id], skip_special_tokens=True) == text


def test_tokenizers_cut_the_same_text_differently() -> None:
    cuts = set()
    for kind in KINDS:
        tokenizer = make_tokenizer(kind, TEXTS, 400)
        ids = tokenizer("larger of 17 and 81:\n", add_special_tokens=False)["input_ids"]
        cuts.add(tuple(tokenizer.convert_ids_to_tokens(ids)))
    assert len(cuts) == len(KINDS)


def test_a_tokenizer_is_the_same_every_time() -> None:
    for kind in KINDS:
        first, again = (make_tokenizer(kind, TEXTS, 400).backend_tokenizer.to_str() for _ in range(2))
        assert first == again


def test_the_recipes_differ_in_architecture_and_tokenizer() -> None:
    assert len(tiny.RECIPES) >= 3
    assert len({recipe.architecture for recipe in tiny.RECIPES.values()}) == len(tiny.RECIPES)
    assert len({recipe.tokenizer for recipe in tiny.RECIPES.values()}) == len(tiny.RECIPES)
    assert len({tiny._digest(recipe) for recipe in tiny.RECIPES.values()}) == len(tiny.RECIPES)


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="tiny:llama"):
        tiny.tiny_folder("mamba")


@pytest.mark.parametrize("name", sorted(tiny.RECIPES))
def test_a_short_making_gives_a_folder_that_transformers_opens(name: str, tmp_path: Path) -> None:
    short = shorten(tiny.RECIPES[name])
    state = torch.random.get_rng_state()
    random_state = random.getstate()
    folders = [tmp_path / "first", tmp_path / "again"]
    for folder in folders:
        tiny.make_folder(short, folder)
    assert torch.equal(state, torch.random.get_rng_state()), "torch's generator belongs to others"
    assert random_state == random.getstate()
    first, again = ((folder / "model.safetensors").read_bytes() for folder in folders)
    assert first == again, "the same recipe gives the same weights"
    assert sorted(os.listdir(tmp_path)) == ["again", "first"], "nothing is left beside them"

    model = transformers.AutoModelForCausalLM.from_pretrained(folders[0])
    tokenizer = transformers.AutoTokenizer.from_pretrained(folders[0])
    assert type(model).__name__ == model.config.architectures[0]
    assert model.get_input_embeddings().weight.shape[0] == len(tokenizer)
    assert model.get_output_embeddings().weight is model.get_input_embeddings().weight
    assert (
        model.generation_config.eos_token_id == tokenizer.eos_token_id == tokenizer.convert_tokens_to_ids(END)
    )
    assert 200_000 < model.num_parameters() < 2_000_000
    written = model.generate(**tokenizer("3+4=\n", return_tensors="pt"), max_new_tokens=4, do_sample=False)
    assert written.shape[1] > 4


def test_a_folder_is_made_once_and_anew_for_another_recipe(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path))
    monkeypatch.setitem(tiny.RECIPES, "qwen", shorten(tiny.RECIPES["qwen"]))
    folder = tiny.tiny_folder("qwen")
    assert folder.parent == tmp_path / "policies"
    before = (folder / "model.safetensors").stat().st_mtime_ns
    assert tiny.tiny_folder("qwen") == folder
    assert (folder / "model.safetensors").stat().st_mtime_ns == before
    monkeypatch.setitem(tiny.RECIPES, "qwen", shorten(tiny.RECIPES["qwen"], seed=99))
    assert tiny.tiny_folder("qwen") != folder


def test_a_cache_that_cannot_be_written_is_said_in_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "policies").write_text("a file where a folder should be")
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path))
    with pytest.raises(ConfigError, match="SHOAL_CACHE"):
        tiny.tiny_folder("qwen")


def test_it_starts_where_rewards_have_something_to_find(qwen: Path) -> None:
    """Some samples are right, most are not, and nearly all have the form of an answer."""
    model = transformers.AutoModelForCausalLM.from_pretrained(qwen)
    tokenizer = transformers.AutoTokenizer.from_pretrained(qwen)
    family = BUILTIN["sums"]({})
    puzzles = [family.pose(seed) for seed in range(64)]
    prompts = tokenizer(
        [puzzle.question + SEPARATOR for puzzle in puzzles], return_tensors="pt", padding=True
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        written = model.generate(
            **prompts, max_new_tokens=8, do_sample=True, top_k=0, num_return_sequences=8
        )[:, prompts["input_ids"].shape[1] :]
    texts = tokenizer.batch_decode(written, skip_special_tokens=True)
    right = [family.score(puzzles[index // 8], text) for index, text in enumerate(texts)]
    assert 0.02 < sum(right) / len(right) < 0.15
    assert sum(text.isdigit() for text in texts) / len(texts) > 0.9
    ended = (written == tokenizer.eos_token_id).any(dim=1).float().mean()
    assert ended > 0.9


def shorten(recipe: tiny.Recipe, seed: int = 7) -> tiny.Recipe:
    """The same with hardly any training."""
    import msgspec

    brief = msgspec.structs.replace(recipe.warm_up, clean=2, noisy=1, rows=8, seed=seed)
    return msgspec.structs.replace(recipe, warm_up=brief)


def test_a_chat_prompt_is_the_system_prompt_and_the_plain_prompt(qwen: Path, tmp_path: Path) -> None:
    """Without a system prompt it is the plain one; a checkpoint keeps the template."""
    from shoal.policy.language_model import LanguageModelPolicy

    def prompt(rendering: str, system: str) -> str:
        policy = open_policy("tiny:qwen", rendering=rendering, system=system, device="cpu")
        assert isinstance(policy, LanguageModelPolicy)
        ids = policy.encoding.prompt("3+4=")
        policy.save(tmp_path / "saved")
        return str(policy._loaded.tokenizer.decode(ids))

    assert qwen.is_dir()
    assert prompt("chat", "none") == prompt("plain", "shoal") == "3+4=\n"
    assert not transformers.AutoTokenizer.from_pretrained(tmp_path / "saved").chat_template
    assert prompt("chat", "Add the numbers.\n") == "Add the numbers.\n\n3+4=\n"
    assert transformers.AutoTokenizer.from_pretrained(tmp_path / "saved").chat_template
