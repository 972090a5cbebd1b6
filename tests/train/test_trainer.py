"""The five functions of training: what is learnt from whom, and what a stranger cannot do."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import Any

import msgspec
import pytest

from shoal.policy.base import Learning, Learnt
from shoal.policy.pool import PoolLimits
from shoal.policy.table import TablePolicy
from shoal.runs.journal import MemoryJournal
from shoal.runs.training import Completion, RolloutGroup, TaskName
from shoal.tasks.unconfined import DirectVerifier
from shoal.tasks.verifier import Refused, Scored, Scoring
from tests.train.small import Mailbox, honest_group, make_node, received, run_to_end, small, true_question


def take(mailbox: Mailbox, *groups: tuple[RolloutGroup, str], **changes: object):  # type: ignore[no-untyped-def]
    """One step of a node that gets these groups; what it then says."""
    for number, (group, author) in enumerate(groups, start=1):
        mailbox.waiting.append(received(group, author, number))
    node = make_node(small(evaluate_every=0, steps=1, **changes), mailbox)
    run_to_end(node)
    return node.state.figures.last


def test_foreign_groups_are_scored_here_and_used() -> None:
    mailbox = Mailbox()
    last = take(mailbox, (honest_group("a", 1), "a"), (honest_group("b", 7), "b"))
    assert (last.seen, last.verified, last.found, last.used) == (2, 2, 2, 2)
    assert last.reward_external == pytest.approx(0.25)
    assert ("a", "verified", "") in mailbox.credits
    assert ("a", "used", "") in mailbox.credits
    assert "4 own" in last.said
    assert "2 used" in last.said


def test_own_groups_go_out_before_they_are_learnt_from() -> None:
    mailbox = Mailbox()
    take(mailbox)
    assert len(mailbox.shared) == 4
    group = mailbox.shared[0]
    assert group.question == true_question("author", group.task.counter).question
    assert all(completion.finished and not completion.log_probs for completion in group.completions)


@pytest.mark.parametrize(("sharing", "most"), [("all", 4), ("informative", 4), ("sample", 1)])
def test_what_is_shared_is_a_choice(sharing: str, most: int) -> None:
    mailbox = Mailbox()
    last = take(mailbox, sharing=sharing)
    expected = {"all": 4, "informative": last.own_informative, "sample": 1}[sharing]
    assert len(mailbox.shared) == expected <= most


def test_no_more_than_wanted_are_used_and_the_rest_waits() -> None:
    mailbox = Mailbox()
    last = take(mailbox, *[(honest_group("a", number), "a") for number in range(1, 9)], external=2)
    assert last.used == 2
    assert last.verified == 2
    assert last.pool == 6


class Sluggish(DirectVerifier):
    """Takes too long over groups that say so."""

    def __init__(self) -> None:
        super().__init__()
        self.asked = 0

    def score(self, scorings: Sequence[Scoring]) -> list[Scored | Refused]:
        self.asked += sum(one.foreign for one in scorings)
        return [
            Refused("too slow") if "slow" in one.texts else answer
            for one, answer in zip(scorings, super().score(scorings), strict=True)
        ]


def slow_group(author: str, counter: int) -> RolloutGroup:
    group = honest_group(author, counter)
    return msgspec.structs.replace(group, completions=(*group.completions, Completion("slow", True)))


def with_sluggish(mailbox: Mailbox, **changes: object):  # type: ignore[no-untyped-def]
    node = make_node(small(evaluate_every=0, verify_budget=64, **changes), mailbox)
    verifier = Sluggish()
    node.application.verifier = verifier  # type: ignore[attr-defined]
    run_to_end(node)
    return node.state, verifier


def test_an_author_whose_groups_take_too_long_is_left_alone_for_a_while() -> None:
    mailbox = Mailbox()
    for number in range(1, 61):
        mailbox.waiting.append(received(slow_group("mallory", number), "mallory", number))
    for number in range(1, 4):
        mailbox.waiting.append(received(honest_group("a", number), "a", number))
    state, verifier = with_sluggish(mailbox, steps=4, external=2)
    assert list(state.figures.shunned) == ["mallory"]
    assert verifier.asked <= 2 + 3, "those of the first draw, and nothing of mallory's afterwards"
    assert all(entry.author != "mallory" for entry in state.pool)


def test_a_few_that_take_too_long_end_the_walk() -> None:
    mailbox = Mailbox()
    for number, name in enumerate("bcdefghijk", start=1):
        mailbox.waiting.append(received(slow_group(name, 1), name, number))
    state, verifier = with_sluggish(mailbox, steps=1, external=4)
    last = state.figures.last
    assert verifier.asked == last.verified == 4, "the first draw, which is asked together, and no more"
    assert (last.refused, last.used) == ({"too slow": 4}, 0)


def test_a_step_verifies_for_a_limited_time_and_the_rest_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    mailbox, ticks = Mailbox(), itertools.count()
    for number, name in enumerate("bcdefghijk", start=1):
        mailbox.waiting.append(received(honest_group(name, 1, right=4, wrong=0), name, number))
    node = make_node(small(evaluate_every=0, verify_budget=64, steps=1, external=4), mailbox)
    monkeypatch.setattr(node.application, "_clock", lambda: 6.0 * next(ticks))
    run_to_end(node)
    last = node.state.figures.last
    assert last.passed_over == {"no time left in this step": 2}, "after two draws of six seconds each"
    assert last.refused == {}
    assert (last.verified, last.pool) == (8, 2)
    assert not [credit for credit in mailbox.credits if credit[1] == "rejected"], (
        "that is not their authors' fault"
    )
    assert node.state.figures.shunned == {}


def test_groups_without_information_are_dropped() -> None:
    """All right, or all wrong: nothing to learn, as in the paper's filter."""
    mailbox = Mailbox()
    last = take(mailbox, (honest_group("a", 1, right=4, wrong=0), "a"), (honest_group("a", 2, right=0), "a"))
    assert (last.verified, last.found, last.used, last.pool) == (2, 0, 0, 0)


