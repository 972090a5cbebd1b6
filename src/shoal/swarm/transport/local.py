"""Neighbours on one machine: Unix sockets in a private folder, nothing to start and no port.

Every node of a swarm owns two files in `<runtime folder>/shoal/<swarm>/` (mode 0700): `<node>.node`, locked
(flock) for as long as the process lives, says "router" or "client"; at `<node>.sock` a router listens. The
kernel drops the lock of a process that dies, also by kill -9, and keeps that of a frozen one. So a node that
draws neighbours removes the files of the dead and never those of the living. Nodes join one at a time
(`.guard`), so that of two that start together the second sees the first.
"""

from __future__ import annotations

import contextlib
import os
import random
import stat
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from shoal.errors import ConfigError
from shoal.swarm.transport.addresses import MOST_SOCKET_PATH_BYTES
from shoal.swarm.transport.base import short_hash
from shoal.swarm.transport.neighbours import CLIENT_ENDPOINTS, LINKS, Draw

MOST_ROUTERS = 32  # others are clients: above about 64 routers, link states take up the machine
GUARD_SECONDS = 2.0  # how long a node waits to join: a process frozen in its turn must not keep it out
CLAIM_SECONDS = 3.0  # how long a node waits for a predecessor with the same node id to end


class LocalNeighbours:
    """Neighbours among the nodes of this user on this machine."""

    def __init__(
        self,
        swarm: str,
        node_id: str,
        rng: random.Random,
        runtime: Path | None = None,
        degree: int = LINKS,
    ) -> None:
        self._rng = rng
        self._degree = degree
        self._folder = swarm_folder(swarm, runtime)
        self._name = short_hash(node_id)
        self._router = True
        self._lock = self._claim(node_id)

    def draw(self) -> Draw:
        with self._guard():
            routers = self._other_routers()
            self._router = len(routers) < MOST_ROUTERS
            mode: Literal["router", "client"] = "router" if self._router else "client"
            os.pwrite(self._lock, mode.encode(), 0)
        most = self._degree if self._router else CLIENT_ENDPOINTS
        drawn = self._rng.sample(routers, min(len(routers), most))
        listen = (self._endpoint(self._name),) if self._router else ()
        return Draw(mode, listen, tuple(self._endpoint(name) for name in drawn))

    def learn(self, endpoints: Sequence[str]) -> None:
        pass  # the folder says who is there

    def has_others(self, draw: Draw) -> bool:
        return any(self._endpoint(name) not in draw.connect for name in self._other_routers())

    def endpoints(self) -> Sequence[str]:
        return (self._endpoint(self._name),) if self._router else ()

    def leave(self) -> None:
        if self._lock >= 0:
            self._remove(self._name)
            os.close(self._lock)
            self._lock = -1

    def _endpoint(self, name: str) -> str:
        return f"unixsock-stream/{self._folder / name}.sock"

    def _claim(self, node_id: str) -> int:
        """The locked descriptor of this node's file; taken over from a dead predecessor."""
        path = self._folder / f"{self._name}.node"
        deadline = time.monotonic() + CLAIM_SECONDS
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            if _lock(descriptor) and _is_still(path, descriptor):
                self._remove(self._name, but=path)
                return descriptor
            # A living node holds it, or for a moment one that looks whether its owner lives; or it is gone.
            os.close(descriptor)
            if time.monotonic() > deadline:
                raise ConfigError(
                    f"node {node_id[:8]} of this swarm already runs on this machine (it holds {path});"
                    " stop it, or start this one with another key"
                )
            time.sleep(0.02)

    def _other_routers(self) -> list[str]:
        """The names of all other living routers. Removes the files of dead nodes."""
        routers = []
        for path in sorted(self._folder.glob("*.node")):
            name = path.stem
            if name == self._name:
                continue
            try:
                descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
            except FileNotFoundError:
                continue
            try:
                if _lock(descriptor):
                    if _is_still(path, descriptor):
                        self._remove(name)
                elif os.pread(descriptor, 16, 0) == b"router":
                    routers.append(name)
            finally:
                os.close(descriptor)
        return routers

    def _remove(self, name: str, but: Path | None = None) -> None:
        """Removes a node's files; its lock must be held."""
        for ending in (".sock", ".sock.lock", ".node"):  # the engine adds .sock.lock
            path = self._folder / f"{name}{ending}"
            if path != but:
                path.unlink(missing_ok=True)

    @contextlib.contextmanager
    def _guard(self) -> Iterator[None]:
        descriptor = os.open(self._folder / ".guard", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            deadline = time.monotonic() + GUARD_SECONDS
            while not _lock(descriptor) and time.monotonic() < deadline:
                time.sleep(0.005)
            yield
        finally:
            os.close(descriptor)


def swarm_folder(swarm: str, runtime: Path | None = None) -> Path:
    """The private folder of a swarm's sockets, made if it is missing."""
    if os.name != "posix":
        raise ConfigError(
            "this system has no Unix sockets for nodes to meet at; use --listen 127.0.0.1:7447 and --join"
        )
    parent = runtime if runtime is not None else _runtime_folder()
    folder = parent / short_hash(swarm)
    for path in (parent, folder):
        _make_private(path)
    length = len(str(folder / (short_hash("") + ".sock")).encode())
    if length > MOST_SOCKET_PATH_BYTES:
        raise ConfigError(
            f"{folder} is too long for Unix sockets ({length} of {MOST_SOCKET_PATH_BYTES} bytes);"
            " set XDG_RUNTIME_DIR to a shorter folder that only you can read"
        )
    return folder


def _runtime_folder() -> Path:
    given = os.environ.get("XDG_RUNTIME_DIR", "")
    if given.startswith("/") and _is_private(Path(given)):
        return Path(given) / "shoal"
    return Path(tempfile.gettempdir()) / f"shoal-{os.getuid()}"


def _make_private(path: Path) -> None:
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError(f"{path} cannot be made: {error.strerror}; set XDG_RUNTIME_DIR") from error
    if not _is_private(path):
        # Anybody who can write here could replace a node's socket by another.
        raise ConfigError(
            f"{path} must be a folder that belongs to you and nobody else can enter;"
            " remove it, or `chmod 700` it if it is yours"
        )


def _is_private(path: Path) -> bool:
    try:
        found = path.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.getuid() and not found.st_mode & 0o077


def _lock(descriptor: int) -> bool:
    import fcntl

    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _is_still(path: Path, descriptor: int) -> bool:
    """Whether `path` is the file that was locked, and not a newer one of the same name."""
    try:
        return os.path.samestat(path.stat(), os.fstat(descriptor))
    except FileNotFoundError:
        return False
