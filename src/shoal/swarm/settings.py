"""All bounds and times of an exchange. The defaults suit a swarm of up to 32 nodes."""

from __future__ import annotations

import msgspec

from shoal.errors import ConfigError


class ExchangeSettings(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All nodes of a swarm share `swarm`, `secret` and `shards`. Each node chooses the rest for itself,
    except that a sender's quotas must not exceed those of its receivers."""

    swarm: str = "shoal"  # name of the swarm, the same for all its nodes
    secret: str = ""  # secret of a closed swarm, the same for all its nodes
    allow: tuple[str, ...] = ()  # node ids that may write; empty: everyone
    compress: bool = False  # packs frames with zstd, worth it on internet links

    shards: int = 1  # authors are spread over this many shards by a hash of their key
    follow: int = 4  # shards that a node follows, its own among them
    follow_all_until: int = 32  # up to this many authors, all shards are followed
    redraw_seconds: float = 600.0  # time between two exchanges of a followed shard for another

    ttl_seconds: float = 3600.0  # older frames are neither taken nor kept
    push_ttl_seconds: float = 300.0  # older frames are not taken unless they were asked for
    ahead_seconds: float = 120.0  # clocks may differ by this much

    keep_frames: int = 256  # most log frames kept per author
    keep_author_bytes: int = 8 << 20  # most bytes of log frames kept per author
    keep_bytes: int = 256 << 20  # most bytes of frames and registers of all authors
    history_frames: int = 64  # log frames of a newly met author that are fetched
    authors: int = 4096  # most authors that are remembered at once

    inbox_items: int = 4096  # most items that wait for gather()
    inbox_bytes: int = 64 << 20  # most bytes that wait for gather()
    inbox_author_items: int = 256  # most items of one author that wait for gather()
    remember_contents: int = 8192  # hashes of items handed out, so that copies are not handed out again
    probation_items: int = 4  # an author is new until this many of its items verified
    probation_share: float = 0.125  # the part of the items that all new authors have together
    newcomers_per_minute: float = 12.0  # items of new authors even if nobody else sends anything

    frames_per_second: float = 5.0  # frames that one author may send, charged after its signature was checked
    frames_burst: int = 200  # frames that one author may send at once
    bytes_per_minute: int = 4 << 20  # bytes that one author may send
    control_per_second: float = 4.0  # beacons and pulls that one author may send
    control_burst: int = 40  # beacons and pulls that one author may send at once
    verifications_per_second: float = 2000.0  # signatures that are checked, of all authors together
    intake_share: float = 0.05  # the part of a core that others' messages may take; repair fetches the rest
    serve_bytes_per_second: float = 1 << 20  # answers to the pulls of one node; four times this to all

    outbox_items: int = 1024  # most own items that wait to be sent; `share` refuses more
    outbox_bytes: int = 16 << 20  # most bytes of own items that wait to be sent
    flush_seconds: float = 0.2  # items wait this long to fill a frame together
    messages_per_tick: int = 256  # messages that one tick takes in

    def check(self) -> None:
        """Raises a ConfigError that names the first setting that cannot work."""
        for name in "shards follow keep_frames authors inbox_items frames_burst outbox_items".split():
            if getattr(self, name) < 1:
                raise ConfigError(f"swarm setting {name} must be at least 1: {getattr(self, name)}")
        if self.shards > 99_999:
            raise ConfigError(f"swarm setting shards must be below 100000: {self.shards}")
        if not 0.0 < self.probation_share < 1.0:
            raise ConfigError(f"swarm setting probation_share must be within 0 and 1: {self.probation_share}")
        if not 0.0 < self.intake_share <= 1.0:
            raise ConfigError(
                f"swarm setting intake_share must be above 0 and at most 1: {self.intake_share}"
            )
        if self.history_frames > self.keep_frames:
            raise ConfigError("swarm setting history_frames must not exceed keep_frames")
