"""Families that misbehave when they score, to be run inside the verifier's worker by tests only.

`score` returns SUCCEEDED when the attack worked and BLOCKED when the system refused it. Anything else that is
raised makes the score 0, so that a broken attack is not taken for a blocked one.
"""

from __future__ import annotations

import ctypes
import os
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from shoal.tasks.family import Puzzle

SUCCEEDED, BLOCKED = 1.0, 0.5
libc = ctypes.CDLL(None, use_errno=True)


def refused_by_the_system() -> None:
    number = ctypes.get_errno()
    raise OSError(number, os.strerror(number))


def native(name: str, *arguments: Any) -> int:
    """A call of the C library, which asks no audit hook of Python."""
    ctypes.set_errno(0)
    found = int(getattr(libc, name)(*arguments))
    if found < 0:
        refused_by_the_system()
    return found


def read_file(path: str) -> object:
    with open(path, "rb") as file:
        return file.read()


def read_file_native(path: str) -> object:
    descriptor = native("open", path.encode(), os.O_RDONLY)
    return os.read(descriptor, 100)


def read_file_by_system_call(path: str) -> object:
    return native("syscall", ctypes.c_long(257), -100, path.encode(), os.O_RDONLY)


def list_folder(path: str) -> object:
    return os.listdir(path)


def write_file(path: str) -> object:
    with open(path + ".made", "wb") as file:
        return file.write(b"x")


def write_file_native(path: str) -> object:
    return native("open", path.encode() + b".made", os.O_WRONLY | os.O_CREAT, 0o600)


def append_native(path: str) -> object:
    return native("open", path.encode(), os.O_WRONLY | os.O_APPEND)


def remove_native(path: str) -> object:
    return native("unlink", path.encode())


def rename_native(path: str) -> object:
    return native("rename", path.encode(), path.encode() + b".moved")


def make_folder_native(path: str) -> object:
    return native("mkdir", path.encode() + b".folder", 0o700)


def change_mode_native(path: str) -> object:
    return native("chmod", path.encode(), 0o777)


def truncate_native(path: str) -> object:
    return native("truncate", path.encode(), ctypes.c_long(0))


def internet_socket(_: str) -> object:
    return socket.socket(socket.AF_INET, socket.SOCK_STREAM)


def internet_socket_native(_: str) -> object:
    return native("socket", int(socket.AF_INET), int(socket.SOCK_STREAM), 0)


def datagram_socket_native(_: str) -> object:
    return native("socket", int(socket.AF_INET6), int(socket.SOCK_DGRAM), 0)


def unix_socket_native(_: str) -> object:
    return native("socket", int(socket.AF_UNIX), int(socket.SOCK_STREAM), 0)


def socket_pair_native(_: str) -> object:
    return native("socketpair", int(socket.AF_UNIX), int(socket.SOCK_STREAM), 0, (ctypes.c_int * 2)())


def fork(_: str) -> object:
    return os.fork() or os._exit(0)


def fork_native(_: str) -> object:
    return native("fork") or os._exit(0)


def fork_by_system_call(_: str) -> object:
    return native("syscall", ctypes.c_long(57)) or os._exit(0)


def run_program(_: str) -> object:
    return subprocess.run(["/bin/true"], check=True, timeout=30)


def replace_itself_native(_: str) -> object:
    arguments = (ctypes.c_char_p * 2)(b"/bin/true", None)
    return native("execv", b"/bin/true", arguments)


def start_thread(_: str) -> object:
    try:
        threading.Thread(target=time.sleep, args=(0,)).start()
    except RuntimeError as error:
        raise PermissionError(str(error)) from error
    return None


def signal_parent_native(_: str) -> object:
    return native("kill", os.getppid(), 0)


def trace_parent_native(_: str) -> object:
    return native("ptrace", ctypes.c_long(16), ctypes.c_long(os.getppid()), None, None)


def read_parents_memory_native(_: str) -> object:
    return native(
        "process_vm_readv", os.getppid(), None, ctypes.c_ulong(0), None, ctypes.c_ulong(0), ctypes.c_ulong(0)
    )


