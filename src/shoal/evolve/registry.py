"""Finding a domain by name. Packages register theirs under the entry point group `shoal.domains`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from importlib.metadata import entry_points
from typing import Any

from shoal.errors import ConfigError
from shoal.evolve.domain import Domain

GROUP = "shoal.domains"
BUILTIN = {"corewar": "shoal.evolve.domains.corewar:CoreWar"}
"""Ours, so that they are found without an installation too."""


def domain_names() -> list[str]:
    return sorted({*BUILTIN, *(entry.name for entry in entry_points(group=GROUP))})


def open_domain(name: str, options: Mapping[str, Any] | None = None, *, threads: int | None = None) -> Domain:
    """The domain of this name, or of an importable `module:Class`, made with `options`; `threads` limits an
    engine of its own. Only a subclass of `Domain` is ever called; an instance is taken as it is, without
    options."""
    target = name if ":" in name else _target(name)
    found = _load(name, target)
    if isinstance(found, Domain) and not options:
        return found
    if not (isinstance(found, type) and issubclass(found, Domain)):
        raise ConfigError(
            f"domain {name!r} is {target}, a {type(found).__name__}: name a subclass of shoal.evolve.Domain"
            + (", as an instance takes no options" if isinstance(found, Domain) else ", or an instance")
        )
    try:
        return found.from_options(options or {}, threads=threads)
    except ConfigError:
        raise
    except Exception as error:  # a stranger's constructor, or methods that are missing
        raise ConfigError(
            f"domain {name!r} cannot be made from {target}: {type(error).__name__}: {error}"
        ) from error


def _target(name: str) -> str:
    entries = [*BUILTIN.items(), *((entry.name, entry.value) for entry in entry_points(group=GROUP))]
    registered = {value for known, value in entries if known == name}
    if not registered:
        raise ConfigError(
            f"no domain is called {name!r}: known are {', '.join(domain_names())}. A package registers one "
            f'under [project.entry-points."{GROUP}"] as {name} = "module:Class"; for one that is not '
            "installed give module:Class itself"
        )
    if len(registered) > 1:
        raise ConfigError(
            f"domain {name!r} is registered more than once ({', '.join(sorted(registered))}): uninstall one "
            "of the packages, or name the one you mean as module:Class"
        )
    return registered.pop()


def _load(name: str, target: str) -> object:
    module, _, attribute = target.partition(":")
    try:
        found: Any = importlib.import_module(module)
        for part in attribute.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # a stranger's module may raise anything on import
        raise ConfigError(
            f"domain {name!r} cannot be loaded from {target}: {type(error).__name__}: {error}"
        ) from error
    return found
