"""The tokenizers of the tiny policies: three ways to cut the same text.

Guarantees: every text can be encoded and comes back as it was, because what is not in a vocabulary is spelt
in bytes; the end token and the padding token exist, and the text of a stranger never turns into one of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tokenizers import Tokenizer
    from tokenizers.pre_tokenizers import PreTokenizer

END = "<|end|>"
PAD = "<|pad|>"
PRINTABLE = [chr(code) for code in range(0x20, 0x7F)]


def byte_pairs(texts: Sequence[str], vocabulary: int) -> Tokenizer:
    """Byte-level BPE in which numbers may become single tokens, as in GPT-2 and Llama 3."""
    from tokenizers import pre_tokenizers

    return _train(texts, vocabulary, pre_tokenizers.ByteLevel(add_prefix_space=False))


def byte_pairs_by_digit(texts: Sequence[str], vocabulary: int) -> Tokenizer:
    """Byte-level BPE in which every digit stands alone, as in Qwen."""
    from tokenizers import pre_tokenizers

    return _train(
        texts,
        vocabulary,
        pre_tokenizers.Sequence(
            [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
        ),
    )


def characters(texts: Sequence[str], vocabulary: int) -> Tokenizer:
    """One token per character; characters that are not ASCII are spelt in bytes. Neither `texts` nor
    `vocabulary` matter."""
    from tokenizers import Tokenizer, decoders, models

    pieces = [PAD, END, *(f"<0x{byte:02X}>" for byte in range(256)), "\n", *PRINTABLE]
    tokenizer = Tokenizer(
        models.BPE(
            vocab={piece: index for index, piece in enumerate(pieces)},
            merges=[],
            byte_fallback=True,
        )
    )
    tokenizer.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    tokenizer.add_special_tokens([PAD, END])
    return tokenizer


KINDS: dict[str, Callable[[Sequence[str], int], Tokenizer]] = {
    "byte pairs": byte_pairs,
    "byte pairs by digit": byte_pairs_by_digit,
    "characters": characters,
}


def make_tokenizer(kind: str, texts: Sequence[str], vocabulary: int) -> Any:
    """One of KINDS, trained on `texts` where it is trained, ready to be saved beside a model."""
    import transformers

    # Typed as Any because transformers leaves its constructor without types.
    tokenizer_class: Any = transformers.PreTrainedTokenizerFast
    return tokenizer_class(
        tokenizer_object=KINDS[kind](texts, vocabulary),
        eos_token=END,
        pad_token=PAD,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        # A stranger who writes the end token's name in his text gets its letters, not the token.
        split_special_tokens=True,
    )


def _train(texts: Sequence[str], vocabulary: int, cut: PreTokenizer) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
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
