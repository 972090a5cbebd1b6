"""The system prompt: Shoal's, reasoning-gym's as it is installed, a text, or none."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ConfigError, TaskError
from shoal.models import ChatAnswer, ChatRequest, Model
from shoal.policy import system
from shoal.policy.base import Sampling
from shoal.policy.contributor import SYSTEM, ChatModel
from shoal.policy.prompt import rendering
from shoal.policy.system import TEXT, check_system, system_text
from shoal.tasks.gym_prompts import installed_prompts, read_prompts
from shoal.train.settings import TrainSettings


def test_the_prompts_of_reasoning_gym_are_those_that_it_has() -> None:
    """They are read without importing it; its import gives the same."""
    pytest.importorskip("reasoning_gym")
    library = importlib.import_module("reasoning_gym.utils")
    assert installed_prompts() == library.SYSTEM_PROMPTS
    for name in ("default", "simple", "direct"):
        assert system_text(f"gym:{name}") == library.SYSTEM_PROMPTS[name]


def test_the_other_prompts() -> None:
    assert system_text("shoal") == TEXT
    assert system_text("none") == ""
    assert system_text("Answer briefly.") == "Answer briefly."
    assert system_text("gym: is a text here") == "gym: is a text here"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("default", "system: 'default' is one word: write shoal, none, gym:default, or a whole text"),
        ("", "it has 0 characters"),
        ("x " * 20_000, "it has 40000 characters: give 1 to 16384"),
        ("a \ud800 b", "half a character"),
    ],
)
def test_what_is_no_prompt_is_one_line(name: str, said: str) -> None:
    with pytest.raises(ConfigError, match=said) as caught:
        TrainSettings(prompt="chat", system=name).check()
    assert len(str(caught.value)) < 300


def test_a_wrong_name_and_a_missing_library_are_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(system, "installed_prompts", lambda: {"default": "Think.", "simple": "Do."})
    with pytest.raises(ConfigError, match="no prompt 'defualt': there are gym:default, gym:simple"):
        check_system("gym:defualt")
    monkeypatch.setattr(system, "installed_prompts", dict)
    check_system("gym:anything")
    with pytest.raises(ConfigError, match=r"not installed: pip install 'shoal-swarm\[tasks\]'"):
        system_text("gym:default")


def test_a_library_that_keeps_its_prompts_elsewhere_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match="cannot be read"):
        read_prompts(tmp_path / "utils.py")
    for text, said in (
        ("PROMPTS = {}", "has no SYSTEM_PROMPTS"),
        ("SYSTEM_PROMPTS = {'a': 1}", "has no SYSTEM_PROMPTS"),
        ("SYSTEM_PROMPTS = load()", "cannot be read"),
        ("def (", "cannot be read"),
    ):
        (tmp_path / "utils.py").write_text(text)
        with pytest.raises(TaskError, match=said):
            read_prompts(tmp_path / "utils.py")


def test_without_the_library_there_are_no_prompts(monkeypatch: pytest.MonkeyPatch) -> None:
    installed_prompts.cache_clear()
    monkeypatch.setitem(sys.modules, "reasoning_gym", None)
    monkeypatch.setattr("shoal.tasks.gym_prompts.find_spec", lambda name: None)
    assert installed_prompts() == {}
    installed_prompts.cache_clear()


@pytest.mark.parametrize("prompt", ["plain", "few-shot"])
def test_a_prompt_without_a_place_for_it_refuses_it(prompt: Any) -> None:
    with pytest.raises(
        ConfigError, match=f'system: a prompt of the kind {prompt} has none: set prompt = "chat"'
    ):
        TrainSettings(prompt=prompt, system="none").check()
    TrainSettings(prompt=prompt).check()
    TrainSettings(prompt="chat", system="none").check()


class Tokenizer:
    """Knows a template, with or without a place for a system prompt."""

    chat_template = "there is one"

    def __init__(self, knows: bool = True) -> None:
        self.knows = knows

    def apply_chat_template(self, messages: list[dict[str, str]], **_: object) -> str:
        if not self.knows and messages[0]["role"] == "system":
            raise ValueError("no system prompt here")
        return "".join(f"<{one['role']}>{one['content']}" for one in messages)


def test_it_stands_in_the_chat_prompt() -> None:
    assert rendering("chat", Tokenizer())("3+4=") == f"<system>{TEXT}<user>3+4="
    assert rendering("chat", Tokenizer(), system="Be brief.")("3+4=") == "<system>Be brief.<user>3+4="
    assert rendering("chat", Tokenizer(), system="")("3+4=") == "<user>3+4="
    assert rendering("chat", Tokenizer(False), system="Be brief.")("3+4=") == "<user>Be brief.\n\n3+4="
    assert rendering("plain", Tokenizer(), system="Be brief.")("3+4=") == "3+4=\n"


class Listening(Model):
    """A chat model that keeps what it is asked."""

    spec = endpoint = "listening:"
    instant = True

    def __init__(self) -> None:
        self.asked: list[ChatRequest] = []

    async def answer(self, request: ChatRequest, *, timeout: float) -> ChatAnswer:
        self.asked.append(request)
        return ChatAnswer(text="7", model="listening")


def test_a_contributing_chat_model_gets_it_and_top_p() -> None:
    for given, wanted in ((None, SYSTEM), ("Be brief.", "Be brief.")):
        model = Listening()
        contributor = ChatModel("listening:", model, *([] if given is None else [given]))
        contributor.sample(["3+4="], 1, Sampling(8, 1.0), 1)
        contributor.sample(["3+4="], 1, Sampling(8, 1.0, top_p=0.5), 1)
        assert [one.system for one in model.asked] == [wanted] * 2
        assert [one.sampling.top_p for one in model.asked] == [None, 0.5]
