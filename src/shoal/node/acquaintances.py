"""The peers of a node as its folder tells them, also while the run goes on: accounts, journal and presence.

The exchange writes accounts once a minute and at the end, and a run in one process writes none. The journal
has every item and every verdict at once. Both count the same things and never down: the greater number holds.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from shoal.errors import RunError
from shoal.node.crew import PRIVATE_PROBATION
from shoal.runs import read
from shoal.runs.records import Arrived, VerdictGiven, content_of
from shoal.swarm.accounts import ACCOUNTS, Accounts
from shoal.swarm.presence import PRESENCE, peers_seen


@dataclass(frozen=True)
class Acquaintances:
    """The accounts of a node as they are now, and the number of peers that it has `heard`. `is_behind`: the
    journal knew more than the accounts, which alone count what was used and useful. `trouble`: the place up
    to which a damaged journal was read."""

    node: str
    accounts: Accounts
    heard: int = 0
    is_behind: bool = False
    trouble: str = ""


def acquaintances_in(kept: Path) -> list[Acquaintances]:
    """Those of all nodes in a run's folder, of one node in its own folder, or of an accounts file."""
    if not kept.is_dir():
        return [Acquaintances("", Accounts.load(kept))] if kept.exists() else []
    folders = [kept, *sorted(folder for folder in kept.glob("nodes/*") if folder.is_dir())]
    return [_of(folder) for folder in folders if any((folder / name).exists() for name in _FILES)]


_JOURNAL = "journal.jsonl"
_FILES = (ACCOUNTS, _JOURNAL)


def _of(folder: Path) -> Acquaintances:
    accounts = Accounts.load(folder / ACCOUNTS)
    if not (folder / ACCOUNTS).exists():
        accounts.expect(PRIVATE_PROBATION)  # only nodes of a private swarm have none
    journal, trouble = folder / _JOURNAL, ""
    counted = Accounts(accounts.most)
    try:
        for author, outcome, reason in _fates(journal) if journal.exists() else ():
            if outcome == "received":
                counted.of(author).received += 1
            elif outcome == "rejected":
                counted.of(author).reject(reason)
            else:
                account = counted.of(author)
                setattr(account, outcome, getattr(account, outcome) + 1)
    except RunError as error:
        trouble = str(error)
    is_behind = False
    for author in counted:
        found = counted.of(author)
        is_behind = accounts.raise_to(author, found) or is_behind
    return Acquaintances(folder.name, accounts, peers_seen(folder / PRESENCE), is_behind, trouble)


def _fates(journal: Path) -> Iterator[tuple[str, str, str]]:
    for record in read(journal):
        match content_of(record):
            case Arrived(author=author):
                yield author, "received", ""
            case VerdictGiven() as verdict:
                yield verdict.author, verdict.outcome, verdict.reason.partition(":")[0] or "application"
