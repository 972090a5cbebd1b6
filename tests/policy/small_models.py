"""Random models of a few thousand parameters, made from their configs, with a tokenizer of bytes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, pre_tokenizers
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    GPT2Config,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    PreTrainedTokenizerFast,
    Qwen2Config,
    Qwen3Config,
)

from shoal.policy.weights import Loaded, load

SHAPE: dict[str, Any] = {
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "tie_word_embeddings": True,
}
KINDS = ("llama", "qwen2", "qwen3", "mistral", "gpt2")


def byte_tokenizer() -> PreTrainedTokenizerFast:
    """256 bytes, a few merges, and `<eos>`, which is the padding token as well."""
    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    merges = [("a", "n"), ("an", "s"), ("1", "2"), ("e", "r")]
    tokens = [*letters, *["".join(merge) for merge in merges]]
    backend = Tokenizer(models.BPE({token: number for number, token in enumerate(tokens)}, merges))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<eos>", pad_token="<eos>")


def config_of(kind: str, vocabulary: int, end: int) -> Any:
    ends = {"eos_token_id": end, "bos_token_id": None, "pad_token_id": end, "vocab_size": vocabulary}
    if kind == "llama":
        return LlamaConfig(**SHAPE, **ends)
    if kind == "qwen2":
        return Qwen2Config(**SHAPE, **ends)
    if kind == "qwen3":
        return Qwen3Config(**SHAPE, **ends, head_dim=16)
    if kind == "mistral":
        return MistralConfig(**SHAPE, **ends, sliding_window=None)
    if kind == "sliding":
        return MistralConfig(**SHAPE, **ends, sliding_window=6)
    if kind == "gemma3":
        return Gemma3TextConfig(**SHAPE, **ends, head_dim=16, sliding_window=16, query_pre_attn_scalar=16)
    if kind == "mamba":
        return MambaConfig(**ends, hidden_size=32, num_hidden_layers=2, state_size=4)
    return GPT2Config(**ends, n_embd=32, n_layer=2, n_head=4, n_positions=256)


def make_folder(kind: str, folder: Path, seed: int = 0) -> Path:
    tokenizer = byte_tokenizer()
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        # Some tokens more than the tokenizer has, as with many real models.
        config = config_of(kind, len(tokenizer) + 8, tokenizer.eos_token_id)
        model = AutoModelForCausalLM.from_config(config)
        for name, weight in model.named_parameters():
            # Larger weights than at birth, so that the most likely token is clear and depends on the text;
            # biases and norms that are not all 0 and 1.
            torch.nn.init.normal_(weight, mean=float("norm" in name), std=0.25)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def make_loaded(kind: str, folder: Path, seed: int = 0, lora: int = 0) -> Loaded:
    return load(make_folder(kind, folder / kind, seed), f"local:{kind}", device="cpu", lora=lora)


def shake_adapters(loaded: Loaded, seed: int = 1) -> None:
    """Adapters begin as zeros: this makes them matter."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for _, weight in loaded.trainable():
            weight.copy_(torch.randn(weight.shape, generator=generator) * 0.1)
