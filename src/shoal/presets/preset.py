"""A preset: a published set-up as a config file of this folder. The comments of a file begin with its title
and a sentence about it, and give the provenance of each value. A file is a whole config: it can be given to
its verb as it is."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from functools import cached_property
from importlib import resources
from typing import Any

import msgspec

from shoal.errors import ConfigError
from shoal.runs.config import Config, alternatives_to, convert, merged, toml_value

PAPERS = {"evolve": "dei", "train": "sapo"}
"""The preset of each application's own paper, which `--paper` means."""
_TABLE = re.compile(r"\[([\w.]+)\]")
_OURS = re.compile(r"(\w+) = .*# ours\b")
_MISSING = re.compile(r"^# missing: ((\w+) .*)$", re.MULTILINE)
"""A published choice that is not part of Shoal, and Shoal's own in its place."""


class Preset(msgspec.Struct, frozen=True, dict=True):
    """One set-up: its name, and the text of its file."""

    name: str
    text: str

    @property
    def title(self) -> str:
        return self._comment(0)

    @property
    def about(self) -> str:
        return self._comment(1)

    @property
    def application(self) -> str:
        return str(self.table["application"])

    @cached_property
    def table(self) -> Mapping[str, Any]:
        """The published choices."""
        return tomllib.loads(self.text)

    def settings(self, struct: type[Config], given: Mapping[str, Any]) -> Config:
        """The published choices with those of a caller from Python on top, as in `struct`."""
        plain = {name: self._plain(name, value) for name, value in given.items()}
        return convert(struct, merged(struct, self.table, plain), source="settings")

    def _plain(self, name: str, value: Any) -> Any:
        if isinstance(value, str) and isinstance(self.table.get(name), list):
            return [value]  # one model needs no list
        return msgspec.to_builtins(value)

    def departures(self, settings: msgspec.Struct) -> list[str]:
        """One line for each published choice that these settings do not follow, also where Shoal has none."""
        # Through JSON, so that a tuple and a list do not count as different.
        table = msgspec.json.decode(msgspec.json.encode(settings))
        chosen = dict(_leaves(table))
        lines = [line for line, key in _MISSING.findall(self.text) if not table.get(key)]
        for key, published in _leaves(self.table):
            value = chosen.get(key)
            if key in self._unpublished or _is_idle(key, chosen):
                continue
            if value is None:
                others = [other for other in alternatives_to(type(settings), key) if other in chosen]
                now = [f"{other} = {toml_value(chosen[other])}" for other in others] or [f"{key} is not set"]
                lines.append(f"{now[0]} (published: {key} = {toml_value(published)})")
            elif value != published:
                lines.append(f"{key} = {toml_value(value)} (published: {toml_value(published)})")
        return lines

    @cached_property
    def _unpublished(self) -> frozenset[str]:
        """The dotted keys whose comment says `ours`: choices of Shoal, which are replaced without a word."""
        found, table = [], ""
        for line in self.text.splitlines():
            if header := _TABLE.match(line):
                table = f"{header[1]}."
            elif own := _OURS.match(line):
                found.append(f"{table}{own[1]}")
        return frozenset(found)

    def _comment(self, line: int) -> str:
        return self.text.splitlines()[line].lstrip("# ")


def presets() -> list[Preset]:
    """All presets, by name."""
    found = [file for file in resources.files(__package__).iterdir() if file.name.endswith(".toml")]
    named = sorted((file.name.removesuffix(".toml"), file) for file in found)
    return [Preset(name, file.read_text(encoding="utf-8")) for name, file in named]


def find_preset(name: str, application: str | None = None) -> Preset:
    """The preset of this name; ConfigError if there is none, or if it is another application's."""
    known = {preset.name: preset for preset in presets()}
    if name not in known:
        raise ConfigError(f"no preset is called {name[:80]!r}: known are {', '.join(known)}")
    preset = known[name]
    if application not in (None, preset.application):
        fitting = ", ".join(one.name for one in known.values() if one.application == application)
        raise ConfigError(
            f"preset {name} is a set-up of `shoal {preset.application}`; for `shoal {application}` there are "
            f"{fitting}"
        )
    return preset


def _is_idle(key: str, chosen: Mapping[str, Any]) -> bool:
    """Whether it is a setting of a task that is not drawn from: that the tasks are others is told anyway."""
    table, _, rest = key.partition(".")
    return table == "parameters" and rest.partition(".")[0] not in chosen.get("tasks", ())


def _leaves(table: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, Any]]:
    """The values of a table and of the tables in it, with their dotted keys."""
    for key, value in table.items():
        if isinstance(value, Mapping) and value:
            yield from _leaves(value, f"{path}{key}.")
        else:
            yield f"{path}{key}", value
