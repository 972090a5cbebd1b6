"""docs/settings.md has every key, as the source has it."""

from __future__ import annotations

import ast
from pathlib import Path

import msgspec
import pytest
from msgspec import inspect

from tests.docs.settings_page import COMMAND, PAGE, SECTIONS, meanings, page, table, type_of, without_meaning

SOURCE = Path(__file__).parents[2] / "src" / "shoal"
NOT_HERE = {
    "models/llama.py:LlamaSettings": "made from the name of a model",
    "models/specification.py:Options": "part of the name of a model: docs/models.md",
}
"""Structs with such a name whose fields are no keys of a run."""


def test_the_page_is_what_the_source_says() -> None:
    assert page() == PAGE.read_text(encoding="utf-8"), f"docs/settings.md is not up to date: run `{COMMAND}`"


def test_every_key_has_a_meaning() -> None:
    missing = without_meaning()
    assert not missing, (
        f"no meaning: {missing}. Say what the key does in a comment behind the field, or on the lines above "
        f"it, and run `{COMMAND}`"
    )


def test_every_settings_struct_is_on_the_page() -> None:
    known = {(section.struct.__module__, section.struct.__name__) for section in SECTIONS}
    for path in sorted(SOURCE.rglob("*.py")):
        module = ".".join(("shoal", *path.relative_to(SOURCE).with_suffix("").parts))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.ClassDef) or not node.name.endswith(
                ("Settings", "Options", "Limits")
            ):
                continue
            is_struct = any(
                "Struct" in ast.unparse(base) or "Settings" in ast.unparse(base) for base in node.bases
            )
            place = f"{path.relative_to(SOURCE)}:{node.name}"
            if is_struct and place not in NOT_HERE:
                assert (module, node.name) in known, f"{place} has no section in tests/docs/settings_page.py"


def test_every_table_within_a_setting_is_on_the_page() -> None:
    known = {section.struct for section in SECTIONS}

    def nested(kind: object) -> set[type]:
        if isinstance(kind, inspect.StructType):
            return {kind.cls}.union(*(nested(field.type) for field in kind.fields))
        parts = [getattr(kind, name, None) for name in ("type", "item_type", "value_type")]
        parts += [*getattr(kind, "types", ()), *getattr(kind, "item_types", ())]
        return set().union(*(nested(part) for part in parts if part is not None))

    for section in SECTIONS:
        assert nested(inspect.type_info(section.struct)) <= known, section.title


class Sample(msgspec.Struct):
    """Fields with and without a meaning."""

    behind: int = 1  # said behind
    # Said above,
    # in two lines.
    above: int = 2

    # This stands alone and belongs to nobody.

    silent: int = 3  # type: ignore[assignment]
    noisy: int = 3  # type: ignore[assignment]  # for people
    wrapped: dict[str, int] = {}  # said at the end


def test_a_meaning_is_the_comment_behind_a_field_or_directly_above_it() -> None:
    assert meanings(Sample) == {
        "behind": "said behind",
        "above": "Said above, in two lines.",
        "silent": "",
        "noisy": "for people",
        "wrapped": "said at the end",
    }


def test_a_type_without_words_is_an_error() -> None:
    with pytest.raises(TypeError, match="no words for this type"):
        type_of(inspect.BytesType())


def test_no_row_is_broken_by_its_text() -> None:
    for section in SECTIONS:
        for row in table(section):
            assert row.replace("\\|", "").count("|") == 5, row