def test_without_a_filter_groups_without_information_are_trained_on() -> None:
    mailbox = Mailbox()
    groups = [(honest_group("a", 1, right=4, wrong=0), "a"), (honest_group("a", 2, right=0), "a")]
    last = take(mailbox, *groups, selection="uniform")
    assert (last.verified, last.found, last.used, last.pool) == (2, 0, 2, 0)
    assert last.reward_external == pytest.approx(4 / 7)
    forged = (forged_question(), "a")
    assert take(Mailbox(), forged, selection="uniform").used == 0


class Lenient(DirectVerifier):
    """Gives wrong foreign answers partial credit, and a little more to the last of a group."""

    def score(self, scorings: Sequence[Scoring]) -> list[Scored | Refused]:
        return [
            msgspec.structs.replace(answer, scores=(0.5,) * (len(answer.scores) - 1) + (0.52,))
            if one.foreign and isinstance(answer, Scored)
            else answer
            for one, answer in zip(scorings, super().score(scorings), strict=True)
        ]


@pytest.mark.parametrize(("least", "used"), [(0.05, 0), (0.02, 1), (0.0, 1)])
@pytest.mark.parametrize("selection", ["published", "best"])
def test_the_least_spread_that_informs_is_a_setting(selection: str, least: float, used: int) -> None:
    mailbox = Mailbox()
    mailbox.waiting.append(received(honest_group("a", 1, right=0), "a", 1))
    changes: dict[str, Any] = {"reward": "raw", "selection": selection, "least_spread": least}
    node = make_node(small(evaluate_every=0, steps=1, **changes), mailbox)
    node.application.verifier = Lenient()  # type: ignore[attr-defined]
    run_to_end(node)
    last = node.state.figures.last
    assert (last.verified, last.found, last.used) == (1, used, used)


def forged_question() -> RolloutGroup:
    group = honest_group("a", 1)
    return msgspec.structs.replace(group, question="1+1=")


