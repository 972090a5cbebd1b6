"""One node as a page shows it: a fold over its journal, incremental, in bounded memory.

A journal that is being written, is torn at its end or does not exist yet is read as far as it goes. One that
is damaged stops being read: `trouble` says where, and the page shows it. A payload that this version does
not understand is counted in `unread` and passed over.
"""

from __future__ import annotations

import stat
import time
from collections import Counter, deque
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec

from shoal.dashboard.authors import Authors
from shoal.dashboard.search_view import SearchView
from shoal.dashboard.seen import Accounts, ForeignGroup, SearchEvidence, TrainAnswer
from shoal.dashboard.series import Curves
from shoal.dashboard.text import shown_line
from shoal.dashboard.train_view import TrainView, count_reasons
from shoal.errors import RunError
from shoal.runs import Follower, Ledger, Record
from shoal.runs.records import (
    Answered,
    Arrived,
    Asked,
    Missed,
    Note,
    Shared,
    Started,
    Stopped,
    TurnBegun,
    VerdictGiven,
    content_of,
)

MOST_EVENTS = 100
MOST_AUTHORS = 64
MOST_ACCOUNTS_BYTES = 4 << 20
MATCHED_TURNS = 200
"""Turns whose own groups are remembered for telling which author the node is."""

_evidence = msgspec.json.Decoder(SearchEvidence).decode
_foreign = msgspec.json.Decoder(ForeignGroup).decode
_own = msgspec.json.Decoder(TrainAnswer).decode
_accounts = msgspec.json.Decoder(Accounts).decode


