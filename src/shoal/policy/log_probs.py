"""Log-probs of completions, with gradient, at the least cost that the architecture allows.

Packed: all tokens lie in one row without padding, first all prompts, then all completions. A prompt attends
to itself, a completion to its prompt and to itself, so its cost does not depend on the number of others. The
positions of each completion follow its prompt's. The vocabulary is computed only where a completion token is
foretold. The attention is given to transformers for the time of one forward pass.

Padded: each completion with its prompt in a row of its own, which every causal model understands: the
fallback, and the oracle of the other way. Lengths are never read off the ids: an end token may be the padding
token.
"""

from __future__ import annotations

import inspect
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor

AGREEMENT = 1e-3
"""The greatest difference between the log-probs of both ways at which packing counts as supported. Rounding
stays below a tenth of it in single precision; attention or positions that are ignored are far above."""
HALF_AGREEMENT = 0.2
NAME = "shoal_shared_prompt"
_present = threading.local()


@dataclass(frozen=True, slots=True)
class Piece:
    """A prompt and completions of it that are computed together. None of them is empty."""

    prompt: Sequence[int]
    completions: Sequence[Sequence[int]]

    @property
    def longest(self) -> int:
        return len(self.prompt) + max(len(one) for one in self.completions)


class PaddedScorer:
    """For every architecture: no packing, right padding, explicit mask and positions. `log_probs` gives one
    log-prob per completion token, at `temperature`: piece by piece, completion by completion."""

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
    """For architectures whose attention can be exchanged; `packs` tells whether a model's can."""

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
        for end, piece in zip(last, pieces, strict=True):
            for one in piece.completions:
                # The first token is foretold by the end of the prompt, each other by the one before it.
                sources += [end, *range(len(ids), len(ids) + len(one) - 1)]
                positions += range(len(piece.prompt), len(piece.prompt) + len(one))
                ids += one
                targets += one
        with sharing(self._model, Layout(pieces, device, weight.dtype)):
            hidden = self._body(
                input_ids=torch.tensor([ids], device=device),
                position_ids=torch.tensor([positions], device=device),
                use_cache=False,
            ).last_hidden_state[0]
        wanted = hidden.index_select(0, torch.tensor(sources, device=device))
        return _token_log_probs(self._head(wanted), torch.tensor(targets, device=device), temperature)


Scorer = PaddedScorer | PackedScorer


def packs(model: Any, vocabulary: int) -> bool:
    """Whether both ways give the same log-probs for a small example, whatever the architecture claims."""
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
    """The tokens back that the model sees, None: all; longer texts must not be packed."""
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


