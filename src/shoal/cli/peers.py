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
        _show_kept(kept, json)
        return
    accounts, present, _ = listen_for(network.network(), seconds)
    _show_present(accounts, present, json)
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


def _show_kept(kept: Path, json: bool) -> None:
    """What the folder of a run or node, or an accounts file, tells of the peers."""
    from shoal.cli.item_counts import print_item_counts
    from shoal.cli.output import note, print_json
    from shoal.node.acquaintances import acquaintances_in

    found = acquaintances_in(kept)
    if not found:
        raise ConfigError(f"{kept} holds no accounts: name a run folder, a node's folder or an accounts file")
    rows = [row for one in found for row in _rows(one.node, one.accounts, None)]
    if json:
        print_json({"peers": rows, "heard": {one.node: one.heard for one in found}})
        return
    for one in found:
        for text in (one.accounts.notice, one.trouble):
            if text:
                note(text)
    if rows:
        _print(rows, several=len(found) > 1)
        print_item_counts(found)
        if any(one.is_behind for one in found):
            note("used and useful are as of the last time that the accounts were written, once a minute")
        return
    heard = max(one.heard for one in found)
    who = f"{heard} peer{'s were' if heard > 1 else ' was'} heard" if heard else ""
    print(f"{who}, and no item of theirs has arrived yet" if heard else "nobody was heard")


def _show_present(accounts: Accounts, present: dict[NodeId, Peer], json: bool) -> None:
    """The nodes that were heard while listening."""
    from shoal.cli.output import print_json

    rows = _rows("", accounts, present)
    if json:
        print_json({"peers": rows})
    elif rows:
        _print(rows, several=False)
    else:
        print(f"nobody was heard; {TRY}")


def _print(rows: list[dict[str, Any]], *, several: bool) -> None:
    from shoal.cli.output import print_table

    counts = ("received", "verified", "used", "useful", "passed_over")
    headings = ["peer", "node id", *(name.replace("_", " ") for name in counts), "rejected", "standing"]
    print_table(
        (["seen by", *headings] if several else headings),
        [
            [
                *([row["seen_by"]] if several else []),
                row["name"],
                row["node_id"],
                *(row[name] for name in counts),
                sum(row["rejected"].values()),
                "established" if row["established"] else "on probation",
            ]
            for row in rows
        ],
    )


def _rows(node: str, accounts: Accounts, present: dict[NodeId, Peer] | None) -> list[dict[str, Any]]:
    from shoal.cli.item_counts import counts_of
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
            **counts_of(account),
            "verified": account.verified,
            "used": account.used,
            "useful": account.useful,
            "passed_over": account.passed_over,
            "rejected": account.rejected or {},
            "established": author in accounts.established,
        }
        if present is not None:
            row["endpoints"] = list(present[author].endpoints)
        rows.append(row)
    return rows
