"""What became of the items that peers shared, for `shoal peers` and `shoal show`: counts that add up."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from shoal.node.acquaintances import Acquaintances
    from shoal.swarm.accounts import Account
    from shoal.swarm.identity import NodeId

MOST_PEERS = 8
"""Peers of each node that are told apart, those that shared most first."""


def counts_of(account: Account) -> dict[str, Any]:
    """`shared` is the author's own claim. It is the sum of the others, always."""
    return {
        "shared": account.shared,
        "received": account.received,
        "waiting": account.waiting,
        "refused": account.refused or {},
        "missing": account.missing,
    }


def item_counts(run: Path) -> dict[str, dict[NodeId, dict[str, Any]]]:
    """The counts by node and peer, for programs; empty for a run in one process, which keeps no accounts."""
    return {
        one.node: {author: counts_of(account) for author, account in _told(one)}
        for one in _acquaintances(run)
        if _told(one)
    }


def print_item_counts(found: Sequence[Acquaintances]) -> None:
    """A line for each node and peer."""
    from shoal.swarm.identity import short_name

    lines: list[str] = []
    for one in found:
        told = _told(one)
        seen_by = f"{one.node}: " if one.node else ""
        lines += [
            f"{seen_by}{_sentence(short_name(author), account)}" for author, account in told[:MOST_PEERS]
        ]
        if len(told) > MOST_PEERS:
            lines.append(f"{seen_by}and of {len(told) - MOST_PEERS} more (--json has them)")
    if lines:
        print("\nItems that peers say they have shared, and what became of them:")
        print("\n".join(lines))


def print_items_of(run: Path) -> None:
    print_item_counts(_acquaintances(run))


def _acquaintances(run: Path) -> list[Acquaintances]:
    from shoal.node.acquaintances import acquaintances_in

    return acquaintances_in(run)


def _told(one: Acquaintances) -> list[tuple[NodeId, Account]]:
    """The peers that told how much they shared."""
    accounts = {author: one.accounts.of(author) for author in sorted(one.accounts)}
    told = [(author, account) for author, account in accounts.items() if account.claimed]
    return sorted(told, key=lambda pair: -pair[1].shared)


def _sentence(name: str, account: Account) -> str:
    parts = [f"{account.received:,} received"]
    if account.waiting:
        parts.append(f"{account.waiting:,} waiting")
    if account.refused:
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in sorted(account.refused.items()))
        parts.append(f"{sum(account.refused.values()):,} refused ({reasons})")
    parts.append(f"{account.missing:,} missing")
    return f"{account.shared:,} of {name}: {', '.join(parts)}"
