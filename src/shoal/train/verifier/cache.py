"""Verdicts that were found already, within a bound on their number and size."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from collections.abc import Sequence

import msgspec

from shoal.train.verifier.base import Posed, Problem, Refused, Scored

Verdict = Posed | Scored | Refused


class VerdictCache:
    """The newest verdicts by what was asked. A verdict follows from the question alone, so it never ages."""

    def __init__(self, most_entries: int = 4096, most_characters: int = 8 << 20) -> None:
        self._most_entries = most_entries
        self._most_characters = most_characters
        self._entries: OrderedDict[bytes, Verdict] = OrderedDict()
        self._characters = 0
        self._encode = msgspec.msgpack.Encoder().encode

    def key(self, problem: Problem, answers: Sequence[str] | None, foreign: bool) -> bytes:
        """What is asked, in 32 bytes; `answers` is None where only the question is wanted."""
        return hashlib.blake2b(self._encode((problem, answers, foreign)), digest_size=32).digest()

    def get(self, key: bytes) -> Verdict | None:
        found = self._entries.get(key)
        if found is not None:
            self._entries.move_to_end(key)
        return found

    def put(self, key: bytes, verdict: Verdict) -> None:
        self._characters += _size(verdict) - (_size(self._entries[key]) if key in self._entries else 0)
        self._entries[key] = verdict
        self._entries.move_to_end(key)
        while self._entries and (
            len(self._entries) > self._most_entries or self._characters > self._most_characters
        ):
            self._characters -= _size(self._entries.popitem(last=False)[1])

    def __len__(self) -> int:
        return len(self._entries)


def _size(verdict: Verdict) -> int:
    match verdict:
        case Posed(question=question, parameters=parameters, answer=answer):
            return 200 + len(question) + len(parameters) + len(answer)
        case Scored(question=question, scores=scores):
            return 200 + len(question) + 32 * len(scores)
        case Refused(reason=reason):
            return 200 + len(reason)
