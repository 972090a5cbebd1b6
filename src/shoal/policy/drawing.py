"""How one token is drawn, the same for all samplers."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from torch import Tensor

BLOCK = 128


@dataclass(slots=True)
class Drawn:
    """A completion in the making. `ids` end with an end token if `finished`."""

    ids: list[int] = field(default_factory=list)
    log_probs: list[float] = field(default_factory=list)
    finished: bool = False


class Drawer:
    """Draws tokens with a generator of its own: torch's global one is neither read nor moved."""

    def __init__(self, temperature: float, seed: int, device: torch.device, log_probs: bool = False) -> None:
        self._temperature = temperature
        self._log_probs = log_probs
        self._generator = torch.Generator(device=device)
        self._generator.manual_seed(seed % (1 << 63))
        self._exact = torch.float32 if device.type == "mps" else torch.float64
        self._weights: Tensor | None = None

    def draw(self, logits: Tensor) -> tuple[Tensor, Tensor | None]:
        """One token for each row of `logits`, which may be overwritten, and its log-prob if those are asked
        for: at the sampling temperature, or of the plain distribution where sampling is greedy."""
        logits = logits.float()
        if self._temperature == 0:
            ids = logits.argmax(-1)
        else:
            if self._temperature != 1:
                logits.div_(self._temperature)
            ids = self._invert(logits)
        if not self._log_probs:
            return ids, None
        return ids, logits.gather(-1, ids[:, None])[:, 0] - logits.logsumexp(-1)

    def _invert(self, logits: Tensor) -> Tensor:
        """By the inverse of the distribution function, with one random number per row: random numbers for
        all tokens of a large vocabulary would cost as much as the layers of a small model. Sums over blocks
        first, and then over one block, keep both the work small and the sums exact."""
        rows, tokens = logits.shape
        weights = self._room(logits)
        torch.sub(logits, logits.amax(-1, keepdim=True), out=weights[:, :tokens])
        weights[:, :tokens].exp_()
        blocks = weights.view(rows, -1, BLOCK)
        sums = blocks.sum(-1).to(self._exact).cumsum(-1)
        point = (
            torch.rand(rows, 1, generator=self._generator, dtype=self._exact, device=logits.device)
            * sums[:, -1:]
        )
        block = torch.searchsorted(sums, point, right=True).clamp_(max=sums.shape[1] - 1)
        end = sums.gather(1, block)
        start = sums.gather(1, (block - 1).clamp(min=0)).masked_fill(block == 0, 0.0)
        inside = blocks[torch.arange(rows, device=logits.device), block[:, 0]].to(self._exact).cumsum(-1)
        # The place within the block, as a part of it: its sum was rounded differently before.
        point = (point - start) / (end - start) * inside[:, -1:]
        place = torch.searchsorted(inside, point, right=True)
        return (block * BLOCK + place)[:, 0].clamp_(max=tokens - 1)

    def _room(self, logits: Tensor) -> Tensor:
        """Space for the weights of all tokens, in whole blocks; what is beyond the vocabulary stays 0."""
        rows, tokens = logits.shape
        if self._weights is None or self._weights.shape[0] < rows:
            self._weights = logits.new_zeros(rows, -(-tokens // BLOCK) * BLOCK)
        return self._weights[:rows]


def keep(rows: list[Drawn], ids: Tensor, log_probs: Tensor | None, ends: frozenset[int]) -> list[int]:
    """Writes the drawn tokens down; the places of the rows that go on."""
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
