"""The system prompt of a chat prompt: Shoal's own, one of reasoning-gym's by its name there, a text, or none.

shoal          asks for the final answer between <answer> and </answer>
gym:default    a prompt of the installed reasoning-gym; also gym:simple, gym:direct and others
none           no system prompt; some chat templates then write one of their own
any sentence   is the prompt itself
"""

from __future__ import annotations

from shoal.errors import ConfigError, how_to_install
from shoal.tasks.gym_prompts import installed_prompts

OWN = "shoal"
NONE = "none"
GYM = "gym:"
MOST_CHARACTERS = 16_384
TEXT = "Solve the task. Give the final answer between <answer> and </answer>, and nothing else there."


def check_system(name: str) -> None:
    """ConfigError for a prompt that there is nowhere. Where reasoning-gym is not installed, any name of its
    prompts passes."""
    if not 0 < len(name) <= MOST_CHARACTERS:
        raise ConfigError(f"system: it has {len(name)} characters: give 1 to {MOST_CHARACTERS}, or {NONE}")
    if (known := _name_in_gym(name)) and (prompts := installed_prompts()) and known not in prompts:
        there = ", ".join(f"{GYM}{one}" for one in sorted(prompts))
        raise ConfigError(f"system: reasoning-gym has no prompt {known!r}: there are {there}")
    if name not in (OWN, NONE) and not known and len(name.split()) < 2:
        raise ConfigError(f"system: {name!r} is one word: write {OWN}, {NONE}, {GYM}default, or a whole text")
    if not name.isascii() and name != name.encode("utf-8", "ignore").decode():
        raise ConfigError("system: the text holds half a character (a lone surrogate): take it out")


def system_text(name: str) -> str:
    """The prompt that `name` stands for; empty: none. ConfigError says what is missing."""
    check_system(name)
    if known := _name_in_gym(name):
        if prompts := installed_prompts():
            return prompts[known]
        missing = f"system: {name} is a prompt of reasoning-gym, which is not installed"
        raise ConfigError(f"{missing}: {how_to_install('tasks')}")
    return {OWN: TEXT, NONE: ""}.get(name, name)


def _name_in_gym(name: str) -> str:
    """The name of a prompt of reasoning-gym; empty if this is none."""
    return name.removeprefix(GYM) if name.startswith(GYM) and len(name.split()) == 1 else ""
