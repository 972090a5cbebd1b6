"""Sampling from any causal language model, and the drawing of one token, which all samplers share.

Each prompt is computed once for its group, and rows that have ended leave the batch. Prompts of one length
are computed together; nothing is ever padded, so recurrent and sliding-window models are served too.
"""

from __future__ import annotations

import inspect
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

BLOCK = 128
Prompts = Sequence[Sequence[int]]


@dataclass(slots=True)
class Drawn:
    """A completion in the making. `ids` end with an end token if `finished`."""

    ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    finished: bool = False


class Drawer:
    """Draws tokens with a generator of its own: torch's global one is neither read nor moved."""

    def __init__(
        self,
        temperature: float,
        seed: int,
        device: torch.device,
        log_probs: bool = False,
        top_p: float = 1.0,
    ) -> None:
        self._temperature = temperature
        self._top_p = top_p
        self._log_probs = log_probs
        self._generator = torch.Generator(device=device)
        self._generator.manual_seed(seed % (1 << 63))
        self._exact = torch.float32 if device.type == "mps" else torch.float64
        self._weights: Tensor | None = None

    def draw(self, logits: Tensor) -> tuple[Tensor, Tensor | None]:
        """One token for each row of `logits`, which may be overwritten, and its log-prob if those are asked
        for: of the distribution that was drawn from, or of the plain one where sampling is greedy."""
        logits = logits.float()
        if self._temperature == 0:
            ids = logits.argmax(-1)
        else:
            if self._temperature != 1:
                logits.div_(self._temperature)
            if self._top_p < 1:
                ids, log_probs = self._nucleus(logits)
                return ids, log_probs if self._log_probs else None
            ids = self._invert(logits)
        if not self._log_probs:
            return ids, None
        return ids, logits.gather(-1, ids[:, None])[:, 0] - logits.logsumexp(-1)

    def _nucleus(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """Draws from the likeliest tokens, as few as have the probability top-p together, and gives the
        log-probs among these. No token outside can be drawn, whatever the rounding."""
        ordered, tokens = logits.sort(stable=True, dim=-1, descending=True)
        share = ordered.to(self._exact).softmax(-1)
        sums = share.cumsum(-1)
        # A token counts if those before it do not suffice; so the likeliest one always does.
        last = ((sums - share < self._top_p) & (share > 0)).sum(-1, keepdim=True).clamp_(min=1) - 1
        total = sums.gather(-1, last)
        shape = (logits.shape[0], 1)
        random = torch.rand(shape, generator=self._generator, dtype=self._exact, device=logits.device)
        place = torch.minimum(torch.searchsorted(sums, random * total, right=True), last)
        log_probs = (share.gather(-1, place) / total).log()
        return tokens.gather(-1, place)[:, 0], log_probs[:, 0]

    def _invert(self, logits: Tensor) -> Tensor:
        """Inverts the distribution function, with one random number per row: random numbers for all tokens
        of a large vocabulary would cost as much as the layers of a small model. Sums over blocks first, and
        then over one block, keep the work small and the sums exact."""
        rows, tokens = logits.shape
        if self._weights is None or self._weights.shape[0] < rows:
            # In whole blocks; places beyond the vocabulary stay 0.
            self._weights = logits.new_zeros(rows, -(-tokens // BLOCK) * BLOCK)
        weights = self._weights[:rows]
        torch.sub(logits, logits.amax(-1, keepdim=True), out=weights[:, :tokens])
        weights[:, :tokens].exp_()
        blocks = weights.view(rows, -1, BLOCK)
        sums = blocks.sum(-1).to(self._exact).cumsum(-1)
        random = torch.rand(rows, 1, generator=self._generator, dtype=self._exact, device=logits.device)
        point = random * sums[:, -1:]
        block = torch.searchsorted(sums, point, right=True).clamp_(max=sums.shape[1] - 1)
        end = sums.gather(1, block)
        start = sums.gather(1, (block - 1).clamp(min=0)).masked_fill(block == 0, 0.0)
        inside = blocks[torch.arange(rows, device=logits.device), block[:, 0]].to(self._exact).cumsum(-1)
        # The place within the block, as a part of it: its sum was rounded differently before.
        point = (point - start) / (end - start) * inside[:, -1:]
        place = torch.searchsorted(inside, point, right=True)
        return (block * BLOCK + place)[:, 0].clamp_(max=tokens - 1)


def keep(rows: list[Drawn], ids: Tensor, log_probs: Tensor | None, ends: frozenset[int]) -> list[int]:
    """Adds the drawn tokens to their rows; the places of the rows that go on."""
    going = []
    scores = None if log_probs is None else log_probs.tolist()
    for place, (row, token) in enumerate(zip(rows, ids.tolist(), strict=True)):
        row.ids.append(token)
        if scores is not None:
            row.log_probs.append(min(scores[place], 0.0))
        if token in ends:
            row.finished = True
        else:
            going.append(place)
    return going


class PlainSampler:
    """Serves every architecture. A call uses the model as it is then, adapters included."""

    def __init__(self, model: Any, ends: frozenset[int]) -> None:
        self._model = model
        self._ends = ends
        accepted = inspect.signature(model.forward).parameters
        self._last_only = {"logits_to_keep": 1} if "logits_to_keep" in accepted else {}
        self._takes_positions = "position_ids" in accepted

    @torch.inference_mode()
    def sample(self, prompts: Prompts, group: int, max_new_tokens: int, drawer: Drawer) -> list[list[Drawn]]:
        """`group` completions of each prompt, of at most `max_new_tokens` tokens with the end token."""
        by_length: dict[int, list[int]] = defaultdict(list)
        for place, prompt in enumerate(prompts):
            by_length[len(prompt)].append(place)
        found = [[Drawn() for _ in range(group)] for _ in prompts]
        for places in by_length.values():
            rows = [row for place in places for row in found[place]]
            self._same_length([prompts[place] for place in places], rows, max_new_tokens, drawer)
        return found

    def _same_length(self, prompts: Prompts, rows: list[Drawn], max_new_tokens: int, drawer: Drawer) -> None:
        device, group = next(self._model.parameters()).device, len(rows) // len(prompts)
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
                return
            tokens = torch.cat([tokens, drawn[:, None]], 1)
            if len(going) < len(rows):
                rows = [rows[place] for place in going]
                chosen = torch.tensor(going, device=device)
                tokens = tokens[chosen]
                if cache is not None:
                    cache.batch_select_indices(chosen)
            if cache is None:
                # The model has no cache that can be cut and repeated: the whole text is computed anew.
                logits = self._model(input_ids=tokens, use_cache=False, **self._last_only).logits[:, -1]
                continue
            where = {}
            if self._takes_positions:
                where["position_ids"] = torch.full((len(rows), 1), tokens.shape[1] - 1, device=device)
            output = self._model(input_ids=tokens[:, -1:], past_key_values=cache, use_cache=True, **where)
            logits = output.logits[:, -1]
