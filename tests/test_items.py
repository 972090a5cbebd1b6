"""The items of every application: whatever a person or a page may see of them has a bound on the wire, and
nobody sends what others refuse."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, strategies as st
from msgspec import inspect

from shoal.applications import APPLICATIONS
from shoal.errors import ConfigError, ShareRefused
from shoal.evolve.crew import SearchCrew
from shoal.evolve.searcher import Searcher
from shoal.policy.table import TablePolicy
from shoal.runs import RunFolder
from shoal.runs.journal import MemoryJournal
from shoal.runs.search import Champion, Origin, Program, SentChampion
from shoal.runs.training import Completion, RolloutGroup, TaskName
from shoal.swarm import Identity, Kind, Kinds, MemoryHub
from shoal.swarm.beacon import Beacon
from shoal.swarm.body import PackedItem
from shoal.swarm.codec import Codec, Contents
from shoal.swarm.exchange import Exchange
from shoal.swarm.frame import Frame, encode
from shoal.swarm.membership import Membership
from shoal.swarm.pull import Pull
from shoal.swarm.rejection import Rejection
from shoal.swarm.settings import ExchangeSettings
from shoal.train.crew import TrainCrew
from tests.evolve.small import small as small_search
from tests.evolve.test_searcher import champion_from, visited
from tests.train.small import (
    Mailbox,
    honest_group,
    make_node,
    received,
    run_to_end,
    small as small_training,
)

AUTHOR = Identity(bytes(range(32)))
TOP = 1 << 62


def kinds() -> Kinds:
    """Those of all applications together, as the nodes have them that take them."""
    found: dict[str, Kind] = {}
    for application in APPLICATIONS.values():
        crew = application.load("crew")
        found |= {kind.name: kind for kind in crew(crew.settings_type()).kinds if kind.taken}
    found |= {kind.name: kind for kind in TrainCrew(small_training(judge="any")).kinds if kind.taken}
    return Kinds(found.values())


KINDS = kinds()
STRUCTS: list[type[msgspec.Struct]] = [*(kind.wire or kind.struct for kind in KINDS), Beacon, Pull]


def unbounded(type_: inspect.Type, place: str) -> Iterator[str]:
    """The places of a type where a sender could put any amount."""
    match type_:
        case inspect.StructType(fields=fields):
            for field in fields:
                yield from unbounded(field.type, f"{place}.{field.name}")
        case inspect.StrType(max_length=None) | inspect.BytesType(max_length=None):
            yield f"{place}: no max_length"
        case inspect.IntType(ge=least, le=most, lt=below):
            if least is None or (most is None and below is None) or max(most or 0, below or 0) > TOP:
                yield f"{place}: a whole number without bounds"
        case inspect.FloatType(ge=None, gt=None) | inspect.FloatType(le=None, lt=None):
            yield f"{place}: a number without bounds, which may be infinite or none at all"
        case inspect.VarTupleType(item_type=inner, max_length=most):
            if most is None:
                yield f"{place}: no max_length"
            yield from unbounded(inner, f"{place}[]")
        case inspect.StrType() | inspect.BytesType() | inspect.FloatType() | inspect.BoolType():
            pass
        case _:
            yield f"{place}: {type(type_).__name__}, which this test does not know"


@pytest.mark.parametrize("struct", STRUCTS, ids=lambda struct: struct.__name__)
def test_every_string_and_number_has_bounds(struct: type[msgspec.Struct]) -> None:
    assert not list(unbounded(inspect.type_info(struct), struct.__name__))


def opened(kind: str, item: object) -> object:
    """The item as a receiver takes it, or its rejection."""
    codec = Codec(Membership("shoal"), KINDS)
    found = KINDS.get(kind)
    assert found is not None
    frame = codec.seal(AUTHOR, 1, 1, 1, f"{found.keep}/0", [PackedItem(kind, encode(item))])
    read = codec.read(frame.encode())
    if not isinstance(read, Frame):
        return read
    contents = codec.contents(read)
    return contents.items[0].value if isinstance(contents, Contents) else contents


def test_a_model_of_forty_thousand_characters_is_mistyped() -> None:
    champion = Champion("corewar", "MOV 0, 1", 1, "builtin:bomber", 1.0)
    assert isinstance(opened("champion", champion), SentChampion)
    assert opened("champion", msgspec.structs.replace(champion, model="m" * 40_000)) is Rejection.MISTYPED


def within(type_: inspect.Type) -> st.SearchStrategy[Any]:
    """Values of a type as they travel: inside its bounds, and often at them."""
    match type_:
        case inspect.StructType(fields=fields):
            return st.tuples(*(within(field.type) for field in fields)).map(list)
        case inspect.StrType(min_length=least, max_length=most):
            assert most is not None
            room = most - (least or 0)
            return st.one_of(
                st.text(min_size=least or 0, max_size=min(most, 40)),
                st.sampled_from("\0\x1b‮ü🐟=<").map(lambda sign: sign * min(most, (least or 0) + room)),
            )
        case inspect.IntType(ge=least, le=most, lt=below):
            assert least is not None
            top = most if most is not None else (below or 0) - 1
            return st.one_of(st.integers(least, top), st.sampled_from([least, top]))
        case inspect.FloatType(gt=above, ge=least, le=most):
            low = least if least is not None else math.nextafter(above or 0, math.inf)
            return st.floats(low, most, allow_nan=False)
        case inspect.VarTupleType(item_type=inner, min_length=least):
            return st.lists(within(inner), min_size=least or 0, max_size=3)
    assert isinstance(type_, inspect.BoolType), type_
    return st.booleans()


def over(type_: inspect.Type, value: Any) -> Iterator[Any]:
    """The same value with one part beyond its bounds, for each of its parts."""
    match type_:
        case inspect.StructType(fields=fields):
            for place, field in enumerate(fields):
                for worse in over(field.type, value[place]):
                    yield [*value[:place], worse, *value[place + 1 :]]
        case inspect.StrType(min_length=least, max_length=most):
            yield "x" * ((most or 0) + 1)
            if least:
                yield "x" * (least - 1)
        case inspect.IntType(ge=least, le=most, lt=below):
            yield (least or 0) - 1
            yield most + 1 if most is not None else below
        case inspect.FloatType(le=most):
            yield from (math.nan, math.inf, -math.inf, math.nextafter(most or 0, math.inf))
        case inspect.VarTupleType(item_type=inner, max_length=most):
            if value:
                yield [value[0]] * ((most or 0) + 1)
                for worse in over(inner, value[0]):
                    yield [worse, *value[1:]]


@pytest.mark.parametrize("kind", list(KINDS), ids=lambda kind: kind.name)
@given(data=st.data())
def test_a_value_beyond_its_bounds_is_mistyped(kind: Kind, data: st.DataObject) -> None:
    """Each field alone: everything inside its bounds is taken, one part beyond them is not."""
    type_ = inspect.type_info(kind.wire or kind.struct)
    item = data.draw(within(type_))
    if len(encode(item)) > kind.max_bytes:
        assert opened(kind.name, item) in (Rejection.ITEM_SIZE, Rejection.OVERSIZE)
        return
    assert isinstance(opened(kind.name, item), kind.struct)
    for worse in over(type_, item):
        if len(encode(worse)) <= kind.max_bytes:
            assert opened(kind.name, worse) is Rejection.MISTYPED


def test_a_wire_form_is_a_form_of_its_struct() -> None:
    with pytest.raises(ConfigError, match="subclass of Champion"):
        Kind("champion", Champion, 100, "latest", RolloutGroup)


def test_nobody_sends_what_others_refuse() -> None:
    """The check of a receiver is made before an item leaves, so that no author is blamed for its own model."""
    exchange = Exchange(AUTHOR, MemoryHub().open(), KINDS, ExchangeSettings(), now=1.0, rng=random.Random(0))
    for item in (
        Champion("corewar", "MOV 0, 1", model="m" * 257),
        Champion("", "MOV 0, 1"),
        Champion("corewar", "MOV 0, 1", fitness=math.nan),
        RolloutGroup(TaskName("sums", "1", "{}", 0), "1+1=", (Completion("2" * (1 << 17), True),)),
        RolloutGroup(TaskName("sums", "1", "{}", 0), "1+1=", ()),
    ):
        with pytest.raises(ShareRefused, match="receivers would refuse") as refused:
            exchange.share(item)
        assert refused.value.reason == "mistyped"
    assert exchange.share(Champion("corewar", "MOV 0, 1")).waiting == 0


def test_a_node_names_its_model_within_the_bounds() -> None:
    """However long the name of a user's own model is, its items are taken by all."""
    mailbox, name = Mailbox(), "table:" + "small" * 100
    node = make_node(
        small_training(models=(name,), steps=1, evaluate_every=0),
        mailbox,
        policy=lambda: TablePolicy("small"),
    )
    run_to_end(node)
    settings = small_search(models=("builtin:bomber",))
    searcher = Searcher(settings, 0, settings.open_domain(), lambda propose: {})
    state = searcher.initial_state()
    state.course.champions = [Program("digest", "MOV 0, 1", Origin(name))]
    champions = list(searcher.share_again(state))
    assert mailbox.shared
    for kind, item in [("rollouts", one) for one in mailbox.shared] + [
        ("champion", one) for one in champions
    ]:
        assert item.model == name[:256]
        assert not isinstance(opened(kind, item), Rejection)


