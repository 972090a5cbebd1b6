"""Every bound and time of an exchange in one place. Defaults suit a swarm of up to 32 nodes."""

from __future__ import annotations

import msgspec

from shoal.errors import ConfigError


class ExchangeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All nodes of a swarm share `swarm`, `secret` and `shards`; the rest is each node's own affair,
    except that a sender keeps its own quotas at or below those of its receivers."""

    swarm: str = "shoal"
    secret: str = ""
    allow: tuple[str, ...] = ()  # node ids; empty: everyone may write
    compress: bool = False  # zstd, worth it on internet links

    shards: int = 1  # authors are spread over so many shards by a hash of their key
    follow: int = 4  # how many of them a node follows, its own among them
    follow_all_until: int = 32  # up to so many authors all shards are followed
    redraw_seconds: float = 600.0  # one of the followed shards is exchanged for another

    ttl_seconds: float = 3600.0  # older frames are neither taken nor kept
    control_ttl_seconds: float = 300.0  # the same for beacons and pulls
    ahead_seconds: float = 120.0  # how far clocks may differ

    keep_frames: int = 256  # log frames kept per author
    keep_author_bytes: int = 8 << 20
    keep_bytes: int = 256 << 20  # frames and registers of all authors
    history_frames: int = 64  # how far back a newly met author's log is fetched
    authors: int = 4096  # of whom anything is remembered

    pool_items: int = 4096  # waiting for gather()
    pool_bytes: int = 64 << 20
    pool_author_items: int = 256
    remember_contents: int = 8192  # hashes of items handed out, so that copies are not handed out again
    probation_items: int = 4  # an author is new until so many of its items verified
    probation_share: float = 0.125  # what all new authors together get
    newcomers_per_minute: float = 12.0  # items of new authors even if nobody else sends anything

    frames_per_second: float = 5.0  # quota of an author, charged after its signature was checked
    frames_burst: int = 200
    bytes_per_minute: int = 4 << 20
    control_per_second: float = 4.0  # beacons and pulls of an author
    control_burst: int = 40
    verifications_per_second: float = 2000.0  # signature checks in all
    serve_bytes_per_second: float = 1 << 20  # answers to the pulls of one node; four times this to all

    outbox_items: int = 1024
    outbox_bytes: int = 16 << 20
    flush_seconds: float = 0.2  # how long items wait to fill a frame together
    messages_per_tick: int = 256

    def check(self) -> None:
        """Names the first setting that cannot work."""
        for name in (
            "shards",
            "follow",
            "keep_frames",
            "authors",
            "pool_items",
            "frames_burst",
            "outbox_items",
        ):
            if getattr(self, name) < 1:
                raise ConfigError(f"swarm setting {name} must be at least 1: {getattr(self, name)}")
        if self.shards > 99_999:
            raise ConfigError(f"swarm setting shards must be below 100000: {self.shards}")
        if not 0.0 < self.probation_share < 1.0:
            raise ConfigError(
                f"swarm setting probation_share must lie between 0 and 1: {self.probation_share}"
            )
        if self.history_frames > self.keep_frames:
            raise ConfigError("swarm setting history_frames must not exceed keep_frames")
