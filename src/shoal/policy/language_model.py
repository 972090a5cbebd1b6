"""A causal language model as a policy.

Sampling and learning use the same weights in evaluation mode, so a fresh sample has the ratio 1. A step
happens, or leaves weights and optimiser as they were. Memory does not grow with the number of groups.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from shoal.errors import ConfigError, TrainError
from shoal.policy import checkpoint
from shoal.policy.base import Completions, Learning, LearningGroup, Learnt, Sampled, Sampling
from shoal.policy.fast_sampler import FastSampler
from shoal.policy.log_probs import PackedScorer, PaddedScorer, Piece, Scorer, packs, window
from shoal.policy.loss import Loss, policy_loss
from shoal.policy.plan import Plan, Work, plan
from shoal.policy.prompt import Encoding, Render, plain
from shoal.policy.sampler import Drawer, Drawn, PlainSampler
from shoal.policy.weights import Loaded, load_like

MOST_ROWS = 128
"""Completions that are sampled at a time. More of them cost memory and gain nothing on a processor."""


@dataclass(slots=True)
class _Fixed:
    """The tensors of a batch that stay through the inner steps."""

    old: Tensor | None = None
    reference: Tensor | None = None
    weights: Tensor | None = None
    tokens: int = 0
    dropped: int = 0
    weighed: bool = False


class LanguageModelPolicy:
    """See `shoal.policy.base.Policy`. `render` makes the prompt of a question."""

    def __init__(self, spec: str, loaded: Loaded, render: Render = plain) -> None:
        self.model = spec
        self.encoding = Encoding(loaded, render)
        self.tokenizer = self.encoding.digest
        self._loaded = loaded
        self._weights = [weight for _, weight in loaded.trainable()]
        self._device: torch.device = self._weights[0].device
        self._optimiser: torch.optim.AdamW | None = None
        self._steps = 0
        self._packs: bool | None = None
        self._padded = PaddedScorer(loaded.model)
        self._reference: Any | None = None
        self._fast = FastSampler.serves(loaded.model)

    def save_adapters(self, folder: Path) -> None:
        """The adapters alone, as peft writes them; ConfigError where all weights are trained."""
        if self._loaded.adapted is None:
            raise ConfigError(f"{self.model} has no adapters: add ?lora=8")
        self._loaded.adapted.save_pretrained(str(folder))

    def sample(self, questions: Sequence[str], group: int, sampling: Sampling, seed: int) -> Completions:
        """`group` completions of each question. ConfigError if a prompt leaves no room for an answer."""
        prompts = [self.encoding.prompt(question) for question in questions]
        for prompt in prompts:
            if len(prompt) + sampling.max_new_tokens > self._loaded.room:
                needed = f"a prompt of {len(prompt)} and {sampling.max_new_tokens} new ones are more"
                wrong = f"{self.model} has room for {self._loaded.room} tokens; {needed}"
                raise ConfigError(f"{wrong}: lower max_new_tokens or shorten the prompt")
        if not prompts or group < 1:
            return [[] for _ in prompts]
        drawer = Drawer(sampling.temperature, seed, self._device, sampling.log_probs, sampling.top_p)
        kind = FastSampler if self._fast else PlainSampler
        step = max(MOST_ROWS // group, 1)
        found: list[list[Sampled]] = []
        with self._memory():
            sampler = kind(self._loaded.model, self._loaded.ends)
            for start in range(0, len(prompts), step):
                drawn = sampler.sample(prompts[start : start + step], group, sampling.max_new_tokens, drawer)
                found += [[self._sampled(one) for one in rows] for rows in drawn]
        return found

    def _sampled(self, drawn: Drawn) -> Sampled:
        text = self.encoding.text(drawn.ids, drawn.finished)
        return Sampled(text, drawn.finished, tuple(drawn.ids), tuple(drawn.log_probs))

    def learn(self, groups: Sequence[LearningGroup], learning: Learning, temperature: float) -> Learnt:
        """One step on all groups together, of `inner_steps` updates; none if no completion could change the
        weights. TrainError leaves weights and optimiser as they were."""
        work = plan(groups, self.encoding, learning, self._loaded.room)
        if not work.batches:
            return Learnt(0.0, 0.0, 0, work.dropped)
        several = learning.inner_steps > 1
        before = self._snapshot() if several else None
        try:
            with self._memory():
                fixed = [self._fix(batch, learning, temperature, several) for batch in work.batches]
                for _ in range(max(learning.inner_steps, 1)):
                    losses, norm = self._gradient(work, fixed, learning, temperature)
                    self._prepared_optimiser(learning).step()
        except BaseException:
            if before is not None:
                self._put_back(before)
            raise
        finally:
            for weight in self._weights:
                weight.grad = None
        self._steps += 1
        tokens = sum(one.tokens for one in fixed)
        parts = {"clipped": sum(loss.clipped for loss in losses) / max(tokens, 1)}
        if learning.kl:
            parts["kl"] = sum(loss.divergence for loss in losses) / max(tokens, 1)
        return Learnt(
            loss=sum(float(loss.value) for loss in losses),
            gradient_norm=norm,
            tokens=tokens,
            dropped=work.dropped + sum(one.dropped for one in fixed),
            parts=parts,
        )

    def save(self, folder: Path) -> None:
        """A model folder that plain transformers opens, with the optimiser's state beside it."""
        adapter = self._loaded.adapted is not None
        state = checkpoint.TrainingState(self.model, self.tokenizer, self._steps, adapter)
        checkpoint.write(folder, self._loaded, self._optimiser, state)

    def restore(self, folder: Path) -> None:
        """Takes the exact state of the saved policy; RunError if it cannot."""
        by_name, state = checkpoint.read(folder, self._loaded, self.tokenizer)
        self._steps = state.steps
        self._optimiser = None
        if by_name:
            states = self._prepared_optimiser(Learning()).state
            for name, weight in self._loaded.trainable():
                # Fused kernels want the count of steps on the device of the weights.
                found = by_name.get(name, {}).items()
                states[weight] = {quantity: value.to(self._device) for quantity, value in found}

    def _gradient(
        self, work: Plan, fixed: list[_Fixed], learning: Learning, temperature: float
    ) -> tuple[list[Loss], float]:
        """Puts the clipped gradient of the whole step into the weights."""
        for weight in self._weights:
            weight.grad = None
        losses = []
        for batch, one in zip(work.batches, fixed, strict=True):
            loss = self._loss(batch, one, learning, temperature)
            if not torch.isfinite(loss.value):
                found = float(loss.value.detach())
                raise TrainError(f"the loss is {found}: lower the learning rate, or check the rewards")
            loss.value.backward()  # type: ignore[no-untyped-call]
            losses.append(Loss(loss.value.detach(), loss.clipped, loss.divergence))
        norm = float(torch.nn.utils.clip_grad_norm_(self._weights, learning.gradient_norm or float("inf")))
        if not norm < float("inf"):
            raise TrainError(f"the gradient's norm is {norm}: lower the learning rate, or check the rewards")
        return losses, norm

    def _loss(self, batch: list[Work], fixed: _Fixed, learning: Learning, temperature: float) -> Loss:
        log_probs = self._log_probs(batch, temperature)
        if not fixed.weighed:
            self._weigh(batch, fixed, log_probs.detach(), learning)
        parts = [part for one in batch for part in one.parts]
        lengths = torch.tensor([len(part.ids) for part in parts])
        rows = torch.repeat_interleave(torch.arange(len(parts)), lengths).to(self._device)
        share = torch.tensor([part.share for part in parts], device=self._device)
        advantage = torch.tensor([part.advantage for part in parts], device=self._device)
        known = {"old": fixed.old, "weights": fixed.weights, "reference": fixed.reference}
        return policy_loss(log_probs, advantage, share, rows, learning, **known)

    def _fix(self, batch: list[Work], learning: Learning, temperature: float, several: bool) -> _Fixed:
        fixed = _Fixed()
        with torch.no_grad():
            if several:
                fixed.old = self._log_probs(batch, temperature)
                self._weigh(batch, fixed, fixed.old, learning)
            if learning.kl:
                fixed.reference = self._reference_log_probs(batch, temperature)
        return fixed

    def _weigh(self, batch: list[Work], fixed: _Fixed, log_probs: Tensor, learning: Learning) -> None:
        """Weighs foreign completions as the estimator says, now that their log-probs are known."""
        parts = [part for one in batch for part in one.parts]
        fixed.weighed = True
        fixed.tokens = sum(len(part.ids) for part in parts)
        if not any(part.banded or part.author for part in parts):
            return
        weights = torch.ones_like(log_probs)
        start = 0
        for part in parts:
            end = start + len(part.ids)
            if part.author:
                gap = log_probs[start:end] - torch.tensor(part.author, device=self._device)
                weights[start:end] = gap.clamp(max=20.0).exp().clamp(max=learning.most_weight)
            elif part.banded and float(log_probs[start:end].mean()) < learning.band:
                weights[start:end] = 0.0
                fixed.dropped += 1
                fixed.tokens -= len(part.ids)
            start = end
        fixed.weights = weights

    def _log_probs(self, batch: list[Work], temperature: float) -> Tensor:
        pieces = [work.piece() for work in batch]
        return self._scorer(pieces).log_probs(pieces, temperature)

    def _scorer(self, pieces: Sequence[Piece]) -> Scorer:
        """The packed scorer if it is right for this model and this length."""
        model, limit = self._loaded.model, window(self._loaded.model)
        if self._packs is None:
            self._packs = packs(model, len(self._loaded.tokenizer))
        fits = limit is None or max(piece.longest for piece in pieces) <= limit
        return PackedScorer(model) if self._packs and fits else self._padded

    def _reference_log_probs(self, batch: list[Work], temperature: float) -> Tensor:
        pieces = [work.piece() for work in batch]
        scorer = self._scorer(pieces)
        if self._loaded.adapted is not None:
            with self._loaded.adapted.disable_adapter():
                return scorer.log_probs(pieces, temperature)
        if self._reference is None:
            self._reference = load_like(self._loaded.model, self._loaded.folder).requires_grad_(False)
        return type(scorer)(self._reference).log_probs(pieces, temperature)

    def _prepared_optimiser(self, learning: Learning) -> torch.optim.AdamW:
        if self._optimiser is None:
            fused = self._device.type in ("cpu", "cuda", "mps")
            self._optimiser = torch.optim.AdamW(self._weights, fused=fused)
        for settings in self._optimiser.param_groups:
            settings["lr"] = learning.learning_rate
            settings["weight_decay"] = learning.weight_decay
            settings["betas"] = (learning.adam_beta1, learning.adam_beta2)
            settings["eps"] = learning.adam_epsilon
        return self._optimiser

    def _snapshot(self) -> tuple[list[Tensor], list[dict[str, Tensor]] | None]:
        weights = [weight.detach().clone() for weight in self._weights]
        if self._optimiser is None:
            return weights, None
        states = [self._optimiser.state.get(weight, {}) for weight in self._weights]
        return weights, [{name: value.clone() for name, value in state.items()} for state in states]

    def _put_back(self, before: tuple[list[Tensor], list[dict[str, Tensor]] | None]) -> None:
        weights, states = before
        with torch.no_grad():
            for weight, old in zip(self._weights, weights, strict=True):
                weight.copy_(old)
        if states is None or self._optimiser is None:
            self._optimiser = None
            return
        for weight, state in zip(self._weights, states, strict=True):
            self._optimiser.state[weight] = state

    @contextmanager
    def _memory(self) -> Iterator[None]:
        """Turns a lack of memory into an error with advice."""
        try:
            yield
        except (RuntimeError, MemoryError) as error:
            is_lack = isinstance(error, MemoryError | torch.OutOfMemoryError)
            if not is_lack and "can't allocate memory" not in str(error):
                raise
            found = f"{self.model} does not fit into the memory of {self._device}"
            raise TrainError(f"{found}: lower micro_groups, group or max_new_tokens") from None
