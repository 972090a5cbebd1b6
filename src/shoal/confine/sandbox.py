"""The rights that a worker gives up before it reads its first request.

Covered on Linux with seccomp and Landlock: no network, no other process, no writing anywhere, no reading
outside of Python's installation, Shoal's own source and the files it was given. Memory, processor time and
open files are limited. The worker dies with its parent. Its environment holds nothing of the user's
(process.py).

Not covered: code that runs in the process can falsify its replies, so a service that evaluates text must not
get a stranger's. It can use its share of a processor until the time limit. It can ask whether a file exists.
The kernel may have holes. Without Landlock only Python hinders reading, without seccomp only Python hinders
network and processes; on other systems than Linux only the limits hold. The worker reports its `Coverage`.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import signal
import sys
import sysconfig
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import shoal
from shoal.confine import landlock, seccomp
from shoal.confine.wire import Coverage

MOST_FILES = 64
_PR_SET_PDEATHSIG, _PR_SET_NO_NEW_PRIVS, _PR_CAPBSET_DROP = 1, 38, 24
_CAPABILITY_VERSION = 0x20080522

_in_force = Coverage(sys.platform, missing=("this process has not entered the sandbox",))


def coverage() -> Coverage:
    """The protections that are in force in this process."""
    return _in_force


def enter(readable: Sequence[str], *, memory: int, cpu_seconds: int) -> Coverage:
    """Gives up everything but `readable`, for good, and returns the coverage. Call it after the imports that
    need more, in a process of one thread."""
    global _in_force
    roots = (*python_folders(), *map(os.path.realpath, readable))
    missing: list[str] = []
    limits = _note(missing, _limit(memory, cpu_seconds))
    no_new = _note(missing, _no_new_privileges())
    dropped = _note(missing, _drop_capabilities())
    version, why = landlock.confine(roots) if no_new else (0, "")
    _note(missing, why)
    sys.addaudithook(_Auditor(roots))
    filtered = _note(missing, seccomp.install()) if no_new else False
    _in_force = Coverage(
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
    return _in_force


def die_with(parent: int) -> None:
    """Makes the kernel end this process when its parent ends, however that happens (Linux; elsewhere the end
    of the stream of requests does, once it is read)."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, ctypes.c_ulong(signal.SIGKILL), *[ctypes.c_ulong(0)] * 3)
    if os.getppid() != parent:  # it ended before that
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


def _note(missing: list[str], why: str) -> bool:
    if why:
        missing.append(why)
    return not why


def _limit(memory: int, cpu_seconds: int) -> str:
    try:
        import resource
    except ImportError:
        return "this system has no resource limits"
    limits = {
        "RLIMIT_CORE": 0,
        "RLIMIT_FSIZE": 0,
        "RLIMIT_NOFILE": MOST_FILES,
        "RLIMIT_NPROC": 0,
        "RLIMIT_CPU": cpu_seconds,
        "RLIMIT_AS": memory,
    }
    failed = []
    for name, value in limits.items():
        try:
            resource.setrlimit(getattr(resource, name), (value, value))
        except (AttributeError, ValueError, OSError):
            failed.append(name)
    return f"not limited here: {', '.join(failed)}" if failed else ""


def _no_new_privileges() -> str:
    if sys.platform != "linux":
        return "no_new_privs needs Linux"
    zeros = [ctypes.c_ulong(0)] * 3
    if ctypes.CDLL(None).prctl(_PR_SET_NO_NEW_PRIVS, ctypes.c_ulong(1), *zeros):
        return "the kernel does not know no_new_privs"
    return ""


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
