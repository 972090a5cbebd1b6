import datetime
import tomllib
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import msgspec
import pytest
from hypothesis import given, settings, strategies as st

from shoal.errors import ConfigError
from shoal.runs import load, parse, to_toml
from shoal.runs.config import dumps


class Model(msgspec.Struct, frozen=True):
    name: str = "builtin"
    temperature: float = 1.0


class Swarm(msgspec.Struct, frozen=True):
    nodes: Annotated[int, msgspec.Meta(ge=1)] = 4
    secret: str | None = None
    links: dict[str, int] = {}


class Run(msgspec.Struct, frozen=True):
    seed: int = 0
    swarm: Swarm = Swarm()
    models: list[Model] = []
    started: datetime.datetime | None = None
    pace: Literal["slow", "fast"] | None = None
    paces: dict[str, list[Literal["slow", "fast"]]] = {}


def test_defaults_work_and_the_file_and_overrides_change_them(tmp_path: Path) -> None:
    assert load(Run) == Run()
    path = tmp_path / "run.toml"
    path.write_text('seed = 3\n[swarm]\nnodes = 8\n[[models]]\nname = "a"\n[[models]]\nname = "b"\n')
    overrides = [
        "swarm.nodes=16",
        "models.1.temperature=0",
        'swarm.secret="x=y"',
        "models.0.name=gpt-5.2:free",
    ]
    config = load(Run, path, overrides)
    assert config.seed == 3
    assert config.swarm == Swarm(nodes=16, secret="x=y")
    assert config.models == [Model("gpt-5.2:free"), Model("b", 0.0)]


@pytest.mark.parametrize(
    ("text", "overrides", "expected"),
    [
        ("sed = 1", [], "config: sed: there is no such setting. Did you mean seed?"),
        ("[swarm]\nnode = 1", [], "config: swarm.node: there is no such setting. Did you mean swarm.nodes?"),
        (
            "[swarm]\nxyz = 1",
            [],
            "config: swarm.xyz: there is no such setting. Known here: links, nodes, secret.",
        ),
        ("[[models]]\n[[models]]\nnam = 1", [], r"models\[1\].nam: .* Did you mean models\[1\].name?"),
        ('seed = "x"', [], "config: seed: Expected `int`, got `str`"),
        ("[swarm]\nnodes = 0", [], "config: swarm.nodes: Expected `int` >= 1"),
        ("[[models]]\ntemperature = []", [], r"config: models\[0\].temperature: Expected `float`"),
        ("[swarm.links]\na = 1.5", [], r"config: swarm.links\[...\]: Expected `int`, got `float`"),
        ("seed = ", [], "config: this is not TOML: Invalid value"),
        ("seed = " + "1" * 5000, [], "config: this is not TOML: Exceeds the limit"),
        ("seed = " + "[" * 100_000, [], "config: lists or tables are nested too deeply"),
        ("", ["seed=" + "[" * 100_000], r"--set seed=\[{195}…: lists or tables are nested too deeply"),
        ('pace = "quick"', [], "config: pace: 'quick' is none of fast, slow$"),
        ("", ["pace=quick"], "config: pace: 'quick' is none of fast, slow$"),
        ('[paces]\na = ["slow", "so"]', [], r"paces\[...\]\[1\]: 'so' is none of fast, slow$"),
        ("[[models]]\ntemperature = nan", [], r"config: models\[0\].temperature: nan is not a finite number"),
        ("", ["models=[{temperature=-inf}]"], r"models\[0\].temperature: -inf is not a finite number"),
        ("", ["swarm.node=1"], "swarm.node: there is no such setting. Did you mean swarm.nodes?"),
        ("", ["swarm"], "--set swarm: write it as --set section.key=value"),
        ("", ["=1"], "write it as"),
        ("", ["seed.x.y=1"], "seed: Expected `int`, got `object`"),
        ("seed = 1", ["seed.x=1"], "--set seed.x=1: seed.x: there is a plain value above it"),
        ("", ["seed=[1"], "the value is not TOML"),
        ("", ["seed=1\nswarm=2"], "the value is not TOML"),
        ("[[models]]", ["models.3.name=x"], "models.3: the list has entries 0 to 0"),
    ],
)
def test_a_mistake_is_named_with_its_path_and_a_remedy(
    text: str, overrides: list[str], expected: str
) -> None:
    with pytest.raises(ConfigError, match=expected.replace("?", r"\?")):
        parse(Run, text, overrides)


