"""A filter of system calls for a process that only computes and reads files (Linux, x86-64 and ARM64).

An allow-list: other calls fail with ENOSYS, which libraries take for an old kernel. No call on it makes or
changes a socket, process, thread or file, signals or traces another process, or loosens a limit.
"""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import struct
import sys

# Call: (number on x86-64, on ARM64 or None). The busiest come first, since the filter is read in order.
ALLOWED: dict[str, tuple[int, int | None]] = {
    "read": (0, 63),
    "write": (1, 64),
    "setitimer": (38, 103),
    "times": (100, 153),
    "futex": (202, 98),
    "mmap": (9, 222),
    "munmap": (11, 215),
    "brk": (12, 214),
    "mprotect": (10, 226),
    "mremap": (25, 216),
    "madvise": (28, 233),
    "rt_sigreturn": (15, 139),
    "rt_sigaction": (13, 134),
    "rt_sigprocmask": (14, 135),
    "sigaltstack": (131, 132),
    "restart_syscall": (219, 128),
    "close": (3, 57),
    "fstat": (5, 80),
    "newfstatat": (262, 79),
    "statx": (332, 291),
    "stat": (4, None),
    "lstat": (6, None),
    "lseek": (8, 62),
    "pread64": (17, 67),
    "readv": (19, 65),
    "writev": (20, 66),
    "access": (21, None),
    "faccessat": (269, 48),
    "faccessat2": (439, 439),
    "readlink": (89, None),
    "readlinkat": (267, 78),
    "getcwd": (79, 17),
    "getdents64": (217, 61),
    "dup": (32, 23),
    "poll": (7, None),
    "ppoll": (271, 73),
    "getitimer": (36, 102),
    "clock_gettime": (228, 113),
    "clock_getres": (229, 114),
    "clock_nanosleep": (230, 115),
    "nanosleep": (35, 101),
    "gettimeofday": (96, 169),
    "time": (201, None),
    "getrandom": (318, 278),
    "getpid": (39, 172),
    "getppid": (110, 173),
    "gettid": (186, 178),
    "getuid": (102, 174),
    "geteuid": (107, 175),
    "getgid": (104, 176),
    "getegid": (108, 177),
    "uname": (63, 160),
    "sysinfo": (99, 179),
    "getrusage": (98, 165),
    "getrlimit": (97, 163),
    "sched_yield": (24, 124),
    "sched_getaffinity": (204, 123),
    "getcpu": (309, 168),
    "set_robust_list": (273, 99),
    "get_robust_list": (274, 100),
    "rseq": (334, 293),
    "membarrier": (324, 283),
    "exit": (60, 93),
    "exit_group": (231, 94),
}
OPENAT, OPEN = (257, 56), (2, None)
FCNTL, IOCTL, PRLIMIT, TGKILL = (72, 25), (16, 29), (302, 261), (234, 131)

AUDIT_ARCHITECTURES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
X32_CALLS = 0x40000000
"""On x86-64 numbers from here on are the same calls under other names: none of them is allowed."""

WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
FCNTL_COMMANDS = (0, 1, 2, 3, 1030)  # duplicate, get and set flags of the descriptor, get status, duplicate
IOCTL_COMMANDS = (0x5401, 0x5451)  # is it a terminal? close it on exec

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _KILL, _ERROR = 0x7FFF0000, 0x80000000, 0x00050000
_NUMBER, _ARCHITECTURE, _ARGUMENTS = 0, 4, 16
_PR_SET_SECCOMP, _FILTER = 22, 2


Step = tuple[int, int, int, int]
"""A BPF instruction: code, jump if true, jump if false, value."""


def supported() -> str:
    """The reason why there is no filter for this machine; "" if there is one."""
    if sys.platform != "linux":
        return f"seccomp needs Linux, and this is {sys.platform}"
    if platform.machine() not in AUDIT_ARCHITECTURES:
        return f"no list of system calls for {platform.machine()}"
    if sys.maxsize < 1 << 32 or sys.byteorder != "little":
        return "no list of system calls for this Python's word size"
    return ""


def install() -> str:
    """Puts the filter in force for good, or returns the reason why not. Needs `no_new_privs`."""
    if wrong := supported():
        return wrong
    steps = filter_steps(platform.machine(), os.getpid())
    code = ctypes.create_string_buffer(b"".join(struct.pack("=HBBI", *step) for step in steps))
    program = struct.pack("@HP", len(steps), ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    none = ctypes.c_ulong(0)
    if libc.prctl(_PR_SET_SECCOMP, ctypes.c_ulong(_FILTER), program, none, none):
        return f"the kernel refuses a seccomp filter: {os.strerror(ctypes.get_errno())}"
    return ""


def filter_steps(machine: str, process: int) -> list[Step]:
    which = 0 if machine == "x86_64" else 1
    steps: list[Step] = [
        (_LOAD, 0, 0, _ARCHITECTURE),
        (_EQUAL, 1, 0, AUDIT_ARCHITECTURES[machine]),
        (_RETURN, 0, 0, _KILL),
        (_LOAD, 0, 0, _NUMBER),
    ]
    if machine == "x86_64":
        steps += [(_AT_LEAST, 0, 1, X32_CALLS), (_RETURN, 0, 0, _KILL)]
    for numbers in ALLOWED.values():
        steps += _when(numbers[which], [_result()])
    refuse, allow = _result(errno.EPERM), _result()
    for call, argument in ((OPENAT, 2), (OPEN, 1)):
        steps += _when(call[which], [_load(argument), (_ANY_BIT, 0, 1, WRITING), refuse, allow])
    for call, commands in ((FCNTL, FCNTL_COMMANDS), (IOCTL, IOCTL_COMMANDS)):
        checks = [step for command in commands for step in ((_EQUAL, 0, 1, command), allow)]
        steps += _when(call[which], [_load(1), *checks, _result(errno.ENOTTY)])
    # Limits may be read (no new value: a null pointer, both halves), not set.
    null = [_load(2), (_EQUAL, 0, 2, 0), _load(2, upper=True), (_EQUAL, 1, 0, 0)]
    steps += _when(PRLIMIT[which], [*null, refuse, allow])
    steps += _when(TGKILL[which], [_load(0), (_EQUAL, 1, 0, process), refuse, allow])  # abort() of itself
    return [*steps, _result(errno.ENOSYS)]


def _when(number: int | None, steps: list[Step]) -> list[Step]:
    """Steps for one call; they end in a result."""
    return [] if number is None else [(_EQUAL, 0, len(steps), number), *steps]


def _load(argument: int, *, upper: bool = False) -> Step:
    """Half of an argument, 32 bits."""
    return (_LOAD, 0, 0, _ARGUMENTS + 8 * argument + 4 * upper)


def _result(error: int = 0) -> Step:
    return (_RETURN, 0, 0, _ERROR | error if error else _ALLOW)
