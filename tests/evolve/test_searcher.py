"""The search's laws: budgets, duplicates, claims, sharing modes, order of answers."""

from __future__ import annotations

import random
import threading
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings as hypothesis_settings, strategies as st

from shoal.errors import ConfigError, ModelServerError
from shoal.evolve import asking
from shoal.evolve.crew import SearchCrew, run
from shoal.evolve.history import NodeHistory
from shoal.evolve.placer import PEER
from shoal.evolve.searcher import Searcher
from shoal.evolve.settings import EvolveSettings
from shoal.evolve.state import MOST_WAITING_OF_AUTHOR, Course
from shoal.models import ChatAnswer, ChatRequest
from shoal.models.instant import Instant
from shoal.runs import RunFolder, to_toml
from shoal.runs.journal import read
from shoal.runs.search import Champion, Migrant, Program
from shoal.swarm.authors import Received
from tests.evolve.small import Brief, archives, histories, small
from tests.node.scripted import ScriptedExchange

DWARF = "add.ab #4, $3\nmov.i $2, @2\njmp $-2\ndat #0, #0\n"
SPLITTER = "spl $0\nmov.i $-1, }-1\njmp $-2\n"


class Unreliable(Instant):
    """Fails, writes rubbish, or answers as the model it stands for, by the request's own seed."""

    def __init__(self, model: Instant) -> None:
        super().__init__(model.spec)
        self.model = model
        self.calls = 0

    def answer_now(self, request: ChatRequest) -> ChatAnswer:
        self.calls += 1
        drawn = random.Random(f"{request.sampling.seed} {self.calls}").random()
        if drawn < 0.2:
            raise ModelServerError("the server is on fire")
        return ChatAnswer("no program", self.spec) if drawn < 0.5 else self.model.answer_now(request)


def found(folder: Path, settings: EvolveSettings) -> list[NodeHistory]:
    assert run(settings, folder, in_process=True) == "finished"
    return histories(folder)


def champion_from(seq: int, source: str, author: str = "peer", **claims: object) -> Received:
    item = Champion("corewar", source, **claims)  # type: ignore[arg-type]
    return Received(author, "champion", item, 7, seq, 0, 0.0, 0.0, b"%d" % seq)


def visited(
    folder: Path, settings: EvolveSettings, items: list[Received]
) -> tuple[NodeHistory, ScriptedExchange]:
    """One node that receives these items in its first turn."""
    exchange = ScriptedExchange([items])
    with RunFolder.create(folder, to_toml(settings)) as opened:
        seat = SearchCrew(settings).take_seat(
            0, opened, author="", now=1.0, exchange=exchange, real_time=False
        )
        while (status := seat.node.step(1.0)) != "finished":
            if status == "waiting":
                seat.node.outside.wait(1.0)
        seat.node.close(1.0, "done")
    return histories(folder)[0], exchange


# Budgets.


@given(
    calls=st.integers(4, 5000),
    nodes=st.integers(1, 4),
    rounds=st.integers(1, 30),
    tokens=st.integers(0, 10**6),
)
def test_the_swarms_budget_is_dealt_out_exactly(calls: int, nodes: int, rounds: int, tokens: int) -> None:
    settings = small(
        models=("builtin:bomber",) * nodes, calls=calls, rounds=rounds, tokens=tokens, dollars=0.1234567
    )
    budgets = [settings.budget_of(index) for index in range(nodes)]
    assert sum(budget["calls"] for budget in budgets) == calls
    assert sum(budget["tokens"] for budget in budgets) == tokens
    assert sum(budget["microdollars"] for budget in budgets) == 123456
    for index in range(nodes):
        until = [settings.calls_until(index, number) for number in range(rounds)]
        assert until == sorted(until)
        assert until[-1] == budgets[index]["calls"]


@pytest.mark.parametrize("repair", [False, True])
def test_calls_are_spent_exactly_whatever_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, repair: bool
) -> None:
    models: list[Unreliable] = []
    open_model = asking.Asker._open_model

    def unreliable(asker: asking.Asker) -> Unreliable:
        models.append(Unreliable(open_model(asker)))  # type: ignore[arg-type]
        return models[-1]

    monkeypatch.setattr(asking.Asker, "_open_model", unreliable)
    settings = small(models=("builtin:bomber", "builtin:random"), calls=61, repair=repair, give_up_after=100)
    nodes = found(tmp_path / "run", settings)
    assert sum(model.calls for model in models) == 61
    assert [node.spent["calls"] for node in nodes] == [31, 30]
    assert all(node.done for node in nodes)
    assert all(node.valid < node.proposals for node in nodes)
    assert any(node.repaired for node in nodes) == repair


