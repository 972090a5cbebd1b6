"""One turn of a training run in full: questions, completions, scores; own and received groups."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

import msgspec

from shoal.errors import ConfigError
from shoal.runs import RunFolder, read
from shoal.runs.records import Answered, Arrived, VerdictGiven, content_of, decode_payload, refusing
from shoal.runs.training import OwnGroup, RolloutGroup, SampledGroups, TrainAnswer, TrainEvidence
from shoal.swarm import Place
from shoal.train.settings import TrainSettings

_ANSWER: Any = TrainAnswer
Key = tuple[str, Place]


class ShownCompletion(msgspec.Struct, frozen=True):
    """`score` is None if this node has not scored it. `finished` is its author's word."""

    text: str
    finished: bool
    score: float | None


class ShownGroup(msgspec.Struct, frozen=True):
    """`author` is a key, and `model` the author's word; both are "" for own groups. `verdict`: "own",
    "accepted", or a reason."""

    author: str
    model: str
    verdict: str
    family: str
    question: str
    completions: list[ShownCompletion]


class Transcript(msgspec.Struct, frozen=True):
    node: str
    turn: int
    groups: list[ShownGroup]


def read_transcript(settings: TrainSettings, folder: Path, name: str, turn: int) -> Transcript:
    """Own groups of the turn, then the foreign ones verified in it. ConfigError if there are none."""
    names = settings.node_names()
    found = [known for known in names if known == name or known.partition("-")[0] == name]
    if len(found) != 1:
        listed = ", ".join(names[:12]) + ("…" if len(names) > 12 else "")
        raise ConfigError(f"there is no node {name[:64]!r}: the run has {listed}")
    (node,) = found
    path = RunFolder.look(folder).journal_path(node)
    own: list[ShownGroup] = []
    turns: list[int] = []
    verdicts: dict[Key, VerdictGiven] = {}
    for record in read(path) if path.exists() else ():
        if record.kind not in ("answered", "verdict"):
            continue
        with refusing(path, record):
            content = content_of(record)
        if isinstance(content, Answered):
            where = f"{path}: record {record.number}"
            answer: TrainAnswer = decode_payload(content.answer, _ANSWER, where)
            if isinstance(answer, SampledGroups):
                turns.append(content.turn)
                if content.turn == turn:
                    own = [_shown(group, group.scores) for group in answer.groups]
        elif isinstance(content, VerdictGiven) and content.turn == turn:
            verdicts[_key(content)] = content
    if turn not in turns and not verdicts:
        raise ConfigError(f"{node} has no rollouts of turn {turn}: {_which(turns)}")
    return Transcript(node, turn, [*own, *_foreign(path, verdicts)])


def _foreign(path: Path, verdicts: dict[Key, VerdictGiven]) -> list[ShownGroup]:
    """Read in a second pass: only the first tells which of thousands of arrived items matter."""
    found: list[ShownGroup] = []
    for record in read(path) if verdicts else ():
        content = content_of(record) if record.kind == "arrived" else None
        if not isinstance(content, Arrived):
            continue
        verdict = verdicts.pop(_key(content), None)
        if verdict is None:
            continue
        group = decode_payload(content.item, RolloutGroup, f"{path}: record {record.number}")
        if verdict.accepted:
            where = f"{path}: a verdict of turn {verdict.turn}"
            rewards = decode_payload(verdict.evidence, TrainEvidence, where).rewards
            found.append(_shown(group, rewards, content.author, "accepted"))
        else:
            said = "passed over" if verdict.passed_over else "rejected"
            found.append(_shown(group, (), content.author, f"{said}: {verdict.reason}"))
    return found


def _shown(
    group: OwnGroup | RolloutGroup, scores: Sequence[float], author: str = "", verdict: str = "own"
) -> ShownGroup:
    model = group.model if isinstance(group, RolloutGroup) else ""
    texts: Sequence[Any] = group.completions
    pairs = zip_longest(texts, scores[: len(texts)])
    completions = [ShownCompletion(one.text, one.finished, score) for one, score in pairs]
    return ShownGroup(author, model, verdict, group.task.family, group.question, completions)


def _key(item: VerdictGiven | Arrived) -> Key:
    return (item.author, Place(item.kind, item.epoch, item.seq, item.index))


def _which(turns: list[int]) -> str:
    """Turns as ranges, a few of them."""
    if not turns:
        return "it has none yet"
    ranges: list[list[int]] = []
    for turn in sorted(set(turns)):
        if ranges and turn == ranges[-1][1] + 1:
            ranges[-1][1] = turn
        else:
            ranges.append([turn, turn])
    shown = [str(first) if first == last else f"{first}–{last}" for first, last in ranges]
    return f"there are {', '.join(shown[:8])}{f' … {shown[-1]}' if len(shown) > 8 else ''}"