def work_of_another() -> RolloutGroup:
    """The group of author b, sent by a: the task would be another one if it were a's."""
    counter = next(n for n in range(50) if true_question("b", n).question != true_question("a", n).question)
    return honest_group("b", counter)


def of_unknown_family() -> RolloutGroup:
    return msgspec.structs.replace(honest_group("a", 1), task=TaskName("none", "1", "{}", 1))


def with_absurd_parameters() -> RolloutGroup:
    return msgspec.structs.replace(honest_group("a", 1), task=TaskName("sums", "1", '{"terms": 1e99}', 1))


def of_another_version() -> RolloutGroup:
    return msgspec.structs.replace(honest_group("a", 1), task=TaskName("sums", "99", "{}", 1))


@pytest.mark.parametrize(
    ("forge", "reason"),
    [
        (forged_question, "another question"),
        (work_of_another, "another question"),
        (with_absurd_parameters, "unusable task"),
    ],
)
def test_what_cannot_be_made_anew_here_is_refused(forge, reason: str) -> None:  # type: ignore[no-untyped-def]
    mailbox = Mailbox()
    last = take(mailbox, (forge(), "a"))
    assert last.used == 0
    assert list(last.refused) == [reason]
    assert last.passed_over == {}
    assert ("a", "rejected", reason) in mailbox.credits


def of_another_version_with_its_settings() -> RolloutGroup:
    return msgspec.structs.replace(honest_group("a", 1), task=TaskName("sums", "99", '{"added_later": 1}', 1))


@pytest.mark.parametrize(
    ("make", "reason", "changes"),
    [
        (of_unknown_family, "unknown task", {}),
        (of_another_version, "another version", {}),
        (of_another_version_with_its_settings, "another version", {}),
        (lambda: honest_group("a", 1), "family is not accepted", {"accept": ("reverse",)}),
    ],
)
def test_what_cannot_be_checked_here_is_passed_over(make, reason: str, changes: dict[str, Any]) -> None:  # type: ignore[no-untyped-def]
    mailbox = Mailbox()
    last = take(mailbox, (make(), "a"), **changes)
    assert (last.used, last.verified, last.pool) == (0, 0, 0)
    assert (last.passed_over, last.refused) == ({reason: 1}, {})
    assert [credit for credit in mailbox.credits if credit[0] == "a"] == [("a", "passed_over", reason)]
    assert f"passed over: 1 {reason}" in last.said


def test_claims_change_nothing_that_is_learnt() -> None:
    """Model, tokenizer, temperature and log-probs are the sender's; under the default estimator no weight
    depends on them."""
    weights = []
    for changes in (
        {},
        {"model": "x" * 200, "tokenizer": "y", "temperature": 99.0},
        {
            "completions": tuple(
                msgspec.structs.replace(one, log_probs=(-1e6, 0.0))
                for one in honest_group("a", 1).completions
            )
        },
    ):
        mailbox = Mailbox()
        mailbox.waiting.append(received(honest_group("a", 1, **changes), "a", 1))
        node = make_node(small(evaluate_every=0, steps=2), mailbox)
        run_to_end(node)
        assert node.state.figures.last.step == 2
        weights.append(node.state.policy._scores.tobytes())
    assert weights[0] == weights[1] == weights[2]


def test_a_task_is_taken_once() -> None:
    """Sending the same task twice, with other completions, gains nothing."""
    mailbox = Mailbox()
    last = take(mailbox, (honest_group("a", 1), "a"), (honest_group("a", 1, right=2), "a"))
    assert last.used == 1
    assert last.dropped == {"same task again": 1}


def test_other_spellings_of_its_parameters_do_not_make_it_another_task() -> None:
    first = honest_group("a", 1)
    spelled = [
        msgspec.structs.replace(first, task=msgspec.structs.replace(first.task, parameters=parameters))
        for parameters in ("{}", "{ }", '{"terms":2}')
    ]
    last = take(Mailbox(), (first, "a"), *((group, "a") for group in spelled))
    assert last.verified == 1
    assert last.dropped == {"same task again": 3}