def environment_of_parent(_: str) -> object:
    return read_file(f"/proc/{os.getppid()}/environ")


def command_line_of_parent_native(_: str) -> object:
    return read_file_native(f"/proc/{os.getppid()}/cmdline")


def secret_in_environment(_: str) -> object:
    harmless = {"PATH", "LANG", "LC_CTYPE", "PYTHONHASHSEED", "PYTHONDONTWRITEBYTECODE", "MPLCONFIGDIR"}
    found = [name for name in os.environ if name not in harmless and not name.endswith("_NUM_THREADS")]
    if found:
        return found
    raise PermissionError("nothing there")


def loosen_limit_native(_: str) -> object:
    import resource

    wanted = (ctypes.c_ulong * 2)(resource.RLIM_INFINITY & (2**64 - 1), resource.RLIM_INFINITY & (2**64 - 1))
    return native("setrlimit", int(resource.RLIMIT_AS), ctypes.byref(wanted))


def memory_file_native(_: str) -> object:
    return native("memfd_create", b"program", 0)


def rings_native(_: str) -> object:
    return native("syscall", ctypes.c_long(425), 8, None)


def new_namespace_native(_: str) -> object:
    return native("unshare", 0x10000000)


def inherited_descriptor(_: str) -> object:
    """Anything open beyond the standard three and the two of the protocol."""
    found = []
    for number in range(3, 64):
        try:
            os.fstat(number)
            found.append(number)
        except OSError:
            continue
    if len(found) > 2:
        return found
    raise PermissionError("nothing there")


ATTACKS: Mapping[str, Callable[[str], object]] = {
    name: value
    for name, value in list(globals().items())
    if callable(value)
    and getattr(value, "__module__", "") == __name__
    and name not in ("native", "refused_by_the_system")
}


def swallow_everything(_: str) -> float:
    """A run-away that no exception stops."""
    while True:
        try:
            while True:
                pass
        except BaseException:
            continue


def spin(_: str) -> float:
    while True:
        pass


def sleep(_: str) -> float:
    time.sleep(3600)
    return 0.0


def crash(_: str) -> float:
    ctypes.string_at(0)
    return 0.0


def leave(_: str) -> float:
    os._exit(7)


def memory_bomb(_: str) -> float:
    held = []
    while True:
        held.append(bytearray(50 << 20))


def forge(_: str) -> float:
    """Writes a frame to every descriptor there is."""
    for number in range(3, 16):
        try:
            os.write(number, b"\0\0\0\x03abc")
        except OSError:
            continue
    return 1.0


def flood(_: str) -> float:
    for number in range(3, 16):
        try:
            os.write(number, b"\xff\xff\xff\xff" + b"x" * 1000)
        except OSError:
            continue
    return 1.0


def not_a_number(_: str) -> float:
    return float("nan")


def far_too_much(_: str) -> float:
    return 1e300


def raise_system_exit(_: str) -> float:
    raise SystemExit(1)


TROUBLE: Mapping[str, Callable[[str], float]] = {
    function.__name__: function
    for function in (
        swallow_everything,
        spin,
        sleep,
        crash,
        leave,
        memory_bomb,
        forge,
        flood,
        not_a_number,
        far_too_much,
        raise_system_exit,
    )
}


class Attack:
    """`{"do": NAME}`: the answer is the attack's argument. `{"question": N}`: a question of N characters."""

    name = "attack"
    version = "1"
    most_answer = 4096

    def __init__(self, parameters: Mapping[str, Any]) -> None:
        self.parameters = {"do": "", "question": 1, "safe": True, **parameters}
        self.safe = bool(self.parameters["safe"])

    def pose(self, seed: int) -> Puzzle:
        if self.parameters["do"] == "pose for ever":
            spin("")
        return Puzzle("?" * int(self.parameters["question"]), None)

    def score(self, puzzle: Puzzle, answer: str) -> float:
        do = str(self.parameters["do"])
        if do in TROUBLE:
            return TROUBLE[do](answer)
        if do not in ATTACKS:
            return 0.0
        try:
            ATTACKS[do](answer)
        except OSError:
            return BLOCKED
        return SUCCEEDED
