"""Which settings an endpoint takes for a model: learnt from what it refuses, then remembered.

No list of model names is kept. Every setting is sent until the first refusal that names it; from then on
it is left out, or sent in its other form, and each answer says so in `omitted`.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from shoal.models.protocol import ChatRequest

Dialect = Literal["unknown", "none", "llama.cpp", "vllm"]

DROPPABLE = ("temperature", "top_p", "seed", "stop")
"""Settings without which a request still makes sense. A grammar is not among them: it is only sent to servers
that take one, so its refusal means that it is wrong."""

TOKEN_LIMITS = ("max_tokens", "max_completion_tokens")
"""The two spellings of the bound on the answer."""


class Capabilities(msgspec.Struct, omit_defaults=True):
    """What is known about one model behind one endpoint; it can be stored with a run.

    `token_limit` is the name under which the bound on the answer is sent. It has two spellings in the
    world and cannot be dropped, because a budget relies on it. `system` is false when the system text has
    to travel in the first user message. `grammar` is the dialect in which the server takes a grammar.
    """

    token_limit: str = "max_tokens"
    refused: set[str] = msgspec.field(default_factory=set)
    system: bool = True
    grammar: Dialect = "unknown"

    def learn(self, setting: str) -> bool:
        """Takes note of a refusal; true when the next request will do without the setting. Learning the
        same twice is the same as once: several calls in flight may be refused for one reason."""
        if setting in TOKEN_LIMITS:
            self.refused.add(setting)
            other = TOKEN_LIMITS[1 - TOKEN_LIMITS.index(setting)]
            if other in self.refused:
                return False
            self.token_limit = other
            return True
        if setting == "system":
            self.system = False
            return True
        if setting in DROPPABLE:
            self.refused.add(setting)
            return True
        return False

    def takes(self, setting: str) -> bool:
        return setting not in self.refused

    def omitted(self, request: ChatRequest) -> tuple[str, ...]:
        """The settings of this request that are left out."""
        sampling = request.sampling
        asked = {
            "temperature": sampling.temperature is not None,
            "top_p": sampling.top_p is not None,
            "seed": sampling.seed is not None,
            "stop": bool(sampling.stop),
        }
        return tuple(name for name, wanted in asked.items() if wanted and name in self.refused)
