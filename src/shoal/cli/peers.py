"""`shoal peers`: the nodes of a swarm, and their accounts with this node."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from shoal.cli import options
from shoal.cli.network import NetworkOptions, with_network
from shoal.cli.options import option
from shoal.cli.running import NOBODY_HEARD
from shoal.errors import ConfigError

if TYPE_CHECKING:
    from shoal.node.crew import Network
    from shoal.swarm.accounts import Accounts
    from shoal.swarm.authors import Peer
    from shoal.swarm.identity import NodeId

ACCOUNTS = "accounts.json"
TRY = "try `shoal doctor --join ADDRESS`, or listen longer with --seconds"


@with_network(
    "join", "listen", "transport", "swarm", "secret_file", "tls_authority", "tls_certificate", "tls_key"
)
def peers(
    network: NetworkOptions,
    kept: Annotated[
        Path | None,
        typer.Argument(
            metavar="[RUN]", help="A run folder, a node's folder or an accounts file; else listen."
        ),
    ] = None,
    seconds: Annotated[float, option("--seconds", "S", "How long to listen.", min=0.5, max=3600)] = 5.0,
    json: options.Json = False,
) -> None:
    """Show who is in a swarm, or the accounts that a node has kept of its peers.

    Without a folder it listens for a few seconds and lists the nodes whose signed beacons it heard; exit
    code 1 if there were none.

    \b
    Examples:
      shoal peers --join tcp/example.org:7447
      shoal peers runs/today
    """
    if kept is not None:
        _show(_accounts_in(kept), None, json)
        return
    accounts, present, _ = listen_for(network.network(), seconds)
    _show([("", accounts)], present, json)
    if not present:
        raise typer.Exit(NOBODY_HEARD)


def listen_for(chosen: Network, seconds: float) -> tuple[Accounts, dict[NodeId, Peer], dict[str, int]]:
    """Takes part under a passing identity, sharing nothing; returns accounts, whom it heard, and figures."""
    import time

    from shoal.swarm.identity import Identity
    from shoal.swarm.kinds import Kinds
    from shoal.swarm.live import LiveExchange

    identity = Identity.create()
    with LiveExchange(
        identity, chosen.open(identity.node_id), Kinds([]), chosen.exchange_settings()
    ) as exchange:
        time.sleep(seconds)
        return exchange.accounts, exchange.peers(), exchange.figures()


def _accounts_in(kept: Path) -> list[tuple[str, Accounts]]:
    from shoal.swarm.accounts import Accounts

    if kept.is_dir():
        files = sorted([*kept.glob(ACCOUNTS), *kept.glob(f"nodes/*/{ACCOUNTS}")])
    else:
        files = [kept] if kept.exists() else []
    if not files:
        raise ConfigError(f"{kept} holds no accounts: name a run folder, a node's folder or an accounts file")
    return [(file.parent.name if kept.is_dir() else "", Accounts.load(file)) for file in files]


def _show(kept: list[tuple[str, Accounts]], present: dict[NodeId, Peer] | None, json: bool) -> None:
    rows = [row for node, accounts in kept for row in _rows(node, accounts, present)]
    if json:
        from shoal.cli.output import print_json

        print_json({"peers": rows})
        return
    from shoal.cli.output import note, print_table

    for _, accounts in kept:
        if accounts.notice:
            note(accounts.notice)
    if not rows:
        print("nobody was heard" if present is None else f"nobody was heard; {TRY}")
        return
    several = len(kept) > 1
    headings = ["peer", "node id", "received", "verified", "used", "useful", "rejected", "standing"]
    print_table(
        (["seen by", *headings] if several else headings),
        [
            ([row["seen_by"]] if several else [])
            + [
                row["name"], row["node_id"], row["received"], row["verified"], row["used"], row["useful"],
                sum(row["rejected"].values()), "established" if row["established"] else "on probation",
            ]
            for row in rows
        ],
    )  # fmt: skip


def _rows(node: str, accounts: Accounts, present: dict[NodeId, Peer] | None) -> list[dict[str, Any]]:
    from shoal.swarm.accounts import Account
    from shoal.swarm.identity import short_name

    authors = sorted(accounts) if present is None else sorted(present)
    rows = []
    for author in authors:
        account = accounts.get(author) or Account()
        row: dict[str, Any] = {
            "seen_by": node,
            "name": short_name(author),
            "node_id": author,
            "received": account.received,
            "verified": account.verified,
            "used": account.used,
            "useful": account.useful,
            "rejected": account.rejected or {},
            "established": author in accounts.established,
        }
        if present is not None:
            row["endpoints"] = list(present[author].endpoints)
        rows.append(row)
    return rows
