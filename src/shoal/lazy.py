"""Objects that are loaded when first used: by a text such as `package.module:Class`, or by name from a
package whose import loads none of its modules.

The names of a package stand once, in the package's stub `__init__.pyi`, where type checkers read them too:

    from shoal.tasks.family import Family as Family, Puzzle as Puzzle
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False
if TYPE_CHECKING:  # type checkers know this name; importing `typing` would take longer than all the rest
    from collections.abc import Callable
    from typing import Any


def lazily(package: str, file: str) -> tuple[list[str], Callable[[str], Any]]:
    """`__all__` and `__getattr__` of the package whose `__init__.py` is `file`."""
    places: dict[str, str] = {}
    with open(f"{file}i", encoding="utf-8") as stub:
        text = stub.read()
    for statement in text.replace("(", " ").replace(")", " ").split("from ")[1:]:
        module, _, names = statement.partition(" import ")
        names = names.partition("\n\n")[0]  # behind an empty line stand other declarations
        places |= {name.split()[-1]: module for name in names.split(",") if name.strip()}

    def find(name: str) -> Any:
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(places[name]), name)

    return sorted(places), find


def load(target: str) -> Any:
    """The object called `module:attribute`, or `module:outer.inner`; raises whatever its import raises."""
    module, _, attributes = target.partition(":")
    found: Any = import_module(module)
    for attribute in attributes.split("."):
        found = getattr(found, attribute)
    return found
