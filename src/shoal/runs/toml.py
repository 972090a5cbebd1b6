"""Writes TOML; reading is the standard library's. `tomllib.loads(dumps(x)) == x` for all TOML can hold."""

from __future__ import annotations

import datetime
import math
import re
from collections.abc import Mapping

_BARE_KEY = re.compile(r"[A-Za-z0-9_-]+")
_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


def dumps(table: Mapping[str, object]) -> str:
    """The table as TOML text: values first, then its tables, each under its full name."""
    return "\n".join(_table_lines(table, "")).strip("\n") + "\n"


def _table_lines(table: Mapping[str, object], prefix: str) -> list[str]:
    lines: list[str] = []
    tables: list[str] = []
    for key, value in table.items():
        name = prefix + _key(key)
        if isinstance(value, Mapping):
            tables += ["", f"[{name}]", *_table_lines(value, name + ".")]
        elif isinstance(value, list) and value and all(isinstance(entry, Mapping) for entry in value):
            for entry in value:
                tables += ["", f"[[{name}]]", *_table_lines(entry, name + ".")]
        else:
            lines.append(f"{_key(key)} = {_value(value)}")
    return lines + tables


def _key(key: str) -> str:
    return key if _BARE_KEY.fullmatch(key) else _string(key)


def _value(value: object) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        # repr never lacks the point or exponent that makes a TOML float, except for these.
        return repr(value) if math.isfinite(value) else {"inf": "inf", "-inf": "-inf"}.get(str(value), "nan")
    if isinstance(value, str):
        return _string(value)
    if isinstance(value, datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(entry) for entry in value) + "]"
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{_key(key)} = {_value(entry)}" for key, entry in value.items()) + "}"
    raise TypeError(f"TOML has no way to write a {type(value).__name__}")


def _string(text: str) -> str:
    plain = (_ESCAPES.get(c) or (f"\\u{ord(c):04x}" if ord(c) < 0x20 or ord(c) == 0x7F else c) for c in text)
    return '"' + "".join(plain) + '"'