class NodeView:
    """`version` grows with everything that changes what is shown."""

    def __init__(self, name: str, folder: Path, model: str, authors: Authors) -> None:
        self.name = name
        self.model = model
        self.application = ""
        self.state = "not started"
        self.trouble = ""
        self.unread = 0
        self.turn = 0
        self.time = 0.0
        self.version = 0
        self.records = 0
        self.bytes_read = 0
        self.size = 0
        self.changed_at = 0.0
        self.ledger = Ledger()
        self.starts = 0
        self.shared = 0
        self.not_shared: Counter[str] = Counter()
        self.arrived: Counter[str] = Counter()
        self.accepted: Counter[str] = Counter()
        self.rejected: Counter[str] = Counter()
        self.missed: Counter[str] = Counter()
        self.claims: dict[str, str] = {}
        self.accounts: list[dict[str, Any]] = []
        self.spending = Curves(most=6)
        self.events: deque[tuple[int, float, str]] = deque(maxlen=MOST_EVENTS)
        self.search: SearchView | None = None
        self.training: TrainView | None = None
        self._authors = authors
        self._path = folder / "journal.jsonl"
        self._accounts_path = folder / "accounts.json"
        self._accounts_at = -1.0
        self._follower = Follower(self._path)

    @property
    def behind(self) -> int:
        """Bytes that are known to be there and were not read yet."""
        return max(0, self.size - self.bytes_read) if not self.trouble else 0

    def look(self) -> bool:
        """Sees how large the journal is now, and reads the accounts if they changed; cheap. True: changed."""
        changed = False
        try:
            status = self._path.stat()
            if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for without end
                changed, self.trouble = not self.trouble, "journal.jsonl is not a regular file"
                self.version += changed
                return changed
            changed = self.changed_at != status.st_mtime
            self.size, self.changed_at = status.st_size, status.st_mtime
        except OSError:
            pass
        return self._look_at_accounts() or changed

    def advance(self, seconds: float) -> int:
        """Reads records for about so many seconds; returns how many. Call `look` before."""
        if not self.behind:
            return 0
        count, until = 0, time.perf_counter() + seconds
        try:
            for record in self._follower.poll():
                self.fold(record)
                count += 1
                if not count % 32 and time.perf_counter() > until:
                    break
            else:
                # What is left is a line without its end; it counts as read until the file grows.
                self.bytes_read = self.size
                return count
        except (RunError, OSError) as error:
            self.trouble = shown_line(str(error).replace(str(self._path), "journal.jsonl"))
            self.version += 1
            return count + 1
        self.bytes_read = self._follower.offset
        return count

    def fold(self, record: Record) -> None:
        self.version += 1
        self.records = record.number
        self.time = record.time
        try:
            self._fold(record)
        except (RunError, msgspec.MsgspecError, ValueError, OverflowError):
            self.unread += 1

    def _fold(self, record: Record) -> None:
        match content_of(record):
            case Note(note=note):
                self._noted(record, note)
            case Asked(turn=turn, reserve=reserve, request=request):
                self.ledger.ask(turn, reserve)
                if self.search is not None:
                    self.search.asked(turn, request)
            case Answered(turn=turn, answer=answer, cost=cost):
                self.ledger.answer(turn, cost)
                self._answered(turn, answer)
            case TurnBegun(turn=turn):
                self.turn = turn
                self.ledger.settle(turn)
                for measure, amount in self.ledger.spent.items():
                    self.spending.add(measure[:40], turn, amount, "last")
            case Arrived() as item:
                self._arrived(item)
            case VerdictGiven() as verdict:
                self._judged(verdict)
            case Shared(items=items):
                for one in items:
                    if one.refused:
                        count_reasons(self.not_shared, {one.refused: 1})
                    else:
                        self.shared += 1
            case Missed(turn=turn, reason=reason, cost=cost):
                self.ledger.answer(turn, cost)
                count_reasons(self.missed, {reason: 1})
                self._tell(record, f"turn {turn} missed: {reason}")
            case Started() as started:
                self._started(started)
                self._tell(record, f"started ({started.application}, shoal {started.shoal})")
            case Stopped(turn=turn, reason=reason):
                self.state = f"stopped: {shown_line(reason, 120)}"
                self._tell(record, f"stopped after turn {turn}: {reason}")

    def _started(self, started: Started) -> None:
        self.application = started.application[:40]
        self.state = "running"
        self.starts += 1
        self.ledger.budget = dict(list(started.budget.items())[:8])
        if started.application == "evolve" and self.search is None:
            self.search = SearchView(self.name, self.model)
        elif started.application == "train" and self.training is None:
            self.training = TrainView()

    def _answered(self, turn: int, answer: msgspec.Raw) -> None:
        if self.search is not None:
            self.search.answered(turn, answer)
        elif self.training is not None:
            self.training.answered(turn, answer)
            if turn <= MATCHED_TURNS:
                for group in _own(answer).groups:
                    texts = [one.text for one in group.completions]
                    self._authors.made(self.name, _mark(group.question, texts))

    def _noted(self, record: Record, raw: msgspec.Raw) -> None:
        said = ""
        if self.search is not None:
            note, said = self.search.noted(raw, self.version)
            if note.step == "close":
                self._authors.made(self.name, note.digest)
        elif self.training is not None:
            _, said = self.training.noted(raw)
        if said:
            self._tell(record, said)

    def _arrived(self, item: Arrived) -> None:
        author = item.author[:128]
        if author not in self.arrived and len(self.arrived) >= MOST_AUTHORS:
            author = "others"
        self.arrived[author] += 1
        if self.training is not None:
            self.training.arrived(item)
            if self._authors.wants(author):
                group = _foreign(item.item)
                self.claims[author] = shown_line(group.model, 120)
                texts = [one.text for one in group.completions]
                self._authors.came(author, self.name, _mark(group.question, texts))

    def _judged(self, verdict: VerdictGiven) -> None:
        if verdict.accepted:
            author = verdict.author[:128]
            self.accepted[author if author in self.arrived else "others"] += 1
            if self.search is not None and self._authors.wants(author):
                self._authors.came(author, self.name, _evidence(verdict.evidence).digest)
        else:
            count_reasons(self.rejected, {verdict.reason or "no reason given": 1})
        if self.training is not None:
            self.training.judged(verdict)

    def _tell(self, record: Record, text: str) -> None:
        self.events.append((record.number, record.time, shown_line(text)))

    def _look_at_accounts(self) -> bool:
        try:
            status = self._accounts_path.stat()
            fits = stat.S_ISREG(status.st_mode) and status.st_size <= MOST_ACCOUNTS_BYTES
            if status.st_mtime == self._accounts_at or not fits:
                return False
            self._accounts_at = status.st_mtime
            found = _accounts(self._accounts_path.read_bytes()).accounts
        except (OSError, msgspec.MsgspecError):
            return False
        ranked = sorted(found.items(), key=lambda pair: (-pair[1].received, pair[0]))[:MOST_AUTHORS]
        self.accounts = []
        for author, account in ranked:
            reasons: Counter[str] = Counter()
            count_reasons(reasons, account.rejected or {})
            self.accounts.append(
                {
                    "author": author[:128],
                    "received": account.received,
                    "verified": account.verified,
                    "used": account.used,
                    "useful": account.useful,
                    "rejected": reasons,
                }
            )
        self.version += 1
        return True


def _mark(question: str, texts: list[str]) -> str:
    """The same for the same group at its author and at its receivers."""
    digest = blake2b(question.encode("utf-8", "replace"), digest_size=8)
    for text in texts:
        digest.update(b"\0" + text.encode("utf-8", "replace"))
    return digest.hexdigest()
