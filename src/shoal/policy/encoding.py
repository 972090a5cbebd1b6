"""Between texts and token ids of one model.

Prompt and completion are encoded apart and joined as ids: encoded together, tokens could span the border.
"""

from __future__ import annotations

import hashlib
import json
from typing import Any

from shoal.policy.loading import Loaded
from shoal.policy.rendering import Render


class Encoding:
    """The tokenizer of a loaded model, with the rules for begin and end tokens."""

    def __init__(self, loaded: Loaded, render: Render) -> None:
        self._tokenizer = loaded.tokenizer
        self._begin = loaded.begin
        self._end = loaded.end
        self._ends = loaded.ends
        self._render = render
        self.digest = tokenizer_digest(loaded.tokenizer)

    def prompt(self, question: str) -> list[int]:
        """A question as this model is asked it; at least one token."""
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
        """A text as if this model had written it; the end token follows if its author's model ended it.
        Names of special tokens within the text are text: nobody ends a completion by writing so."""
        ids = list(self._tokenizer.encode(text, add_special_tokens=False, split_special_tokens=True))
        return [*ids, self._end] if finished else ids

    def text(self, ids: list[int], finished: bool) -> str:
        """What was written, without the end token."""
        kept = ids[:-1] if finished else ids
        return str(self._tokenizer.decode(kept, skip_special_tokens=True, clean_up_tokenization_spaces=False))


def tokenizer_digest(tokenizer: Any) -> str:
    """The same for two tokenizers that have the same vocabulary and rules; 32 hexadecimal digits."""
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
