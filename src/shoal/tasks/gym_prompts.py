"""The system prompts of reasoning-gym, by its names, as they stand in the installed package.

They are read from its source as plain text: nothing of the library runs in a node's process, and its import
would take seconds.
"""

from __future__ import annotations

import ast
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from shoal.errors import TaskError

MOST_BYTES = 1 << 20
PLACE = "utils.py"
NAME = "SYSTEM_PROMPTS"


@cache
def installed_prompts() -> dict[str, str]:
    """Texts by name; empty if reasoning-gym is not installed. TaskError if its prompts are not where every
    release so far has them."""
    found = find_spec("reasoning_gym")
    folders = list(found.submodule_search_locations or ()) if found is not None else []
    if not folders:
        return {}
    return read_prompts(Path(folders[0]) / PLACE)


def read_prompts(path: Path) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            module = ast.parse(file.read(MOST_BYTES))
        assignments = [one for one in module.body if isinstance(one, ast.Assign)]
        for assignment in assignments:
            if [ast.unparse(target) for target in assignment.targets] == [NAME]:
                prompts = ast.literal_eval(assignment.value)
                if isinstance(prompts, dict) and all(isinstance(text, str) for text in prompts.values()):
                    return {str(name): text for name, text in prompts.items()}
    except (OSError, SyntaxError, ValueError) as error:
        raise TaskError(f"{path}: the system prompts of reasoning-gym cannot be read: {error}") from None
    raise TaskError(f"{path} has no {NAME}: give the system prompt as a text")