def test_a_config_that_cannot_be_read_names_its_file(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing.toml: the config cannot be read"):
        load(Run, tmp_path / "missing.toml")


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "windows.toml"
    path.write_bytes(b"\xef\xbb\xbfseed = 3\r\n")
    assert load(Run, path).seed == 3


class Zenoh(msgspec.Struct, frozen=True, tag="zenoh", tag_field="engine"):
    links: int = 3


class Nats(msgspec.Struct, frozen=True, tag="nats", tag_field="engine"):
    server: str = ""


class WithChoice(msgspec.Struct, frozen=True):
    transport: Zenoh | Nats = Zenoh()


def test_the_struct_that_a_tag_names_is_the_one_that_is_checked() -> None:
    assert parse(WithChoice, '[transport]\nengine="nats"\nserver="x"').transport == Nats("x")
    with pytest.raises(ConfigError, match=r"transport.serve: .* Did you mean transport.server"):
        parse(WithChoice, '[transport]\nengine="nats"\nserve="x"')


def test_the_resolved_config_reads_back_as_itself() -> None:
    started = datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC)
    config = Run(7, Swarm(2, 'quoted "text"\n', {"a b": 1}), [Model("x"), Model("y", 0.25)], started)
    assert parse(Run, to_toml(config)) == config
    assert parse(Run, to_toml(Run())) == Run()
    assert "[swarm]\nnodes = 4" in to_toml(Run())


class Choice(msgspec.Struct, frozen=True):
    alternatives: ClassVar = (("total", "each"),)

    application: Literal["choose"] = "choose"
    total: int | None = None
    each: int | None = None
    names: tuple[str, ...] = ()
    options: dict[str, Any] = {}


def test_a_table_may_stand_under_file_and_overrides(tmp_path: Path) -> None:
    under = {"names": ["a", "b"], "options": {"deep": {"x": 1, "y": 2}, "z": 3}}
    path = tmp_path / "choice.toml"
    path.write_text('names = ["c"]\n[options.deep]\nx = 10\n')
    found = load(Choice, path, ["options.z=30"], under=under)
    assert found.names == ("c",), "a list takes the place of the one below"
    assert found.options == {"deep": {"x": 10, "y": 2}, "z": 30}, "tables are joined"
    assert parse(Choice, "", ["names.1=d"], under=under).names == ("a", "d")
    assert under == {"names": ["a", "b"], "options": {"deep": {"x": 1, "y": 2}, "z": 3}}, "it is not changed"
    with pytest.raises(ConfigError, match="Did you mean names"):
        parse(Choice, "nmaes = []", under=under)


@pytest.mark.parametrize(
    ("under", "text", "overrides", "total", "each"),
    [
        ({"each": 2}, "", [], None, 2),
        ({"each": 2}, "total = 3", [], 3, None),
        ({"each": 2}, "", ["total=3"], 3, None),
        ({"each": 2}, "total = 3", ["each=4"], None, 4),
        ({"each": 2}, "total = 3\neach = 4", [], 3, 4),
        ({}, "total = 3", ["each=4"], None, 4),
        ({}, "", ["total=3", "each=4"], 3, 4),
    ],
)
def test_what_is_said_later_in_another_way_takes_the_place_of_what_was_said(
    under: dict[str, Any], text: str, overrides: list[str], total: int | None, each: int | None
) -> None:
    found = parse(Choice, text, overrides, under=under)
    assert (found.total, found.each) == (total, each)


def test_the_settings_of_another_application_are_called_so() -> None:
    with pytest.raises(
        ConfigError, match="mine: application: these are settings of 'train', not of 'choose'"
    ):
        parse(Choice, 'application = "train"\nnodes = 3', source="mine")


plain = (
    st.booleans()
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
    | st.text(st.characters(blacklist_categories=["Cs"]))
    | st.text("\n\"'\\ \t\ra")  # lines, and quotation marks that must not end them
    | st.dates()
    | st.times()
    | st.datetimes()
)
keys = st.text(st.characters(blacklist_categories=["Cs"]), max_size=5)
values = st.recursive(
    plain, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3), max_leaves=10
)


@given(st.dictionaries(keys, values, max_size=5))
@settings(max_examples=150, deadline=None)
def test_toml_that_is_written_reads_back_as_it_was(table: dict[str, object]) -> None:
    assert tomllib.loads(dumps(table)) == table


class Loose(msgspec.Struct, frozen=True):
    options: dict[str, Any] = {}


@pytest.mark.parametrize("place", ["--set", "a file"])
def test_a_thousand_dots_are_one_line(place: str) -> None:
    key = ".".join(["options", *["a"] * 5000])
    with pytest.raises(ConfigError) as caught:
        parse(Loose, "", [f"{key}=1"]) if place == "--set" else parse(Loose, f"{key} = 1")
    assert len(str(caught.value)) < 600
    assert "\n" not in str(caught.value)
    assert parse(Loose, "", ["options.a.b.c=1"]).options == {"a": {"b": {"c": 1}}}
