"""The table policy: it learns, it is the same every time, and no text from outside makes it grow or fail."""

from __future__ import annotations

import math
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings, strategies as st

from shoal.errors import ConfigError, RunError, TrainError
from shoal.policy.base import Learning, LearningGroup, Policy, Sampled, Sampling
from shoal.policy.table import CANDIDATES, MOST_ANSWERS, MOST_CHARACTERS, STEP, TablePolicy

SAMPLING = Sampling()
LEARNING = Learning()


def group(
    question: str, answers: Sequence[str], advantages: Sequence[float], foreign: bool = False
) -> LearningGroup:
    return LearningGroup(question, [Sampled(answer, True) for answer in answers], advantages, foreign)


def advantages(rewards: Sequence[float]) -> list[float]:
    mean = sum(rewards) / len(rewards)
    spread = math.sqrt(sum((reward - mean) ** 2 for reward in rewards) / (len(rewards) - 1))
    return [(reward - mean) / (spread + 1e-4) for reward in rewards]


def train(policy: TablePolicy, steps: range, largest: int = 4) -> list[float]:
    """The share of right answers to sums, step by step."""
    shares = []
    for step in steps:
        pairs = [
            ((7 * step + 3 * index) % (largest + 1), (step + index) % (largest + 1)) for index in range(4)
        ]
        questions = [f"{first}+{second}=" for first, second in pairs]
        sampled = policy.sample(questions, 8, SAMPLING, seed=step)
        rewards = [
            [float(completion.text == str(first + second)) for completion in completions]
            for (first, second), completions in zip(pairs, sampled, strict=True)
        ]
        shares.append(sum(map(sum, rewards)) / 32)
        groups = [
            LearningGroup(question, completions, advantages(reward))
            for question, completions, reward in zip(questions, sampled, rewards, strict=True)
        ]
        policy.learn(groups, LEARNING, 1.0)
    return shares


def probabilities(policy: TablePolicy, question: str, temperature: float = 1.0) -> dict[str, float]:
    log_probs = policy._log_probs(policy._features(question), temperature)
    return dict(zip(policy.answers, np.exp(log_probs).tolist(), strict=True))


def test_it_is_a_policy() -> None:
    policy: Policy = TablePolicy("small")
    assert (policy.model, policy.tokenizer) == ("table:small", "")


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(ConfigError, match="table:small"):
        TablePolicy("huge")


def test_names_differ_in_what_they_can_answer() -> None:
    assert len({tuple(TablePolicy(name).answers) for name in CANDIDATES}) == len(CANDIDATES)


def test_the_same_seed_gives_the_same_texts_and_another_seed_others() -> None:
    questions = ["1+2=", "3+4="]
    first, again = (TablePolicy("wide").sample(questions, 8, SAMPLING, seed=5) for _ in range(2))
    assert first == again
    assert first != TablePolicy("wide").sample(questions, 8, SAMPLING, seed=6)
    assert [len(group) for group in first] == [8, 8]
    assert all(completion.finished for group in first for completion in group)


def test_log_probs_are_those_of_the_sampling_distribution() -> None:
    policy = TablePolicy("small")
    train(policy, range(5))
    for temperature in (0.5, 1.0, 2.0):
        expected = probabilities(policy, "1+2=", temperature)
        assert sum(expected.values()) == pytest.approx(1)
        sampling = Sampling(temperature=temperature, log_probs=True)
        for completion in policy.sample(["1+2="], 8, sampling, 3)[0]:
            assert completion.log_probs == (pytest.approx(math.log(expected[completion.text])),)
            assert len(completion.log_probs) == len(completion.ids)


def test_samples_follow_the_probabilities() -> None:
    policy = TablePolicy("small")
    policy.learn([group("q", ["1", "2"], [3.0, -3.0])], LEARNING, 1.0)
    expected = probabilities(policy, "q")["1"]
    texts = [completion.text for completion in policy.sample(["q"], 4000, SAMPLING, 1)[0]]
    assert texts.count("1") / 4000 == pytest.approx(expected, abs=4 * math.sqrt(expected / 4000))


def test_temperature_0_gives_the_likeliest_answer_always() -> None:
    policy = TablePolicy("small")
    policy.learn([group("q", ["7", "8"], [1.0, -1.0])], LEARNING, 1.0)
    greedy = policy.sample(["q"], 4, Sampling(temperature=0.0), seed=1)[0]
    assert {completion.text for completion in greedy} == {"7"}


