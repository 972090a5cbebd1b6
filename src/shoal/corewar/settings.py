"""The rules of a battle: the size of the core, the limits, and the presets of the known hills."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral
from typing import Literal

from shoal.errors import ConfigError

Stop = Literal["decision", "play-on"]
Standard = Literal["94", "94nop", "88"]

MAX_CORE_SIZE = 65_533
MAX_WARRIORS = 64
MAX_CYCLES = 100_000_000
MAX_PROCESSES = 1_000_000


def whole_number(name: str, value: object, least: int | None = None, most: int | None = None) -> int:
    """`value` as an int, numpy's numbers included; ConfigError unless it is whole and within its bounds."""
    if isinstance(value, Integral) and not isinstance(value, bool):
        number = int(value)
        if (least is None or least <= number) and (most is None or number <= most):
            return number
    bounds = ("" if least is None else f" from {least}") + ("" if most is None else f" to {most}")
    raise ConfigError(f"{name} is {value!r}: give a whole number{bounds}")


@dataclass(frozen=True, slots=True)
class Settings:
    """Rules of a battle; the defaults are those of the '94 hills and of DRQ (Digital Red Queen). `pspace` is
    the number of P-space cells, by default as in pMARS the core size over its largest divisor up to 16.
    `stop` ends a round at the "decision" (fewer than two warriors live, as pMARS and every hill do), or lets
    it "play-on" until the cycles are used up or nobody lives (as DRQ does). `standard` is the language: "94"
    is ICWS'94 with pMARS's extensions, "94nop" the same without LDP and STP, "88" is ICWS'88."""

    core_size: int = 8000
    cycles: int = 80_000
    processes: int = 8000
    length: int = 100
    distance: int = 100
    pspace: int | None = None
    stop: Stop = "decision"
    standard: Standard = "94"

    def __post_init__(self) -> None:
        for name, least, most in (
            ("core_size", 1, MAX_CORE_SIZE),
            ("cycles", 1, MAX_CYCLES),
            ("processes", 1, MAX_PROCESSES),
            ("length", 0, MAX_CORE_SIZE),
            ("distance", 0, MAX_CORE_SIZE),
            ("pspace", 1, MAX_CORE_SIZE),
        ):
            value = getattr(self, name)
            if name != "pspace" or value is not None:
                object.__setattr__(self, name, whole_number(name, value, least, most))
        if self.pspace is not None and self.pspace > self.core_size:
            raise ConfigError(f"pspace is {self.pspace}: give at most the core size, {self.core_size}")
        if self.length > self.core_size:
            raise ConfigError(
                f"length {self.length} is more than the core size {self.core_size}: "
                "lower the length or enlarge the core"
            )
        if self.distance < self.length:
            raise ConfigError(
                f"distance {self.distance} is less than length {self.length}, so warriors could overlap: "
                f"raise the distance to {self.length} or more"
            )
        if self.stop not in ("decision", "play-on"):
            raise ConfigError(f'stop is {self.stop!r}: give "decision" or "play-on"')
        if self.standard not in ("94", "94nop", "88"):
            raise ConfigError(f'standard is {self.standard!r}: give "94", "94nop" or "88"')

    @property
    def pspace_size(self) -> int:
        if self.pspace is not None:
            return self.pspace
        return self.core_size // max(divisor for divisor in range(1, 17) if self.core_size % divisor == 0)

    def check_room_for(self, warriors: int) -> None:
        """Raises ConfigError when `warriors` programs cannot be placed `distance` apart."""
        if not 1 <= warriors <= MAX_WARRIORS:
            raise ConfigError(f"{warriors} warriors: a battle takes from 1 to {MAX_WARRIORS}")
        distance = max(1, self.distance)
        if warriors * distance > self.core_size:
            raise ConfigError(
                f"{warriors} warriors at distance {distance} need a core of {warriors * distance} cells, and "
                f"it has {self.core_size}: use fewer warriors, a smaller distance or a larger core"
            )


# The rules of the well-known hills.
HILLS: dict[str, Settings] = {
    "94": Settings(),
    "94nop": Settings(standard="94nop"),
    "94x": Settings(core_size=55_440, cycles=500_000, processes=10_000, length=200, distance=200),
    "88": Settings(standard="88"),
    "lp": Settings(processes=8, length=200, distance=200),
    "tiny": Settings(core_size=800, cycles=8000, processes=800, length=20, distance=20),
    "nano": Settings(core_size=80, cycles=800, processes=80, length=5, distance=5),
    "multiwarrior": Settings(),
    "drq": Settings(stop="play-on"),
}


def hill(name: str, **changes: object) -> Settings:
    """The rules of a hill, with single values changed: `hill("nano", cycles=1600)`."""
    settings = HILLS.get(str(name).lower())
    if settings is None:
        raise ConfigError(f"no hill is called {name!r}: known are {', '.join(HILLS)}")
    try:
        return replace(settings, **changes)  # type: ignore[arg-type]
    except TypeError as error:
        raise ConfigError(f"hill {name!r} has no such setting: {error}") from None