def test_a_search_with_longer_texts_in_its_journal_still_opens(tmp_path: Path) -> None:
    """Journals of earlier versions have items from before there were bounds."""
    settings = small_search(models=("builtin:bomber",), calls=24)
    old = champion_from(1, "mov 0, 1\nmov 0, 2\n", model="m" * 40_000, round=-5)
    assert opened("champion", old.item) is Rejection.MISTYPED
    before, _ = visited(tmp_path / "run", settings, [old])
    assert before.champions_received == 1
    with RunFolder.resume(tmp_path / "run") as run:
        seat = SearchCrew(settings).take_seat(0, run, author="", now=2.0, exchange=None, real_time=False)
        assert [one.origin.node for one in seat.node.state.course.received] == ["peer"]
        assert seat.node.step(2.0) == "finished"
        seat.close()


def test_a_training_run_with_longer_texts_in_its_journal_still_opens() -> None:
    journal, mailbox, settings = MemoryJournal(), Mailbox(), small_training()
    group = honest_group("a", 1, right=2)
    long = msgspec.structs.replace(
        group, completions=(*group.completions, Completion("x" * 100_000, True)), question=group.question
    )
    assert opened("rollouts", long) is Rejection.MISTYPED
    mailbox.waiting.append(received(long, "a", 1))
    node = make_node(settings, mailbox, journal)
    run_to_end(node)
    assert sum(credit[1] == "used" for credit in mailbox.credits) == 1
    resumed = make_node(settings, Mailbox(), journal)
    assert msgspec.json.encode(resumed.state.figures) == msgspec.json.encode(node.state.figures)