@pytest.mark.parametrize("foreign", [False, True])
def test_what_was_rewarded_becomes_likelier_and_what_was_not_less(foreign: bool) -> None:
    policy = TablePolicy("small")
    before = probabilities(policy, "1+2=")
    learnt = policy.learn([group("1+2=", ["3", "4"], [0.7, -0.7], foreign)], LEARNING, 1.0)
    after = probabilities(policy, "1+2=")
    assert after["3"] > before["3"]
    assert after["4"] < before["4"]
    assert (learnt.tokens, learnt.dropped) == (2, 0)
    assert learnt.gradient_norm > 0


def test_the_gradient_is_that_of_the_loss() -> None:
    """A small step changes the loss by the squared norm of the gradient times the step."""
    step = 1e-9
    policy = TablePolicy("small")
    train(policy, range(3))
    batch = [group("1+2=", ["3", "4", "5"], [1.0, -0.5, 0.25]), group("2+2=", ["4", "3"], [0.9, -0.9])]

    def objective() -> float:
        total = 0.0
        for one in batch:
            known = probabilities(policy, one.question)
            total += sum(
                advantage * math.log(known[completion.text])
                for completion, advantage in zip(one.completions, one.advantages, strict=True)
            )
        return total / 5

    before = objective()
    learnt = policy.learn(batch, Learning(learning_rate=step * 1e3, gradient_norm=1e9), 1.0)
    assert objective() - before == pytest.approx(step * 1e3 * STEP * learnt.gradient_norm**2, rel=0.05)


def test_it_learns_to_add() -> None:
    shares = train(TablePolicy("small"), range(200))
    assert sum(shares[:10]) / 10 < 0.2
    assert sum(shares[-20:]) / 20 > 0.5


def test_it_does_something_with_a_question_it_has_not_seen() -> None:
    policy = TablePolicy("small")
    for _ in range(20):
        policy.learn([group("2+3=", ["5", "9"], [1.0, -1.0])], LEARNING, 1.0)
    assert probabilities(policy, "2+4=")["5"] > probabilities(policy, "2+4=")["9"]


def test_a_good_answer_of_others_is_taken_in_and_a_bad_one_is_not() -> None:
    policy = TablePolicy("even")
    learnt = policy.learn([group("1+2=", ["3", "999"], [0.7, -0.7], foreign=True)], LEARNING, 1.0)
    assert "3" in policy.answers
    assert "999" not in policy.answers
    assert learnt.dropped == 1
    assert probabilities(policy, "1+2=")["3"] > probabilities(policy, "1+2=")["4"]


def test_estimators_of_foreign_groups_leave_out_what_they_say() -> None:
    batch = [group("q", ["1", "2", "3"], [1.0, -0.5, -0.5], foreign=True)]
    positive = TablePolicy("small")
    assert positive.learn(batch, Learning(foreign="positive"), 1.0).dropped == 2
    band = TablePolicy("small")
    assert band.learn(batch, Learning(foreign="band", band=-1.0), 1.0).dropped == 3
    assert band.learn(batch, Learning(foreign="truncated", band=-8.0), 1.0).dropped == 0


def test_groups_without_advantage_count_in_the_normalisation_only() -> None:
    useful = group("q", ["1", "2"], [0.7, -0.7])
    idle = group("r", ["1", "2"], [0.0, 0.0])
    alone, beside = TablePolicy("small"), TablePolicy("small")
    assert alone.learn([useful], LEARNING, 1.0).loss == 2 * beside.learn([useful, idle], LEARNING, 1.0).loss
    assert alone.learn([idle], LEARNING, 1.0).gradient_norm == 0


def test_the_clip_bounds_repeated_steps() -> None:
    batch = [group("q", ["1", "2"], [0.7, -0.7])]
    free, clipped = TablePolicy("small"), TablePolicy("small")
    free.learn(batch, Learning(inner_steps=5, clip_low=0.99, clip_high=1e9), 1.0)
    clipped.learn(batch, Learning(inner_steps=5), 1.0)
    assert probabilities(clipped, "q")["1"] < probabilities(free, "q")["1"]


@pytest.mark.parametrize("advantage", [math.nan, math.inf, 1e300])
def test_what_is_not_finite_changes_nothing(advantage: float) -> None:
    policy = TablePolicy("small")
    before = (policy.answers.copy(), probabilities(policy, "q"))
    with pytest.raises(TrainError):
        policy.learn([group("q", ["1", "new"], [-advantage, advantage], foreign=True)], LEARNING, 1.0)
    assert (policy.answers, probabilities(policy, "q")) == before


