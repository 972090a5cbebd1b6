"""A Hugging Face model folder (config.json, safetensors, tokenizer) through transformers and torch.

For weights that llama.cpp does not run. Only local files are read, and no code from the folder is executed.
One call runs at a time, in a thread. Torch's global generator does not move. No grammar is followed.
"""

from __future__ import annotations

import threading
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from shoal.errors import ConfigError, ModelServerError, ModelSettingError
from shoal.models.llama import in_thread
from shoal.models.openai_compatible import chat_body
from shoal.models.protocol import ChatAnswer, ChatRequest, Finish, Model, Usage
from shoal.models.remote import import_package, quote


class TransformersModel(Model):
    """The model in one folder, loaded on first use."""

    def __init__(self, spec: str, folder: Path) -> None:
        self.spec, self.endpoint, self._folder = spec, f"local:{folder}", folder
        self._torch = import_package("torch", "train", spec)
        self._transformers = import_package("transformers", "train", spec)
        self._worker = ThreadPoolExecutor(1, thread_name_prefix=f"transformers-{folder.name}")
        self._loaded: tuple[Any, Any] | None = None

    async def answer(self, request: ChatRequest, *, timeout: float) -> ChatAnswer:
        try:
            return await in_thread(partial(self._generate, request), self._worker, self.spec, timeout)
        except RuntimeError as error:
            raise ModelServerError(f"{self.spec} failed ({quote(str(error))})") from None

    async def close(self) -> None:
        self._loaded = None

    def _load(self) -> tuple[Any, Any]:
        if self._loaded is None:
            kind = self._transformers
            options = {"local_files_only": True, "trust_remote_code": False}
            try:
                tokenizer = kind.AutoTokenizer.from_pretrained(str(self._folder), **options)
                model = kind.AutoModelForCausalLM.from_pretrained(str(self._folder), **options)
            except (OSError, ValueError) as error:
                problem = quote(str(error))
                raise ConfigError(f"{self._folder} cannot be loaded as a model ({problem})") from None
            model.eval()
            self._loaded = (tokenizer, model)
        return self._loaded

    def _prompt(self, tokenizer: Any, request: ChatRequest) -> Any:
        texts = chat_body(request)["messages"]
        if getattr(tokenizer, "chat_template", None):
            text = tokenizer.apply_chat_template(texts, tokenize=False, add_generation_prompt=True)
            return tokenizer(text, return_tensors="pt", add_special_tokens=False)
        return tokenizer("\n".join(text["content"] for text in texts) + "\n", return_tensors="pt")

    def _generate(self, request: ChatRequest, stop: threading.Event) -> ChatAnswer:
        started = time.monotonic()
        tokenizer, model = self._load()
        torch, sampling = self._torch, request.sampling
        prompt = self._prompt(tokenizer, request)
        length = int(prompt["input_ids"].shape[1])
        room = getattr(model.config, "max_position_embeddings", None)
        if room is not None and length + sampling.max_tokens > room:
            needed = f"{self.spec} has room for {room} tokens, not for {length + sampling.max_tokens}"
            raise ModelSettingError(f"{needed}: shorten the prompt or lower max_tokens", "messages")
        temperature = 1.0 if sampling.temperature is None else sampling.temperature
        chosen: dict[str, Any] = {"do_sample": temperature > 0, "max_new_tokens": sampling.max_tokens}
        if temperature > 0:
            chosen |= {"temperature": temperature, "top_p": sampling.top_p or 1.0, "top_k": 0}
        stopping = self._transformers.StoppingCriteriaList([lambda ids, scores, **_: stop.is_set()])
        with torch.random.fork_rng(), torch.no_grad():
            if sampling.seed is not None:
                torch.manual_seed(sampling.seed)
            output = model.generate(**prompt, **chosen, stopping_criteria=stopping)
        made = output[0][length:]
        text = str(tokenizer.decode(made, skip_special_tokens=True))
        cut = min((text.find(end) for end in sampling.stop if end in text), default=len(text))
        finish: Finish = "length" if len(made) >= sampling.max_tokens and cut == len(text) else "stop"
        return ChatAnswer(
            text=text[:cut],
            model=self._folder.name,
            usage=Usage(input=length, output=len(made)),
            latency=round(time.monotonic() - started, 6),
            finish=finish,
        )
