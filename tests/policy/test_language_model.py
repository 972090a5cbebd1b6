"""A language model as a policy: it learns what is rewarded, and a step that fails never happened."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")

import torch
import transformers
from safetensors.torch import load_file, save_file

from shoal.errors import ConfigError, RunError, TrainError
from shoal.policy import language_model, plan as planning
from shoal.policy.base import Learning, LearningGroup, Policy, Sampled, Sampling
from shoal.policy.language_model import LanguageModelPolicy
from shoal.policy.log_probs import PaddedScorer, Piece
from shoal.policy.specification import open_policy
from shoal.policy.weights import load, weights_folder
from tests.policy.small_models import KINDS, byte_tokenizer, make_folder, make_loaded

QUESTIONS = ["What is 3 + 4?", "How many legs has a spider, and why are they so many?"]
SAMPLING = Sampling(max_new_tokens=8, temperature=1.0)


def policy_of(folder: Path, kind: str = "llama", lora: int = 0) -> LanguageModelPolicy:
    return LanguageModelPolicy(f"local:{kind}", make_loaded(kind, folder, lora=lora))


def weights(policy: LanguageModelPolicy) -> list[torch.Tensor]:
    return [weight.detach().clone() for _, weight in policy._loaded.trainable()]


def same(one: Sequence[torch.Tensor], other: Sequence[torch.Tensor]) -> bool:
    return all(torch.equal(first, second) for first, second in zip(one, other, strict=True))


def log_prob(policy: LanguageModelPolicy, question: str, ids: Sequence[int]) -> float:
    piece = Piece(policy.encoding.prompt(question), [list(ids)])
    with torch.no_grad():
        return float(PaddedScorer(policy._loaded.model).log_probs([piece], 1.0).sum())


def own_groups(policy: Policy, seed: int = 1) -> list[LearningGroup]:
    sampled = policy.sample(QUESTIONS, 4, SAMPLING, seed)
    return [
        LearningGroup(question, rows, [1.5, -0.5, -0.5, -0.5])
        for question, rows in zip(QUESTIONS, sampled, strict=True)
    ]


def foreign(
    texts: Sequence[str], advantages: Sequence[float], finished: bool = True, **options: str
) -> LearningGroup:
    return LearningGroup(
        QUESTIONS[0], [Sampled(text, finished) for text in texts], advantages, True, **options
    )


@pytest.mark.parametrize("kind", [*KINDS, "sliding", "gemma3", "mamba"])
def test_the_rewarded_completion_becomes_likelier(kind: str, tmp_path: Path) -> None:
    policy = policy_of(tmp_path, kind)
    groups = own_groups(policy)
    before = [[log_prob(policy, group.question, one.ids) for one in group.completions] for group in groups]
    learnt = policy.learn(groups, Learning(learning_rate=1e-3), 1.0)
    after = [[log_prob(policy, group.question, one.ids) for one in group.completions] for group in groups]
    assert learnt.tokens == sum(len(one.ids) for group in groups for one in group.completions)
    assert learnt.gradient_norm > 0
    assert all(new[0] > old[0] for new, old in zip(after, before, strict=True))
    assert sum(map(sum, after)) - sum(new[0] for new in after) < sum(map(sum, before)) - sum(
        old[0] for old in before
    )


def test_adapters_learn_and_the_weights_below_rest(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, lora=4)
    below = {
        name: weight.detach().clone()
        for name, weight in policy._loaded.model.named_parameters()
        if not weight.requires_grad
    }
    groups = own_groups(policy)
    before = log_prob(policy, QUESTIONS[0], groups[0].completions[0].ids)
    for _ in range(2):
        policy.learn(groups, Learning(learning_rate=1e-2), 1.0)
    assert log_prob(policy, QUESTIONS[0], groups[0].completions[0].ids) > before
    assert all(
        torch.equal(weight, below[name])
        for name, weight in policy._loaded.model.named_parameters()
        if name in below
    )


def test_samples_repeat_and_their_texts_fit_their_ids(tmp_path: Path) -> None:
    policy = policy_of(tmp_path)
    told = msgspec.structs.replace(SAMPLING, log_probs=True)
    first = policy.sample(QUESTIONS, 3, told, 7)
    assert first == policy.sample(QUESTIONS, 3, told, 7)
    assert first != policy.sample(QUESTIONS, 3, told, 8)
    for one in (one for rows in first for one in rows):
        assert len(one.ids) == len(one.log_probs) <= SAMPLING.max_new_tokens
        assert one.finished == (one.ids[-1] == policy._loaded.end)
        assert "<eos>" not in one.text


def test_many_questions_are_sampled_in_bounded_batches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = policy_of(tmp_path)
    whole = policy.sample(QUESTIONS * 3, 2, Sampling(4, 0.0), 0)
    monkeypatch.setattr(language_model, "MOST_ROWS", 4)
    assert policy.sample(QUESTIONS * 3, 2, Sampling(4, 0.0), 0) == whole


@pytest.mark.parametrize("settings", [Learning(), Learning(loss="grpo"), Learning(loss="dr_grpo")])
def test_micro_batches_change_nothing(settings: Learning, tmp_path: Path) -> None:
    found = []
    for micro in (1, 2, 8):
        policy = policy_of(tmp_path / str(micro))
        groups = [*own_groups(policy), foreign(["7", "eleven", "a spider"], [1.0, -0.4, -0.6])]
        # Plain gradient descent in effect: Adam's first step knows only signs.
        learnt = policy.learn(
            groups, msgspec.structs.replace(settings, micro_groups=micro, gradient_norm=0.0), 1.0
        )
        found.append((learnt.loss, learnt.gradient_norm))
    for loss, norm in found[1:]:
        assert loss == pytest.approx(found[0][0], abs=1e-6)
        assert norm == pytest.approx(found[0][1], rel=1e-5)


def test_large_groups_are_computed_in_pieces(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for most in (2048, 10):
        monkeypatch.setattr(planning, "MOST_TOKENS", most)
        policy = policy_of(tmp_path / str(most))
        learnt = policy.learn(own_groups(policy), Learning(gradient_norm=0.0), 1.0)
        found.append((learnt.loss, learnt.gradient_norm, learnt.tokens))
    assert found[1] == pytest.approx(found[0], rel=1e-5, abs=1e-6)


def test_groups_without_advantage_count_but_are_not_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy = policy_of(tmp_path)
    groups = own_groups(policy)
    idle = LearningGroup(QUESTIONS[0], groups[0].completions, [0.0] * 4)
    settings = Learning(gradient_norm=0.0)
    learnt = policy.learn(groups, settings, 1.0)
    other = policy_of(tmp_path / "other")
    diluted = other.learn([*groups, idle, idle], settings, 1.0)
    counted = [sum(len(one.ids) for one in group.completions) for group in groups]
    factor = sum(counted) / (sum(counted) + 2 * counted[0])
    assert diluted.tokens == learnt.tokens
    assert diluted.gradient_norm == pytest.approx(learnt.gradient_norm * factor, rel=1e-4)

    def never(*_: object) -> None:
        raise AssertionError("nothing is to be computed")

    before = weights(other)
    monkeypatch.setattr(other, "_log_probs", never)
    assert other.learn([idle], Learning(), 1.0).tokens == 0
    assert same(before, weights(other))


def test_inner_steps_clip_by_true_old_log_probs(tmp_path: Path) -> None:
    once, often = policy_of(tmp_path / "a"), policy_of(tmp_path / "b")
    groups = own_groups(once)
    single = once.learn(groups, Learning(learning_rate=0.05), 1.0)
    several = often.learn(groups, Learning(learning_rate=0.05, inner_steps=4), 1.0)
    assert single.parts["clipped"] == 0
    assert several.parts["clipped"] > 0
    loose = policy_of(tmp_path / "c")
    wide = Learning(learning_rate=0.05, inner_steps=4, clip_low=1.0, clip_high=1e9)
    assert loose.learn(groups, wide, 1.0).parts["clipped"] == 0


@pytest.mark.parametrize("lora", [0, 4])
def test_the_penalty_holds_the_policy_near_its_start(lora: int, tmp_path: Path) -> None:
    divergences = []
    for kl in (1e-6, 5.0):
        policy = policy_of(tmp_path / str(kl), lora=lora)
        groups = own_groups(policy)
        first = policy.learn(groups, Learning(learning_rate=1e-2, kl=kl), 1.0)
        assert first.parts["kl"] == pytest.approx(0.0, abs=1e-5)
        for _ in range(6):
            last = policy.learn(groups, Learning(learning_rate=1e-2, kl=kl), 1.0)
        divergences.append(last.parts["kl"])
    assert divergences[1] < divergences[0] / 2


@pytest.mark.parametrize("inner_steps", [1, 2])
def test_a_gradient_that_is_not_finite_leaves_everything(
    inner_steps: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    policy, twin = policy_of(tmp_path / "a"), policy_of(tmp_path / "b")
    groups = own_groups(policy)
    for one in (policy, twin):
        one.learn(groups, Learning(), 1.0)
    before = weights(policy)
    calls = 0
    genuine = language_model.policy_loss

    def poisoned(log_probs: torch.Tensor, *rest: torch.Tensor, **options: object) -> object:
        nonlocal calls
        calls += 1
        # With two inner steps of two batches each, the first update has happened by the fourth call.
        factor = math.nan if calls == 2 * inner_steps else 1.0
        return genuine(log_probs * factor, *rest, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(language_model, "policy_loss", poisoned)
    with pytest.raises(TrainError, match="loss is nan"):
        policy.learn(groups, Learning(inner_steps=inner_steps), 1.0)
    monkeypatch.undo()
    assert same(before, weights(policy))
    for one in (policy, twin):
        one.learn(groups, Learning(), 1.0)
    assert same(weights(policy), weights(twin)), "the optimiser should be as it was, too"


def test_bad_advantages_are_refused(tmp_path: Path) -> None:
    policy = policy_of(tmp_path)
    with pytest.raises(TrainError, match="finite"):
        policy.learn([foreign(["a", "b"], [math.nan, 0.0])], Learning(), 1.0)
    with pytest.raises(TrainError, match="2 completions and 1 advantages"):
        policy.learn([foreign(["a", "b"], [1.0])], Learning(), 1.0)


def test_no_memory_is_an_error_with_advice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(tmp_path)
    groups = own_groups(policy)

    def full(*_: object) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory")

    monkeypatch.setattr(policy, "_log_probs", full)
    with pytest.raises(TrainError, match="lower micro_groups"):
        policy.learn(groups, Learning(), 1.0)


@pytest.mark.parametrize("lora", [0, 4])
def test_a_restored_policy_goes_on_to_the_bit(lora: int, tmp_path: Path) -> None:
    policy = policy_of(tmp_path / "first", lora=lora)
    for seed in range(2):
        policy.learn(own_groups(policy, seed), Learning(), 1.0)
    policy.save(tmp_path / "saved")
    policy.save(tmp_path / "saved")
    assert sorted(one.name for one in tmp_path.iterdir()) == ["first", "saved"]
    other = policy_of(tmp_path / "second", lora=lora)
    other.restore(tmp_path / "saved")
    for seed in range(5, 8):
        for one in (policy, other):
            one.learn(own_groups(one, seed), Learning(), 1.0)
    assert same(weights(policy), weights(other))
    assert policy.sample(QUESTIONS, 2, SAMPLING, 9) == other.sample(QUESTIONS, 2, SAMPLING, 9)


@pytest.mark.parametrize("lora", [0, 4])
def test_plain_transformers_opens_what_was_saved(lora: int, tmp_path: Path) -> None:
    policy = policy_of(tmp_path, lora=lora)
    policy.learn(own_groups(policy), Learning(learning_rate=1e-2), 1.0)
    policy.save(tmp_path / "saved")
    model = transformers.AutoModelForCausalLM.from_pretrained(tmp_path / "saved").eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(tmp_path / "saved")
    ids = torch.tensor([tokenizer.encode("What is 3 + 4?\n")])
    with torch.no_grad():
        assert torch.allclose(model(ids).logits, policy._loaded.model(ids).logits, atol=1e-5)


def test_only_a_checkpoint_of_this_policy_is_restored(tmp_path: Path) -> None:
    policy = policy_of(tmp_path)
    before = weights(policy)
    with pytest.raises(RunError, match="not a checkpoint"):
        policy.restore(tmp_path / "llama")
    policy_of(tmp_path / "adapted", lora=2).save(tmp_path / "saved")
    with pytest.raises(RunError, match="not this policy"):
        policy.restore(tmp_path / "saved")
    assert same(before, weights(policy))


def test_the_end_token_follows_finished_texts_only(tmp_path: Path) -> None:
    policy = policy_of(tmp_path)
    end = policy._loaded.end
    assert policy.encoding.completion("7", True)[-1] == end
    assert policy.encoding.completion("7", False)[-1] != end
    assert end not in policy.encoding.completion("7<eos>8", False), "nobody ends a text by writing so"
    whole = policy.learn([foreign(["7", "8"], [1.0, -1.0], finished=True)], Learning(), 1.0)
    cut = policy.learn([foreign(["7", "8"], [1.0, -1.0], finished=False)], Learning(), 1.0)
    assert (whole.tokens, cut.tokens) == (4, 2)
    empty = policy.learn([foreign(["", ""], [1.0, -1.0], finished=False)], Learning(), 1.0)
    assert empty.tokens == 0


def test_positive_learns_from_good_foreign_completions_only(tmp_path: Path) -> None:
    policy, expected = policy_of(tmp_path / "a"), policy_of(tmp_path / "b")
    learnt = policy.learn([foreign(["7", "8"], [1.0, -1.0])], Learning(foreign="positive"), 1.0)
    assert (learnt.tokens, learnt.dropped) == (2, 1)
    expected.learn([foreign(["7", "8"], [1.0, 0.0])], Learning(), 1.0)
    assert same(weights(policy), weights(expected))


def test_band_leaves_out_what_is_too_unlikely(tmp_path: Path) -> None:
    policy = policy_of(tmp_path)
    texts = ["7", "zebra crossing"]
    means = [
        log_prob(policy, QUESTIONS[0], ids) / len(ids)
        for ids in (policy.encoding.completion(text, True) for text in texts)
    ]
    settings = Learning(foreign="band", band=sum(means) / 2)
    before = weights(policy)
    learnt = policy.learn([foreign(texts, [1.0, -1.0])], settings, 1.0)
    likely = means.index(max(means))
    assert learnt.dropped == 1
    assert learnt.tokens == len(policy.encoding.completion(texts[likely], True))
    assert not same(before, weights(policy))
    all_out = policy.learn([foreign(texts, [1.0, -1.0])], Learning(foreign="band", band=0.0), 1.0)
    assert (all_out.dropped, all_out.tokens, all_out.gradient_norm) == (2, 0, 0.0)


def test_truncated_weighs_by_capped_ratios(tmp_path: Path) -> None:
    """Where the author's log-probs equal ours the weight is 1; where the author found its text less likely
    than we do the weight is capped; without comparable log-probs the band decides."""
    policy = policy_of(tmp_path / "now")
    ids = [policy.encoding.completion(text, True) for text in ("7", "8")]
    with torch.no_grad():
        piece = Piece(policy.encoding.prompt(QUESTIONS[0]), ids)
        ours = PaddedScorer(policy._loaded.model).log_probs([piece], 1.0).tolist()

    def norm(shift: float, tokenizer: str, estimator: str = "truncated") -> float:
        fresh = policy_of(tmp_path / f"{shift}{tokenizer}{estimator}")
        rows = [
            Sampled(text, True, (), tuple(value + shift for value in ours[2 * place : 2 * place + 2]))
            for place, text in enumerate(("7", "8"))
        ]
        group = LearningGroup(QUESTIONS[0], rows, [1.0, -1.0], True, tokenizer)
        settings = Learning(foreign=estimator, gradient_norm=0.0, band=-1e9)  # type: ignore[arg-type]
        return fresh.learn([group], settings, 1.0).gradient_norm

    plain = norm(0.0, "", "as-published")
    assert norm(0.0, policy.tokenizer) == pytest.approx(plain, rel=1e-3)
    assert norm(-50.0, policy.tokenizer) == pytest.approx(2 * plain, rel=1e-3)
    assert norm(math.log(4.0), policy.tokenizer) == pytest.approx(plain / 4, rel=1e-3)
    assert norm(-50.0, "another") == pytest.approx(plain, rel=1e-3)


def test_foreign_texts_without_end_are_left_out(tmp_path: Path) -> None:
    policy = policy_of(tmp_path)
    learnt = policy.learn([foreign(["x " * 5000, "7"], [-1.0, 1.0])], Learning(), 1.0)
    assert (learnt.dropped, learnt.tokens) == (1, 2)


def test_a_prompt_without_room_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has room for 256 tokens"):
        policy_of(tmp_path).sample(["x" * 300], 1, SAMPLING, 0)


def test_errors_of_folders_are_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no config\.json"):
        load(tmp_path, "local:x", device="cpu")
    folder = make_folder("llama", tmp_path / "endless")
    tokenizer = byte_tokenizer()
    tokenizer.eos_token = None
    tokenizer.save_pretrained(folder)
    with pytest.raises(ConfigError, match="no end token"):
        load(folder, "local:x", device="cpu")
    (folder / "config.json").write_text('{"model_type": "nobody"}')
    with pytest.raises(ConfigError, match="cannot be loaded") as caught:
        load(folder, "local:x", device="cpu")
    assert "\n" not in str(caught.value)
    settings = transformers.BertConfig(
        vocab_size=300, hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16
    )
    transformers.BertLMHeadModel(settings).save_pretrained(tmp_path / "bert")
    byte_tokenizer().save_pretrained(tmp_path / "bert")
    with pytest.raises(ConfigError, match="not a causal language model"):
        load(tmp_path / "bert", "local:x", device="cpu")
    hollow = make_folder("llama", tmp_path / "hollow")
    tensors = load_file(hollow / "model.safetensors")
    del tensors["model.norm.weight"]
    save_file(tensors, hollow / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(ConfigError, match=r"lacks 1 weights of its model, such as model\.norm\.weight"):
        load(hollow, "local:x", device="cpu")
    (tmp_path / "bogus.gguf").write_bytes(b"nothing")
    with pytest.raises(ConfigError, match="cannot be unpacked"):
        weights_folder(str(tmp_path / "bogus.gguf"))
    with pytest.raises(ConfigError, match="choose one of auto, cpu"):
        load(make_folder("llama", tmp_path / "good"), "local:x", device="tpu")


def test_specs_are_read(tmp_path: Path) -> None:
    folder = make_folder("llama", tmp_path / "model")
    policy = open_policy(f"local:{folder}?lora=4&device=cpu", rendering="few-shot", examples=[("1+1?", "2")])
    assert isinstance(policy, LanguageModelPolicy)
    assert policy._loaded.adapted is not None
    assert policy.model == f"local:{folder}?lora=4&device=cpu"
    ids = policy.encoding.prompt("2+2?")
    assert policy._loaded.tokenizer.decode(ids) == "Question: 1+1?\nAnswer: 2\n\nQuestion: 2+2?\nAnswer:"
    for wrong in ("smollm2", "openai:x", "local:", f"local:{folder}?lora=x", f"local:{folder}?rank=3"):
        with pytest.raises(ConfigError):
            open_policy(wrong)
    with pytest.raises(ConfigError, match="no chat template"):
        open_policy(f"local:{folder}", rendering="chat", device="cpu")


def test_precision_is_that_of_the_weights(tmp_path: Path) -> None:
    """bf16 samples and learns; what a device cannot do is one line."""
    folder = make_folder("llama", tmp_path / "model")
    for precision, wanted in (("auto", torch.float32), ("fp32", torch.float32), ("bf16", torch.bfloat16)):
        policy = open_policy(f"local:{folder}", device="cpu", precision=precision)  # type: ignore[arg-type]
        assert isinstance(policy, LanguageModelPolicy)
        before = weights(policy)
        assert {weight.dtype for weight in before} == {wanted}
        policy.learn(own_groups(policy), Learning(learning_rate=0.1), 1.0)
        assert not same(before, weights(policy))
        policy.save(tmp_path / precision)
        again = open_policy(f"local:{folder}", device="cpu", precision=precision)  # type: ignore[arg-type]
        again.restore(tmp_path / precision)
        assert isinstance(again, LanguageModelPolicy)
        assert same(weights(policy), weights(again))
    with pytest.raises(ConfigError, match="precision: table:small computes in fp32"):
        open_policy("table:small", precision="bf16")


def test_a_device_without_bf16_is_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **options: object) -> torch.Tensor:
        raise RuntimeError(f"no {options['dtype']} here")

    folder = make_folder("llama", tmp_path / "model")
    monkeypatch.setattr(torch, "ones", refuse)
    with pytest.raises(
        ConfigError, match=r"precision: cpu cannot compute in bf16 for local:.*: choose fp32 or auto$"
    ):
        open_policy(f"local:{folder}", device="cpu", precision="bf16")


def test_a_gradient_norm_of_zero_clips_nothing(tmp_path: Path) -> None:
    """The first step of Adam does not show the length of a gradient; with a large epsilon it does."""

    def moved(norm: float) -> float:
        policy = policy_of(tmp_path / str(norm))
        before = weights(policy)
        steep = [
            LearningGroup(one.question, one.completions, [9.0, -9.0, 9.0, -9.0]) for one in own_groups(policy)
        ]
        learnt = policy.learn(steep, Learning(gradient_norm=norm, adam_epsilon=1.0), 1.0)
        assert learnt.gradient_norm > 1
        return max(float((new - old).abs().max()) for new, old in zip(weights(policy), before, strict=True))

    assert moved(0.0) == moved(1e6) > moved(1.0)


def test_digests_tell_tokenizers_apart(tmp_path: Path) -> None:
    one, other = policy_of(tmp_path / "a"), policy_of(tmp_path / "b", "gpt2")
    one._loaded.tokenizer(["a", "bcd"], padding=True)
    again = policy_of(tmp_path / "c")
    assert one.tokenizer == again.tokenizer
    assert len(other.tokenizer) == 32
