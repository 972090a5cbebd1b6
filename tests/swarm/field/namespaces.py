"""Groups of nodes in network namespaces of their own, joined by a bridge whose ports can be cut."""

from __future__ import annotations

import os
import shutil
import subprocess


class Namespaces:
    """`groups` namespaces on one bridge. A cut stops every packet between a group and the rest, silently."""

    def __init__(self, groups: int) -> None:
        self.groups = groups
        self._prefix = f"shoal{os.getpid()}"
        self._hub = f"{self._prefix}hub"

    @staticmethod
    def allowed() -> bool:
        """Whether this process may make network namespaces."""
        if os.name != "posix" or shutil.which("ip") is None or os.geteuid() != 0:
            return False
        name = f"shoal{os.getpid()}try"
        made = subprocess.run(["ip", "netns", "add", name], capture_output=True, timeout=30).returncode == 0
        if made:
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False, timeout=30)
        return made

    def __enter__(self) -> Namespaces:
        self._ip("netns", "add", self._hub)
        self._ip("-n", self._hub, "link", "add", "bridge", "type", "bridge")
        self._ip("-n", self._hub, "link", "set", "bridge", "up")
        for group in range(self.groups):
            name = self._name(group)
            self._ip("netns", "add", name)
            self._ip("-n", name, "link", "set", "lo", "up")
            self._ip(
                *("-n", self._hub, "link", "add", f"port{group}", "type", "veth"),
                *("peer", "name", "eth0", "netns", name),
            )
            self._ip("-n", self._hub, "link", "set", f"port{group}", "master", "bridge", "up")
            self._ip("-n", name, "addr", "add", f"{self.host(group)}/24", "dev", "eth0")
            self._ip("-n", name, "link", "set", "eth0", "up")
        return self

    def __exit__(self, *_: object) -> None:
        for name in (self._hub, *map(self._name, range(self.groups))):
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False, timeout=30)

    def host(self, group: int) -> str:
        return f"10.77.0.{group + 1}"

    def prefix(self, group: int) -> list[str]:
        """What to put before a command so that it runs in the group's namespace."""
        return ["ip", "netns", "exec", self._name(group)]

    def cut(self, group: int) -> None:
        self._ip("-n", self._hub, "link", "set", f"port{group}", "down")

    def heal(self, group: int) -> None:
        self._ip("-n", self._hub, "link", "set", f"port{group}", "up")

    def _name(self, group: int) -> str:
        return f"{self._prefix}g{group}"

    def _ip(self, *words: str) -> None:
        subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)
