"""Config: TOML text and `--set a.b=c` overrides → one typed, immutable `msgspec.Struct`, which declares the
keys and a default for each. A preset's table may stand under the text. An unknown key or an impossible value
is a ConfigError with the key's full path and perhaps a similar key. `to_toml` prints the config so that it
parses back to the same struct."""

from __future__ import annotations

import copy
import datetime
import difflib
import math
import re
import tomllib
from collections.abc import Container, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import inspect

from shoal.errors import ConfigError

Config = TypeVar("Config", bound=msgspec.Struct)

LONGEST_SHOWN = 200
"""Characters of an override that an error repeats."""
MOST_DEPTH = 16
"""Tables within tables."""
_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_STEP = re.compile(r"\.\.\.|[^.\[\]]+")
# People type `--set model=gpt-5`; anything with TOML's own punctuation in it must be TOML.
_BARE_WORD = re.compile(r"[A-Za-z_/.~][A-Za-z0-9_./:@~+-]*")


def convert(struct: type[Config], table: Mapping[str, Any], *, source: str, path: str = "") -> Config:
    """A table as its struct; ConfigError names the key that is wrong, behind `path`."""
    _refuse_other_application(struct, table, source)
    _refuse_unknown(table, inspect.type_info(struct), path, source)
    try:
        return msgspec.convert(table, struct)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        inner = place.rstrip("`").lstrip(".")
        allowed = _allowed(inspect.type_info(struct), _STEP.findall(inner))
        if allowed and message.startswith("Invalid enum value"):
            message = f"{message.removeprefix('Invalid enum value ')} is none of {', '.join(allowed)}"
        key = ".".join(filter(None, (path, inner)))
        raise ConfigError(f"{source}: {f'{key}: ' if key else ''}{message}") from error


def _refuse_other_application(struct: type[msgspec.Struct], table: Mapping[str, Any], source: str) -> None:
    """Said first: all of its other keys would be unknown too."""
    theirs = table.get("application")
    for field in msgspec.structs.fields(struct):
        if field.name == "application" and isinstance(theirs, str) and theirs != field.default:
            raise ConfigError(
                f"{source}: application: these are settings of {theirs[:80]!r}, not of {field.default!r}"
            )


def load(
    struct: type[Config],
    path: Path | None = None,
    overrides: Iterable[str] = (),
    *,
    under: Mapping[str, Any] | None = None,
) -> Config:
    """The config from the file at `path` (None: all defaults) with `overrides` such as "swarm.nodes=8"."""
    if path is None:
        return parse(struct, "", overrides, under=under)
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ConfigError(f"{path}: the config cannot be read: {why}") from error
    return parse(struct, text, overrides, source=str(path), under=under)


def parse(
    struct: type[Config],
    text: str,
    overrides: Iterable[str] = (),
    *,
    source: str = "config",
    under: Mapping[str, Any] | None = None,
) -> Config:
    """The same from TOML text; `source` names it in errors. `under` has values that it may leave out."""
    try:
        table = tomllib.loads(text.removeprefix("\ufeff"))  # editors on Windows write a byte order mark
    except RecursionError as error:
        raise ConfigError(f"{source}: lists or tables are nested too deeply in each other") from error
    except ValueError as error:  # not TOML, or an integer of thousands of digits
        raise ConfigError(f"{source}: this is not TOML: {error}") from error
    _refuse_absurd(table, source)
    table = merged(struct, under or {}, table)
    overrides = list(overrides)
    named = {override.partition("=")[0].strip() for override in overrides}
    table = {key: value for key, value in table.items() if not _is_displaced(struct, key, named)}
    for override in overrides:
        _apply(table, override)
    _refuse_absurd(table, source)
    return convert(struct, table, source=source)


