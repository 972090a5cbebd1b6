"""One node's training on the page: curves, counts, and rollouts, which are decoded when a page asks."""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Sequence
from contextlib import suppress
from hashlib import blake2b
from typing import Any

import msgspec

from shoal.dashboard.bounds import DIGEST, NAME, Tally, plain, shown, shown_line
from shoal.dashboard.view import Authors, View
from shoal.runs.records import Arrived, VerdictGiven
from shoal.runs.training import (
    Completion,
    RolloutGroup,
    Sampled,
    SampledGroups,
    TrainAnswer,
    TrainEvidence,
    TrainNote,
)

MOST_ROLLOUTS = 12
MOST_WAITING = 64
MOST_BYTES = 256 << 10  # a larger group is named, not shown
MOST_COMPLETIONS = 8
QUESTION, COMPLETION = 1500, 800
MATCHED_TURNS = 200  # turns whose own groups are remembered for telling which author the node is

_note = msgspec.json.Decoder(TrainNote).decode
_answer: Callable[[msgspec.Raw], TrainAnswer] = msgspec.json.Decoder(TrainAnswer).decode
_group = msgspec.json.Decoder(RolloutGroup).decode
_evidence = msgspec.json.Decoder(TrainEvidence).decode

Key = tuple[str, int, int, int]


