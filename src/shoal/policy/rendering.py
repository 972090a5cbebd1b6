"""From a question to the text that a policy continues."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from shoal.errors import ConfigError

Render = Callable[[str], str]
RENDERINGS = ("plain", "chat", "few-shot")
SYSTEM = "Solve the task. Give the final answer between <answer> and </answer>, and nothing else there."


def plain(question: str) -> str:
    """The question and the end of its line."""
    return f"{question}\n"


def few_shot(examples: Sequence[tuple[str, str]]) -> Render:
    """Questions with their answers first: what small models need to know what is asked of them."""
    if not examples:
        raise ConfigError("a few-shot rendering needs at least one example of question and answer")
    head = "".join(f"Question: {question}\nAnswer: {answer}\n\n" for question, answer in examples)

    def render(question: str) -> str:
        return f"{head}Question: {question}\nAnswer:"

    return render


def chat(tokenizer: Any, system: str = SYSTEM) -> Render:
    """As the model's own chat template has it, with a system prompt."""
    if not getattr(tokenizer, "chat_template", None):
        raise ConfigError("this model has no chat template: choose the rendering plain or few-shot")

    def separate(question: str) -> str:
        turns = [{"role": "system", "content": system}, {"role": "user", "content": question}]
        return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))

    def together(question: str) -> str:
        turns = [{"role": "user", "content": f"{system}\n\n{question}"}]
        return str(tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True))

    try:
        separate("?")
    except Exception:  # templates raise errors of their own where they know no system prompt
        return together
    return separate


def rendering(name: str, tokenizer: Any, examples: Sequence[tuple[str, str]] = ()) -> Render:
    """The rendering of a name; ConfigError if there is none."""
    if name == "plain":
        return plain
    if name == "chat":
        return chat(tokenizer)
    if name == "few-shot":
        return few_shot(examples)
    raise ConfigError(f"the rendering is {name!r}: choose one of {', '.join(RENDERINGS)}")
