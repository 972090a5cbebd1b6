"""The one configuration in which Zenoh is used.

Its defaults are made for other networks. Off, because each lost messages in trials: implicit shared memory
(chunks expire while a receiver waits for a CPU), peer mode (delivers over direct links only), blocking
congestion control (closes links under load). Off, because nobody here needs them and they let strangers in:
multicast scouting, gossip, the admin space.
"""

from __future__ import annotations

from typing import Any

from shoal.swarm.transport.base import MOST_MESSAGE_BYTES
from shoal.swarm.transport.neighbours import Draw
from shoal.swarm.transport.tls import TlsFiles

LEASE_MILLISECONDS = 5000
"""A silent link is given up after this. Longer ones make cuts worse, shorter ones break under load."""
WAIT_BEFORE_DROP_MICROSECONDS = 10_000
"""How long a message waits for room on a congested link; the default of 1 ms loses one in ten."""
KEY_BYTES = 4096
"""Room for a message's key and headers beyond its payload."""


def settings(draw: Draw, tls: TlsFiles | None) -> dict[str, Any]:
    """The configuration of a session, in the words of Zenoh's JSON5 file."""
    link: dict[str, Any] = {
        "tx": {
            "lease": LEASE_MILLISECONDS,
            "queue": {"congestion_control": {"drop": {"wait_before_drop": WAIT_BEFORE_DROP_MICROSECONDS}}},
        },
        "rx": {"max_message_size": MOST_MESSAGE_BYTES + KEY_BYTES},
    }
    if tls is not None:
        link["tls"] = {
            "root_ca_certificate": str(tls.authority),
            "enable_mtls": True,
            "listen_certificate": str(tls.certificate),
            "listen_private_key": str(tls.key),
            "connect_certificate": str(tls.certificate),
            "connect_private_key": str(tls.key),
            "verify_name_on_connect": tls.verify_names,
        }
    return {
        "mode": draw.mode,
        "listen": {"endpoints": list(draw.listen)},
        "connect": {
            "endpoints": list(draw.connect),
            # Routers dial in the background for ever. A client with an endless time-out would try the first
            # of its endpoints for ever and never the others; with 0 it tries each once, and we repeat `open`.
            "timeout_ms": -1 if draw.mode == "router" else 0,
            "exit_on_failure": False,
            "retry": {"period_init_ms": 300, "period_max_ms": 2000, "period_increase_factor": 1.5},
        },
        "scouting": {"multicast": {"enabled": False}, "gossip": {"enabled": False}, "delay": 0},
        "transport": {
            "shared_memory": {"enabled": False},
            "unicast": {"max_sessions": 10_000, "accept_pending": 2000},
            "link": link,
        },
        "adminspace": {"enabled": False},
    }