class Layout:
    """The places of prompts and completions in the row, and who sees whom. Places are padded to the longest
    of their kind, and the padding is cut off again; where all have one length nothing is moved."""

    def __init__(self, pieces: Sequence[Piece], device: torch.device, dtype: torch.dtype) -> None:
        prompts = [len(piece.prompt) for piece in pieces]
        completions = [len(one) for piece in pieces for one in piece.completions]
        owners = [owner for owner, piece in enumerate(pieces) for _ in piece.completions]
        self.prompt_tokens = sum(prompts)
        self._prompts = len(prompts)
        self._completions = len(completions)
        self._longest = max(completions)
        self._dtype = dtype
        prompt_places = _places(prompts, 0)
        own_places = _places(completions, self.prompt_tokens)
        self._prompt_in, self._prompt_out = _moves(prompt_places, 0, device)
        self._own_in, self._own_out = _moves(own_places, self.prompt_tokens, device)
        chosen = torch.tensor(owners)
        keys = torch.cat([prompt_places[chosen], own_places], 1)
        self._keys = keys.clamp(min=0).flatten().to(device)
        earlier = torch.ones(self._longest, self._longest, dtype=torch.bool).tril()
        of_prompt = (prompt_places[chosen] >= 0)[:, None].expand(-1, self._longest, -1)
        seen = torch.cat([of_prompt, earlier.expand(self._completions, -1, -1)], 2)
        self._unseen = ~seen[:, None].to(device)
        self._masks: dict[int, Tensor] = {}

    def attend(self, query: Tensor, key: Tensor, value: Tensor, scale: float | None) -> Tensor:
        """In and out: tokens first, heads second, (tokens, heads, width)."""
        cut = self.prompt_tokens
        times = query.shape[1] // key.shape[1]
        prompt = F.scaled_dot_product_attention(
            self._rows(query[:cut], self._prompt_in, self._prompts),
            _repeated(self._rows(key[:cut], self._prompt_in, self._prompts), times),
            _repeated(self._rows(value[:cut], self._prompt_in, self._prompts), times),
            is_causal=True,
            scale=scale,
        )
        queries = self._rows(query[cut:], self._own_in, self._completions)
        # Heads that share keys stand one below the other, as further queries of the same keys.
        queries = queries.reshape(self._completions, key.shape[1], times * self._longest, -1)
        own = F.scaled_dot_product_attention(
            queries,
            self._rows(key, self._keys, self._completions),
            self._rows(value, self._keys, self._completions),
            attn_mask=self._mask(times),
            scale=scale,
        )
        own = own.reshape(self._completions, query.shape[1], self._longest, -1)
        return torch.cat([_flat(prompt, self._prompt_out), _flat(own, self._own_out)])

    def _mask(self, times: int) -> Tensor:
        if times not in self._masks:
            mask = torch.zeros(self._unseen.shape, dtype=self._dtype, device=self._unseen.device)
            mask = mask.masked_fill_(self._unseen, torch.finfo(self._dtype).min)
            self._masks[times] = mask.repeat(1, 1, times, 1)
        return self._masks[times]

    def _rows(self, flat: Tensor, places: Tensor | None, count: int) -> Tensor:
        chosen = flat if places is None else flat.index_select(0, places)
        return chosen.view(count, -1, *flat.shape[1:]).transpose(1, 2)


def _places(lengths: Sequence[int], start: int) -> Tensor:
    """The places of the tokens of texts that follow each other, a row per text; -1 after its end."""
    sizes = torch.tensor(lengths)
    first = start + sizes.cumsum(0) - sizes
    steps = torch.arange(int(sizes.max()))
    return torch.where(steps[None] < sizes[:, None], first[:, None] + steps[None], -1)


def _moves(places: Tensor, start: int, device: torch.device) -> tuple[Tensor | None, Tensor | None]:
    """The moves that pad texts to one length and undo it; None where they have one length."""
    flat = places.flatten()
    if bool((flat >= 0).all()):
        return None, None
    return (flat.clamp(min=start) - start).to(device), (flat >= 0).nonzero()[:, 0].to(device)


def _repeated(heads: Tensor, times: int) -> Tensor:
    return heads if times == 1 else heads.repeat_interleave(times, 1)


def _flat(rows: Tensor, places: Tensor | None) -> Tensor:
    flat = rows.transpose(1, 2).flatten(0, 1)
    return flat if places is None else flat.index_select(0, places)


def _attention(
    module: Any,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    **options: Any,
) -> tuple[Tensor, None]:
    """As transformers calls it: (1, heads, tokens, width) in, (1, tokens, heads, width) out."""
    unknown = [name for name in ("softcap", "s_aux", "position_bias") if options.get(name) is not None]
    if unknown or attention_mask is not None or query.shape[0] != 1:
        raise NotImplementedError(f"attention with {unknown or 'a mask'} cannot share prompts")
    layout: Layout = _present.layout
    queries, keys, values = (one[0].transpose(0, 1) for one in (query, key, value))
    return layout.attend(queries, keys, values, scaling)[None], None


@contextmanager
def sharing(model: Any, layout: Layout) -> Iterator[None]:
    """Forward passes of the model, in this thread, attend by the layout."""
    usual = model.config._attn_implementation
    _present.layout = layout
    model.config._attn_implementation = NAME
    try:
        yield
    finally:
        model.config._attn_implementation = usual
        del _present.layout


transformers.AttentionInterface.register(NAME, _attention)
