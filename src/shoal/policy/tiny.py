"""Policies that come with the package: language models of about a million parameters, made on first use.

`tiny:llama`, `tiny:gpt2` and `tiny:qwen` have different architectures, sizes and tokenizers, so a swarm of
different models runs on any computer, without a download. They are trained for some seconds on the builtin
tasks (warm_up.py) and then kept in the user's cache as plain model folders, which transformers opens as it
opens any other.

Guarantee: a folder appears whole or not at all, and its name holds a digest of everything that it is made
of, so a changed recipe is made anew.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ConfigError
from shoal.models.presets import cache_folder
from shoal.policy.caching import made_whole
from shoal.policy.tiny_tokenizers import make_tokenizer
from shoal.policy.warm_up import Lesson, Tell, WarmUp, lesson_texts, warm_up

MAKING = 1
"""Part of the digest: to be raised when the same recipe gives other weights than before."""
ROOM = 2048
"""Tokens of a prompt with its completion, where positions cost no weights."""
TEXTS = 4000
"""How many texts a tokenizer is trained on."""

LESSONS = (
    Lesson("sums", weight=5),
    Lesson("compare"),
    Lesson("reverse"),
    Lesson("count"),
)


class Recipe(msgspec.Struct, frozen=True):
    """All that a tiny policy is made of. `shape` are settings of the architecture's configuration; weights
    start wider than in large models (from 1 to 2 over the root of the width), or they learn half as fast."""

    architecture: str
    shape: dict[str, float | bool]
    tokenizer: str
    vocabulary: int
    warm_up: WarmUp


RECIPES: dict[str, Recipe] = {
    "llama": Recipe(
        architecture="llama",
        shape={
            "hidden_size": 128,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 4,
            "intermediate_size": 512,
            "initializer_range": 0.15,
            "max_position_embeddings": ROOM,
            "tie_word_embeddings": True,
        },
        tokenizer="byte pairs",
        vocabulary=400,
        warm_up=WarmUp(LESSONS, clean=140, noisy=36, right=0.02, rows=32, learning_rate=3e-3, seed=1),
    ),
    "gpt2": Recipe(
        architecture="gpt2",
        shape={"n_embd": 128, "n_layer": 3, "n_head": 4, "n_positions": 512, "initializer_range": 0.1},
        tokenizer="characters",
        vocabulary=0,
        warm_up=WarmUp(LESSONS, clean=180, noisy=28, right=0.02, rows=32, learning_rate=3e-3, seed=2),
    ),
    "qwen": Recipe(
        architecture="qwen3",
        shape={
            "hidden_size": 96,
            "num_hidden_layers": 4,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "intermediate_size": 320,
            "initializer_range": 0.2,
            "max_position_embeddings": ROOM,
            "tie_word_embeddings": True,
        },
        tokenizer="byte pairs by digit",
        vocabulary=320,
        warm_up=WarmUp(LESSONS, clean=140, noisy=44, right=0.02, rows=32, learning_rate=3e-3, seed=3),
    ),
}


def tiny_path(name: str) -> Path:
    """Where the model folder of `tiny:name` is once it is made."""
    return cache_folder().parent / "policies" / f"tiny-{name}-{_digest(RECIPES[name])}"


def check_tiny(name: str) -> None:
    """ConfigError where there is no such policy."""
    if name not in RECIPES:
        known = ", ".join(f"tiny:{known}" for known in sorted(RECIPES))
        raise ConfigError(f"there is no policy tiny:{name}: choose one of {known}")


def tiny_folder(name: str, tell: Tell | None = None) -> Path:
    """The model folder of `tiny:name`, made if it is not there yet; `tell` hears how much of it is."""
    check_tiny(name)
    folder = tiny_path(name)
    if not folder.is_dir():
        make_folder(RECIPES[name], folder, tell)
    return folder


def make_folder(recipe: Recipe, folder: Path, tell: Tell | None = None) -> None:
    """Makes the weights and the tokenizer, and puts them at `folder`."""
    with made_whole(folder) as aside:
        _write(recipe, aside, tell)


def _write(recipe: Recipe, folder: Path, tell: Tell | None) -> None:
    from safetensors.torch import save_file

    settings = recipe.warm_up
    tokenizer = make_tokenizer(
        recipe.tokenizer, lesson_texts(settings.lessons, TEXTS, settings.seed), recipe.vocabulary
    )
    model = _untrained(recipe, tokenizer)
    warm_up(model, tokenizer, settings, tell)
    # What model.save_pretrained does, without its progress bar.
    model.config.architectures = [type(model).__name__]
    model.config.save_pretrained(folder)
    model.generation_config.save_pretrained(folder)
    weights = model.state_dict()
    # The embeddings serve as the output too; a tensor that shares memory is stored once.
    del weights["lm_head.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    tokenizer.save_pretrained(folder)


def _untrained(recipe: Recipe, tokenizer: Any) -> Any:
    """Random weights, the same for the same recipe; torch's own generator is left as it is."""
    import torch
    import transformers

    # Typed as Any because transformers leaves parts of these without types.
    configs: Any = transformers.AutoConfig
    models: Any = transformers.AutoModelForCausalLM
    config = configs.for_model(
        recipe.architecture,
        **recipe.shape,
        vocab_size=len(tokenizer),
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **(
            {"embd_pdrop": 0.0, "attn_pdrop": 0.0, "resid_pdrop": 0.0}
            if recipe.architecture == "gpt2"
            else {}
        ),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.warm_up.seed)
        return models.from_config(config, dtype=torch.float32)


def _digest(recipe: Recipe) -> str:
    families = [lesson.open() for lesson in recipe.warm_up.lessons]
    parts = (MAKING, TEXTS, recipe, [(family.name, family.version, family.parameters) for family in families])
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:16]
