"""`shoal doctor`: obstacles that keep this machine from taking part, with their remedies."""

from __future__ import annotations

from typing import Annotated

import typer

from shoal.cli import options
from shoal.cli.network import NetworkOptions, key_path, with_network
from shoal.cli.options import option

NOT_WELL = 1


@with_network(
    "join",
    "listen",
    "transport",
    "swarm",
    "secret_file",
    "tls_authority",
    "tls_certificate",
    "tls_key",
    "key",
)
def doctor(
    network: NetworkOptions,
    seconds: Annotated[
        float, option("--seconds", "S", "How long to listen for peers.", min=0.5, max=600)
    ] = 5.0,
    json: options.Json = False,
) -> None:
    """Check clock, limits, identity and the way to peers; exit code 1 if something needs doing.

    \b
    Examples:
      shoal doctor
      shoal doctor --listen tcp/0.0.0.0:7447
      shoal doctor --join tcp/example.org:7447
    """
    from shoal.cli.output import clean, print_json
    from shoal.cli.peers import listen_for
    from shoal.swarm.checkup import check_machine, peers_heard

    chosen = network.network()
    findings = list(check_machine(str(key_path(network.key)), chosen.listen, chosen.join, chosen.tls_files))
    if chosen.join and all(finding.well for finding in findings):
        _, present, figures = listen_for(chosen, seconds)
        findings.append(peers_heard(len(present), figures))
    if json:
        print_json(
            [{"check": f.check, "found": f.found, "remedy": f.remedy, "well": f.well} for f in findings]
        )
    else:
        width = max(len(finding.check) for finding in findings)
        for finding in findings:
            mark = "ok  " if finding.well else "LOOK"
            remedy = "" if finding.well else f"\n       {clean(finding.remedy, 500)}"
            print(f"{mark}  {finding.check:<{width}}  {clean(finding.found, 200)}{remedy}")
    if not all(finding.well for finding in findings):
        raise typer.Exit(NOT_WELL)