def test_every_round_gets_its_share_of_the_calls(tmp_path: Path) -> None:
    (node,) = found(tmp_path / "run", small(models=("builtin:bomber",), calls=50))
    by_round = [0, 0, 0]
    for event in node.events:
        by_round[event.note.round] += event.note.step == "propose"
    assert by_round == [16, 17, 17]


@pytest.mark.parametrize("look_ahead", [1, 4])
def test_calls_per_round_are_those_of_each_node_in_each_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, look_ahead: int
) -> None:
    """Whatever fails: the first of a round may cost several calls."""
    open_model = asking.Asker._open_model
    monkeypatch.setattr(asking.Asker, "_open_model", lambda asker: Unreliable(open_model(asker)))  # type: ignore[arg-type]
    settings = small(
        models=("builtin:bomber", "builtin:random"), calls=None, calls_per_round=7, look_ahead=look_ahead,
        repair=True, give_up_after=100,
    )  # fmt: skip
    assert settings.calls == 7 * 2 * 3
    for node in found(tmp_path / "run", settings):
        spent: dict[int, int] = {}
        for event in node.events:
            spent[event.note.round] = event.calls
        assert spent == {0: 7, 1: 14, 2: 21}


def test_a_limit_of_tokens_is_kept_and_the_rounds_still_end(tmp_path: Path) -> None:
    """A call may need ten thousand tokens and uses about fifteen hundred."""
    settings = small(
        models=("fake:mov 0, 1", "builtin:bomber"), calls=100, tokens=60_000, attempts=1, look_ahead=1
    )
    fake, builtin = found(tmp_path / "run", settings)
    assert fake.done
    assert 10_000 < fake.spent["tokens"] <= 30_000
    assert 5 < fake.spent["calls"] < 50
    assert builtin.spent == {"calls": 50, "tokens": 0, "microdollars": 0}


# What a round does.


def test_coverage_never_falls_within_a_round_and_an_elite_leaves_only_for_a_better_one(
    tmp_path: Path,
) -> None:
    for node in found(tmp_path / "run", small(calls=120)):
        held: dict[tuple[int, ...], float] = {}
        for event in node.events:
            if event.note.step == "open":
                held = {}
            before = len(held)
            for placed in event.fills:
                assert placed.fitness >= held.get(placed.cell, 0.0)
                held[placed.cell] = placed.fitness
            assert len(held) >= before
            assert event.note.step == "drain" or event.note.cells == len(held)