def test_a_restored_table_goes_on_as_if_nothing_had_happened(tmp_path: Path) -> None:
    through, stopped = TablePolicy("even"), TablePolicy("even")
    foreign = [group("1+2=", ["3", "fünf 🐟"], [0.7, 0.3], foreign=True)]
    for policy in (through, stopped):
        train(policy, range(10))
        policy.learn(foreign, LEARNING, 1.0)
    stopped.save(tmp_path)
    again = TablePolicy("even")
    again.restore(tmp_path)
    assert train(through, range(10, 20)) == train(again, range(10, 20))
    assert probabilities(through, "1+2=") == probabilities(again, "1+2=")


def test_what_is_not_a_saved_table_of_this_name_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RunError):
        TablePolicy("small").restore(tmp_path)
    TablePolicy("even").save(tmp_path)
    with pytest.raises(RunError, match="table:even"):
        TablePolicy("small").restore(tmp_path)
    saved = tmp_path / "table.json"
    whole = saved.read_bytes()
    for broken in (b"", whole[:-20], whole.replace(b'"2"', b'"4"'), whole.replace(b'"AAAA', b'"')):
        saved.write_bytes(broken)
        with pytest.raises(RunError):
            TablePolicy("even").restore(tmp_path)


@settings(max_examples=50, deadline=None)
@given(
    st.text(max_size=200),
    st.lists(
        st.tuples(st.text(st.characters(codec=None), max_size=80), st.floats(-3, 3)), min_size=1, max_size=8
    ),
)
def test_any_text_can_be_absorbed(question: str, answers: list[tuple[str, float]]) -> None:
    policy = TablePolicy("small")
    batch = group(
        question, [text for text, _ in answers], [advantage for _, advantage in answers], foreign=True
    )
    policy.learn([batch], LEARNING, 1.0)
    assert len(policy.sample([question], 4, SAMPLING, 0)[0]) == 4
    with tempfile.TemporaryDirectory() as folder:
        policy.save(Path(folder))
        again = TablePolicy("small")
        again.restore(Path(folder))
    assert probabilities(again, question) == probabilities(policy, question)


def test_no_flood_of_answers_makes_it_large() -> None:
    policy = TablePolicy("wide")
    for step in range(200):
        texts = [f"{step}-{index}".ljust(MOST_CHARACTERS, "x") for index in range(8)] + [
            "y" * (MOST_CHARACTERS + 1)
        ]
        policy.learn([group("q " * 5000, texts, [1.0] * 9, foreign=True)], LEARNING, 1.0)
    assert len(policy.answers) == MOST_ANSWERS == len(set(policy.answers))
    assert set(CANDIDATES["wide"]) <= set(policy.answers)
    size = policy._scores.nbytes + sum(map(sys.getsizeof, policy.answers)) + sys.getsizeof(policy._index)
    assert size < 100_000


def test_top_p_leaves_the_likeliest_answers() -> None:
    policy = TablePolicy("small")
    for _ in range(30):
        policy.learn([group("3+4=", ["7", "8", "1"], [1.0, 0.6, -1.0])], LEARNING, 1.0)
    known = probabilities(policy, "3+4=")
    kept: dict[str, float] = {}
    for answer in sorted(known, key=lambda answer: -known[answer]):
        if sum(kept.values()) < 0.9:
            kept[answer] = known[answer]
    assert 1 < len(kept) < len(known)
    (written,) = policy.sample(["3+4="], 2000, Sampling(log_probs=True, top_p=0.9), seed=1)
    assert {one.text for one in written} == set(kept)
    total = sum(kept.values())
    for one in written[:50]:
        assert one.log_probs[0] == pytest.approx(math.log(kept[one.text] / total))
    assert policy.sample(["3+4="], 9, Sampling(), 4) == policy.sample(["3+4="], 9, Sampling(top_p=1.0), 4)


@pytest.mark.parametrize(
    ("learning", "said"),
    [
        (Learning(kl=0.1), "learning.kl: table:small keeps no reference"),
        (Learning(adam_beta1=0.5), "learning.adam_beta1: table:small takes plain steps, without Adam"),
        (Learning(adam_epsilon=1e-6), "learning.adam_epsilon: table:small takes plain steps"),
    ],
)
def test_settings_that_a_table_cannot_follow_are_refused(learning: Learning, said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        TablePolicy("small").learn([group("?", ["1", "2"], [1.0, -1.0])], learning, 1.0)


def test_a_gradient_norm_of_zero_clips_nothing() -> None:
    def moved(norm: float) -> float:
        policy = TablePolicy("small")
        steep = [group("3+4=", ["7", "8"], [9.0, -9.0])]
        policy.learn(steep, Learning(gradient_norm=norm), 1.0)
        return float(np.abs(policy._scores).max())

    assert moved(0.0) == moved(1e6) > moved(0.1)
