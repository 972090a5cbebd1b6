"""The door to reasoning-gym: its import, its version, its generators and their settings.

The library takes a second to import and belongs in the verifier's process only.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib
import io
import math
import sys
from collections.abc import Iterator, Mapping
from enum import Enum
from functools import cache
from importlib.metadata import version as installed_version
from types import ModuleType
from typing import Any

from shoal.errors import TaskError, how_to_install
from shoal.tasks.parameters import hint, show

MOST_WHOLE = 2**53
MOST_TEXT = 64
MOST_ENTRIES = 64
SAME_VERSIONS = range(20, 26)
"""0.1.20 to 0.1.25 make the same questions, keys and scores, so they count as one version."""
PLOTTING = (
    *("matplotlib", "matplotlib.animation", "matplotlib.collections", "matplotlib.pyplot"),
    *("mpl_toolkits", "mpl_toolkits.mplot3d"),
)
STARTED = ("reasoning_gym", "cellpylib")
NOT_PLAIN = object()
KINDS: tuple[tuple[Any, Any, str], ...] = (
    (bool, bool, "true or false"),
    (int, int, "a number like {}"),
    (float, int | float, "a number like {}"),
    (str, str, "a text like {!r}"),
    (list | tuple, list | tuple, "a list"),
)
"""Kinds of defaults, the values that each accepts, and their description."""


@cache
def library() -> Any:
    """The imported library, or TaskError."""
    try:
        try:
            with _no_plotting():
                return _imported()
        except (ImportError, AttributeError, TypeError):  # a release that needs more than empty modules
            for name in [name for name in sys.modules if name.partition(".")[0] in STARTED]:
                del sys.modules[name]
            return _imported()
    except ImportError as error:
        raise TaskError(
            f"gym: tasks need reasoning-gym, which cannot be imported ({error}): {how_to_install('tasks')}"
        ) from error


def _imported() -> Any:
    importlib.import_module("reasoning_gym.factory")
    return importlib.import_module("reasoning_gym")


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Swallows standard output: some generators print, and it may be a channel."""
    with contextlib.redirect_stdout(io.StringIO()):
        yield


def library_version() -> str:
    text = installed_version("reasoning-gym")
    parts = text.split(".")
    if parts[:2] == ["0", "1"] and len(parts) == 3 and parts[2].isdigit() and int(parts[2]) in SAME_VERSIONS:
        return "reasoning_gym 0.1"
    return f"reasoning_gym {text}"[:64]


def generators() -> list[str]:
    """All generators of the installed library, except `composite`, which combines others."""
    return sorted(name for name in library().factory.DATASETS if name != "composite")


def configuration(generator: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of the generator with those given, each of the same kind as its default, or TaskError."""
    if generator not in generators():
        raise TaskError(f"reasoning-gym has no generator {show(generator)}{hint(generator, generators())}")
    kind = library().factory.DATASETS[generator][1]
    defaults = {field.name: field for field in dataclasses.fields(kind) if field.name not in ("seed", "size")}
    settings: dict[str, Any] = {}
    for name, value in given.items():
        if name not in defaults:
            raise TaskError(f"task gym:{generator}: there is no setting {show(name)}{hint(name, defaults)}")
        settings[name] = _checked(f"task gym:{generator}: {name}", value, _default(defaults[name]))
    try:
        made = kind(**settings)
        if hasattr(made, "validate"):
            made.validate()
    except Exception as error:  # the library asserts, and raises what it likes
        raise TaskError(f"task gym:{generator}: {type(error).__name__}: {show(str(error))}") from error
    return {name: getattr(made, name) for name in defaults}


def _default(field: Any) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    return field.default_factory() if field.default_factory is not dataclasses.MISSING else None


def _checked(where: str, value: Any, default: Any, depth: int = 0) -> Any:
    """The value if it is plain, small and of the default's kind."""
    if depth > 3:
        raise TaskError(f"{where} is nested too deeply")
    for kind, accepted, form in KINDS:
        if isinstance(default, kind):
            if not isinstance(value, accepted) or isinstance(value, bool) != (kind is bool):
                raise TaskError(f"{where} is {show(value)}: give {form.format(default)}")
            break
    if isinstance(value, int | float) and not (math.isfinite(value) and abs(value) <= MOST_WHOLE):
        raise TaskError(f"{where} is {show(value)}: give a number up to {MOST_WHOLE}")
    if isinstance(value, str) and len(value) > MOST_TEXT:
        raise TaskError(f"{where} is {show(value)}: at most {MOST_TEXT} characters")
    if isinstance(value, list | tuple | dict) and len(value) > MOST_ENTRIES:
        raise TaskError(f"{where} has {len(value)} entries: at most {MOST_ENTRIES}")
    if isinstance(value, list | tuple):
        entries = [_checked(where, entry, None, depth + 1) for entry in value]
        return tuple(entries) if isinstance(default, tuple) else entries
    if isinstance(value, dict) and all(isinstance(name, str) and len(name) <= MOST_TEXT for name in value):
        return {name: _checked(where, entry, None, depth + 1) for name, entry in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    raise TaskError(f"{where} is {show(value)}: give a plain value")


def plain(value: Any) -> Any:
    """The value in JSON. NOT_PLAIN if it has no such form: then it can only be the library's default."""
    if isinstance(value, Enum):
        return NOT_PLAIN
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else NOT_PLAIN
    if isinstance(value, list | tuple):
        entries = [plain(entry) for entry in value]
        return NOT_PLAIN if any(entry is NOT_PLAIN for entry in entries) else entries
    if isinstance(value, dict) and all(isinstance(name, str) for name in value):
        named = {name: plain(entry) for name, entry in value.items()}
        return NOT_PLAIN if any(entry is NOT_PLAIN for entry in named.values()) else named
    return NOT_PLAIN


class _Nothing(ModuleType):
    """An empty module, in the place of one that is imported and never used."""

    def __getattr__(self, name: str) -> None:
        if name.startswith("__"):
            raise AttributeError(name)


@contextlib.contextmanager
def _no_plotting() -> Iterator[None]:
    """Puts empty modules in the place of matplotlib. A dependency of the library imports it for plots that
    nobody draws here; it takes a third of the import time and wants threads and a writable folder."""
    if "matplotlib" in sys.modules:
        yield
        return
    for name in PLOTTING:
        sys.modules[name] = _Nothing(name)
    try:
        yield
    finally:
        for name in PLOTTING:
            del sys.modules[name]
