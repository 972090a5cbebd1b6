"""A policy whose samples come from a server, such as vLLM on a GPU, while it learns here.

The server speaks OpenAI's completions protocol and must hold the same model. It gets adapters (`lora`) after
every step, as vLLM's `load_lora_adapter` takes them (VLLM_ALLOW_RUNTIME_LORA_UPDATING=1). With `refresh=off`
it keeps the weights that it was started with, and the samples grow stale.

Unproven with a real server: the tests check the protocol against a server of their own.
"""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError, ModelServerError
from shoal.models.remote import quote
from shoal.policy.base import Completions, Learning, LearningGroup, Learnt, Sampled, Sampling
from shoal.policy.language_model import LanguageModelPolicy

SECONDS = 600.0
MOST_RESPONSE = 64 << 20
KEY = "SHOAL_SERVER_KEY"
"""The variable that may hold the server's key."""


class CompletionServer:
    """An endpoint, e.g. http://127.0.0.1:8000/v1. Every failure is a ModelServerError in one line."""

    def __init__(self, url: str, model: str) -> None:
        if not url.startswith(("http://", "https://")):
            raise ConfigError(f"server={url}: give an address such as http://127.0.0.1:8000/v1")
        self._url = url.rstrip("/")
        self.model = model

    def write(self, prompt: list[int], count: int, sampling: Sampling, seed: int) -> list[tuple[str, bool]]:
        """Texts for a prompt of token ids, each with whether the model ended it by itself."""
        asked = {
            "model": self.model,
            "prompt": prompt,
            "n": count,
            "max_tokens": sampling.max_new_tokens,
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "seed": seed % (1 << 31),
        }
        answer = self._post("/completions", asked)
        choices = answer.get("choices") if isinstance(answer, dict) else None
        if not isinstance(choices, list) or len(choices) != count:
            raise ModelServerError(f"{self._url} gave {len(choices or ())} completions instead of {count}")
        try:
            return [(str(one["text"]), one.get("finish_reason") == "stop") for one in choices]
        except (KeyError, TypeError, AttributeError):
            raise ModelServerError(f"{self._url} gave completions without a text") from None

    def load_adapter(self, name: str, folder: Path) -> None:
        self._post("/load_lora_adapter", {"lora_name": name, "lora_path": str(folder.absolute())})
        self.model = name

    def _post(self, path: str, content: object) -> Any:
        headers = {"Content-Type": "application/json"}
        if key := os.environ.get(KEY):
            headers["Authorization"] = f"Bearer {key}"
        request = urllib.request.Request(self._url + path, json.dumps(content).encode(), headers)
        try:
            with urllib.request.urlopen(request, timeout=SECONDS) as response:
                body = response.read(MOST_RESPONSE + 1)
        except urllib.error.HTTPError as error:
            said = quote(error.read(2000).decode("utf-8", "replace"))
            raise ModelServerError(f"{self._url}{path} answered {error.code}: {said}") from None
        except (OSError, http.client.HTTPException) as error:
            raise ModelServerError(f"{self._url}{path} cannot be reached: {error}") from None
        if len(body) > MOST_RESPONSE:
            raise ModelServerError(f"{self._url}{path} answered with more than {MOST_RESPONSE} bytes")
        try:
            return json.loads(body)
        except ValueError:
            return {}  # load_lora_adapter answers in plain words


class ServedPolicy:
    def __init__(self, inner: LanguageModelPolicy, server: CompletionServer, adapters: Path | None) -> None:
        self.model, self.tokenizer = inner.model, inner.tokenizer
        self._inner = inner
        self._server = server
        self._adapters = adapters
        self._steps = 0

    def sample(self, questions: Sequence[str], group: int, sampling: Sampling, seed: int) -> Completions:
        """The server's texts. Their tokens are not known: texts are encoded here, without log-probs."""
        encode, found = self._inner.encoding, []
        for place, question in enumerate(questions):
            pairs = self._server.write(encode.prompt(question), group, sampling, seed + place)
            found.append(
                [Sampled(text, ended, tuple(encode.completion(text, ended))) for text, ended in pairs]
            )
        return found

    def learn(self, groups: Sequence[LearningGroup], learning: Learning, temperature: float) -> Learnt:
        learnt = self._inner.learn(groups, learning, temperature)
        self._hand_over()
        return learnt

    def _hand_over(self) -> None:
        if self._adapters is not None:
            self._steps += 1
            folder = self._adapters / f"step-{self._steps}"
            self._inner.save_adapters(folder)
            self._server.load_adapter(f"shoal-{self._steps}", folder)

    def save(self, folder: Path) -> None:
        self._inner.save(folder)

    def restore(self, folder: Path) -> None:
        self._inner.restore(folder)
        self._hand_over()
