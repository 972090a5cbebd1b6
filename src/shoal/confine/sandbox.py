"""The rights that a worker gives up before it reads its first request.

Covered on Linux with seccomp and Landlock: no network, no other process, no writing anywhere, no reading
outside of Python's installation, Shoal's own source and the files it was given. Memory, processor time and
open files are limited. The worker dies with its parent. Its environment (process.py) is not the user's.

Not covered: code that runs in the process can falsify its replies, so a service that evaluates text must not
get a stranger's. It can use its share of a processor until the time limit, and ask for the existence, size
and times of a file. The kernel may have holes. Without Landlock only Python hinders reading, without seccomp
only Python hinders network and processes; elsewhere than on Linux only the limits hold.
"""

from __future__ import annotations

import ctypes
import os
import signal
import struct
import sys
import sysconfig
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import msgspec

import shoal
from shoal.confine import seccomp
from shoal.prctl import NO_NEW_PRIVILEGES, prctl, signal_at_parents_end

MOST_FILES = 64
_CAPABILITY_VERSION = 0x20080522

_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446  # the same numbers on all machines
_READ_FILE, _READ_FOLDER = 1 << 2, 1 << 3
_PATH_BENEATH = 1
_ASK_VERSION = 1
_BITS_BY_VERSION = {1: 13, 2: 14, 3: 15, 4: 15, 5: 16}
"""The number of kinds of file access in each version of Landlock."""
_NETWORK = 0b11
_SCOPES = 0b11


class Coverage(msgspec.Struct, frozen=True):
    """The protections that are in force in a worker. `missing` tells why others are not."""

    platform: str
    limits: bool = False
    """The system limits memory, processor time, open files and written bytes."""
    dies_with_parent: bool = False
    no_new_privileges: bool = False
    capabilities_dropped: bool = False
    landlock: int = 0
    """The version of Linux's Landlock that closes all files but Python's, Shoal's and given ones; 0: none."""
    seccomp: bool = False
    """Only system calls for computing and reading files are allowed: no network, no process, no writing."""
    audit_hook: bool = False
    """Python itself refuses; native code does not ask it."""
    missing: tuple[str, ...] = ()


def enter(readable: Sequence[str], *, memory: int, cpu_seconds: int) -> Coverage:
    """Gives up everything but `readable`, for good, and returns the coverage. Call it after the imports that
    need more, in a process of one thread."""
    roots = (*python_folders(), *map(os.path.realpath, readable))
    missing: list[str] = []

    def done(why: str) -> bool:
        if why:
            missing.append(why)
        return not why

    limits = done(_limit(memory, cpu_seconds))
    no_new = done(_no_new_privileges())
    dropped = done(_drop_capabilities())
    version, why = confine_files(roots) if no_new else (0, "")
    done(why)
    sys.addaudithook(_Auditor(roots))
    filtered = no_new and done(seccomp.install())
    return Coverage(
        platform=sys.platform,
        limits=limits,
        dies_with_parent=sys.platform == "linux",
        no_new_privileges=no_new,
        capabilities_dropped=dropped,
        landlock=version,
        seccomp=filtered,
        audit_hook=True,
        missing=tuple(missing),
    )


def die_with(parent: int) -> None:
    """Makes the kernel end this process when its parent ends, however that happens (Linux; elsewhere the end
    of the stream of requests does, once it is read)."""
    signal_at_parents_end(signal.SIGKILL)
    if sys.platform == "linux" and os.getppid() != parent:  # it ended before that
        os._exit(1)


def python_folders() -> list[str]:
    """The folders of the interpreter, the libraries and Shoal's own source."""
    paths = sysconfig.get_paths()
    folders = {paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")}
    folders |= {os.path.dirname(shoal.__file__), os.path.join(sys.base_prefix, "lib")}
    folders |= {entry for entry in sys.path if os.path.basename(entry) in ("site-packages", "dist-packages")}
    folders |= {"/lib", "/lib64", "/usr/lib", "/usr/lib64", "/usr/local/lib", "/etc/ld.so.cache"}
    folders |= {"/usr/share/zoneinfo", "/System/Library", os.devnull}
    return sorted({os.path.realpath(folder) for folder in folders if os.path.exists(folder)})


def landlock_version() -> int:
    """The kernel's version of Landlock (Linux 5.13 and later), 0 where there is none."""
    if sys.platform != "linux":
        return 0
    return max(0, _syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), ctypes.c_uint32(_ASK_VERSION)))