def merged(struct: type[msgspec.Struct], under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    """`over` on top of `under`: tables are joined, any other value takes the place of the one below it. Of
    `struct.alternatives`, settings that say the same thing in two ways, those of `over` stand alone."""
    kept = {key: value for key, value in under.items() if not _is_displaced(struct, key, over)}
    return _joined(kept, over)


def _joined(under: Mapping[str, Any], over: Mapping[str, Any]) -> dict[str, Any]:
    joined = copy.deepcopy(dict(under))
    for key, value in over.items():
        below = joined.get(key)
        both = isinstance(value, Mapping) and isinstance(below, Mapping)
        joined[key] = _joined(below, value) if both else copy.deepcopy(value)  # type: ignore[arg-type]
    return joined


def _is_displaced(struct: type[msgspec.Struct], key: str, over: Container[str]) -> bool:
    return key not in over and any(other in over for other in alternatives_to(struct, key))


def alternatives_to(struct: type[msgspec.Struct], key: str) -> list[str]:
    """The settings that say the same as this one in another way."""
    groups: tuple[tuple[str, ...], ...] = getattr(struct, "alternatives", ())
    return [other for group in groups if key in group for other in group if other != key]


def to_toml(config: msgspec.Struct) -> str:
    """The whole config, defaults included, as TOML. A None is left out, as TOML has no null."""
    plain = msgspec.to_builtins(config, builtin_types=(datetime.datetime, datetime.date, datetime.time))
    return dumps(_without_none(plain))


def _apply(table: dict[str, Any], override: str) -> None:
    name, equals, text = override.partition("=")
    if len(override) > LONGEST_SHOWN:
        override = f"{override[:LONGEST_SHOWN]}…"
    keys = [key.strip() for key in name.split(".")]
    if not equals or not all(keys) or len(keys) > MOST_DEPTH:
        raise ConfigError(f"--set {override}: write it as --set section.key=value")
    value = _parse_value(text.strip(), override)
    place: Any = table
    for depth, key in enumerate(keys):
        where = ".".join(keys[: depth + 1])
        slot: Any = key
        if isinstance(place, list):
            if not key.isdecimal() or int(key) >= len(place):
                raise ConfigError(f"--set {override}: {where}: the list has entries 0 to {len(place) - 1}")
            slot = int(key)
        elif not isinstance(place, dict):
            raise ConfigError(f"--set {override}: {where}: there is a plain value above it, not a table")
        if depth == len(keys) - 1:
            place[slot] = value
        else:
            place = place[slot] if isinstance(place, list) else place.setdefault(slot, {})


def _parse_value(text: str, override: str) -> Any:
    try:
        parsed = tomllib.loads(f"value = {text}")
        if len(parsed) == 1:  # more: there was a line break and another key in it
            return parsed["value"]
    except RecursionError as error:
        raise ConfigError(f"--set {override}: lists or tables are nested too deeply in each other") from error
    except ValueError:
        if _BARE_WORD.fullmatch(text):
            return text
    raise ConfigError(f"--set {override}: the value is not TOML; text goes in quotes: '\"…\"'")


def _refuse_unknown(value: Any, expected: inspect.Type, path: str, source: str) -> None:
    """Walks value and type side by side. msgspec refuses unknown keys too, but names no similar key."""
    matching = [option for option in _options(expected) if _may_hold(value, option)]
    if len(matching) != 1:
        return
    option = matching[0]
    if isinstance(option, inspect.StructType):
        fields = {field.encode_name: field.type for field in option.fields}
        for key, entry in value.items():
            inner = f"{path}.{key}" if path else key
            if key in fields:
                _refuse_unknown(entry, fields[key], inner, source)
            elif key != option.tag_field:
                new = getattr(option.cls, "renamed", {}).get(key)
                remedy = f"It is called {new} now." if new else _remedy(key, fields, path)
                raise ConfigError(f"{source}: {inner}: there is no such setting. {remedy}")
    elif isinstance(option, inspect.DictType):
        for key, entry in value.items():
            _refuse_unknown(entry, option.value_type, f"{path}.{key}", source)
    elif isinstance(option, inspect.ListType | inspect.VarTupleType):
        for index, entry in enumerate(value):
            _refuse_unknown(entry, option.item_type, f"{path}[{index}]", source)


def _refuse_absurd(table: Mapping[str, Any], source: str) -> None:
    """Refuses numbers that are not finite, and tables that are nested too deeply."""
    # Without recursion: dotted keys make tables of any depth.
    waiting: list[tuple[str, int, Any]] = [(key, 1, value) for key, value in table.items()]
    while waiting:
        path, depth, value = waiting.pop()
        if depth > MOST_DEPTH:
            raise ConfigError(
                f"{source}: {path[:LONGEST_SHOWN]}…: tables are nested too deeply in each other"
            )
        if isinstance(value, dict):
            waiting += [(f"{path}.{key}", depth + 1, entry) for key, entry in value.items()]
        elif isinstance(value, list):
            waiting += [(f"{path}[{index}]", depth + 1, entry) for index, entry in enumerate(value)]
        elif isinstance(value, float) and not math.isfinite(value):
            raise ConfigError(f"{source}: {path}: {value} is not a finite number: give one, or leave it out")


def _allowed(expected: inspect.Type, steps: list[str]) -> list[str]:
    """The values of a choice at the end of this path; none if there is no choice."""
    found: list[str] = []
    for option in _options(expected):
        if isinstance(option, inspect.LiteralType) and not steps:
            found += map(str, option.values)
        elif isinstance(option, inspect.StructType) and steps:
            for field in option.fields:
                found += _allowed(field.type, steps[1:]) if field.encode_name == steps[0] else []
        elif isinstance(option, inspect.DictType) and steps:
            found += _allowed(option.value_type, steps[1:])
        elif isinstance(option, inspect.ListType | inspect.VarTupleType) and steps:
            found += _allowed(option.item_type, steps[1:])
    return found


def _options(expected: inspect.Type) -> list[inspect.Type]:
    """The types of a union, or the one type, without bounds."""
    if isinstance(expected, inspect.Metadata):
        return _options(expected.type)
    if isinstance(expected, inspect.UnionType):
        return [inner for option in expected.types for inner in _options(option)]
    return [expected]


def _may_hold(value: Any, option: inspect.Type) -> bool:
    if isinstance(option, inspect.StructType) and isinstance(value, Mapping):
        return option.tag_field is None or value.get(option.tag_field) == option.tag
    if isinstance(option, inspect.DictType):
        return isinstance(value, Mapping)
    return isinstance(option, inspect.ListType | inspect.VarTupleType) and isinstance(value, list)


def _remedy(key: str, fields: Mapping[str, object], path: str) -> str:
    close = difflib.get_close_matches(key, fields, n=1)
    if close:
        return f"Did you mean {f'{path}.' if path else ''}{close[0]}?"
    return f"Known here: {', '.join(sorted(fields)) or 'nothing'}."


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(entry) for key, entry in value.items() if entry is not None}
    if isinstance(value, list | tuple):
        return [_without_none(entry) for entry in value]
    return value