def test_a_duplicate_is_found_by_its_canonical_text_and_not_evaluated(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same program under other names, again and again: one evaluation a round."""
    spelled = ["mov.i $0, $3", ";name other\nmov 0, 3", "start mov $0, $3 ; hello\nend start"]

    class Repeating(Instant):
        def answer_now(self, request: ChatRequest) -> ChatAnswer:
            return ChatAnswer(random.Random(request.sampling.seed).choice(spelled), self.spec)

    monkeypatch.setattr(asking.Asker, "_open_model", lambda asker: Repeating("builtin:bomber"))
    settings = small(models=("builtin:bomber",), calls=30, rounds=2, look_ahead=1, warm_start=0, repeats=5)
    (node,) = found(tmp_path / "run", settings)
    # The second round opens with the first one's champion, so that nothing at all is new in it.
    assert node.duplicates == 29 if node.state.course.champions[0].origin.model == "builtin:bomber" else 28
    proposals = [event for event in node.events if event.note.step == "propose"]
    assert {event.note.result for event in proposals} <= {"new", "improved", "rejected", "duplicate"}


def test_the_champion_is_chosen_on_seeds_that_nobody_was_selected_by(tmp_path: Path) -> None:
    settings = small(models=("builtin:random",), calls=60, finalists=5)
    found(tmp_path / "run", settings)
    asked = [
        record for record in read(tmp_path / "run/nodes/1-random/journal.jsonl") if record.kind == "asked"
    ]
    requests = [msg for record in asked if (msg := _payload(record))["type"] in ("open", "close")]
    seeds = [request["seed"] for request in requests]
    assert len(set(seeds)) == len(seeds) == 6
    finalists = [len(request["finalists"]) for request in requests if request["type"] == "close"]
    assert all(2 <= count <= 5 for count in finalists)


def _payload(record) -> dict:  # type: ignore[no-untyped-def, type-arg]
    decoded = msgspec.json.decode(record.payload)["request"]
    assert isinstance(decoded, dict)
    return decoded


def test_early_stop_counts_the_warriors(tmp_path: Path) -> None:
    """With DRQ's bare threshold a tie (1.0) would end every round at once; with the scaled one it does not,
    and what a stopped round leaves goes to the next."""
    (node,) = found(tmp_path / "a", small(models=("builtin:replicator",), calls=60, early_stop=0.99))
    assert sum(event.note.step == "propose" for event in node.events) == 60
    assert max(event.note.best or 0 for event in node.events) > 0.99
    (stopped,) = found(tmp_path / "b", small(models=("builtin:replicator",), calls=60, early_stop=0.3))
    assert sum(event.note.step == "propose" for event in stopped.events) < 60


def test_fresh_only_mutates_nothing(tmp_path: Path) -> None:
    found(tmp_path / "run", small(models=("builtin:bomber",), calls=20, fresh_only=True))
    asked = [
        record for record in read(tmp_path / "run/nodes/1-bomber/journal.jsonl") if record.kind == "asked"
    ]
    tasks = {request["task"] for record in asked if (request := _payload(record))["type"] == "propose"}
    assert tasks == {"new"}


@pytest.mark.parametrize("informed", [False, True])
def test_a_model_learns_how_the_parent_did_only_in_the_informed_mode(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, informed: bool
) -> None:
    shown: list[str] = []

    class Listening(Instant):
        def answer_now(self, request: ChatRequest) -> ChatAnswer:
            shown.append(request.messages[-1].text)
            return ChatAnswer(f"mov.i $0, ${len(shown)}\n", self.spec)

    monkeypatch.setattr(asking.Asker, "_open_model", lambda asker: Listening("builtin:bomber"))
    found(tmp_path / "run", small(models=("builtin:bomber",), calls=20, new_share=0.0, informed=informed))
    mutations = [text for text in shown if "Here is a warrior" in text]
    assert len(mutations) > 10
    assert all(("share of the points" in text) == informed for text in mutations)


def test_opponents_keep_the_core_layout_legal(tmp_path: Path) -> None:
    """Forty champions would not fit into this core."""
    rules = small().options
    settings = small(
        models=("builtin:bomber",) * 3, calls=90, rounds=10, options=rules, history=40, most_opponents=4
    )
    for node in found(tmp_path / "run", settings):
        assert max(event.note.opponents or 0 for event in node.events) == 4


# The swarm.


@pytest.mark.parametrize("sharing", ["both", "opponents", "seeds", "off"])
def test_sharing_modes(tmp_path: Path, sharing: str) -> None:
    nodes = found(tmp_path / "run", small(sharing=sharing))
    foreign_opponents = [
        program
        for node in nodes
        for program in node.state.course.opponents
        if program.origin.model == PEER and program not in node.state.course.champions
    ]
    foreign_fills = [
        placed for node in nodes for event in node.events for placed in event.fills if placed.model == PEER
    ]
    assert bool(foreign_opponents) == (sharing in ("both", "opponents"))
    assert bool(foreign_fills) == (sharing in ("both", "seeds"))
    assert all((node.champions_received > 0) == (sharing != "off") for node in nodes)
    novelties = [novelty for node in nodes for novelty in node.niche_novelty if novelty is not None]
    assert bool(novelties) == (sharing != "off")
    assert all(0 <= novelty <= 1 for novelty in novelties)


def test_claims_change_nothing(tmp_path: Path) -> None:
    settings = small(models=("builtin:bomber",), calls=24)
    plain, modest = visited(tmp_path / "a", settings, [champion_from(1, DWARF), champion_from(2, SPLITTER)])
    forged = [
        champion_from(1, DWARF, fitness=1e9, round=-5, model="openai:gpt\x1b[31m"),
        champion_from(2, SPLITTER, fitness=-1e9, round=10**9, model="x" * 5000),
    ]
    lying, _ = visited(tmp_path / "b", settings, forged)
    assert archives(tmp_path / "a") == archives(tmp_path / "b")
    assert plain.state.course.champions == lying.state.course.champions
    assert plain.champions_received == 2
    assert [credit for credit in modest.credits if credit[1] == "verified"] == [
        (1, "verified", ""),
        (2, "verified", ""),
    ]
    assert {credit[1] for credit in modest.credits} == {"verified", "used", "useful"}


@pytest.mark.parametrize("fitness", [float("inf"), float("-inf"), float("nan")])
def test_a_claim_that_no_journal_can_hold_is_refused_at_the_door(fitness: float) -> None:
    sent = msgspec.msgpack.encode(Champion("corewar", DWARF, fitness=fitness))
    decode = Searcher.kinds.decoder("champion")
    assert decode is not None
    with pytest.raises(msgspec.ValidationError):
        decode(sent)


def test_what_is_no_program_is_rejected_and_another_domain_passed_over_by_name(tmp_path: Path) -> None:
    settings = small(models=("builtin:bomber",), calls=24)
    bad = [
        champion_from(1, "this is not a program"),
        Received("peer", "champion", Champion("chess", DWARF), 7, 2, 0, 0.0, 0.0, b""),
        champion_from(3, "\x00" * 1000 + DWARF * 500),
    ]
    node, exchange = visited(tmp_path / "a", settings, bad)
    assert node.champions_received == 0
    assert [credit[1:] for credit in exchange.credits] == [
        ("rejected", "not a program"), ("passed_over", "another domain"), ("rejected", "not a program")]  # fmt: skip
    assert node.passed_over == {"another domain": 1}
    visited(tmp_path / "b", settings, [])
    assert archives(tmp_path / "a") == archives(tmp_path / "b")


def test_the_order_of_arrival_changes_nothing(tmp_path: Path) -> None:
    settings = small(models=("builtin:bomber",), calls=24)
    items = [
        champion_from(1, DWARF, "b"), champion_from(2, SPLITTER, "a"), champion_from(3, "mov 0, 2\n", "c"),
        champion_from(3, DWARF, "a")]  # fmt: skip
    visited(tmp_path / "a", settings, items)
    visited(tmp_path / "b", settings, items[::-1])
    assert archives(tmp_path / "a") == archives(tmp_path / "b")


def test_a_flood_of_one_author_is_bounded() -> None:
    course, other = Course(), Migrant(Program("other", ""), "honest", 1, 1)
    course.take_in(other)
    for number in random.Random(1).sample(range(1000), 1000):
        course.take_in(Migrant(Program(str(number), ""), "flood", 1, number))
    assert len(course.waiting) == MOST_WAITING_OF_AUTHOR + 1
    assert other in course.waiting
    assert {one.seq for one in course.waiting if one.author == "flood"} == set(range(992, 1000))


# Order and repetition.


def test_the_same_settings_give_the_same_archives(tmp_path: Path) -> None:
    for name in ("a", "b"):
        found(tmp_path / name, small(seed=8))
    assert archives(tmp_path / "a") == archives(tmp_path / "b")
    found(tmp_path / "c", small(seed=9))
    assert archives(tmp_path / "a") != archives(tmp_path / "c")


def test_a_cassette_gives_the_same_archives_whatever_answers_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found(tmp_path / "recorded", small(record=True, calls=60, look_ahead=6))
    ask, waits = asking.Asker.ask, random.Random(3)

    def late(asker: asking.Asker, *arguments: object) -> asking.Written:
        time.sleep(waits.random() * 0.02)
        return ask(asker, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(asking.Asker, "ask", late)
    monkeypatch.setattr(asking, "BuiltinModel", None)  # no model is there any more
    found(tmp_path / "replayed", small(replay=str(tmp_path / "recorded"), calls=60, look_ahead=6))
    assert archives(tmp_path / "recorded") == archives(tmp_path / "replayed")


@hypothesis_settings(max_examples=5, deadline=None)
@given(stop_after=st.integers(1, 60), checkpoint_every=st.sampled_from([0, 1, 7]))
def test_a_node_that_is_cut_off_anywhere_goes_on_as_if_it_had_not_been(
    tmp_path_factory: pytest.TempPathFactory, stop_after: int, checkpoint_every: int
) -> None:
    folder = tmp_path_factory.mktemp("cut")
    settings = small(models=("builtin:random",), calls=40, checkpoint_every=checkpoint_every, look_ahead=1)
    found(folder / "whole", settings)
    with RunFolder.create(folder / "cut", to_toml(settings)) as opened:
        seat = SearchCrew(settings).take_seat(0, opened, author="", now=1.0, exchange=None, real_time=False)
        while seat.node.turns < stop_after and (status := seat.node.step(1.0)) != "finished":
            if status == "waiting":
                seat.node.outside.wait(1.0)
        while seat.node.unanswered:  # a call that was never answered would be spent, and change the rest
            seat.node.outside.wait(1.0)
            seat.node.collect(1.0)
        seat.node.abandon()
    assert run(settings, folder / "cut", in_process=True) == "finished"
    assert archives(folder / "cut") == archives(folder / "whole")


def test_calls_lost_with_their_process_are_spent_and_the_rounds_still_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ask, gate = asking.Asker.ask, threading.Event()

    def held(asker: asking.Asker, *arguments: object) -> asking.Written:
        gate.wait(30)
        return ask(asker, *arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(asking.Asker, "ask", held)
    settings = small(models=("builtin:bomber",), calls=5, rounds=1, look_ahead=5, sharing="off")
    with RunFolder.create(tmp_path / "run", to_toml(settings)) as opened:
        seat = SearchCrew(settings).take_seat(0, opened, author="", now=1.0, exchange=None, real_time=False)
        while seat.node.ledger.reserved.get("calls", 0) < 5:
            if seat.node.step(1.0) == "waiting":
                seat.node.outside.wait(1.0)
        seat.node.abandon()  # as a kill does: five calls are reserved, and no answer is on record
    gate.set()
    assert run(settings, tmp_path / "run", in_process=True) == "finished"
    (node,) = histories(tmp_path / "run")
    assert node.done
    assert (node.spent["calls"], node.proposals, node.valid) == (5, 5, 0)


# Settings.


class Shapeless(Brief):
    def __init__(self) -> None:
        super().__init__()
        self.axes = ()


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"models": ()}, "name at least one"),
        ({"models": ("bomber",)}, "models[0]"),
        ({"models": ("builtin:nobody",)}, "builtin:nobody: known are builtin:bomber"),
        ({"calls": 3}, "one each"),
        (
            {"calls": 19, "rounds": 5},
            "rounds: 5 rounds, but a node has 4 of the 19 calls: give 4 rounds at most, or 20",
        ),
        ({"prices": {"builtin:bomber": (-1.0, 2.0)}}, "prices.builtin:bomber: -1 and 2: give dollars"),
        ({"options": {"axes": ()}}, "options.axes: name one axis or more, each once: known are spawned"),
        (
            {"options": {"axes": ("spawned", "spawned")}},
            "options.axes: name one axis or more, each once",
        ),
        (
            {"domain": "tests.evolve.test_searcher:Shapeless", "models": ("fake:x",), "options": {}},
            "domain: tests.evolve.test_searcher:Shapeless needs one or more axes",
        ),
        ({"opponents": ("nobody",)}, "nobody"),
        (
            {"early_stop": 0.5, "early_stop_fitness": 0.8},
            "early_stop and early_stop_fitness: give one of the two",
        ),
        (
            {"calls": 3, "calls_per_round": 1},
            "calls and calls_per_round: 3 in all, but 1 for each of 4 nodes",
        ),
        ({"opponents": ("imp", "clear", "stream"), "options": {"core_size": 250}}, "room for 1"),
        ({"options": {"length": 200}}, "distance"),
        ({"options": {"axes": ("spawned", "colour")}}, "colour"),
    ],
)
def test_illegal_settings_are_named(changes: dict[str, object], words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        small(**changes).check()
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_local_weights_have_a_short_queue() -> None:
    settings = small(models=("builtin:bomber", "local:smollm2"), look_ahead=4)
    assert [settings.look_ahead_of(index) for index in range(2)] == [4, 2]
    assert small(models=("local:smollm2",), look_ahead=1).look_ahead_of(0) == 1
