"""Policies that come with the package: language models of about a million parameters, made on first use.

`tiny:llama`, `tiny:gpt2` and `tiny:qwen` have different architectures, sizes and tokenizers. They are trained
for some seconds on the builtin tasks (lessons.py) and kept in the user's cache as plain model folders.

Guarantees: a folder appears whole or not at all, and its name holds a digest of its recipe. Every text can be
encoded and comes back as it was: characters outside a vocabulary are spelt in bytes. A stranger's text never
turns into the end token or the padding token.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from shoal.errors import ConfigError
from shoal.models.cache import cache_folder, made_whole
from shoal.policy.lessons import Lesson, Tell, WarmUp, lesson_texts, warm_up

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

MAKING = 1
"""Part of the digest: to be raised when the same recipe gives other weights than before."""
ROOM = 2048
"""Tokens of a prompt with its completion, where positions cost no weights."""
TEXTS = 4000
"""The number of texts that a tokenizer is trained on."""
END = "<|end|>"
PAD = "<|pad|>"

CHAT_TEMPLATE = (
    "{% for one in messages %}{{ one['content'] | trim }}{{ '\\n' if loop.last else '\\n\\n' }}{% endfor %}"
)
"""For a chat prompt: the system prompt, an empty line, and the question as in a plain prompt."""

LESSONS = (Lesson("sums", weight=5), Lesson("compare"), Lesson("reverse"), Lesson("count"))


class Recipe(msgspec.Struct, frozen=True):
    """Everything that a tiny policy is made of. `shape` configures the architecture; weights start wider than
    in large models (from 1 to 2 over the root of the width), or they learn half as fast."""

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
    """The model folder of `tiny:name`, made or not."""
    return cache_folder() / "policies" / f"tiny-{name}-{_digest(RECIPES[name])}"


def check_tiny(name: str) -> None:
    if name not in RECIPES:
        known = ", ".join(f"tiny:{known}" for known in sorted(RECIPES))
        raise ConfigError(f"there is no policy tiny:{name}: choose one of {known}")


def tiny_folder(name: str, tell: Tell | None = None) -> Path:
    """The model folder of `tiny:name`, made if it is missing; `tell` is told the part that is done."""
    check_tiny(name)
    folder = tiny_path(name)
    if not folder.is_dir():
        make_folder(RECIPES[name], folder, tell)
    return folder


def make_folder(recipe: Recipe, folder: Path, tell: Tell | None = None) -> None:
    """Makes the weights and the tokenizer, and puts them at `folder`."""
    from safetensors.torch import save_file

    settings = recipe.warm_up
    texts = lesson_texts(settings.lessons, TEXTS, settings.seed)
    tokenizer = make_tokenizer(recipe.tokenizer, texts, recipe.vocabulary)
    model = _untrained(recipe, tokenizer)
    with made_whole(folder) as aside:
        warm_up(model, tokenizer, settings, tell)
        # As model.save_pretrained does it, without its progress bar.
        model.config.architectures = [type(model).__name__]
        model.config.save_pretrained(aside)
        model.generation_config.save_pretrained(aside)
        weights = model.state_dict()
        # The embeddings serve as the output too; a tensor that shares memory is stored once.
        del weights["lm_head.weight"]
        save_file(weights, aside / "model.safetensors", metadata={"format": "pt"})
        tokenizer.save_pretrained(aside)


def _untrained(recipe: Recipe, tokenizer: Any) -> Any:
    """Random weights, the same for the same recipe; torch's global generator does not move."""
    import torch
    import transformers

    # Any, because transformers leaves parts of it without types.
    library: Any = transformers
    dropout = ("embd_pdrop", "attn_pdrop", "resid_pdrop") if recipe.architecture == "gpt2" else ()
    config = library.AutoConfig.for_model(
        recipe.architecture,
        **recipe.shape,
        vocab_size=len(tokenizer),
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        **dict.fromkeys(dropout, 0.0),
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(recipe.warm_up.seed)
        return library.AutoModelForCausalLM.from_config(config, dtype=torch.float32)


def _digest(recipe: Recipe) -> str:
    families = [lesson.open() for lesson in recipe.warm_up.lessons]
    parts = (MAKING, TEXTS, recipe, [(family.name, family.version, family.parameters) for family in families])
    return hashlib.sha256(msgspec.json.encode(parts, order="deterministic")).hexdigest()[:16]


def byte_pairs(texts: Sequence[str], vocabulary: int, by_digit: bool = False) -> Tokenizer:
    """Byte-level BPE. Numbers may become single tokens (GPT-2, Llama 3), or digits stand alone (Qwen)."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    cut: PreTokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    if by_digit:
        cut = pre_tokenizers.Sequence([pre_tokenizers.Digits(individual_digits=True), cut])
    tokenizer.pre_tokenizer = cut
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=[PAD, END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    return tokenizer


def characters(texts: Sequence[str], vocabulary: int) -> Tokenizer:
    """One token per character; characters that are not ASCII are spelt in bytes. Nothing is trained."""
    from tokenizers import Tokenizer, decoders, models

    printable = map(chr, range(0x20, 0x7F))
    pieces = [PAD, END, *(f"<0x{byte:02X}>" for byte in range(256)), "\n", *printable]
    vocab = {piece: index for index, piece in enumerate(pieces)}
    tokenizer = Tokenizer(models.BPE(vocab=vocab, merges=[], byte_fallback=True))
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([PAD, END])
    return tokenizer


KINDS: dict[str, Callable[[Sequence[str], int], Tokenizer]] = {
    "byte pairs": byte_pairs,
    "byte pairs by digit": partial(byte_pairs, by_digit=True),
    "characters": characters,
}


def make_tokenizer(kind: str, texts: Sequence[str], vocabulary: int) -> Any:
    """A tokenizer of one of the KINDS, ready to be saved beside a model."""
    import transformers

    library: Any = transformers
    return library.PreTrainedTokenizerFast(
        tokenizer_object=KINDS[kind](texts, vocabulary),
        eos_token=END,
        pad_token=PAD,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        # The end token's name in a stranger's text becomes its letters, not the token.
        split_special_tokens=True,
    )
