"""Confining a process to reading a few folders (Linux with Landlock, 5.13 and later).

Covered: opening files and listing folders anywhere else; writing, making, renaming and removing files
everywhere; TCP (from version 4); abstract Unix sockets and signals to processes outside (from version 6). Not
covered: whether a file exists, its size and its times can still be asked for.
"""

from __future__ import annotations

import ctypes
import os
import sys
from collections.abc import Iterable

CREATE_RULESET, ADD_RULE, RESTRICT_SELF = 444, 445, 446  # the same numbers on all machines
READ_FILE, READ_FOLDER = 1 << 2, 1 << 3
_PATH_BENEATH = 1
_VERSION = 1
_BITS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""The number of kinds of file access in each version."""
_NETWORK = 0b11
_SCOPES = 0b11


class _Ruleset(ctypes.Structure):
    _fields_ = (("files", ctypes.c_uint64), ("network", ctypes.c_uint64), ("scoped", ctypes.c_uint64))


class _PathRule(ctypes.Structure):
    _pack_ = 1
    _fields_ = (("allowed", ctypes.c_uint64), ("descriptor", ctypes.c_int32))


def version() -> int:
    """The kernel's version of Landlock, 0 where there is none."""
    if sys.platform != "linux":
        return 0
    found = _syscall(CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_VERSION))
    return max(0, found)


def confine(readable: Iterable[str]) -> tuple[int, str]:
    """Confines this process, for good, to reading these folders and files. Returns Landlock's version, or 0
    and the reason. The process must have given up gaining privileges before."""
    here = version()
    if here < 1:
        return 0, "the kernel has no Landlock, or it is switched off"
    files = (1 << _BITS_BY_VERSION.get(here, 16)) - 1
    ruleset = _Ruleset(files, _NETWORK if here >= 4 else 0, _SCOPES if here >= 6 else 0)
    size = 24 if here >= 6 else 16 if here >= 4 else 8
    descriptor = _syscall(CREATE_RULESET, ctypes.byref(ruleset), ctypes.c_size_t(size), ctypes.c_uint32(0))
    if descriptor < 0:
        return 0, f"the kernel refuses a Landlock ruleset: {os.strerror(ctypes.get_errno())}"
    try:
        for path in readable:
            _allow(descriptor, path)
        if _syscall(RESTRICT_SELF, ctypes.c_int(descriptor), ctypes.c_uint32(0)) < 0:
            return 0, f"the kernel refuses to confine: {os.strerror(ctypes.get_errno())}"
    finally:
        os.close(descriptor)
    return here, ""


def _allow(ruleset: int, path: str) -> None:
    """A path that is not there needs no rule."""
    try:
        descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    except OSError:
        return
    try:
        allowed = READ_FILE | READ_FOLDER if os.path.isdir(path) else READ_FILE
        rule = ctypes.byref(_PathRule(allowed, descriptor))
        _syscall(ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(descriptor)


def _syscall(number: int, *arguments: object) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    found: int = libc.syscall(ctypes.c_long(number), *arguments)
    return found
