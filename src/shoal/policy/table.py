"""A policy without a network: a table of answers with a score for each feature of a question.

A log-linear model. The features of a question are its words and itself, hashed into a fixed number of
buckets, and a bucket that all questions share; an answer's logit is the sum of its scores over them. That
suffices to learn an answer by heart, to prefer some answers, and to add small numbers.

Guarantees: the same table, seed and questions give the same texts. A table holds at most MOST_ANSWERS answers
of MOST_CHARACTERS characters (below 100 KB), whatever others send. One step takes less than a millisecond.
"""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec
import numpy as np
from numpy.typing import NDArray

from shoal.errors import ConfigError, RunError, TrainError
from shoal.files import replace_whole
from shoal.policy.base import Completions, Learning, LearningGroup, Learnt, Precision, Sampled, Sampling

BUCKETS = 80
MOST_ANSWERS = 192
MOST_CHARACTERS = 64
MOST_WORDS = 24
MOST_QUESTION = 1024
"""Characters of a question that count."""
STEP = 5_000.0
"""The step is STEP times the learning rate, so that the learning rates of networks suit a table too."""
FILE = "table.json"
SURROGATE = re.compile("[\ud800-\udfff]")
"""A character that cannot be saved."""

Scores = NDArray[np.float32]
Numbers = NDArray[np.float64]
Places = NDArray[np.intp]
Part = tuple[Places, Places, Numbers, Numbers]
"""Features, answers, advantages and log-probs before the step."""


CANDIDATES: dict[str, tuple[str, ...]] = {
    "small": tuple(map(str, range(20))),
    "even": tuple(map(str, range(0, 60, 2))),
    "odd": tuple(map(str, range(1, 60, 2))),
    "wide": tuple(map(str, range(100))),
    "words": ("yes", "no", "true", "false", "left", "right", *map(str, range(10))),
}
"""The answers that a table of this name can write before it has learnt others from the swarm."""
DEFAULT = "small"


def check_learning(model: str, learning: Learning) -> None:
    """ConfigError for settings that a table cannot follow: it has no reference and no optimiser."""
    if learning.kl:
        raise ConfigError(f"learning.kl: {model} keeps no reference: leave it out")
    usual = Learning()
    for name in ("adam_beta1", "adam_beta2", "adam_epsilon"):
        if getattr(learning, name) != getattr(usual, name):
            raise ConfigError(f"learning.{name}: {model} takes plain steps, without Adam: leave it out")


def check_precision(model: str, precision: Precision) -> None:
    if precision == "bf16":
        raise ConfigError(f"precision: {model} computes in fp32: choose fp32 or auto")


class SavedTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A table on disk. `scores` are little-endian 32-bit floats, one row of BUCKETS per answer."""

    model: str
    answers: list[str]
    scores: bytes


class TablePolicy:
    """`table:NAME`, or `table:` for the default. A completion counts as one token, so all loss types and both
    levels are the same, and every completion is finished."""

    tokenizer = ""

    def __init__(self, name: str = "") -> None:
        name = name or DEFAULT
        if name not in CANDIDATES:
            known = ", ".join(f"table:{known}" for known in sorted(CANDIDATES))
            raise ConfigError(f"there is no policy table:{name}: choose one of {known}")
        self._name = name
        self.model = f"table:{name}"
        self.answers = list(CANDIDATES[name])
        self._index = {answer: index for index, answer in enumerate(self.answers)}
        # Each name has its own hash, so that words which one table takes for the same differ in another.
        self._salt = zlib.crc32(name.encode())
        self._scores: Scores = np.zeros((len(self.answers), BUCKETS), dtype=np.float32)

    def sample(self, questions: Sequence[str], group: int, sampling: Sampling, seed: int) -> Completions:
        draws = np.random.default_rng(seed).random((len(questions), group))
        groups = []
        for question, draw in zip(questions, draws, strict=True):
            scored = self._log_probs(self._features(question), sampling.temperature)
            if sampling.temperature == 0:
                chosen = [int(scored.argmax())] * group
            else:
                scored = _nucleus(scored, sampling.top_p)
                total = np.cumsum(np.exp(scored))
                places = np.searchsorted(total, draw * total[-1], "right")
                # Rounding can leave the last sum below the draw: then the last answer is meant.
                chosen = np.minimum(places, np.flatnonzero(scored > -np.inf)[-1]).tolist()
            known = [(min(0.0, one),) if sampling.log_probs else () for one in scored.tolist()]
            groups.append([Sampled(self.answers[index], True, (index,), known[index]) for index in chosen])
        return groups

    def learn(self, groups: Sequence[LearningGroup], learning: Learning, temperature: float) -> Learnt:
        check_learning(self.model, learning)
        temperature = temperature or 1.0
        tokens = sum(len(group.completions) for group in groups)
        for group in groups:
            group.check()
        before = (self.answers.copy(), self._index.copy(), self._scores)
        # All new answers first: the index of an answer must not change once it is in the batch.
        for group in groups:
            pairs = zip(group.completions, group.advantages, strict=True)
            self._add(completion.text for completion, advantage in pairs if advantage > 0)
        dropped = 0
        batch: list[Part] = []
        for group in groups:
            if not any(group.advantages):
                continue
            features = self._features(group.question)
            old = self._log_probs(features, temperature)
            usable = self._usable(group, old, learning)
            dropped += len(group.completions) - len(usable)
            if usable:
                chosen = np.array([index for index, _ in usable], dtype=np.intp)
                batch.append((features, chosen, np.array([one for _, one in usable]), old[chosen]))
        if not batch:
            return Learnt(0.0, 0.0, tokens - dropped, dropped)
        loss = norm = 0.0
        for step in range(max(1, learning.inner_steps)):
            with np.errstate(over="ignore", invalid="ignore"):
                this_loss, gradient = self._gradient(batch, learning, temperature, tokens)
                this_norm = float(np.sqrt(np.vdot(gradient, gradient)))
            if not (math.isfinite(this_loss) and math.isfinite(this_norm)):
                self.answers, self._index, self._scores = before
                raise TrainError("the gradient of a table is not finite: nothing was learnt")
            if step == 0:
                loss, norm = this_loss, this_norm
            scale = min(1.0, (learning.gradient_norm or math.inf) / (this_norm + 1e-6))
            kept = np.float32(1.0 - learning.learning_rate * learning.weight_decay)
            self._scores = self._scores * kept + np.float32(STEP * learning.learning_rate * scale) * gradient
        return Learnt(loss, norm, tokens - dropped, dropped)

    def save(self, folder: Path) -> None:
        saved = SavedTable(self.model, self.answers, self._scores.astype("<f4").tobytes())
        replace_whole(folder / FILE, msgspec.json.encode(saved))

    def restore(self, folder: Path) -> None:
        path = folder / FILE
        try:
            saved = msgspec.json.decode(path.read_bytes(), type=SavedTable)
        except (OSError, msgspec.DecodeError) as error:
            raise RunError(f"{path} is not a saved table ({error}): start anew without it") from None
        if saved.model != self.model:
            raise RunError(f"{path} holds {saved.model}, not {self.model}: restore it under its own name")
        initial = CANDIDATES[self._name]
        if (
            tuple(saved.answers[: len(initial)]) != initial
            or len(set(saved.answers)) != len(saved.answers) <= MOST_ANSWERS
            or len(saved.scores) != 4 * BUCKETS * len(saved.answers)
        ):
            raise RunError(f"{path} does not fit {self.model}: start anew without it")
        self.answers = list(saved.answers)
        self._index = {answer: index for index, answer in enumerate(self.answers)}
        scores = np.frombuffer(saved.scores, dtype="<f4").astype(np.float32)
        self._scores = scores.reshape(len(self.answers), BUCKETS)

    def _features(self, question: str) -> Places:
        """All questions share bucket 0. A word that occurs twice counts twice. The question as a whole is one
        more word, so that its answer can be learnt by heart."""
        question = question[:MOST_QUESTION]
        words = [question, *re.findall(r"\w+", question)[-MOST_WORDS:]]
        hashes = [zlib.crc32(word.encode("utf-8", "surrogatepass"), self._salt) for word in words]
        return np.array([0, *(1 + number % (BUCKETS - 1) for number in hashes)], dtype=np.intp)

    def _log_probs(self, features: Places, temperature: float) -> Numbers:
        logits = self._scores[:, features].sum(axis=1, dtype=np.float64) / (temperature or 1.0)
        logits -= logits.max()
        return np.asarray(logits - math.log(float(np.exp(logits).sum())))

    def _usable(self, group: LearningGroup, before: Numbers, learning: Learning) -> list[tuple[int, float]]:
        """The answers to learn from, by index, with their advantages: those that the table can write."""
        pairs = [
            (self._index[completion.text], advantage)
            for completion, advantage in zip(group.completions, group.advantages, strict=True)
            if completion.text in self._index
        ]
        if group.foreign and learning.foreign == "positive":
            pairs = [(index, advantage) for index, advantage in pairs if advantage > 0]
        elif group.foreign and learning.foreign in ("band", "truncated"):
            # Without a tokenizer there are no importance weights: "truncated" is "band".
            pairs = [(index, advantage) for index, advantage in pairs if before[index] >= learning.band]
        return pairs

    def _add(self, texts: Iterable[str]) -> None:
        """Takes in new answers; in a full table they replace the learnt ones with the lowest scores."""
        for text in texts:
            if text in self._index or len(text) > MOST_CHARACTERS or SURROGATE.search(text):
                continue
            # A new answer is as likely as the average one.
            scores = self._scores.mean(axis=0, keepdims=True)
            if len(self.answers) < MOST_ANSWERS:
                self._index[text] = len(self.answers)
                self.answers.append(text)
                self._scores = np.concatenate([self._scores, scores])
                continue
            initial = len(CANDIDATES[self._name])
            worst = initial + int(self._scores[initial:, 0].argmin())
            del self._index[self.answers[worst]]
            self._index[text] = worst
            self.answers[worst] = text
            self._scores = self._scores.copy()
            self._scores[worst] = scores

    def _gradient(
        self, batch: list[Part], learning: Learning, temperature: float, tokens: int
    ) -> tuple[float, Scores]:
        """The clipped loss, as in TRL, and the direction that lowers it."""
        gradient = np.zeros_like(self._scores)
        loss = 0.0
        for features, chosen, advantages, before in batch:
            log_probs = self._log_probs(features, temperature)
            ratio = np.exp(log_probs[chosen] - before)
            free = ratio * advantages
            bounded = np.clip(ratio, 1 - learning.clip_low, 1 + learning.clip_high) * advantages
            loss -= float(np.minimum(free, bounded).sum())
            weights = np.where(free <= bounded, free, 0.0)
            direction = np.exp(log_probs) * -weights.sum()
            np.add.at(direction, chosen, weights)
            direction /= temperature * tokens
            for feature in features:
                gradient[:, feature] += direction
        return loss / tokens, gradient


def _nucleus(log_probs: Numbers, top_p: float) -> Numbers:
    """The log-probs among the likeliest answers, as few as have the probability `top_p` together; the others
    have none left."""
    if top_p >= 1:
        return log_probs
    order = np.argsort(-log_probs, kind="stable")
    share = np.exp(log_probs[order])
    kept = order[np.cumsum(share) - share < top_p]
    found = np.full_like(log_probs, -np.inf)
    found[kept] = log_probs[kept] - math.log(float(np.exp(log_probs[kept]).sum()))
    return found