def dumps(table: Mapping[str, object]) -> str:
    """The table as TOML text, so that `tomllib.loads` gives it back: values first, then its tables."""
    return "\n".join(_table_lines(table, "")).strip("\n") + "\n"


def _table_lines(table: Mapping[str, object], prefix: str) -> list[str]:
    lines: list[str] = []
    tables: list[str] = []
    for key, value in table.items():
        name = prefix + _toml_key(key)
        if isinstance(value, Mapping):
            tables += ["", f"[{name}]", *_table_lines(value, name + ".")]
        elif isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
            for entry in value:
                tables += ["", f"[[{name}]]", *_table_lines(entry, name + ".")]
        else:
            lines.append(f"{_toml_key(key)} = {toml_value(value)}")
    return lines + tables


def _toml_key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else f'"{_escaped(key)}"'


def toml_value(value: object) -> str:
    """A value as it stands behind `key = `, in one line."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        # repr never lacks the point or exponent that makes a TOML float, except for these.
        return repr(value) if math.isfinite(value) else {"inf": "inf", "-inf": "-inf"}.get(str(value), "nan")
    if isinstance(value, str):
        return _toml_string(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(toml_value(entry) for entry in value) + "]"
    if isinstance(value, Mapping):
        return (
            "{" + ", ".join(f"{_toml_key(key)} = {toml_value(entry)}" for key, entry in value.items()) + "}"
        )
    raise TypeError(f"TOML has no way to write a {type(value).__name__}")


def _toml_string(text: str) -> str:
    if "\n" not in text:
        return f'"{_escaped(text)}"'
    # As people read it. Three quotation marks beside each other would end it.
    body = _escaped(text, kept='"\n\t').replace('""', '"\\"')
    return f'"""\n{body}"""'


def _escaped(text: str, kept: str = "") -> str:
    return "".join(
        c if c in kept else _ESCAPES.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 0x20 or ord(c) == 0x7F else c)
        for c in text
    )
