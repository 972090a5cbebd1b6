"""The seam: what `evaluate` adds to a domain's `play`, opponents, names, and the tutorial as it is printed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

import shoal.evolve.domain as domain_module
from shoal.errors import CandidateError, ConfigError, DomainError
from shoal.evolve import (
    Axis,
    Candidate,
    Domain,
    Outcome,
    choose_opponents,
    domain_names,
    elite_of,
    open_domain,
)
from shoal.evolve.conformance import (
    check_domain,
    check_evaluation,
    check_operators,
    check_parsing,
    check_texts,
)
from shoal.evolve.domain import EvaluationCache
from tests.evolve.elites import evaluation

TUTORIAL = Path(__file__).parents[2] / "docs" / "domains.md"


class Words(Domain):
    """Counts letters. `played` tells how often it was really asked."""

    name = "words"
    axes = (Axis("length", (2, 4)),)
    opponent_limit = 3

    def __init__(self) -> None:
        self.played: list[str] = []

    def parse(self, text: str) -> Candidate:
        if not text.strip().isascii() or not text.strip().isalpha() or len(text) > 1000:
            raise CandidateError(f"{text[:9]!r} is not a word: use letters only")
        return Candidate(text, text.strip().lower())

    def play(
        self, candidates: Sequence[Candidate], opponents: Sequence[Candidate], *, seed: int, rounds: int
    ) -> list[Outcome]:
        self.played += [candidate.canonical for candidate in candidates]
        against = sum(len(opponent.canonical) for opponent in opponents)
        return [
            Outcome(
                [len(c.canonical) - against + seed + number for number in range(rounds)],
                {"length": len(c.canonical)},
            )
            for c in candidates
        ]

    def starters(self) -> Mapping[str, str]:
        return {"one": "one", "three": "three"}


def words(domain: Domain, *texts: str) -> list[Candidate]:
    return [domain.parse(text) for text in texts]


def test_the_tutorial_runs_as_it_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    blocks = re.findall(r"```python\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)
    assert len(blocks) == 3
    names: dict[str, Any] = {"__name__": "tutorial"}
    for block in blocks:
        exec(compile(block, "docs/domains.md", "exec"), names)  # noqa: S102 - our own page
    assert "coverage" in capsys.readouterr().out
    code = [
        line for line in blocks[0].splitlines() if line.strip() and not line.startswith(("import", "from"))
    ]
    assert len(code) <= 55, "the tutorial promises about 50 lines"


def test_a_small_domain_conforms() -> None:
    check_domain(Words())


def test_half_a_character_is_reported_in_words() -> None:
    class Naive(Words):
        def parse(self, text: str) -> Candidate:
            text.encode()
            return super().parse(text)

    with pytest.raises(
        AssertionError, match=r"half a character .* raised UnicodeEncodeError, not CandidateError"
    ) as caught:
        check_domain(Naive())
    assert str(caught.value).isprintable()


def test_equal_programs_are_played_once_and_remembered() -> None:
    domain = Words()
    some = words(domain, "One", "one ", "two", "three")
    opponents = words(domain, "them")
    first = domain.evaluate(some, opponents, seed=3, rounds=2)
    assert domain.played == ["one", "two", "three"]
    assert first[0] is first[1]
    again = domain.evaluate([*some, *words(domain, "four")], opponents, seed=3, rounds=2)
    assert domain.played == ["one", "two", "three", "four"]
    assert again[:4] == first
    domain.evaluate(some[:1], opponents, seed=4, rounds=2)
    assert domain.played[-1] == "one"


def test_an_evaluation_has_count_mean_and_unbiased_variance() -> None:
    domain = Words()
    (found,) = domain.evaluate(words(domain, "abc"), [], seed=0, rounds=4)
    assert (found.count, found.mean, found.measures) == (4, 4.5, {"length": 3.0})
    assert found.variance == pytest.approx(5 / 3)
    assert found.standard_error == pytest.approx((5 / 12) ** 0.5)
    assert domain.evaluate(words(domain, "abc"), [], rounds=1)[0].variance == 0.0


def test_opponents_are_a_set() -> None:
    domain = Words()
    a, b = words(domain, "aa", "b")
    one, other = (domain.evaluate([a], some, rounds=1)[0] for some in ([a, b], [b, a, b]))
    assert one == other
    assert (
        domain.evaluator([a, b], seed=0, rounds=1)
        == one.evaluator
        == domain.evaluator([b, a], seed=0, rounds=1)
    )
    assert domain.evaluate([a], [b], rounds=1)[0].opponents != one.opponents
    with pytest.raises(ConfigError, match="at most 3"):
        domain.evaluate([a], words(domain, "a", "b", "c", "d"), rounds=1)
    with pytest.raises(ConfigError, match="rounds"):
        domain.evaluate([a], [], rounds=0)


@pytest.mark.parametrize(
    "outcomes",
    [
        [],
        [Outcome([], {"length": 1})],
        [Outcome([float("nan")], {"length": 1})],
        [Outcome([1], {})],
        [Outcome([1], {"length": float("inf")})],
    ],
)
def test_a_domain_that_breaks_its_contract_is_named(
    outcomes: list[Outcome], monkeypatch: pytest.MonkeyPatch
) -> None:
    domain = Words()
    monkeypatch.setattr(domain, "play", lambda *_, **__: outcomes)
    with pytest.raises(DomainError):
        domain.evaluate(words(domain, "a"), [])


def test_the_memory_is_bounded_and_forgets_the_oldest() -> None:
    cache = EvaluationCache(2)
    for name in "ab":
        cache.put(name, evaluation(1))
    assert cache.get("a", "now") is not None
    cache.put("c", evaluation(1))
    assert cache.get("b", "now") is None
    assert EvaluationCache(0).put("a", evaluation(1))
    with pytest.raises(ConfigError):
        EvaluationCache(-1)


def test_reading_an_answer_tries_its_readings_and_reports_the_first_problem() -> None:
    domain = Words()
    assert domain.read("```\nnot a word 1\n```\nand\n```\nword\n```").canonical == "word"
    with pytest.raises(CandidateError, match="no program"):
        domain.read("")
    with pytest.raises(CandidateError, match="is not a word"):
        domain.read("```\n1 2 3\n```")


def test_opponents_are_the_initial_ones_and_the_newest_champions_in_turn() -> None:
    domain = Words()
    initial, own, received = (
        words(domain, "i"),
        words(domain, "oa", "ob", "oc"),
        words(domain, "ra", "rb", "i"),
    )

    def names(**options: Any) -> list[str]:
        return [chosen.canonical for chosen in choose_opponents(initial, own, received, **options)]

    assert names() == ["i", "oc", "ob", "rb", "oa", "ra"]
    assert names(limit=3) == ["i", "oc", "ob"]
    assert names(history=1) == ["i", "oc"]
    assert names(history=0) == ["i"]
    with pytest.raises(ConfigError, match="room for 0"):
        names(limit=0)
    with pytest.raises(ConfigError, match="history"):
        names(history=-1)


def never_called() -> Words:
    raise AssertionError("this was called, though it is not a domain")


READY = Words()


def test_an_instance_is_taken_as_it_is() -> None:
    assert open_domain("tests.evolve.test_domain:READY") is READY
    with pytest.raises(ConfigError, match="an instance takes no options"):
        open_domain("tests.evolve.test_domain:READY", {"lenient": True})


def test_domains_are_found_by_name_or_by_path() -> None:
    assert "corewar" in domain_names()
    assert open_domain("corewar").name == "corewar"
    assert isinstance(open_domain("tests.evolve.test_domain:Words"), Words)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", r"known are .*corewar.*entry-points"),
        ("no.such.module:X", "cannot be loaded from no.such.module:X: ModuleNotFoundError"),
        ("tests.evolve.test_domain:Nothing", "AttributeError"),
        ("tests.evolve.test_domain:TUTORIAL", "Path: name a subclass of shoal.evolve.Domain"),
        ("builtins:dict", "subclass of shoal.evolve.Domain"),
        ("os:system", "subclass of shoal.evolve.Domain"),
        ("json:loads", "subclass of shoal.evolve.Domain"),
        ("tests.evolve.test_domain:never_called", "a function: name a subclass of shoal.evolve.Domain"),
        ("shoal.evolve.domain:Domain", "cannot be made from shoal.evolve.domain:Domain: TypeError"),
    ],
)
def test_a_name_that_does_not_work_says_what_to_do(name: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        open_domain(name)


def test_entry_points_register_domains_and_clashes_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    entries = [
        EntryPoint("words", "tests.evolve.test_domain:Words", domain_module.GROUP),
        EntryPoint("corewar", "elsewhere:CoreWar", domain_module.GROUP),
    ]
    monkeypatch.setattr(domain_module, "entry_points", lambda group: entries)
    assert open_domain("words").name == "words"
    assert domain_names() == ["corewar", "words"]
    with pytest.raises(ConfigError, match="more than once"):
        open_domain("corewar")


class TwoFaced(Words):
    """Breaks each promise once, to see that the kit notices."""

    count = 0

    def play(
        self, candidates: Sequence[Candidate], opponents: Sequence[Candidate], *, seed: int, rounds: int
    ) -> list[Outcome]:
        self.count += 1
        return [Outcome([self.count] * rounds, {"length": 1}) for _ in candidates]

    def plain(self, candidate: Candidate) -> str:
        return candidate.canonical + "s"

    def show(self, candidate: Candidate, evaluation: object = None) -> str:
        return "x" * 10_000

    @property
    def operators(self) -> Mapping[str, Any]:
        import random

        return {"global": lambda task, parent, rng: "ab" if random.random() < 0.5 else "cd"}


def test_the_kit_notices_broken_promises() -> None:
    with pytest.raises(AssertionError, match="playing twice"):
        check_evaluation(TwoFaced())
    with pytest.raises(AssertionError, match="another program"):
        check_parsing(TwoFaced())
    with pytest.raises(AssertionError, match="global"):
        check_operators(TwoFaced())
    with pytest.raises(AssertionError, match="show gives"):
        check_texts(TwoFaced())


def test_an_elite_is_made_of_a_candidate() -> None:
    domain = Words()
    (candidate,) = words(domain, " Word ")
    made = elite_of(candidate, domain.evaluate([candidate], [])[0])
    assert (made.digest, made.source) == (candidate.digest, " Word ")
