"""Sampling from any causal language model, through the cache that the model itself keeps.

Each prompt is computed once for its group, and rows that have ended leave the batch. Prompts of one length
are computed together; nothing is ever padded, so recurrent and sliding-window models are served too.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from shoal.policy.drawing import Drawer, Drawn, keep


class PlainSampler:
    """Serves every architecture. The model is used as it is at the time of a call, adapters included."""

    def __init__(self, model: Any, ends: frozenset[int]) -> None:
        self._model = model
        self._ends = ends
        accepted = inspect.signature(model.forward).parameters
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._takes_positions = "position_ids" in accepted

    def sample(
        self, prompts: Sequence[Sequence[int]], group: int, max_new_tokens: int, drawer: Drawer
    ) -> list[list[Drawn]]:
        """`group` completions of each prompt, of at most `max_new_tokens` tokens with the end token."""
        by_length: dict[int, list[int]] = defaultdict(list)
        for place, prompt in enumerate(prompts):
            by_length[len(prompt)].append(place)
        found: list[list[Drawn]] = [[] for _ in prompts]
        with torch.inference_mode():
            for places in by_length.values():
                rows = self._same_length([prompts[place] for place in places], group, max_new_tokens, drawer)
                for index, place in enumerate(places):
                    found[place] = rows[index * group : (index + 1) * group]
        return found

    def _same_length(
        self, prompts: Sequence[Sequence[int]], group: int, max_new_tokens: int, drawer: Drawer
    ) -> list[Drawn]:
        device = next(self._model.parameters()).device
        everyone = [Drawn() for _ in range(len(prompts) * group)]
        rows = everyone
        tokens = torch.tensor(prompts, device=device)
        output = self._model(input_ids=tokens, use_cache=True, **self._last_only)
        cache = getattr(output, "past_key_values", None)
        if not hasattr(cache, "batch_repeat_interleave"):
            cache = None
        logits: Tensor = output.logits[:, -1].repeat_interleave(group, 0)
        tokens = tokens.repeat_interleave(group, 0)
        if cache is not None:
            cache.batch_repeat_interleave(group)
        for step in range(max_new_tokens):
            drawn, log_probs = drawer.draw(logits.clone())
            going = keep(rows, drawn, log_probs, self._ends)
            if not going or step + 1 == max_new_tokens:
                break
            tokens = torch.cat([tokens, drawn[:, None]], 1)
            if len(going) < len(rows):
                rows = [rows[place] for place in going]
                chosen = torch.tensor(going, device=device)
                tokens = tokens[chosen]
                if cache is not None:
                    cache.batch_select_indices(chosen)
            if cache is None:
                # The model keeps no cache that can be cut and repeated: the whole text is computed anew.
                logits = self._model(input_ids=tokens, use_cache=False, **self._last_only).logits[:, -1]
                continue
            where = {}
            if self._takes_positions:
                where["position_ids"] = torch.full((len(rows), 1), tokens.shape[1] - 1, device=device)
            output = self._model(input_ids=tokens[:, -1:], past_key_values=cache, use_cache=True, **where)
            logits = output.logits[:, -1]
        return everyone