def confine_files(readable: Iterable[str]) -> tuple[int, str]:
    """Lets this process, for good, open nothing but these folders and files, and those for reading only.
    Refuses TCP too (from version 4), and abstract Unix sockets and signals to processes outside (from 6).
    Returns Landlock's version, or 0 and the reason. Needs `no_new_privs`."""
    here = landlock_version()
    if here < 1:
        return 0, "the kernel has no Landlock, or it is switched off"
    files = (1 << _BITS_BY_VERSION.get(here, 16)) - 1
    ruleset = struct.pack("=3Q", files, _NETWORK if here >= 4 else 0, _SCOPES if here >= 6 else 0)
    size = 24 if here >= 6 else 16 if here >= 4 else 8
    descriptor = _syscall(_CREATE_RULESET, ruleset, ctypes.c_size_t(size), ctypes.c_uint32(0))
    if descriptor < 0:
        return 0, f"the kernel refuses a Landlock ruleset: {os.strerror(ctypes.get_errno())}"
    try:
        for path in readable:
            _allow(descriptor, path)
        if _syscall(_RESTRICT_SELF, ctypes.c_int(descriptor), ctypes.c_uint32(0)) < 0:
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
        allowed = _READ_FILE | _READ_FOLDER if os.path.isdir(path) else _READ_FILE
        rule = struct.pack("=Qi", allowed, descriptor)
        _syscall(_ADD_RULE, ctypes.c_int(ruleset), ctypes.c_int(_PATH_BENEATH), rule, ctypes.c_uint32(0))
    finally:
        os.close(descriptor)


def _syscall(number: int, *arguments: object) -> int:
    found: int = ctypes.CDLL(None, use_errno=True).syscall(ctypes.c_long(number), *arguments)
    return found


def _limit(memory: int, cpu_seconds: int) -> str:
    try:
        import resource
    except ImportError:
        return "this system has no resource limits"
    limits = {"CORE": 0, "FSIZE": 0, "NOFILE": MOST_FILES, "NPROC": 0, "CPU": cpu_seconds, "AS": memory}
    failed = []
    for name, value in limits.items():
        try:
            resource.setrlimit(getattr(resource, f"RLIMIT_{name}"), (value, value))
        except (AttributeError, ValueError, OSError):
            failed.append(f"RLIMIT_{name}")
    return f"not limited here: {', '.join(failed)}" if failed else ""


def _no_new_privileges() -> str:
    if sys.platform != "linux":
        return "no_new_privs needs Linux"
    return "the kernel does not know no_new_privs" if prctl(NO_NEW_PRIVILEGES, 1) else ""


def _drop_capabilities() -> str:
    """Drops the rights of a process of root. Other processes have none to drop."""
    if sys.platform != "linux":
        return "capabilities are Linux's"
    header = (ctypes.c_uint32 * 2)(_CAPABILITY_VERSION, 0)
    nothing = (ctypes.c_uint32 * 6)()
    failed = ctypes.CDLL(None).capset(ctypes.byref(header), ctypes.byref(nothing))
    return "capabilities could not be dropped" if failed else ""


class _Auditor:
    """An audit hook: Python asks it before it opens a door to the outside."""

    PREFIXES = ("socket.", "subprocess.", "shutil.", "ftplib.", "smtplib.", "http.", "urllib.", "pty.")
    EVENTS = frozenset(
        ("os.system os.exec os.fork os.forkpty os.posix_spawn os.spawn os.startfile os.remove os.rename "
         "os.rmdir os.mkdir os.truncate os.link os.symlink os.chmod os.chown os.kill os.killpg os.utime "
         "resource.setrlimit resource.prlimit signal.pthread_kill webbrowser.open").split()
    )  # fmt: skip

    def __init__(self, roots: Sequence[str]) -> None:
        self._roots = tuple(roots)

    def __call__(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            self._check_open(*arguments)
        elif event in self.EVENTS or event.startswith(self.PREFIXES):
            raise PermissionError(f"a confined worker may not: {event}")

    def _check_open(self, path: Any, mode: Any, flags: Any) -> None:
        if isinstance(path, int):
            return
        if isinstance(flags, int) and flags & seccomp.WRITING:
            raise PermissionError("a confined worker may not write")
        place = Path(os.path.realpath(os.fsdecode(path)))
        if not any(place.is_relative_to(root) for root in self._roots):
            raise PermissionError("a confined worker may not read this")
