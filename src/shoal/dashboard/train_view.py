"""What a page shows of one node's training: curves, counts, and a few rollouts with their verdicts.

Rollouts are kept as they came and decoded only when a page asks: most are never looked at.
"""

from __future__ import annotations

from collections import Counter, OrderedDict, deque
from typing import Any

import msgspec

from shoal.dashboard.seen import ForeignGroup, TrainAnswer, TrainEvidence, TrainNote
from shoal.dashboard.series import Curves
from shoal.dashboard.text import shown, shown_line
from shoal.runs.records import Arrived, VerdictGiven

MOST_ROLLOUTS = 12
MOST_WAITING = 64
MOST_BYTES = 256 << 10
"""A larger group is named, not shown."""
MOST_COMPLETIONS = 8
QUESTION, COMPLETION = 1500, 800
MOST_REASONS = 32

_note = msgspec.json.Decoder(TrainNote).decode
_answer = msgspec.json.Decoder(TrainAnswer).decode
_foreign = msgspec.json.Decoder(ForeignGroup).decode
_evidence = msgspec.json.Decoder(TrainEvidence).decode

Key = tuple[str, int, int, int]


class TrainView:
    def __init__(self) -> None:
        self.curves = Curves()
        self.step = 0
        self.pool = 0
        self.held_out: dict[str, tuple[int, int, float]] = {}
        self.dropped: Counter[str] = Counter()
        self.refused: Counter[str] = Counter()
        self.used: Counter[str] = Counter()
        self.totals: Counter[str] = Counter()
        self.last: dict[str, float | None] = {}
        self.rollouts_version = 0
        self._own: deque[tuple[int, msgspec.Raw | None]] = deque(maxlen=MOST_ROLLOUTS // 4)
        self._waiting: OrderedDict[Key, msgspec.Raw | None] = OrderedDict()
        self._foreign: deque[tuple[VerdictGiven, msgspec.Raw | None]] = deque(maxlen=MOST_ROLLOUTS)

    def answered(self, turn: int, raw: msgspec.Raw) -> None:
        if b'"groups"' in memoryview(raw)[:256].tobytes():
            self._own.append((turn, raw.copy() if len(memoryview(raw)) <= MOST_BYTES else None))
            self.rollouts_version += 1

    def arrived(self, item: Arrived) -> None:
        raw = item.item
        self._waiting[(item.author, item.epoch, item.seq, item.index)] = (
            raw.copy() if len(memoryview(raw)) <= MOST_BYTES else None
        )
        if len(self._waiting) > MOST_WAITING:
            self._waiting.popitem(last=False)

    def judged(self, verdict: VerdictGiven) -> None:
        key = (verdict.author, verdict.epoch, verdict.seq, verdict.index)
        if key in self._waiting:
            self._foreign.append((verdict, self._waiting.pop(key)))
            self.rollouts_version += 1

    def noted(self, raw: msgspec.Raw) -> tuple[TrainNote, str]:
        note = _note(raw)
        add = self.curves.add
        if note.kind == "evaluation":
            total = sum(one.total for one in note.held_out.values())
            reward = sum(one.reward for one in note.held_out.values())
            add("held-out reward", note.step, reward / total if total else None)
            families = list(note.held_out.items())[:MOST_REASONS]
            self.held_out = {
                shown_line(name, 60): (one.right, one.total, one.reward) for name, one in families
            }
        else:
            self.step, self.pool = note.step, note.pool
        if note.kind == "step":
            add("reward, own", note.step, note.reward_local)
            add("reward, foreign", note.step, note.reward_external)
            add("reward, batch", note.step, note.reward_batch)
            add("informative, own", note.step, note.own_informative / note.own if note.own else None)
            add("informative, foreign", note.step, note.found / note.verified if note.verified else None)
            add("oldest used", note.step, note.oldest if note.used else None)
            add("pool", note.step, note.pool)
            add("loss", note.step, note.loss)
            add("gradient norm", note.step, note.gradient_norm)
            for name, value in note.parts.items():
                add(f"part: {shown_line(name, 40)}", note.step, value)
            self.last = {
                "reward, own": note.reward_local,
                "reward, foreign": note.reward_external,
                "loss": note.loss,
            }
        for name in ("own", "own_informative", "seen", "verified", "found", "used", "tokens"):
            self.totals[name] += getattr(note, name)
        for reasons, counts in ((self.dropped, note.dropped), (self.refused, note.refused)):
            count_reasons(reasons, counts)
        for author in note.used_authors:
            if author in self.used or len(self.used) < 512:
                self.used[author] += 1
        return note, note.said

    def rollouts(self) -> list[dict[str, Any]]:
        """The newest groups, own ones first, as the page shows them. What cannot be read is named."""
        found: list[dict[str, Any]] = []
        for turn, own in reversed(self._own):
            if own is None:
                found.append(_too_large(turn, ""))
                continue
            try:
                groups = _answer(own).groups
            except msgspec.MsgspecError:
                continue
            for group in groups[: MOST_ROLLOUTS // 3]:
                texts = [(one.text, one.finished) for one in group.completions]
                found.append(_group(turn, "", "", group.task.family, group.question, texts, group.scores))
        for verdict, item in reversed(self._foreign):
            if item is None:
                found.append(_too_large(verdict.turn, verdict.author))
                continue
            try:
                foreign = _foreign(item)
                rewards = _evidence(verdict.evidence).rewards if verdict.accepted else []
            except msgspec.MsgspecError:
                continue
            texts = [(one.text, one.finished) for one in foreign.completions]
            author, family = verdict.author, foreign.task.family
            one = _group(verdict.turn, author, foreign.model, family, foreign.question, texts, rewards)
            reason = shown_line(verdict.reason, 100)
            one["verdict"] = "accepted" if verdict.accepted else f"rejected: {reason}"
            found.append(one)
        return found


def count_reasons(total: Counter[str], counts: dict[str, int]) -> None:
    """Adds counts by reason; beyond a bounded number of reasons they are "other"."""
    for reason, count in counts.items():
        reason = shown_line(reason, 60)
        total[reason if reason in total or len(total) < MOST_REASONS else "other"] += count


def _group(
    turn: int,
    author: str,
    model: str,
    family: str,
    question: str,
    completions: list[tuple[str, bool]],
    rewards: list[float],
) -> dict[str, Any]:
    return {
        "turn": turn,
        "author": author[:128],
        "model": shown_line(model, 120),
        "family": shown_line(family, 60),
        "question": shown(question, QUESTION),
        "verdict": "scored here",
        "more": max(0, len(completions) - MOST_COMPLETIONS),
        "completions": [
            [shown(text, COMPLETION), finished, rewards[index] if index < len(rewards) else None]
            for index, (text, finished) in enumerate(completions[:MOST_COMPLETIONS])
        ],
    }


def _too_large(turn: int, author: str) -> dict[str, Any]:
    one = _group(turn, author, "", "", f"(more than {MOST_BYTES} bytes: not shown)", [], [])
    one["verdict"] = "too large to show"
    return one
