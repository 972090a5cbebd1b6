"""Finding a family by name: ours, reasoning-gym's, a file of questions, or what a package registers under the
entry point group `shoal.tasks`.

A name may come from a stranger. It is only ever looked up: no name makes anything be imported that the user
has not installed as a task or given as one.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from importlib.util import find_spec
from typing import Any

from shoal.errors import ShoalError, TaskError
from shoal.tasks.family import Family
from shoal.tasks.parameters import canonical_parameters, hint, parse_parameters, show
from shoal.tasks.sums import BUILTIN

__all__ = [
    "GROUP",
    "SPECIALTIES",
    "canonical_name",
    "canonical_parameters",
    "known_families",
    "open_family",
    "parse_parameters",
    "prepare",
    "registered_places",
    "source_of",
]

GROUP = "shoal.tasks"
MOST_NAME = 128
SOURCES = ("gym", "file")
"""Prefixes with any number of names, all made by one library."""
CORE_WAR = "corewar:beat"
SPECIALTIES = (
    "arc_1d",
    "base_conversion",
    "basic_arithmetic",
    "bf",
    "binary_matrix",
    "calendar_arithmetic",
    "decimal_arithmetic",
    "fraction_simplification",
    "propositional_logic",
)
"""The nine of the SAPO paper: generators of reasoning-gym that may be named without `gym:`."""


def canonical_name(name: str, families: Mapping[str, str] | None = None) -> str:
    """What this family is called everywhere. `families` are the user's own, as in `open_family`."""
    if not isinstance(name, str) or not 0 < len(name) <= MOST_NAME or not name.isprintable():
        raise TaskError(f"a task's name is {show(name)}: give 1 to {MOST_NAME} printable characters")
    name = name.strip()
    if name in SPECIALTIES and name not in (families or {}):
        return f"gym:{name}"
    prefix, colon, rest = name.partition(":")
    if name in BUILTIN or name == CORE_WAR or name in (families or {}):
        return name
    if colon and rest and prefix in SOURCES:
        return name
    if name in _registered():
        return name
    # Without the hundred of reasoning-gym, which the message names as a kind.
    known = {family for family in known_families() if not family.startswith("gym:")}
    names = {*known, *SPECIALTIES, *(families or {})}
    raise TaskError(
        f"no task is called {show(name)}{hint(name, names)} (a generator of reasoning-gym is gym:NAME, a "
        f'file of questions file:HASH; a package registers its own under [project.entry-points."{GROUP}"])'
    )


def known_families() -> list[str]:
    """The canonical names that need no further choice; `gym:` knows many more generators."""
    return sorted({*BUILTIN, CORE_WAR, *(f"gym:{name}" for name in SPECIALTIES), *_registered()})


def open_family(
    name: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    files: Mapping[str, str] | None = None,
    families: Mapping[str, str] | None = None,
) -> Family:
    """The family of this name with these settings, or TaskError.

    `files` tells where the question files are, by the hash in their name; `families` names the user's own
    that are not installed, as `module:Class`. Both are local configuration and never a stranger's.
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
    _maker(name, {}, families)
    if source_of(name) == "gym":
        from shoal.tasks.gym_library import library

        library()


def _maker(
    name: str, files: Mapping[str, str], families: Mapping[str, str]
) -> Callable[[Mapping[str, Any]], Family]:
    if name in families:
        return _load(name, families[name])
    if name in BUILTIN:
        return BUILTIN[name]
    prefix, _, rest = name.partition(":")
    # The rest is imported only when asked for: reasoning-gym alone takes more than a second.
    if prefix == "gym":
        from shoal.tasks.gym import GymFamily

        return lambda parameters: GymFamily(rest, parameters)
    if prefix == "file":
        from shoal.tasks.questions import QuestionFile

        return lambda parameters: QuestionFile(rest, files, parameters)
    if name == CORE_WAR:
        from shoal.tasks.corewar import BeatWarrior

        return BeatWarrior
    places = sorted(_registered()[name])
    if len(places) > 1:
        raise TaskError(
            f"task {name} is registered more than once ({', '.join(places)}): uninstall one of the packages"
        )
    return _load(name, places[0])


@cache
def _registered() -> Mapping[str, frozenset[str]]:
    """The entry points of installed packages: where each name is found. Our own names cannot be taken."""
    found: dict[str, frozenset[str]] = {}
    entries: list[EntryPoint] = list(entry_points(group=GROUP))
    for entry in entries:
        found[entry.name] = found.get(entry.name, frozenset()) | {entry.value}
    return found


def registered_places() -> list[str]:
    """The folders or files of packages that registered a family, wherever they are installed. Nothing is
    imported for that."""
    places = set()
    for target in frozenset().union(*_registered().values()):
        with suppress(ImportError, ValueError):
            found = find_spec(target.partition(":")[0].partition(".")[0])
            if found is not None:
                places |= set(found.submodule_search_locations or [found.origin or ""])
    return sorted(places - {""})


def _load(name: str, target: str) -> Callable[[Mapping[str, Any]], Family]:
    module, _, attribute = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:
        raise TaskError(
            f"task {name} cannot be loaded from {target}: {type(error).__name__}: {error}"
        ) from error
    if not callable(found):
        raise TaskError(f"task {name} is {target}, a {type(found).__name__}: name a class or a function")
    maker: Callable[[Mapping[str, Any]], Family] = found
    return maker
