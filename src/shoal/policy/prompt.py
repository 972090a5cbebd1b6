"""The prompt of a question, and the way between texts and token ids of one model.

Prompt and completion are encoded apart and joined as ids: encoded together, tokens could span the border.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from typing import Any

from shoal.errors import ConfigError
from shoal.policy.system import TEXT
from shoal.policy.weights import Loaded

Render = Callable[[str], str]
RENDERINGS = ("plain", "chat", "few-shot")


def rendering(
    name: str, tokenizer: Any, examples: Sequence[tuple[str, str]] = (), system: str = TEXT
) -> Render:
    if name == "plain":
        return plain
    if name == "chat":
        return chat(tokenizer, system)
    if name == "few-shot":
        return few_shot(examples)
    raise ConfigError(f"the rendering is {name!r}: choose one of {', '.join(RENDERINGS)}")


def plain(question: str) -> str:
    return f"{question}\n"


def few_shot(examples: Sequence[tuple[str, str]]) -> Render:
    """Solved questions first: they tell a small model what is asked of it."""
    if not examples:
        raise ConfigError("a few-shot rendering needs at least one example of question and answer")
    head = "".join(f"Question: {question}\nAnswer: {answer}\n\n" for question, answer in examples)
    return lambda question: f"{head}Question: {question}\nAnswer:"


def chat(tokenizer: Any, system: str = TEXT) -> Render:
    """The model's own chat template, with a system prompt if `system` is not empty. A template that knows no
    system prompt has it before the question."""
    if not getattr(tokenizer, "chat_template", None):
        raise ConfigError("this model has no chat template: choose the rendering plain or few-shot")

    def render(*turns: tuple[str, str]) -> str:
        messages = [{"role": role, "content": content} for role, content in turns]
        return str(tokenizer.apply_chat_template(messages, tokenize=False, add_generation_prompt=True))

    if not system:
        return lambda question: render(("user", question))
    try:
        render(("system", system), ("user", "?"))
    except Exception:  # templates raise errors of their own where they know no system prompt
        return lambda question: render(("user", f"{system}\n\n{question}"))
    return lambda question: render(("system", system), ("user", question))


class Encoding:
    """The tokenizer of a loaded model, with the rules for begin and end tokens."""

    def __init__(self, loaded: Loaded, render: Render) -> None:
        self._tokenizer = loaded.tokenizer
        self._begin = loaded.begin
        self._end = loaded.end
        self._render = render
        self.digest = tokenizer_digest(loaded.tokenizer)

    def prompt(self, question: str) -> list[int]:
        """The prompt of a question; at least one token."""
        text = self._render(question)
        begin = self._tokenizer.bos_token
        # A chat template writes the begin token itself: it must not stand there twice.
        written = bool(begin) and text.startswith(begin)
        ids = list(self._tokenizer.encode(text, add_special_tokens=not written))
        bare = list(self._tokenizer.encode(text, add_special_tokens=False))
        if len(ids) > len(bare) and ids[-1] == self._end and bare[-1:] != [self._end]:
            # Some tokenizers end every text; a prompt goes on.
            ids.pop()
        if self._begin is not None and ids[:1] != [self._begin]:
            ids.insert(0, self._begin)
        return ids or [self._end]

    def completion(self, text: str, finished: bool) -> list[int]:
        """A text as if this model had written it, with the end token if its author's model ended it. The name
        of a special token within the text is plain text: it does not end a completion."""
        ids = list(self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))
        return [*ids, self._end] if finished else ids

    def text(self, ids: list[int], finished: bool) -> str:
        """The text of the ids, without the end token."""
        kept = ids[:-1] if finished else ids
        return str(self._tokenizer.decode(kept, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def tokenizer_digest(tokenizer: Any) -> str:
    """32 hexadecimal digits, the same for tokenizers with the same vocabulary and rules."""
    backend = getattr(tokenizer, "backend_tokenizer", None)
    if backend is not None and hasattr(backend, "to_str"):
        content = json.loads(backend.to_str())
        # These are settings of calls, not of the tokenizer.
        content.pop("truncation", None)
        content.pop("padding", None)
    else:
        content = [type(tokenizer).__name__, sorted(tokenizer.get_vocab().items())]
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]
