"""One node on the page: a fold over its journal, incremental, in bounded memory.

A journal that is being written, is torn at its end or does not exist yet is read as far as it goes; of a
damaged one, `trouble` says where it ends. A payload that is not understood is counted in `unread`.
"""

from __future__ import annotations

import contextlib
import stat
import time
from collections import deque
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from shoal.applications import APPLICATIONS
from shoal.dashboard.bounds import DIGEST, Curves, Tally, plain, shown_line
from shoal.dashboard.view import Authors, View
from shoal.errors import RunError, ShoalError
from shoal.runs import Follower, Ledger, Record, records

MOST_EVENTS = 100
MOST_AUTHORS = 64
MOST_MEASURES = 8
MOST_ACCOUNTS_BYTES = 4 << 20
HEAD = (
    "model application state ended trouble unread turn records changed_at shared not_shared arrived accepted "
    "rejected passed_over missed accounts"
).split()
LEDGER = ("budget", "spent", "reserved", "overrun")
ACCOUNT = ("received", "verified", "used", "useful", "passed_over")
"""The attributes of a node, of its ledger and of an account that the page shows."""

_accounts = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
_account = msgspec.json.Decoder(dict[str, dict[str, int | float | dict[str, int] | None]]).decode


class NodeView:
    """`version` grows with everything that changes the page."""

    def __init__(self, name: str, folder: Path, model: str, authors: Authors) -> None:
        self.name = name
        self.model = model
        self.application = ""
        self.state = "not started"
        self.ended = False
        self.trouble = ""
        self.unread = 0
        self.turn = 0
        self.version = 0
        self.records = 0
        self.bytes_read = 0
        self.size = 0
        self.changed_at = 0.0
        self.ledger = Ledger()
        self.shared = 0
        self.not_shared = Tally()
        self.arrived = Tally(MOST_AUTHORS, DIGEST)
        self.accepted = Tally(MOST_AUTHORS, DIGEST)
        self.rejected = Tally()
        self.passed_over = Tally()
        self.missed = Tally()
        self.accounts: list[dict[str, Any]] = []
        self.spending = Curves(most=6)
        self.events: deque[tuple[int, float, str]] = deque(maxlen=MOST_EVENTS)
        self.view = View(name, model, authors)
        self._path = folder / "journal.jsonl"
        self._accounts_path = folder / "accounts.json"
        self._accounts_at = -1.0
        self._follower = Follower(self._path)

    @property
    def behind(self) -> int:
        """Bytes that are known to be there and were not read yet."""
        return max(0, self.size - self.bytes_read) if not self.trouble else 0

    def head(self) -> dict[str, Any]:
        """Everything about the node that is small."""
        head = {name: getattr(self, name) for name in HEAD}
        head |= {name: _few(getattr(self.ledger, name)) for name in LEDGER}
        found: dict[str, Any] = plain({**head, "used": self.view.used, **self.view.head(self.turn)})
        return found

    def look(self) -> None:
        """Sees how large the journal is now, and reads the accounts if they changed; cheap."""
        with contextlib.suppress(OSError):
            status = self._path.stat()
            if not stat.S_ISREG(status.st_mode):  # a pipe would be waited for without end
                self.version += not self.trouble
                self.trouble = "journal.jsonl is not a regular file"
            self.size, self.changed_at = status.st_size, status.st_mtime
        self._look_at_accounts()

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
                # The rest is a line without its end; it counts as read until the file grows.
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
        try:
            self._fold(record)
        except (ShoalError, msgspec.MsgspecError, ValueError, OverflowError, RecursionError):
            self.unread += 1

    def _fold(self, record: Record) -> None:
        match records.content_of(record):
            case records.Note(note=note):
                if said := self.view.noted(note, self.version):
                    self._tell(record, said)
            case records.Asked(turn=turn, reserve=reserve, request=request, first=first):
                self.ledger.ask(turn, reserve, first)
                self.view.asked(turn, request)
            case records.Sent(turn=turn, amounts=amounts):
                self.ledger.send(turn, amounts)
            case records.Answered(turn=turn, answer=answer, cost=cost):
                self.ledger.answer(turn, cost)
                self.view.answered(turn, answer)
            case records.TurnBegun(turn=turn):
                self.turn = turn
                self.ledger.settle(turn)
                for measure, amount in self.ledger.spent.items():
                    self.spending.add(f"Spent: {measure[:40]}", turn, amount, "last")
            case records.Arrived() as item:
                self.arrived.add(item.author)
                self.view.arrived(item)
            case records.VerdictGiven() as verdict:
                if verdict.accepted:
                    self.accepted.add(verdict.author)
                else:
                    counted = self.rejected if verdict.rejected else self.passed_over
                    counted.add(verdict.reason or "no reason given")
                self.view.judged(verdict)
            case records.Shared(items=items):
                for one in items:
                    if one.refused:
                        self.not_shared.add(one.refused)
                    else:
                        self.shared += 1
            case records.Missed(turn=turn, reason=reason, cost=cost):
                self.ledger.answer(turn, cost)
                self.missed.add(reason)
                self._tell(record, f"turn {plain(turn)} missed: {reason}")
            case records.Started() as started:
                self._started(started)
                self._tell(record, f"started ({started.application}, shoal {started.shoal})")
            case records.Stopped(turn=turn, reason=reason) as stopped:
                self.ended = True
                self.state = "finished" if stopped.finished else f"stopped: {shown_line(reason, 120)}"
                self._tell(record, f"stopped after turn {plain(turn)}: {reason}")

    def _started(self, started: records.Started) -> None:
        self.state, self.ended = "running", False
        self.ledger.budget = _few(started.budget)
        known = APPLICATIONS.get(started.application)
        if known is not None and not self.application:
            self.application = known.name
            self.view = known.load("view")(self.name, self.model, self.view.authors)

    def _tell(self, record: Record, text: str) -> None:
        self.events.append((record.number, record.time, shown_line(text)))

    def _look_at_accounts(self) -> None:
        """The accounts as the swarm writes them: by author, counts by name."""
        try:
            status = self._accounts_path.stat()
            fits = stat.S_ISREG(status.st_mode) and status.st_size <= MOST_ACCOUNTS_BYTES
            if status.st_mtime == self._accounts_at or not fits:
                return
            self._accounts_at = status.st_mtime
            found = _account(_accounts(self._accounts_path.read_bytes())["accounts"])
        except (OSError, KeyError, msgspec.MsgspecError, RecursionError):
            return
        self.accounts = []
        for author, account in found.items():
            reasons, rejected = Tally(), account.get("rejected")
            for reason, count in rejected.items() if isinstance(rejected, dict) else ():
                reasons.add(reason, count)
            counts = {name: of if isinstance(of := account.get(name), int) else 0 for name in ACCOUNT}
            self.accounts.append({"author": author[:DIGEST], **counts, "rejected": reasons})
        self.accounts.sort(key=lambda one: (-one["received"], one["author"]))
        del self.accounts[MOST_AUTHORS:]
        self.version += 1


def _few(amounts: Mapping[str, int]) -> dict[str, int]:
    return {measure[:40]: amount for measure, amount in islice(amounts.items(), MOST_MEASURES)}
