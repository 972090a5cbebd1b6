"""Verifiers: verdicts, refusals, limits, restarts."""

from __future__ import annotations

import math
import os
import signal
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st

from shoal.errors import TaskError
from shoal.tasks import gym
from shoal.tasks.confined import Named, ReplyCache, WorkerVerifier, _plausible
from shoal.tasks.family import canonical_parameters
from shoal.tasks.gym import SAFE
from shoal.tasks.registry import known_families
from shoal.tasks.sums import BUILTIN
from shoal.tasks.unconfined import MOST_ANSWER, MOST_ANSWERS, DirectVerifier, UnconfinedVerifier
from shoal.tasks.verifier import Posed, Posing, Problem, Refused, Scored, Scoring, Verifier
from tests.tasks.asking import score

HERE = Path(__file__).parents[1] / "confine"


@pytest.fixture(scope="module")
def worker() -> Iterator[WorkerVerifier]:
    with WorkerVerifier() as made:
        yield made


@pytest.fixture(scope="module")
def quick() -> Iterator[WorkerVerifier]:
    with WorkerVerifier(seconds=1.5, answer_seconds=0.05) as made:
        yield made


@pytest.fixture
def hostile() -> Iterator[WorkerVerifier]:
    with WorkerVerifier(
        families={"attack": "attacks:Attack"}, import_paths=[HERE], seconds=2.0, answer_seconds=0.05
    ) as made:
        yield made


@pytest.fixture(params=["worker", "direct"])
def verifier(request: pytest.FixtureRequest, worker: WorkerVerifier) -> Verifier:
    return worker if request.param == "worker" else DirectVerifier()


def attack(do: str, **more: Any) -> Problem:
    return Problem("attack", "", canonical_parameters({"do": do, **more}), 0)


def test_a_question_and_its_answers(verifier: Verifier) -> None:
    problem = Problem("sums", "", "", 5)
    posed = verifier.pose(problem)
    assert posed == Posed("9+4=", "1", '{"largest":9,"operators":"+","terms":2}', "13")
    assert score(verifier, problem, ["13", " 13\n", "14", ""]) == Scored("9+4=", (1.0, 1.0, 0.0, 0.0))
    named = Problem("sums", posed.version, posed.parameters, 5)
    assert score(verifier, named, ["13"], question="9+4=") == Scored("9+4=", (1.0,))
    assert score(verifier, named, []) == Scored("9+4=", ())


def test_what_this_node_lacks_is_not_the_fault_of_a_sender(verifier: Verifier) -> None:
    """Unknown names, files and versions, also with settings that only another version takes."""
    for problem in (
        Problem("sum", "", "", 5),
        Problem("file:0123456789abcdef", "1", "{}", 5),
        Problem("gym:none_such", "reasoning_gym 0.1", "{}", 5),
        Problem("sums", "2", '{"added_later":1}', 5),
    ):
        refusal = score(verifier, problem, ["13"])
        assert isinstance(refusal, Refused)
        assert refusal.uncheckable, refusal
    for problem in (
        Problem("sums", "1", '{"added_later":1}', 5),
        Problem("sums", "1", "[", 5),
        Problem("sums", "1", "", -1),
    ):
        refusal = score(verifier, problem, ["13"])
        assert isinstance(refusal, Refused)
        assert not refusal.uncheckable, refusal


