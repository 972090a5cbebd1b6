"""The registry of families: ours, reasoning-gym's, files of questions, and those of entry points.

A name may come from a stranger. It is only ever looked up: no name imports anything but the user's own tasks.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache, partial
from importlib.metadata import entry_points
from importlib.util import find_spec
from typing import Any

from shoal.errors import ShoalError, TaskError, UnknownTaskError
from shoal.lazy import load
from shoal.tasks.family import Family, canonical_parameters, hint, show
from shoal.tasks.gym import SPECIALTIES, GymFamily
from shoal.tasks.questions import QuestionFile
from shoal.tasks.sums import BUILTIN

GROUP = "shoal.tasks"
MOST_NAME = 128
SOURCES = ("gym", "file")
"""Prefixes with any number of names, all made by one library."""
OWN = {"corewar:beat": "shoal.tasks.corewar:BeatWarrior"}
"""Families that are imported only when they are asked for."""

Maker = Callable[[Mapping[str, Any]], Family]


def canonical_name(name: str, families: Mapping[str, str] | None = None) -> str:
    """The name of this family everywhere. `families` are the user's own, as in `open_task`."""
    if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME or not name.isprintable():
        raise TaskError(f"a task's name is {show(name)}: give 1 to {MOST_NAME} printable characters")
    name = name.strip()
    own = families or {}
    if name in SPECIALTIES and name not in own:
        return f"gym:{name}"
    prefix, _, rest = name.partition(":")
    tables: tuple[Mapping[str, object], ...] = (BUILTIN, OWN, own, _registered())
    if any(name in table for table in tables) or (rest and prefix in SOURCES):
        return name
    known = hint(name, {*SPECIALTIES, *(known for table in tables for known in table)})
    raise UnknownTaskError(
        f"no task is called {show(name)}{known} (a generator of reasoning-gym is gym:NAME, a file of "
        f'questions file:HASH; a package registers its own under [project.entry-points."{GROUP}"])'
    )


def known_families() -> list[str]:
    """The canonical names that need no further choice; `gym:` knows many more generators."""
    return sorted({*BUILTIN, *OWN, *(f"gym:{name}" for name in SPECIALTIES), *_registered()})


def open_task(
    name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    files: Mapping[str, str] | None = None,
    families: Mapping[str, str] | None = None,
) -> Family:
    """The family of this name with these settings, or TaskError. `files` are the paths of question files, by
    the hash in their name; `families` are the user's own that are not installed, as `module:Class`. Both are
    local configuration and never a stranger's.
    """
    name = canonical_name(name, families)
    make = _maker(name, files or {}, families or {})
    try:
        family = make(dict(parameters or {}))
        canonical_parameters(family.parameters)
        usable = isinstance(family, Family)
    except ShoalError:
        raise
    except Exception as error:  # whatever a third party's constructor raises
        raise TaskError(f"task {name} cannot be made: {type(error).__name__}: {show(str(error))}") from error
    if not usable:
        raise TaskError(f"task {name} gives a {type(family).__name__}, which is not a shoal Family")
    return family


def source_of(name: str) -> str:
    """The library that makes a family of this canonical name: families of one source need one import."""
    prefix = name.partition(":")[0]
    return prefix if prefix in SOURCES else name


def prepare(name: str, families: Mapping[str, str]) -> None:
    """Imports the library of a family, which may take seconds."""
    make = _maker(name, {}, families)
    kind = make.func if isinstance(make, partial) else make
    getattr(kind, "prepare", lambda: None)()


def _maker(name: str, files: Mapping[str, str], families: Mapping[str, str]) -> Maker:
    prefix, _, rest = name.partition(":")
    if name in families or name in OWN:
        return _load(name, families.get(name) or OWN[name])
    if name in BUILTIN:
        return BUILTIN[name]
    if prefix == "gym":
        return partial(GymFamily, rest)
    if prefix == "file":
        return partial(QuestionFile, rest, files)
    places = sorted(_registered()[name])
    if len(places) > 1:
        raise UnknownTaskError(
            f"task {name} is registered more than once ({', '.join(places)}): uninstall one"
        )
    return _load(name, places[0])


@cache
def _registered() -> Mapping[str, frozenset[str]]:
    """The entry points of installed packages: the places of each name. Our own names cannot be taken."""
    found: dict[str, frozenset[str]] = {}
    for entry in entry_points(group=GROUP):
        found[entry.name] = found.get(entry.name, frozenset()) | {entry.value}
    return found


def registered_places() -> list[str]:
    """The folders or files of packages that registered a family. Nothing is imported for that."""
    places = set()
    for target in frozenset().union(*_registered().values()):
        with suppress(ImportError, ValueError):
            found = find_spec(target.partition(":")[0].partition(".")[0])
            if found is not None:
                places |= set(found.submodule_search_locations or [found.origin or ""])
    return sorted(places - {""})


def _load(name: str, target: str) -> Maker:
    try:
        found = load(target)
    except (Exception, SystemExit) as error:
        problem = f"{type(error).__name__}: {error}"
        raise UnknownTaskError(f"task {name} cannot be loaded from {target}: {problem}") from error
    if not callable(found):
        raise UnknownTaskError(
            f"task {name} is {target}, a {type(found).__name__}: name a class or a function"
        )
    maker: Maker = found
    return maker