class TrainView(View):
    tabs = ("train",)

    def __init__(self, name: str, model: str, authors: Authors) -> None:
        super().__init__(name, model, authors)
        self.step = 0
        self.reward: float | None = None
        self.held_out: float | None = None
        self.dropped = Tally()
        self.refused = Tally()
        self.totals: Counter[str] = Counter()
        self._own: deque[tuple[int, msgspec.Raw | None]] = deque(maxlen=MOST_ROLLOUTS // 4)
        self._waiting: OrderedDict[Key, msgspec.Raw | None] = OrderedDict()
        self._foreign: deque[tuple[VerdictGiven, msgspec.Raw | None]] = deque(maxlen=MOST_ROLLOUTS)

    def answered(self, turn: int, answer: msgspec.Raw) -> None:
        if b'"groups"' not in memoryview(answer)[:256].tobytes():
            return
        self._own.append((turn, _copied(answer)))
        self.rollouts_version += 1
        if turn <= MATCHED_TURNS and isinstance(found := _answer(answer), SampledGroups):
            for group in found.groups:
                self.authors.made(self.name, _mark(group.question, group.completions))

    def arrived(self, item: Arrived) -> None:
        if item.kind != "rollouts":  # the question of a judge
            return
        self._waiting[item.author, item.epoch, item.seq, item.index] = _copied(item.item)
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)
        author = item.author[:DIGEST]
        if self.authors.wants(author):
            group = _group(item.item)
            self.authors.came(author, self.name, _mark(group.question, group.completions))

    def judged(self, verdict: VerdictGiven) -> None:
        key = (verdict.author, verdict.epoch, verdict.seq, verdict.index)
        if key in self._waiting:
            self._foreign.append((verdict, self._waiting.pop(key)))
            self.rollouts_version += 1

    def noted(self, note: msgspec.Raw, version: int) -> str:
        found = _note(note)
        if found.kind == "evaluation":
            self.held_out = found.reward_held_out
            self.curves.add("Held-out reward", found.step, self.held_out)
        else:
            self.step = found.step
        if found.kind == "step":
            self.reward = found.reward_local
            for title, value in _values(found).items():
                self.curves.add(title, found.step, value)
        for name in ("own", "own_informative", "seen", "verified", "found", "used", "tokens"):
            self.totals[name] += getattr(found, name)
        for tally, counts in ((self.dropped, found.dropped), (self.refused, found.refused)):
            for reason, count in counts.items():
                tally.add(reason, count)
        for author in found.used_authors:
            self.used.add(author)
        return found.said

    def head(self, turn: int) -> dict[str, Any]:
        rewards = {"own reward": self.reward, "held-out": self.held_out}
        result = ", ".join(f"{name} {value:.3g}" for name, value in rewards.items() if value is not None)
        return {
            "progress": f"step {plain(self.step):,}",
            "result": result or "–",
            "dropped": self.dropped,
            "refused": self.refused,
            "totals": self.totals,
        }

    def rollouts(self) -> list[dict[str, Any]]:
        """The newest groups, own ones first, as the page shows them. Unreadable ones are left out."""
        found: list[dict[str, Any]] = []
        for turn, own in reversed(self._own):
            if own is None:
                found.append(_too_large(turn, ""))
                continue
            with suppress(msgspec.MsgspecError):
                if isinstance(answer := _answer(own), SampledGroups):
                    found += [
                        _shown_group(turn, one.question, one.completions, one.scores, one.task.family)
                        for one in answer.groups[: MOST_ROLLOUTS // 3]
                    ]
        for verdict, item in reversed(self._foreign):
            if item is None:
                found.append(_too_large(verdict.turn, verdict.author))
                continue
            outcome = "rejected" if verdict.rejected else "passed over"
            said = "accepted" if verdict.accepted else f"{outcome}: {verdict.reason}"
            with suppress(msgspec.MsgspecError):
                group = _group(item)
                rewards = _evidence(verdict.evidence).rewards if verdict.accepted else ()
                who = (group.task.family, verdict.author, group.model)
                found.append(
                    _shown_group(verdict.turn, group.question, group.completions, rewards, *who, said)
                )
        return found


def _values(note: TrainNote) -> dict[str, float | None]:
    """The numbers of a step by the titles of their charts."""
    return {
        "Reward of own completions": note.reward_local,
        "Reward of foreign completions": note.reward_external,
        "Reward of all that was trained on": note.reward_batch,
        "Informative share of own groups": note.own_informative / note.own if note.own else None,
        "Informative share of foreign groups": note.found / note.verified if note.verified else None,
        "Staleness: oldest group used, in steps": note.oldest if note.used else None,
        "Groups waiting in the pool": note.pool,
        "Loss": note.loss,
        "Gradient norm": note.gradient_norm,
        **{f"Loss part: {shown_line(name, 40)}": value for name, value in note.parts.items()},
    }


def _copied(raw: msgspec.Raw) -> msgspec.Raw | None:
    """A copy that does not hold on to the line it came from; None if it is too large to be shown."""
    return raw.copy() if len(memoryview(raw)) <= MOST_BYTES else None


def _mark(question: str, completions: Sequence[Sampled | Completion]) -> str:
    """The same for the same group at its author and at its receivers."""
    digest = blake2b(question.encode("utf-8", "replace"), digest_size=8)
    for one in completions:
        digest.update(b"\0" + one.text.encode("utf-8", "replace"))
    return digest.hexdigest()


def _shown_group(
    turn: int,
    question: str,
    completions: Sequence[Sampled | Completion],
    rewards: Sequence[float],
    family: str = "",
    author: str = "",
    model: str = "",
    verdict: str = "scored here",
) -> dict[str, Any]:
    return {
        "turn": turn,
        "author": author[:DIGEST],
        "model": shown_line(model, NAME),
        "family": shown_line(family, 60),
        "question": shown(question, QUESTION),
        "verdict": shown_line(verdict, 110),
        "more": max(0, len(completions) - MOST_COMPLETIONS),
        "completions": [
            [shown(one.text, COMPLETION), one.finished, rewards[index] if index < len(rewards) else None]
            for index, one in enumerate(completions[:MOST_COMPLETIONS])
        ],
    }


def _too_large(turn: int, author: str) -> dict[str, Any]:
    question = f"(more than {MOST_BYTES} bytes: not shown)"
    return _shown_group(turn, question, (), (), author=author, verdict="too large to show")
