"""Accounts: the worth of each author's items to this node, counted here and never claimed by anyone.

They set how often an author is drawn and how early its frames are fetched: the incentive to be useful. The
file is replaced whole. A damaged one is put aside and the accounts start afresh; `notice` says so.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import msgspec

from shoal.errors import PeerError
from shoal.files import replace_whole
from shoal.swarm.identity import NodeId

Credit: TypeAlias = Literal["verified", "rejected", "passed_over", "used", "useful"]
CREDITS = get_args(Credit)

ACCOUNTS = "accounts.json"
"""The file of a node, in its folder."""
PROBATION_ITEMS = 4
UNKNOWN_KIND = "unknown kind"
REPEATED = "repeated"
SUPERSEDED = "superseded"
NO_ROOM = "no room"
WAITED_TOO_LONG = "waited too long"
FOR_OTHERS = "for others"
KNOWN_BEFORE = "known from before a restart"
LOST_BEFORE = "not here at a restart"
"""Reasons why an item that its author has shared is not handed out; further ones are rejections."""

SMALLEST_WEIGHT = 0.02
MOST_REASONS = 32


class Account(msgspec.Struct):
    """One author. Counts items, except that `rejected` also counts frames that broke the rules.

    Every item that the author says it has shared is `received`, which is handed out to the application,
    `waiting` to be, `refused` for a reason, or `missing`. Of those received some were `verified`, `used` and
    `useful` to the application. Those `passed_over` could not be checked here: they change nothing else, for
    better or worse."""

    received: int = 0
    verified: int = 0
    used: int = 0
    useful: int = 0
    rejected: dict[str, int] | None = None  # by reason
    heard_at: float = 0.0
    passed_over: int = 0
    claimed: int = 0  # items that the author says it has shared
    waiting: int = 0
    refused: dict[str, int] | None = None  # by reason

    @property
    def rejections(self) -> int:
        return sum(self.rejected.values()) if self.rejected else 0

    @property
    def here(self) -> int:
        """The items that came, whatever became of them."""
        return self.received + self.waiting + (sum(self.refused.values()) if self.refused else 0)

    @property
    def shared(self) -> int:
        """The items that the author has shared, as it says; or, if it says less, those that came."""
        return max(self.claimed, self.here)

    @property
    def missing(self) -> int:
        """Items that are on the way, wait at the author, or are lost for good."""
        return self.shared - self.here

    def refuse(self, reason: str, items: int = 1) -> None:
        """Books items that are not handed out; a negative number takes some back."""
        if items:
            refused = self.refused = self.refused or {}
            refused[reason] = refused.get(reason, 0) + items
            if refused[reason] <= 0:
                del refused[reason]

    def reject(self, reason: str) -> None:
        if self.rejected is None:
            self.rejected = {}
        if reason not in self.rejected and len(self.rejected) >= MOST_REASONS:
            reason = "other"
        self.rejected[reason] = self.rejected.get(reason, 0) + 1


class Saved(msgspec.Struct):
    """The content of the file."""

    version: int
    epoch: int
    accounts: dict[str, Account]
    probation_items: int = PROBATION_ITEMS


def established(account: Account, probation_items: int) -> bool:
    """Whether an author has left probation: enough of its items verified, and more than were rejected."""
    return account.verified >= probation_items and account.verified > account.rejections


def weight(account: Account) -> float:
    """The chance of an author to be drawn, from 0.02 to 1: the part of its used items that were useful, times
    the part of its checked items that held up. An unknown part counts as one half."""
    worth = (1 + account.useful) / (2 + account.used)
    honesty = (2 + account.verified) / (2 + account.verified + account.rejections)
    return max(SMALLEST_WEIGHT, min(1.0, worth * honesty))


class Accounts:
    """The accounts of at most `most` authors; the least useful one makes room for a new one."""

    def __init__(self, most: int = 4096) -> None:
        self.most = most
        self._probation_items = PROBATION_ITEMS
        self.epoch = 0  # of this node's last start: the next one is later whatever the clock says
        self.notice = ""
        self.established: set[NodeId] = set()  # those who have left probation
        self._accounts: dict[NodeId, Account] = {}

    def __len__(self) -> int:
        return len(self._accounts)

    def __iter__(self) -> Iterator[NodeId]:
        return iter(self._accounts)

    def get(self, author: NodeId) -> Account | None:
        return self._accounts.get(author)

    def of(self, author: NodeId) -> Account:
        """The account of an author whose signature was verified, opened if there is none."""
        account = self._accounts.get(author)
        if account is None:
            if len(self._accounts) >= self.most:
                self._close_least_useful()
            account = self._accounts[author] = Account()
        return account

    def _close_least_useful(self) -> None:
        # An eighth at once, so that a flood of new names does not cost a search each.
        def worth(author: NodeId) -> tuple[int, int, float, NodeId]:
            account = self._accounts[author]
            return (account.useful, account.verified, account.heard_at, author)

        for author in sorted(self._accounts, key=worth)[: max(1, self.most // 8)]:
            del self._accounts[author]
            self.established.discard(author)

    def expire(self, oldest: float) -> None:
        """Closes the accounts of authors that were silent since then and gave nothing that was verified."""
        for author, account in list(self._accounts.items()):
            if account.heard_at < oldest and not (account.verified or account.used or account.waiting):
                del self._accounts[author]

    def refuse(self, author: NodeId, reason: str, items: int = 1) -> None:
        """Books items that are not handed out."""
        if items:
            self.of(author).refuse(reason, items)

    def credit(self, author: NodeId, credit: Credit, reason: str = "") -> None:
        """Books the fate of one item."""
        if credit not in CREDITS:
            raise PeerError(f"no such credit for an item: {credit!r} ({', '.join(CREDITS)})")
        if credit == "rejected":
            self.reject(author, reason or "application")
        else:
            account = self.of(author)
            setattr(account, credit, getattr(account, credit) + 1)
            self._judge(author, account)

    def reject(self, author: NodeId, reason: str) -> None:
        """Books an item, or a frame, that its author should not have sent."""
        account = self.of(author)
        account.reject(reason)
        self._judge(author, account)

    def raise_to(self, author: NodeId, counted: Account) -> bool:
        """Raises the account's counts to those that were counted elsewhere; whether any was lower."""
        account = self.of(author)
        before = msgspec.json.encode(account)
        account.waiting = max(0, account.waiting - max(0, counted.received - account.received))
        for name in ("received", "verified", "passed_over"):
            setattr(account, name, max(getattr(account, name), getattr(counted, name)))
        if counted.rejected:
            known = account.rejected or {}
            account.rejected = known | {
                reason: max(count, known.get(reason, 0)) for reason, count in counted.rejected.items()
            }
        self._judge(author, account)
        return msgspec.json.encode(account) != before

    def begin(self, now: float) -> None:
        """A new start. Its epoch is later than every earlier one's, also if the clock was set back. Items
        that the last start did not hand out count as lost, because this one cannot tell which of those that
        come are among them."""
        self.epoch = max(int(now * 1e6), self.epoch + 1)
        for account in self._accounts.values():
            lost, account.waiting = account.waiting + account.missing, 0
            account.refuse(LOST_BEFORE, lost)

    def expect(self, probation_items: int) -> None:
        """Sets how many verified items end probation."""
        self._probation_items = probation_items
        for author, account in self._accounts.items():
            self._judge(author, account)

    def _judge(self, author: NodeId, account: Account) -> None:
        if established(account, self._probation_items):
            self.established.add(author)
        else:
            self.established.discard(author)

    def weight(self, author: NodeId) -> float:
        account = self._accounts.get(author)
        return 0.5 if account is None else weight(account)

    def promising(self, author: NodeId) -> bool:
        """Whether items of an author on probation held up: a crowd of unknown ones must not keep it out."""
        account = self._accounts.get(author)
        return account is not None and account.verified > account.rejections

    def encode(self) -> bytes:
        """The content of the file."""
        saved = Saved(1, self.epoch, dict(sorted(self._accounts.items())), self._probation_items)
        return msgspec.json.format(msgspec.json.encode(saved), indent=1)

    def save(self, path: str | Path) -> None:
        write_accounts(Path(path), self.encode())

    @classmethod
    def load(cls, path: str | Path, most: int = 4096) -> Accounts:
        """The accounts kept at `path`; empty ones if there is no file, or none that can be understood."""
        path = Path(path)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return cls(most)
        except OSError as error:
            raise PeerError(f"the accounts file {path} cannot be read: {error.strerror}") from error
        try:
            return cls.decode(content, most)
        except (msgspec.MsgspecError, ValueError, RecursionError) as error:
            aside = _put_aside(path)
            accounts = cls(most)
            accounts.notice = (
                f"the accounts file {path} is damaged ({error}); kept as {aside}, starting afresh"
            )
            return accounts

    @classmethod
    def decode(cls, content: bytes, most: int = 4096) -> Accounts:
        """The accounts in the content of a file; ValueError or a MsgspecError if they are none."""
        saved = msgspec.json.decode(content, type=Saved)
        if saved.version != 1:
            raise ValueError(f"its version is {saved.version}, not 1")
        accounts = cls(most)
        accounts.epoch, accounts._probation_items = saved.epoch, saved.probation_items
        for author, account in saved.accounts.items():
            accounts.of(author)
            accounts._accounts[author] = account
            accounts._judge(author, account)
        return accounts


def _put_aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_name(f"{path.name}.damaged-{number}")).exists():
        number += 1
    os.replace(path, aside)
    return aside


def write_accounts(path: Path, content: bytes) -> None:
    """Replaces the file whole."""
    try:
        replace_whole(path, content)
    except OSError as error:
        raise PeerError(f"the accounts file {path} cannot be written: {error.strerror}") from error
