"""Nodes of one machine find each other in a private folder."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.errors import ConfigError
from shoal.swarm.transport import local
from shoal.swarm.transport.local import MOST_ROUTERS, LocalNeighbours, swarm_folder
from shoal.swarm.transport.neighbours import CLIENT_ENDPOINTS, LINKS


def node(runtime: Path, name: str) -> LocalNeighbours:
    return LocalNeighbours("swarm", name, random.Random(name), runtime)


def test_folder_is_private_and_short(runtime: Path) -> None:
    folder = swarm_folder("any name: */$ ünd " + "long " * 100, runtime)
    assert folder.stat().st_mode & 0o777 == 0o700
    assert len(str(folder)) < 80


def test_folder_of_others_is_refused(runtime: Path) -> None:
    (runtime / "open").mkdir(mode=0o755)
    (runtime / "link").symlink_to(runtime)
    for name in ("open", "link"):
        with pytest.raises(ConfigError, match="belongs to you"):
            swarm_folder("swarm", runtime / name)


def test_runtime_folder_is_used_only_if_it_is_private(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(runtime))
    (runtime / "run").mkdir(mode=0o700)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(runtime / "run"))
    assert swarm_folder("swarm").is_relative_to(runtime / "run" / "shoal")
    (runtime / "run").chmod(0o777)
    assert swarm_folder("swarm").is_relative_to(runtime / f"shoal-{os.getuid()}")


def test_too_long_a_folder_is_explained(runtime: Path) -> None:
    with pytest.raises(ConfigError, match="XDG_RUNTIME_DIR"):
        swarm_folder("swarm", runtime / ("long" * 20))


@pytest.mark.parametrize("degree", [1, 3, 32])
def test_the_gossip_degree_is_the_number_of_links_that_a_router_dials(runtime: Path, degree: int) -> None:
    nodes = [
        LocalNeighbours("swarm", f"n{number}", random.Random(number), runtime, degree) for number in range(8)
    ]
    assert [len(each.draw().connect) for each in nodes] == [min(number, degree) for number in range(8)]
    for each in nodes:
        each.leave()


def test_each_sees_those_before_it_and_links_to_a_few(runtime: Path) -> None:
    nodes = [node(runtime, f"n{number}") for number in range(8)]
    draws = [each.draw() for each in nodes]
    assert [len(draw.connect) for draw in draws] == [0, 1, 2, 3, *[LINKS] * 4]
    assert all(draw.mode == "router" and draw.listen[0] not in draw.connect for draw in draws)
    for each in nodes:
        each.leave()
    assert [path.name for path in swarm_folder("swarm", runtime).iterdir()] == [".guard"]


def test_from_the_33rd_on_nodes_are_clients(runtime: Path) -> None:
    nodes = [node(runtime, f"n{number}") for number in range(MOST_ROUTERS + 2)]
    draws = [each.draw() for each in nodes]
    assert [draw.mode for draw in draws] == ["router"] * MOST_ROUTERS + ["client"] * 2
    routers = {draw.listen[0] for draw in draws[:MOST_ROUTERS]}
    assert draws[-1].listen == ()
    assert len(draws[-1].connect) == CLIENT_ENDPOINTS
    assert routers.issuperset(draws[-1].connect)
    assert list(nodes[-1].endpoints()) == []
    nodes[0].leave()
    assert nodes[-1].draw().mode == "router"  # there is room again
    for each in nodes:
        each.leave()


def test_what_a_killed_node_left_is_removed_and_its_key_can_start_again(runtime: Path) -> None:
    program = (
        "import os, random, signal, pathlib\n"
        "from shoal.swarm.transport.local import LocalNeighbours\n"
        f"node = LocalNeighbours('swarm', 'killed', random.Random(), pathlib.Path({str(runtime)!r}))\n"
        "draw = node.draw()\n"
        "open(draw.listen[0].removeprefix('unixsock-stream/'), 'w').close()\n"
        "print(draw.listen[0], flush=True)\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=30)
    endpoint = killed.stdout.strip()
    socket_path = Path(endpoint.removeprefix("unixsock-stream/"))
    assert socket_path.exists(), killed.stderr
    again = node(runtime, "killed")
    assert not socket_path.exists()
    assert again.draw().listen == (endpoint,)
    again.leave()
    subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=30)
    other = node(runtime, "other")
    assert other.draw().connect == ()
    assert not socket_path.exists()
    other.leave()


def test_the_same_key_twice_is_refused(runtime: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "CLAIM_SECONDS", 0.1)
    first = node(runtime, "twin")
    with pytest.raises(ConfigError, match="already runs"):
        node(runtime, "twin")
    first.leave()
    node(runtime, "twin").leave()


def test_a_process_frozen_while_joining_keeps_nobody_out(
    runtime: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local, "GUARD_SECONDS", 0.1)
    first, second = node(runtime, "first"), node(runtime, "second")
    with first._guard():
        assert second.draw().mode == "router"
    first.leave()
    second.leave()
