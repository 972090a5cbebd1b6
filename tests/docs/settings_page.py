"""`python -m tests.docs.settings_page`, or `make settings`: writes docs/settings.md from the structs.

The meaning of a key is written once, in the comment of its field: behind it on the same line, or on the lines
directly above it. Types, bounds and defaults are those of the struct.
"""

from __future__ import annotations

import ast
import importlib
import io
import re
import tokenize
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from msgspec import inspect

from shoal.evolve.domains.corewar import CoreWarOptions
from shoal.evolve.prompts import Template
from shoal.evolve.settings import EvolveSettings
from shoal.judge.settings import JudgeSettings
from shoal.lab.sweep import SweepSettings
from shoal.node import NodeSettings as LoopSettings
from shoal.node.crew import Network
from shoal.policy.base import Learning
from shoal.policy.pool import PoolLimits
from shoal.swarm import ExchangeSettings
from shoal.train.settings import NodeSettings, TrainSettings

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "settings.md"
COMMAND = "make settings"


@dataclass(frozen=True)
class Section:
    """One table: the fields of `struct`, or with `own_only` those that it does not inherit. Defaults are those
    of `values`, where the struct stands in another one that chooses its own."""

    title: str
    says: str
    struct: type[msgspec.Struct]
    prefix: str = ""
    own_only: bool = False
    values: msgspec.Struct | None = None


SECTIONS = (
    Section(
        "shoal evolve",
        "A search, and each run of `shoal compare`: [`shoal evolve`](evolve.md).",
        EvolveSettings,
    ),
    Section(
        "Options of Core War",
        "Of a search in the domain `corewar`: [domains](domains.md).",
        CoreWarOptions,
        "options.",
    ),
    Section(
        "Texts for models",
        "One table per part, where a text is not given as a file: "
        "[prompts](evolve.md#prompts-and-programs-of-your-own).",
        Template,
        "prompts.PART.",
    ),
    Section("shoal train", "A training run: [`shoal train`](train.md).", TrainSettings),
    Section(
        "Single nodes",
        "One table `[[each]]` per node of a training run, in the nodes' order.",
        NodeSettings,
        "each.N.",
    ),
    Section("Learning", "One step of learning.", Learning, "learning.", values=TrainSettings().learning),
    Section("Pool", PoolLimits.__doc__ or "", PoolLimits, "pool.", values=TrainSettings().pool),
    Section("shoal judge", "A judge of training nodes: [`shoal judge`](judge.md).", JudgeSettings),
    Section(
        "shoal sweep",
        "Each run of [`shoal sweep`](sweep.md) has the settings of `shoal train`, with other defaults for these.",
        SweepSettings,
        own_only=True,
    ),
    Section(
        "Network",
        "The connections of a run: options of the command line ([join a swarm](join.md)), or `Network` "
        "[from Python](api.md#joining-a-swarm). The run folder does not keep them.",
        Network,
    ),
    Section(
        "Exchange",
        "`ExchangeSettings` of programs that [use the exchange themselves](write-an-application.md).",
        ExchangeSettings,
    ),
    Section(
        "Loop",
        "`NodeSettings` of [applications that you write](write-an-application.md).",
        LoopSettings,
    ),
)
_NO_MEANING = re.compile(r"#\s*(type: ignore(\[[\w, -]*\])?|noqa[^#]*|fmt: \w+)\s*")
"""Comments for tools."""
HEAD = f"""# All settings

Every key that Shoal knows, with its type, bounds and default. Of a run, write the keys in a TOML file, or give them with
`--set KEY=VALUE`; `--dry-run` prints all that have a value. A key that does not exist is an error that names a similar
one. This page is made from the source by `{COMMAND}`.
"""


def meanings(struct: type[msgspec.Struct]) -> dict[str, str]:
    """The comment of each field of the struct's own class body; "" where there is none."""
    source = Path(str(importlib.import_module(struct.__module__).__file__)).read_text(encoding="utf-8")
    (body,) = [
        node for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.ClassDef) and node.name == struct.__name__
    ]  # fmt: skip
    alone: dict[int, str] = {}
    behind: dict[int, str] = {}
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            text = _NO_MEANING.sub("", token.string).lstrip("#").strip()
            (behind if token.line[: token.start[1]].strip() else alone)[token.start[0]] = text
    found = {}
    for item in body.body:
        if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
            if "ClassVar" in ast.unparse(item.annotation):
                continue
            first = item.lineno
            while first - 1 in alone:
                first -= 1
            lines = [alone[line] for line in range(first, item.lineno)]
            last = item.end_lineno or item.lineno
            lines += [behind[line] for line in range(item.lineno, last + 1) if line in behind]
            found[item.target.id] = " ".join(lines)
    return found


