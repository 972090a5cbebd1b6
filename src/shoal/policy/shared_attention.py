"""Attention over prompts that their completions share.

All tokens lie in one row: first all prompts, then all completions. Each prompt attends to itself; each
completion to its prompt and to itself. Nothing else is computed: the cost of a completion does not depend on
how many others there are. It is given to transformers as a further way to attend, for the time of one forward
pass.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
import torch.nn.functional as F
import transformers
from torch import Tensor

NAME = "shoal_shared_prompt"
_present = threading.local()


class Layout:
    """Where prompts and completions lie in the row, and who sees whom.

    `prompts` and `completions` are lengths, `owners` the prompt of each completion. Places are padded to the
    longest of their kind, and padding is cut off again; where all are alike nothing is moved.
    """

    def __init__(
        self,
        prompts: Sequence[int],
        completions: Sequence[int],
        owners: Sequence[int],
        device: torch.device,
        dtype: torch.dtype,
    ) -> None:
        self.prompt_tokens = sum(prompts)
        self._prompts = len(prompts)
        self._completions = len(completions)
        self._longest_prompt = max(prompts)
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
        """Tokens first, heads second: (tokens, heads, width), also of what comes back."""
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
    """For each of several texts, one after the other, the places of its tokens; -1 where it is shorter."""
    sizes = torch.tensor(lengths)
    first = start + sizes.cumsum(0) - sizes
    steps = torch.arange(int(sizes.max()))
    return torch.where(steps[None] < sizes[:, None], first[:, None] + steps[None], -1)


def _moves(places: Tensor, start: int, device: torch.device) -> tuple[Tensor | None, Tensor | None]:
    """How to pad texts to one length, and how to undo it; None where they have one length."""
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