def test_a_missing_extra_is_not_the_fault_of_a_sender(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing() -> None:
        raise ImportError("No module named 'reasoning_gym'")

    gym.library.cache_clear()
    monkeypatch.setattr(gym, "_imported", missing)
    refusal = UnconfinedVerifier().pose(Problem("gym:base_conversion", "reasoning_gym 0.1", "{}", 5))
    gym.library.cache_clear()
    assert isinstance(refusal, Refused)
    assert refusal.uncheckable
    assert "pip install 'shoal-swarm[tasks]'" in refusal.reason


def test_refusals_have_names_that_can_be_counted(verifier: Verifier) -> None:
    problem = Problem("sums", "", "", 5)
    cases = {
        "another question": score(verifier, problem, ["13"], question="1+1="),
        "another version": score(verifier, Problem("sums", "0", "", 5), ["13"]),
        "unusable task": verifier.pose(Problem("sums", "", '{"terms":1e99}', 5)),
        "unknown task": verifier.pose(Problem("none", "", "", 5)),
        "too many answers": score(verifier, problem, ["1"] * (MOST_ANSWERS + 1)),
        "unusable seed": verifier.pose(Problem("sums", "", "", -1)),
    }
    for phrase, verdict in cases.items():
        assert isinstance(verdict, Refused)
        assert verdict.reason.partition(":")[0] == phrase, verdict
        assert verdict.uncheckable == (phrase in ("another version", "unknown task")), verdict
    assert score(verifier, problem, ["13"], question="\ud800" * 10**6) == Refused("another question")
    assert isinstance(verifier.pose(Problem("sums" * 10**6, "", "", 5)), Refused)
    assert isinstance(verifier.pose(Problem("sums", "\ud800" * 10**6, "", 5)), Refused)
    for parameters in ("[]", "{", "nonsense", '{"terms":2,"x":1}', "[" * 4000, "9" * 5000, '{"terms":NaN}'):
        assert isinstance(verifier.pose(Problem("sums", "", parameters, 5)), Refused)
    for name in (
        "",
        "sum",
        "os:system",
        "shoal.cli:main",
        "x" * 129,
        "sums\n",
        "gym:",
        "file:",
        "\ud800",
        "../sums",
    ):
        verdict = verifier.pose(Problem(name, "", "", 5))
        assert isinstance(verdict, Refused)
        assert len(verdict.reason) <= 300


def test_the_remembered_verdict_still_compares_the_question(worker: WorkerVerifier) -> None:
    problem = Problem("sums", "", "", 77)
    first = score(worker, problem, ["1", "2"])
    assert isinstance(first, Scored)
    assert score(worker, problem, ["1", "2"], question="other") == Refused("another question")
    assert score(worker, problem, ["1", "2"], question=first.question) == first


def test_long_answers_are_wrong_and_half_characters_do_no_harm(verifier: Verifier) -> None:
    problem = Problem("sums", "", "", 5)
    answers = ["13" + " " * 300, "1" * (MOST_ANSWER + 100), "3" * 3_000_000, "\ud800", "\0", "１３"]
    assert score(verifier, problem, answers) == Scored("9+4=", (0.0,) * 6)


def test_the_direct_verifier_refuses_what_needs_isolation() -> None:
    for name in ("gym:base_conversion", "base_conversion", "corewar:beat", "file:0123456789abcdef"):
        verdict = DirectVerifier().pose(Problem(name, "", "", 1))
        assert isinstance(verdict, Refused)
        assert "confined" in verdict.reason


def test_both_verifiers_agree(worker: WorkerVerifier) -> None:
    direct = DirectVerifier()
    for name in BUILTIN:
        for seed in range(20):
            problem = Problem(name, "", "", seed << 40)
            posed = direct.pose(problem)
            assert worker.pose(problem) == posed
            assert isinstance(posed, Posed)
            answers = [posed.answer, "7", posed.answer + "0"]
            assert score(worker, problem, answers) == score(direct, problem, answers)


def test_unsafe_families_get_no_foreign_text(worker: WorkerVerifier) -> None:
    problem = Problem("gym:spiral_matrix", "", "", 3)
    posed = worker.pose(problem)
    assert isinstance(posed, Posed)
    verdict = score(worker, problem, [posed.answer])
    assert isinstance(verdict, Refused)
    assert verdict.reason.startswith("unsafe for foreign text:")
    own = score(worker, problem, [posed.answer, "__import__('os').getcwd()"], foreign=False)
    assert isinstance(own, Scored)
    assert own.scores == (1.0, 0.0)


def test_an_expression_in_an_answer_is_text(worker: WorkerVerifier) -> None:
    problem = Problem("gym:binary_matrix", "", '{"max_n":3}', 3)
    verdict = score(worker, problem, ["[[0]*3]*3", "9**9**9", "__import__('os').abort()"])
    assert isinstance(verdict, Scored)
    assert verdict.scores == (0.0, 0.0, 0.0)


@pytest.mark.parametrize(
    ("do", "because"),
    [
        ("swallow_everything", "time limit"),
        ("sleep", "time limit"),
        ("crash", "ended by SIGSEGV"),
        ("leave", "ended with code 7"),
        ("raise_system_exit", "ended with code 1"),
        ("forge", "it answered nonsense"),
        ("flood", "it answered nonsense"),
    ],
)
def test_a_request_that_stops_the_worker_is_refused_and_the_next_one_works(
    hostile: WorkerVerifier, do: str, because: str
) -> None:
    verdict = score(hostile, attack(do), ["x"])
    assert isinstance(verdict, Refused)
    assert verdict.reason.startswith(f"the verifier was stopped: {because}"), verdict
    problem = Problem("sums", "", "", 5)
    assert score(hostile, problem, ["13"]) == Scored("9+4=", (1.0,))
    starts = hostile.starts
    assert score(hostile, attack(do), ["x"]) == verdict, "what stopped a worker once is not tried again"
    assert hostile.starts == starts == 2


@pytest.mark.parametrize(
    ("do", "expected"), [("spin", 0.0), ("memory_bomb", 0.0), ("not_a_number", 0.0), ("far_too_much", 1.0)]
)
def test_an_answer_that_goes_too_far_costs_only_itself(
    hostile: WorkerVerifier, do: str, expected: float
) -> None:
    verdict = score(hostile, attack(do), ["x"])
    assert isinstance(verdict, Scored), verdict
    assert verdict.scores == (expected,)
    assert hostile.starts == 1


def test_generators_are_limited_too(hostile: WorkerVerifier) -> None:
    verdict = hostile.pose(attack("pose for ever"))
    assert isinstance(verdict, Refused)
    assert verdict.reason.startswith("no question")
    verdict = hostile.pose(attack("", question=70_000))
    assert verdict == Refused("question too long")
    verdict = hostile.pose(attack("", question=10**12))
    assert isinstance(verdict, Refused)
    assert hostile.starts == 1


@pytest.mark.parametrize(
    ("family", "parameters"),
    [
        ("gym:arc_1d", {"max_size": 10**9, "min_size": 10**9}),
        ("gym:arc_1d", {"num_train": 10**9}),
        ("gym:base_conversion", {"max_value": 10**400}),
        ("gym:basic_arithmetic", {"max_terms": 10**9, "min_terms": 10**8}),
        ("gym:basic_arithmetic", {"max_digits": 10**9, "min_digits": 10**9}),
        ("gym:basic_arithmetic", {"operators": ["+", "__import__('os')"]}),
        ("gym:binary_matrix", {"max_n": 10**6, "min_n": 10**6}),
        ("gym:binary_matrix", {"max_n": 100, "min_n": 100}),
        ("gym:propositional_logic", {"max_vars": 10**7, "min_vars": 10**7}),
        ("gym:propositional_logic", {"max_complexity": 60, "min_complexity": 60}),
        ("gym:decimal_arithmetic", {"precision": 10**9, "max_num_decimal_places": 10**8}),
        ("gym:calendar_arithmetic", {"year": 10**9}),
        ("gym:count_primes", {"max_n": 10**9, "min_n": 10**9 - 5}),
        ("gym:base_conversion", {"size": 5}),
        ("gym:base_conversion", {"max_base": "16"}),
        ("gym:base_conversion", {"nested": [[[[[[1]]]]]]}),
        ("gym:composite", {}),
        ("sums", {"terms": 10**30}),
        ("compare", {"largest": 10**18}),
        ("corewar:beat", {"rounds": 100}),
        ("corewar:beat", {"opponents": ["dat 0"] * 9}),
        ("corewar:beat", {"opponents": ["for 9999999\ndat 0\nrof"]}),
    ],
)
def test_absurd_settings_are_refused_in_time(
    family: str, parameters: dict[str, Any], quick: WorkerVerifier
) -> None:
    verdict = score(quick, Problem(family, "", canonical_parameters(parameters), 1), ["1"])
    assert isinstance(verdict, Refused), verdict


def some_scorings() -> list[Scoring]:
    sums = [Scoring(Problem("sums", "", "", seed), ("13", "13", "", "x\ud800")) for seed in range(40)]
    return [
        *sums,
        Scoring(Problem("sums", "", "", 5), ("13",), "9+4="),
        Scoring(Problem("sums", "", "", 5), ("13",), "1+1="),
        Scoring(Problem("sums", "0", "", 5), ("13",)),
        Scoring(Problem("nothing", "", "", 5), ("13",)),
        Scoring(Problem("sums", "", "", -1), ("13",)),
        Scoring(Problem("gym:base_conversion", "", "", 1), ("1", "2")),
        Scoring(Problem("sums", "", "", 1), ("1",) * (MOST_ANSWERS + 1)),
        Scoring(Problem("sums", "", "", 2), ("9" * (MOST_ANSWER + 9),) * 20),
    ]


def test_many_at_once_are_judged_as_each_alone() -> None:
    with WorkerVerifier() as together, WorkerVerifier() as alone:
        found = together.score(some_scorings())
        assert found == [
            score(alone, one.problem, one.texts, question=one.question, foreign=one.foreign)
            for one in some_scorings()
        ]
        assert sum(isinstance(one, Scored) for one in found) == 43
        assert together.score([]) == []
        assert together.starts == 1


@pytest.mark.parametrize("do", ["sleep", "crash", "flood", "forge"])
def test_one_that_stops_the_worker_takes_nobody_with_it(hostile: WorkerVerifier, do: str) -> None:
    good = [Scoring(Problem("sums", "", "", seed), ("13",)) for seed in range(4, 7)]
    found = hostile.score([good[0], Scoring(attack(do), ("x",)), *good[1:]])
    assert [type(one) for one in found] == [Scored, Refused, Scored, Scored]
    assert found[2] == Scored("9+4=", (1.0,))
    starts = hostile.starts
    assert hostile.score([Scoring(attack(do), ("x",)), *good])[0] == found[1]
    assert hostile.starts == starts <= 3


def test_replies_that_are_too_long_together_come_one_by_one(hostile: WorkerVerifier) -> None:
    long = [Scoring(attack("", question=60_000 + number), ("x",)) for number in range(30)]
    found = hostile.score(long)
    assert [len(one.question) for one in found if isinstance(one, Scored)] == list(range(60_000, 60_030))
    assert hostile.starts == 1


def test_a_worker_killed_between_requests_is_replaced_silently(worker: WorkerVerifier) -> None:
    assert isinstance(worker.pose(Problem("sums", "", "", 654321)), Posed)
    starts = worker.starts
    os.kill(worker._running().process_id, signal.SIGKILL)
    time.sleep(0.05)
    assert isinstance(worker.pose(Problem("sums", "", "", 123456)), Posed)
    assert worker.starts == starts + 1


def test_a_worker_that_has_worked_enough_is_replaced() -> None:
    with WorkerVerifier(
        families={"attack": "attacks:Attack"},
        import_paths=[HERE],
        answer_seconds=1.0,
        cpu_seconds=2,
        seconds=60,
    ) as verifier:
        assert score(verifier, attack("spin"), ["x"]) == Scored("?", (0.0,))
        assert isinstance(verifier.pose(Problem("sums", "", "", 1)), Posed)
        assert verifier.starts == 2


def test_names_that_nobody_knows_cost_the_worker_nothing() -> None:
    with WorkerVerifier() as verifier:
        for number in range(300):
            assert isinstance(verifier.pose(Problem(f"unknown{number}", "", "", 1)), Refused)
        assert verifier.starts == 0
        assert isinstance(verifier.pose(Problem("base_conversion", "", "", 1)), Posed)


def test_scores_stay_within_bounds_whatever_the_worker_says() -> None:
    problem = Problem("sums", "", "", 1)
    wild = Scored("?", (math.nan, 7.0, -1.0, 0.5))
    assert _plausible(wild, Scoring(problem, ("",) * 4)) == Scored("?", (0.0, 1.0, 0.0, 0.5))
    assert isinstance(_plausible(wild, Scoring(problem, ("",) * 3)), Refused)


def test_many_threads_share_a_verifier(worker: WorkerVerifier) -> None:
    wrong: list[object] = []

    def ask(first: int) -> None:
        for seed in range(first, first + 30):
            posed = worker.pose(Problem("sums", "", "", seed))
            if not isinstance(posed, Posed) or eval_sum(posed.question) != posed.answer:
                wrong.append(posed)

    threads = [threading.Thread(target=ask, args=(100 * number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not wrong


def test_a_worker_outlives_the_thread_that_started_it() -> None:
    with WorkerVerifier() as verifier:
        first = threading.Thread(target=verifier.pose, args=(Problem("sums", "", "", 1),))
        first.start()
        first.join(60)
        process = verifier._running().process_id
        time.sleep(0.2)  # what ends with its thread has ended by then
        assert isinstance(verifier.pose(Problem("sums", "", "", 2)), Posed)
        assert (verifier._running().process_id, verifier.starts) == (process, 1)


def eval_sum(question: str) -> str:
    return str(sum(map(int, question.rstrip("=").split("+"))))


def test_the_same_question_costs_once(worker: WorkerVerifier) -> None:
    problem, answers = Problem("sums", "", "", 4242), [str(number) for number in range(8)]
    verdict = score(worker, problem, answers)
    process = worker._running().process_id
    os.kill(process, signal.SIGSTOP)
    try:
        assert score(worker, problem, answers) is verdict
    finally:
        os.kill(process, signal.SIGCONT)


def test_the_cache_is_bounded() -> None:
    cache = ReplyCache(most_entries=10, most_bytes=5000)
    for seed in range(100):
        key = seed.to_bytes(32, "big")
        cache.put(key, Scored("q" * 1000, (1.0,)))
        cache.put(key, Scored("q" * 1000, (1.0,)))
        assert cache.get(key) is not None
        assert len(cache) <= 4


def test_requests_that_differ_are_remembered_apart() -> None:
    problem = Problem("sums", "", "", 1)
    requests = [Posing(problem)] + [
        Scoring(problem, texts, question, foreign, within)
        for texts in ((), ("1",), ("1", ""), ("", "1"))
        for question in (None, "another")
        for foreign in (True, False)
        for within in (None, "lenient", "tags")
    ]
    with WorkerVerifier() as verifier:
        named = [verifier._named(request) for request in requests]
    keys = {one.key for one in named if isinstance(one, Named)}
    assert len(keys) == 1 + 4 * 2 * 3, "only the expected question makes no difference"


def test_a_closed_verifier_says_so() -> None:
    verifier = WorkerVerifier()
    process = verifier._running().process_id
    verifier.close()
    verifier.close()
    with pytest.raises(ProcessLookupError):
        os.kill(process, 0)
    with pytest.raises(TaskError, match="closed"):
        verifier.pose(Problem("sums", "", "", 1))


def test_many_requests_need_one_process(worker: WorkerVerifier) -> None:
    answers = [str(number) for number in range(8)]
    before = (worker._running().process_id, worker.starts)
    for seed in range(300):
        assert isinstance(score(worker, Problem("sums", "", "", 10**9 + seed), answers), Scored)
    assert (worker._running().process_id, worker.starts) == before


SAFE_FAMILIES = sorted({*known_families(), *(f"gym:{name}" for name in SAFE)})


@settings(max_examples=250, deadline=None)
@given(
    family=st.sampled_from(SAFE_FAMILIES),
    seed=st.integers(0, 50),
    answers=st.lists(
        st.one_of(
            st.text(max_size=600),
            st.text("()¬∧∨→↔PQRSab ", max_size=200),
            st.text("[],0123456789 \n./$\\{}-eE", max_size=100),
            st.text("movdatspljmp #$@<>,\n0123456789for", max_size=100),
        ),
        max_size=4,
    ),
)
def test_any_text_as_an_answer_gives_a_score(
    worker: WorkerVerifier, family: str, seed: int, answers: list[str]
) -> None:
    verdict = score(worker, Problem(family, "", "", seed), answers)
    assert isinstance(verdict, Scored), (family, verdict)
    assert all(0.0 <= score <= 1.0 for score in verdict.scores)