def without_meaning() -> list[str]:
    """The keys that have no comment."""
    return [
        f"{section.struct.__module__}:{section.struct.__name__}.{name}"
        for section in SECTIONS
        for name, meaning in meanings(section.struct).items()
        if not meaning
    ]


def type_of(kind: inspect.Type) -> str:
    """A type with its bounds, in words."""
    match kind:
        case inspect.Metadata(type=inner):
            return type_of(inner)
        case inspect.UnionType(types=types):
            return " or ".join(type_of(one) for one in types if not isinstance(one, inspect.NoneType))
        case inspect.LiteralType(values=values):
            return ", ".join(f"`{value}`" for value in values)
        case inspect.BoolType():
            return "true or false"
        case inspect.StrType():
            return "text"
        case inspect.IntType() | inspect.FloatType():
            number = "whole number" if isinstance(kind, inspect.IntType) else "number"
            return " ".join(filter(None, (number, _bounds(kind))))
        case inspect.VarTupleType(item_type=item) | inspect.ListType(item_type=item):
            inner = type_of(item)
            return "list of texts" if inner == "text" else f"list of {inner}"
        case inspect.TupleType(item_types=items):
            return f"{len(items)} values, each {type_of(items[0])}"
        case inspect.DictType(value_type=value):
            return f"table of {type_of(value)}"
        case inspect.StructType():
            return "table"
        case inspect.AnyType():
            return "any value"
    raise TypeError(f"{kind}: the page has no words for this type; write them here")


def _bounds(kind: inspect.IntType | inspect.FloatType) -> str:
    least, above, most, below = kind.ge, kind.gt, kind.le, kind.lt
    low = f"{least:,}" if least is not None else f"above {above:,}" if above is not None else ""
    high = f"{most:,}" if most is not None else f"below {below:,}" if below is not None else ""
    if low and high:
        return f"{low} to {high}" if least is not None else f"{low}, up to {high}"
    if high:
        return f"up to {high}"
    return low if not low or low.startswith("above") else f"from {low}"


def default_of(field: inspect.Field, values: msgspec.Struct | None = None) -> str:
    """The value that holds unless another is given, as it stands in TOML; "–" for none."""
    value: Any = field.default if values is None else getattr(values, field.name)
    if values is None and field.default_factory is not inspect.NODEFAULT:
        value = field.default_factory()
    if value is inspect.NODEFAULT:
        return "must be given"
    return "–" if value is None or isinstance(value, msgspec.Struct) else f"`{_toml(value)}`"


def _toml(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return f"[{', '.join(_toml(one) for one in value)}]"
    if isinstance(value, dict):
        return "{}" if not value else str(value)
    return msgspec.json.encode(value).decode()


def cell(text: str) -> str:
    """A meaning as it stands in a table, however its comment begins and ends."""
    text = text[:1].upper() + text[1:].removesuffix(".")
    return text.replace("|", "\\|").replace("<", "&lt;")


def table(section: Section) -> list[str]:
    said = {}
    for base in reversed(section.struct.__mro__):
        if issubclass(base, msgspec.Struct) and base is not msgspec.Struct:
            said.update(meanings(base))
    own = meanings(section.struct)
    rows = ["| key | type | default | meaning |", "| --- | --- | --- | --- |"]
    kind = inspect.type_info(section.struct)
    assert isinstance(kind, inspect.StructType)
    for field in kind.fields:
        if section.own_only and field.name not in own:
            continue
        key = f"`{section.prefix}{field.encode_name}`"
        rows.append(
            f"| {key} | {type_of(field.type)} | {default_of(field, section.values)} | {cell(said[field.name])} |"
        )
    return rows


def page() -> str:
    """The whole page as it should stand in docs/."""
    parts = [HEAD]
    for section in SECTIONS:
        parts.append("\n".join([f"## {section.title}", "", section.says, "", *table(section), ""]))
    return "\n".join(parts)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
