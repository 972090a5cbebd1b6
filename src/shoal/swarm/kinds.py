"""Kinds: the types of items that applications share, their largest size, and how they are kept.

    kinds = Kinds([Kind("champion", Champion, max_bytes=64 << 10, keep="latest")])

An item is a `msgspec.Struct` with `array_like=True`. New fields go to the end with a default; unknown ones at
the end are ignored, so old and new nodes understand each other. A node counts and relays items of kinds that
it does not know, and never decodes them.

Bounds on strings and numbers stand in the struct, as `msgspec.Meta`. Where they became narrower, `wire` is a
subclass that has them: what arrives is read by it, and what an older journal holds by `struct`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import msgspec

from shoal.errors import ConfigError, ShareRefused

Keep: TypeAlias = Literal["latest", "log"]

MOST_KIND_BYTES = 512 << 10
MOST_NAME_CHARACTERS = 64


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of item. `keep`: "latest" is one register per author, "log" all of them within bounds. `wire`:
    a subclass of `struct` with bounds for items that travel (None: `struct` has them).

    Items of a kind that is not `taken` are passed on and never decoded: this node only sends them, or has to
    know how large they may be. A `direct` item is a word to the nodes that its field `to` names (none: to
    all) and no experience of the swarm: it waits in an inbox of its own, which knows no probation, and equal
    words of two authors are two items, so that nobody can take another's place by repeating it.
    """

    name: str
    struct: type[msgspec.Struct]
    max_bytes: int
    keep: Keep
    wire: type[msgspec.Struct] | None = None
    taken: bool = field(default=True, kw_only=True)
    direct: bool = field(default=False, kw_only=True)

    def __post_init__(self) -> None:
        name, struct = self.name, self.struct
        if not name.isascii() or not 0 < len(name) <= MOST_NAME_CHARACTERS:
            raise ConfigError(f"the name of a kind is 1 to {MOST_NAME_CHARACTERS} ASCII characters: {name!r}")
        if not struct.__struct_config__.array_like:
            raise ConfigError(f"struct {struct.__name__} of kind {name!r} must have `array_like=True`")
        if not 0 < self.max_bytes <= MOST_KIND_BYTES:
            raise ConfigError(f"max_bytes of kind {name!r} must be 1 to {MOST_KIND_BYTES}: {self.max_bytes}")
        if self.keep not in ("latest", "log"):
            raise ConfigError(f'keep of kind {name!r} must be "latest" or "log": {self.keep!r}')
        if self.wire is not None and not issubclass(self.wire, struct):
            raise ConfigError(f"wire of kind {name!r} must be a subclass of {struct.__name__}: {self.wire!r}")
        if self.direct and "to" not in struct.__struct_fields__:
            raise ConfigError(f"struct {struct.__name__} of the direct kind {name!r} must have a field `to`")


class Kinds:
    """The kinds of an application, found by name (receiving) and by type (sharing)."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._by_name: dict[str, Kind] = {}
        self._by_type: dict[type, Kind] = {}
        self._decoders: dict[str, msgspec.msgpack.Decoder[Any]] = {}
        for kind in kinds:
            if kind.name in self._by_name or kind.struct in self._by_type:
                raise ConfigError(f"kind {kind.name!r} or {kind.struct.__name__} is registered already")
            self._by_name[kind.name] = kind
            self._by_type[kind.struct] = kind
            self._decoders[kind.name] = msgspec.msgpack.Decoder(kind.wire or kind.struct)

    def get(self, name: str) -> Kind | None:
        return self._by_name.get(name)

    def of(self, item: msgspec.Struct) -> Kind:
        """The kind of an item to be shared."""
        kind = self._by_type.get(type(item))
        if kind is None:
            known = ", ".join(sorted(self._by_name)) or "none"
            raise ShareRefused(
                f"{type(item).__name__} is not a registered kind of item (registered: {known})", "kind"
            )
        return kind

    def decoder(self, name: str) -> Callable[[bytes | memoryview], msgspec.Struct] | None:
        """Turns payloads of a kind into items; it may raise anything. None for an unknown kind."""
        decoder = self._decoders.get(name)
        return decoder.decode if decoder is not None else None

    @property
    def most_bytes(self) -> int:
        """The limit of the kind with the largest items."""
        return max((kind.max_bytes for kind in self), default=0)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._by_name.values())