def test_a_single_completion_is_dropped_before_anything_is_verified() -> None:
    mailbox = Mailbox()
    last = take(mailbox, (honest_group("a", 1, right=1, wrong=0), "a"))
    assert last.verified == 0
    assert last.dropped == {"single completion": 1}


def test_a_flood_costs_no_more_than_the_budget_of_a_step() -> None:
    mailbox = Mailbox()
    groups = [(honest_group("a", number, right=0), "a") for number in range(200)]
    last = take(mailbox, *groups, verify_budget=10, pool=PoolLimits(author_groups=50))
    assert last.verified == 10
    assert last.dropped["pool is full"] == 150


def test_stale_groups_are_dropped_by_the_readers_own_steps() -> None:
    mailbox = Mailbox()
    for number in range(1, 9):
        mailbox.waiting.append(received(honest_group("a", number), "a", number))
    node = make_node(small(evaluate_every=0, steps=6, external=1, pool=PoolLimits(staleness=2)), mailbox)
    dropped = 0
    now = 1.0
    while (status := node.step(now)) != "finished":
        now += 0.01
        if status == "turned":
            dropped += node.state.figures.last.dropped.get("stale", 0)
            assert node.state.figures.last.oldest <= 2
    assert dropped == 5  # three were used


class Counting(TablePolicy):
    """Remembers how many groups it was given to learn from."""

    given: int | None = None

    def learn(self, groups: Any, learning: Learning, temperature: float) -> Learnt:
        self.given = len(groups)
        return super().learn(groups, learning, temperature)


def test_the_filter_for_own_groups_is_a_switch() -> None:
    given = []
    for filter_own in (False, True):
        node = make_node(
            small(evaluate_every=0, steps=1, filter_own=filter_own), policy=lambda: Counting("small")
        )
        run_to_end(node)
        assert node.state.figures.last.own == 4
        given.append((node.state.policy.given, node.state.figures.last.own_informative))
    (all_of_them, informative), (filtered, same) = given
    assert informative == same
    assert 0 < informative < 4, "the test needs a step with both kinds of groups: choose another seed"
    assert (all_of_them, filtered) == (4, informative)


def test_adaptive_mixes_never_lock_at_nothing_foreign() -> None:
    node = make_node(small(evaluate_every=0, steps=12, adaptive=True), Mailbox())
    now = 1.0
    while node.step(now) != "finished":
        now += 0.01
        figures = node.state.figures
        assert 1 <= figures.external <= 7
        assert figures.local + figures.external == 8


def test_resuming_gives_the_same_state_without_sampling_anything_again() -> None:
    journal, mailbox = MemoryJournal(), Mailbox()
    for number in range(1, 9):
        mailbox.waiting.append(received(honest_group("a", number), "a", number))
    settings = small(steps=6)
    node = make_node(settings, mailbox, journal)
    for _ in range(40):
        node.step(1.0)
    resumed = make_node(settings, Mailbox(), journal, policy=None)
    assert msgspec.json.encode(resumed.state.figures) == msgspec.json.encode(node.state.figures)
    assert msgspec.msgpack.encode(resumed.state.pool.snapshot()) == msgspec.msgpack.encode(
        node.state.pool.snapshot()
    )
    assert resumed.state.policy._scores.tobytes() == node.state.policy._scores.tobytes()


def test_a_completion_that_is_no_text_for_a_terminal_is_only_text() -> None:
    posed = true_question("a", 3)
    task = TaskName("sums", posed.version, posed.parameters, 3)
    hostile = ("\x1b[2J<script>alert(1)</script>", "\x00" * 100, posed.answer, "__import__('os').abort()")
    group = RolloutGroup(task, posed.question, tuple(Completion(text, True) for text in hostile))
    last = take(Mailbox(), (group, "a"))
    assert last.used == 1
    assert last.reward_external == pytest.approx(0.25)
