"""Log-probs of completions, with gradient, at the least cost that the architecture allows.

Packed: all in one row without padding. Each prompt stands there once, and completions see their own prompt
and themselves; positions restart after the prompt for each. The vocabulary is computed only where a
completion token is foretold. Padded: each completion with its prompt in a row of its own, which every causal
model understands; it is the fallback, and the oracle of the other.

Lengths are kept as numbers. Nothing is read off the ids: an end token may well be the padding token.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch
import torch.nn.functional as F
from torch import Tensor

from shoal.policy.shared_attention import Layout, sharing

AGREEMENT = 1e-3
"""How far log-probs of both ways may lie apart before packing is taken to be unsupported. Rounding stays
below a tenth of this in single precision; attention or positions that are ignored are far above."""
HALF_AGREEMENT = 0.2


@dataclass(frozen=True, slots=True)
class Piece:
    """A prompt and completions of it that are computed together. None of them is empty."""

    prompt: Sequence[int]
    completions: Sequence[Sequence[int]]

    @property
    def longest(self) -> int:
        return len(self.prompt) + max(len(one) for one in self.completions)


class Scorer(Protocol):
    """Computes log-probs of completions under the model as it is."""

    def log_probs(self, pieces: Sequence[Piece], temperature: float) -> Tensor:
        """One log-prob per completion token, at `temperature`: piece by piece, completion by completion."""


class PaddedScorer:
    """For every architecture: no packing, right padding, explicit mask and positions."""

    def __init__(self, model: Any) -> None:
        self._model = model
        accepted = inspect.signature(model.forward).parameters
        self._takes_positions = "position_ids" in accepted
        self._takes_places = "logits_to_keep" in accepted

    def log_probs(self, pieces: Sequence[Piece], temperature: float) -> Tensor:
        device = next(self._model.parameters()).device
        pairs = [(piece.prompt, one) for piece in pieces for one in piece.completions]
        longest = max(len(prompt) + len(one) for prompt, one in pairs)
        ids = torch.zeros(len(pairs), longest, dtype=torch.long)
        mask = torch.zeros(len(pairs), longest, dtype=torch.long)
        rows: list[int] = []
        places: list[int] = []
        targets: list[int] = []
        for row, (prompt, one) in enumerate(pairs):
            length = len(prompt) + len(one)
            ids[row, :length] = torch.tensor([*prompt, *one])
            mask[row, :length] = 1
            rows += [row] * len(one)
            places += range(len(prompt) - 1, length - 1)
            targets += one
        options: dict[str, Tensor] = {}
        if self._takes_positions:
            options["position_ids"] = torch.arange(longest, device=device).expand(len(pairs), -1)
        first = 0
        if self._takes_places:
            first = min(places)
            options["logits_to_keep"] = torch.arange(first, longest, device=device)
        output = self._model(
            input_ids=ids.to(device), attention_mask=mask.to(device), use_cache=False, **options
        )
        at = torch.tensor(places, device=device) - first
        logits = output.logits[torch.tensor(rows, device=device), at]
        return _token_log_probs(logits, torch.tensor(targets, device=device), temperature)


class PackedScorer:
    """For architectures whose attention is exchangeable; `packs` tells whether that holds for a model."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self._body = model.get_decoder()
        self._head = model.get_output_embeddings()

    def log_probs(self, pieces: Sequence[Piece], temperature: float) -> Tensor:
        weight = self._head.weight
        device = weight.device
        ids: list[int] = []
        positions: list[int] = []
        last: list[int] = []
        for piece in pieces:
            ids += piece.prompt
            positions += range(len(piece.prompt))
            last.append(len(ids) - 1)
        sources: list[int] = []
        targets: list[int] = []
        owners: list[int] = []
        for owner, piece in enumerate(pieces):
            for one in piece.completions:
                # The first token is foretold by the end of the prompt, each other by the one before it.
                sources += [last[owner], *range(len(ids), len(ids) + len(one) - 1)]
                positions += range(len(piece.prompt), len(piece.prompt) + len(one))
                ids += one
                targets += one
                owners.append(owner)
        lengths = [len(one) for piece in pieces for one in piece.completions]
        layout = Layout([len(piece.prompt) for piece in pieces], lengths, owners, device, weight.dtype)
        with sharing(self._model, layout):
            hidden = self._body(
                input_ids=torch.tensor([ids], device=device),
                position_ids=torch.tensor([positions], device=device),
                use_cache=False,
            ).last_hidden_state[0]
        wanted = hidden.index_select(0, torch.tensor(sources, device=device))
        return _token_log_probs(self._head(wanted), torch.tensor(targets, device=device), temperature)


def packs(model: Any, vocabulary: int) -> bool:
    """Whether packed log-probs of this model are those of the padded way: found out on a small example,
    whatever the architecture claims."""
    ids = [1 + (7 * number) % max(vocabulary - 1, 1) for number in range(24)]
    pieces = [Piece(ids[:7], [ids[7:10], ids[10:15]]), Piece(ids[15:18], [ids[18:20], ids[20:24], ids[7:8]])]
    try:
        with torch.inference_mode():
            packed = PackedScorer(model).log_probs(pieces, 1.0)
            padded = PaddedScorer(model).log_probs(pieces, 1.0)
    except (RuntimeError, ValueError, TypeError, AttributeError, LookupError, NotImplementedError):
        return False
    single = next(model.parameters()).dtype == torch.float32
    return bool((packed - padded).abs().max() <= (AGREEMENT if single else HALF_AGREEMENT))


def window(model: Any) -> int | None:
    """How far back the model sees where that is less than everything; longer texts must not be packed."""
    config = model.config.get_text_config()
    kinds = getattr(config, "layer_types", None)
    if kinds is not None and all(kind == "full_attention" for kind in kinds):
        return None
    if kinds is None and getattr(config, "use_sliding_window", True) is False:
        return None
    found = getattr(config, "sliding_window", None)
    return None if found is None else int(found)


def _token_log_probs(logits: Tensor, targets: Tensor, temperature: float) -> Tensor:
    logits = logits.float()
    if temperature not in (0.0, 1.0):
        logits = logits / temperature
    return -F.cross_entropy(logits, targets, reduction="none")
