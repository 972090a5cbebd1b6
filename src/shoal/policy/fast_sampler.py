"""Sampling from models of the Llama type, several times faster on a processor than `generate`.

Each prompt is computed once for its group. Its keys and values stay unexpanded: all rows of the group meet
them in one product. Those of new tokens lie in room reserved for all layers at once. A row that has ended
gives its place to the last one, so only that row is copied. Query, key and value are one matrix, gate and up
another: copied from the weights once per sampler, adapters merged.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from shoal.policy.log_probs import window
from shoal.policy.sampler import Drawer, Drawn, Prompts, keep

SERVED = ("LlamaForCausalLM", "Qwen2ForCausalLM", "Qwen3ForCausalLM", "MistralForCausalLM")
ROPE = ("default", "linear", "llama3", "yarn")
"""Rotations that depend on the position alone, not on the length of the text."""


@dataclass(frozen=True, slots=True)
class _Layer:
    before: Tensor
    inner: tuple[Tensor, Tensor | None]
    outer: tuple[Tensor, Tensor | None]
    between: Tensor
    rise: tuple[Tensor, Tensor | None]
    fall: tuple[Tensor, Tensor | None]
    query_norm: Tensor | None
    key_norm: Tensor | None


class FastSampler:
    """A copy of a model's weights as they are now, laid out for sampling."""

    @staticmethod
    def serves(model: Any) -> bool:
        """Whether the model computes exactly the same as this class."""
        config = model.config
        rope = getattr(config, "rope_parameters", None) or {}
        return (
            type(model).__name__ in SERVED
            and type(model).__module__.startswith("transformers.models.")
            and window(model) is None
            and rope.get("rope_type", "default") in ROPE
            and float(rope.get("partial_rotary_factor", 1.0)) == 1.0
        )

    def __init__(self, model: Any, ends: frozenset[int]) -> None:
        body = model.get_decoder()
        config = model.config
        attention = body.layers[0].self_attn
        self._ends = ends
        self._heads = int(config.num_attention_heads)
        self._key_heads = int(config.num_key_value_heads)
        self._width = int(attention.head_dim)
        self._scale = float(attention.scaling)
        self._epsilon = float(config.rms_norm_eps)
        self._activation = body.layers[0].mlp.act_fn
        self._rotation = body.rotary_emb
        self._embedding = model.get_input_embeddings().weight
        self._norm = body.norm.weight
        self._head = model.get_output_embeddings().weight
        with torch.inference_mode():
            self._layers = [_fused(layer) for layer in body.layers]

    @torch.inference_mode()
    def sample(self, prompts: Prompts, group: int, max_new_tokens: int, drawer: Drawer) -> list[list[Drawn]]:
        """`group` completions of each prompt, of at most `max_new_tokens` tokens with the end token."""
        everyone = [[Drawn() for _ in range(group)] for _ in prompts]
        rows = [one for group_rows in everyone for one in group_rows]
        device = self._embedding.device
        lengths = [len(prompt) for prompt in prompts]
        ids = torch.zeros(len(prompts), max(lengths), dtype=torch.long)
        for place, prompt in enumerate(prompts):
            ids[place, : len(prompt)] = torch.tensor(prompt)
        places = torch.arange(max(lengths) + max_new_tokens, device=device)[None]
        cos, sin = (one[0] for one in self._rotation(self._embedding.new_zeros(1), places))
        # With these signs a roll by half the width is the turned half of a rotation.
        half = sin.shape[-1] // 2
        rotation = cos, torch.cat([-sin[..., :half], sin[..., half:]], -1)
        hidden, prefix = self._prefill(ids.to(device), rotation)
        last = hidden[torch.arange(len(prompts)), torch.tensor(lengths, device=device) - 1]
        logits = self._logits(last).repeat_interleave(group, 0)
        batch = _Batch(prefix, lengths, group, max_new_tokens)
        for step in range(max_new_tokens):
            drawn, log_probs = drawer.draw(logits)
            going = keep(rows, drawn, log_probs, self._ends)
            if not going or step + 1 == max_new_tokens:
                break
            if len(going) < len(rows):
                order = batch.drop(going)
                rows = [rows[place] for place in order]
                drawn = drawn[torch.tensor(order, device=device)]
            logits = self._logits(self._step(drawn, step, batch, rotation))
        return everyone

    def _prefill(self, ids: Tensor, rotation: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Hidden states of right-padded prompts, and their keys and values: (2, layers, prompts, heads,
        tokens, width). No token sees the padding."""
        count, length = ids.shape
        cos, sin = (one[:length, None] for one in rotation)
        hidden = F.embedding(ids, self._embedding)
        prefix = hidden.new_empty(2, len(self._layers), count, self._key_heads, length, self._width)
        for number, layer in enumerate(self._layers):
            query, key, value = self._inner(hidden, layer, cos, sin)
            prefix[0, number] = key.transpose(1, 2)
            prefix[1, number] = value.transpose(1, 2)
            mixed = F.scaled_dot_product_attention(
                query.transpose(1, 2),
                prefix[0, number],
                prefix[1, number],
                is_causal=True,
                scale=self._scale,
                enable_gqa=self._heads != self._key_heads,
            )
            hidden = self._outer(hidden, mixed.transpose(1, 2).flatten(2), layer)
        return hidden, prefix

    def _step(self, ids: Tensor, step: int, batch: _Batch, rotation: tuple[Tensor, Tensor]) -> Tensor:
        """Hidden states of one more token of each row."""
        cos, sin = (one[batch.starts + step][:, None] for one in rotation)
        hidden = F.embedding(ids, self._embedding)
        for number, layer in enumerate(self._layers):
            query, key, value = self._inner(hidden, layer, cos, sin)
            mixed = batch.attend(number, step, query * self._scale, key, value)
            hidden = self._outer(hidden, mixed, layer)
        return hidden

    def _inner(
        self, hidden: Tensor, layer: _Layer, cos: Tensor, sin: Tensor
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value with heads in the last but one place, rotated."""
        mixed = F.linear(self._normal(hidden, layer.before), *layer.inner)
        split = mixed.view(*mixed.shape[:-1], -1, self._width)
        turned = split[..., : self._heads + self._key_heads, :]
        if layer.query_norm is not None and layer.key_norm is not None:
            query = self._normal(turned[..., : self._heads, :], layer.query_norm)
            key = self._normal(turned[..., self._heads :, :], layer.key_norm)
            turned = torch.cat([query, key], -2)
        half = self._width // 2
        turned = torch.addcmul(turned * cos, torch.roll(turned, half, -1), sin)
        return turned[..., : self._heads, :], turned[..., self._heads :, :], split[..., -self._key_heads :, :]

    def _outer(self, hidden: Tensor, mixed: Tensor, layer: _Layer) -> Tensor:
        hidden = hidden + F.linear(mixed, *layer.outer)
        gate, up = F.linear(self._normal(hidden, layer.between), *layer.rise).chunk(2, -1)
        return hidden + F.linear(self._activation(gate) * up, *layer.fall)

    def _normal(self, hidden: Tensor, weight: Tensor) -> Tensor:
        return F.rms_norm(hidden, (hidden.shape[-1],), weight, self._epsilon)

    def _logits(self, hidden: Tensor) -> Tensor:
        return F.linear(self._normal(hidden, self._norm), self._head)


class _Batch:
    """The rows that go on, their prompts' keys and values, and their own."""

    def __init__(self, prefix: Tensor, lengths: list[int], group: int, max_new_tokens: int) -> None:
        self._prefix = prefix
        self._lengths = lengths
        self._owners = [prompt for prompt in range(len(lengths)) for _ in range(group)]
        _, layers, _, heads, _, width = prefix.shape
        self._suffix = prefix.new_empty(2, layers, len(self._owners), heads, max_new_tokens, width)
        self._arrange()

    def drop(self, going: list[int]) -> list[int]:
        """Keeps only the rows at these places; gives, for each new place, the old place of its row."""
        order = list(range(len(self._owners)))
        kept = set(going)
        holes = [place for place in order[: len(going)] if place not in kept]
        movers = [place for place in going if place >= len(going)]
        device = self._suffix.device
        if holes:
            moved = self._suffix[:, :, torch.tensor(movers, device=device)]
            self._suffix[:, :, torch.tensor(holes, device=device)] = moved
        for hole, mover in zip(holes, movers, strict=True):
            order[hole] = mover
        order = order[: len(going)]
        self._owners = [self._owners[place] for place in order]
        alive = sorted(set(self._owners))
        if len(alive) < len(self._lengths):
            self._lengths = [self._lengths[prompt] for prompt in alive]
            chosen = torch.tensor(alive, device=device)
            self._prefix = self._prefix[..., : max(self._lengths), :].index_select(2, chosen)
            numbers = {prompt: number for number, prompt in enumerate(alive)}
            self._owners = [numbers[prompt] for prompt in self._owners]
        self._arrange()
        return order

    def _arrange(self) -> None:
        """Makes a table with a line per prompt, in which each row has its place."""
        device = self._prefix.device
        prompts = len(self._lengths)
        lines: list[list[int]] = [[] for _ in range(prompts)]
        for row, prompt in enumerate(self._owners):
            lines[prompt].append(row)
        self._deep = max(map(len, lines))
        table = [row for line in lines for row in [*line, *[0] * (self._deep - len(line))]]
        slots = [0] * len(self._owners)
        for prompt, line in enumerate(lines):
            for place, row in enumerate(line):
                slots[row] = prompt * self._deep + place
        straight = slots == list(range(prompts * self._deep))
        self._table = None if straight else torch.tensor(table, device=device)
        self._slots = None if straight else torch.tensor(slots, device=device)
        self.starts = torch.tensor([self._lengths[prompt] for prompt in self._owners], device=device)
        self._hidden: Tensor | None = None
        longest = self._prefix.shape[-2]
        if min(self._lengths) < longest:
            lengths = torch.tensor(self._lengths, device=device)[:, None, None, None]
            self._hidden = torch.arange(longest, device=device) >= lengths

    def attend(self, layer: int, step: int, query: Tensor, key: Tensor, value: Tensor) -> Tensor:
        """The attention of a new token of each row to prompt and own tokens: (rows, heads * width)."""
        rows, heads, width = query.shape
        key_heads = key.shape[1]
        keys, values = self._suffix[0, layer, :rows], self._suffix[1, layer, :rows]
        keys[:, :, step] = key
        values[:, :, step] = value
        query = query.reshape(rows, key_heads, heads // key_heads, width)
        to_prompt = torch.matmul(self._by_prompt(query), self._prefix[0, layer].transpose(-1, -2))
        if self._hidden is not None:
            to_prompt.masked_fill_(self._hidden, float("-inf"))
        length = to_prompt.shape[-1]
        to_prompt = self._by_row(to_prompt)
        to_own = torch.matmul(query, keys[:, :, : step + 1].transpose(-1, -2))
        weights = torch.cat([to_prompt, to_own], -1).softmax(-1)
        from_prompt = torch.matmul(self._by_prompt(weights[..., :length]), self._prefix[1, layer])
        from_own = torch.matmul(weights[..., length:], values[:, :, : step + 1])
        return (self._by_row(from_prompt) + from_own).reshape(rows, heads * width)

    def _by_prompt(self, rows: Tensor) -> Tensor:
        """(rows, key heads, times, any) as (prompts, key heads, places * times, any)."""
        placed = rows if self._table is None else rows.index_select(0, self._table)
        split = placed.reshape(len(self._lengths), self._deep, *rows.shape[1:])
        return split.transpose(1, 2).flatten(2, 3)

    def _by_row(self, prompts: Tensor) -> Tensor:
        """The way back of `_by_prompt`."""
        split = prompts.view(*prompts.shape[:2], self._deep, -1, prompts.shape[-1])
        rows = split.transpose(1, 2).flatten(0, 1)
        return rows if self._slots is None else rows.index_select(0, self._slots)


def _fused(layer: Any) -> _Layer:
    attention, mlp = layer.self_attn, layer.mlp
    return _Layer(
        before=layer.input_layernorm.weight,
        inner=_joined(attention.q_proj, attention.k_proj, attention.v_proj),
        outer=_joined(attention.o_proj),
        between=layer.post_attention_layernorm.weight,
        rise=_joined(mlp.gate_proj, mlp.up_proj),
        fall=_joined(mlp.down_proj),
        query_norm=attention.q_norm.weight if hasattr(attention, "q_norm") else None,
        key_norm=attention.k_norm.weight if hasattr(attention, "k_norm") else None,
    )


def _joined(*modules: Any) -> tuple[Tensor, Tensor | None]:
    """The weights of linear layers, one below the other, with adapters merged, and their biases."""
    weights: list[Tensor] = []
    biases: list[Tensor] = []
    for module in modules:
        plain = getattr(module, "base_layer", module)
        weight = plain.weight
        for adapter in module.active_adapters if plain is not module else ():
            weight = (weight + module.get_delta_weight(adapter)).to(weight.dtype)
        weights.append(weight)
        biases += [] if plain.bias is None else [plain.bias]
    if len(modules) == 1:
        return weights[0], biases[0] if biases else None
    return torch.cat(weights), torch.cat(biases) if biases else None
