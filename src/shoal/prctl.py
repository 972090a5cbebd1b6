"""Linux's `prctl`, which Python does not offer."""

from __future__ import annotations

import ctypes
import signal
import sys

NO_NEW_PRIVILEGES = 38
_PARENT_DEATH_SIGNAL = 1


def prctl(option: int, value: int) -> int:
    """0 if the kernel did it."""
    found: int = ctypes.CDLL(None).prctl(option, ctypes.c_ulong(value), *[ctypes.c_ulong(0)] * 3)
    return found


def signal_at_parents_end(number: signal.Signals) -> None:
    """Lets the kernel send this process a signal once the thread that started it has ended, however that
    happens. Does nothing on other systems."""
    if sys.platform == "linux":
        prctl(_PARENT_DEATH_SIGNAL, number)
