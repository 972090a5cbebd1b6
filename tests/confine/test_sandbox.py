"""What code inside the verifier's worker can reach, tried from inside."""

from __future__ import annotations

import os
import platform
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.confine import sandbox, seccomp
from shoal.tasks.confined import WorkerVerifier
from shoal.tasks.family import canonical_parameters
from shoal.tasks.verifier import Problem, Scored
from tests.confine.attacks import ATTACKS, BLOCKED, SUCCEEDED
from tests.tasks.asking import score

pytestmark = pytest.mark.timeout(120)

HERE = Path(__file__).parent
MUST_WORK = os.environ.get("CI") == "true" and sys.platform == "linux" and platform.machine() == "x86_64"

NEEDS_LANDLOCK = {
    "read_file_native",
    "read_file_by_system_call",
    "list_folder",
    "command_line_of_parent_native",
}
ANYWHERE = {
    "secret_in_environment",
    "inherited_descriptor",
    "read_file",
    "write_file",
    "fork",
    "run_program",
    "internet_socket",
    "environment_of_parent",
}


@pytest.fixture(scope="module")
def verifier() -> Iterator[WorkerVerifier]:
    os.environ["SHOAL_TEST_SECRET"] = "do not tell"
    with WorkerVerifier(families={"attack": "attacks:Attack"}, import_paths=[HERE]) as made:
        yield made
    del os.environ["SHOAL_TEST_SECRET"]


def run(verifier: WorkerVerifier, attack: str, argument: str) -> float:
    problem = Problem("attack", "", canonical_parameters({"do": attack}), 0)
    verdict = score(verifier, problem, [argument])
    assert isinstance(verdict, Scored), verdict
    return verdict.scores[0]


def require(verifier: WorkerVerifier, attack: str) -> None:
    coverage = verifier.coverage
    there = coverage.landlock if attack in NEEDS_LANDLOCK else coverage.seccomp or attack in ANYWHERE
    if not there and not MUST_WORK:
        pytest.skip(f"this kernel does not offer what stops {attack}: {'; '.join(coverage.missing)}")


@pytest.mark.parametrize("attack", sorted(ATTACKS))
def test_an_attack_from_inside_is_blocked(verifier: WorkerVerifier, attack: str, tmp_path: Path) -> None:
    require(verifier, attack)
    secret = tmp_path / "identity.key"
    secret.write_bytes(b"the node's key")
    secret.chmod(0o600)
    assert run(verifier, attack, str(tmp_path if attack == "list_folder" else secret)) == BLOCKED
    assert secret.read_bytes() == b"the node's key"
    assert [path.name for path in tmp_path.iterdir()] == ["identity.key"]
    assert secret.stat().st_mode & 0o777 == 0o600


def test_the_attacks_work_outside_of_the_sandbox(tmp_path: Path) -> None:
    """Otherwise they would prove nothing."""
    secret = tmp_path / "key"
    secret.write_bytes(b"key")
    for attack in (
        "read_file",
        "read_file_native",
        "write_file_native",
        "append_native",
        "unix_socket_native",
        "socket_pair_native",
        "internet_socket_native",
        "run_program",
        "start_thread",
        "change_mode_native",
        "rename_native",
    ):
        ATTACKS[attack](str(secret))
    if sys.platform == "linux":
        ATTACKS["memory_file_native"]("")
        ATTACKS["signal_parent_native"]("")


def test_what_a_family_needs_can_still_be_read(verifier: WorkerVerifier) -> None:
    assert run(verifier, "read_file", os.path.realpath(HERE / "attacks.py")) == SUCCEEDED
    assert run(verifier, "read_file_native", os.path.realpath(sandbox.__file__)) == SUCCEEDED


def test_the_coverage_is_reported_and_honest(verifier: WorkerVerifier, tmp_path: Path) -> None:
    coverage = verifier.coverage
    assert coverage.platform == sys.platform
    assert coverage.audit_hook
    if MUST_WORK:
        assert coverage.seccomp
    if not (coverage.seccomp and coverage.landlock):
        assert coverage.missing
    (tmp_path / "file").write_text("the tests' own process is not confined")
    subprocess.run([sys.executable, "-c", ""], check=True, timeout=60)


def test_the_filter_refuses_what_is_not_listed() -> None:
    for machine in seccomp.AUDIT_ARCHITECTURES:
        steps = seccomp.filter_steps(machine, 1)
        assert len(steps) < 4096
        assert steps[-1] == (0x06, 0, 0, 0x00050000 | 38)
        for place, (code, if_true, if_false, _) in enumerate(steps):
            if code in (0x15, 0x35, 0x45):
                assert place + 1 + max(if_true, if_false) < len(steps)
    listed = set(seccomp.ALLOWED)
    assert not listed & {
        "socket",
        "connect",
        "clone",
        "clone3",
        "fork",
        "vfork",
        "execve",
        "execveat",
        "ptrace",
        "kill",
        "unlink",
        "rename",
        "openat2",
        "io_uring_setup",
        "prctl",
        "seccomp",
        "setrlimit",
        "mount",
        "unshare",
    }


@pytest.mark.skipif(sys.platform != "linux", reason="the kernel's help to die with the parent is Linux's")
def test_a_worker_does_not_outlive_its_parent() -> None:
    program = textwrap.dedent(
        f"""
        import sys, threading
        from shoal.tasks.verifier import Problem, Scoring
        from shoal.tasks.confined import WorkerVerifier
        verifier = WorkerVerifier(families={{"attack": "attacks:Attack"}}, import_paths=[{str(HERE)!r}], seconds=600)
        print(verifier._running().process_id, flush=True)
        verifier.score([Scoring(Problem("attack", "", '{{"do":"sleep"}}', 0), ("x",))])
        """
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    parent = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        assert parent.stdout is not None
        worker = int(parent.stdout.readline())
        time.sleep(0.3)
        os.kill(worker, 0)
    finally:
        parent.send_signal(signal.SIGKILL)
        parent.wait(30)
        parent.stdout.close()
    until = time.monotonic() + 10
    while time.monotonic() < until and alive(worker):
        time.sleep(0.02)
    assert not alive(worker)


def alive(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


WITHOUT_THE_KERNEL = """
import socket
from shoal.confine import sandbox, seccomp
sandbox.landlock_version = lambda: 0
seccomp.supported = lambda: "no filter for this machine"
found = sandbox.enter((), memory=1 << 30, cpu_seconds=60)
print(found.landlock, found.seccomp)
print(" / ".join(found.missing))
for attempt in (lambda: open("/etc/hostname"), lambda: socket.socket(), lambda: open("/tmp/x", "w")):
    try:
        attempt()
    except PermissionError:
        print("refused by Python")
"""


@pytest.mark.skipif(sys.platform != "linux", reason="shows what is left of Linux's layers")
def test_a_kernel_without_the_features_is_told_and_python_still_refuses() -> None:
    environment = {"PYTHONPATH": os.pathsep.join(sys.path)}
    run = subprocess.run(
        [sys.executable, "-c", WITHOUT_THE_KERNEL],
        capture_output=True,
        text=True,
        env=environment,
        timeout=120,
    )
    lines = run.stdout.splitlines()
    assert lines[0] == "0 False", run.stderr
    assert "no Landlock" in lines[1]
    assert "no filter for this machine" in lines[1]
    assert lines[2:] == ["refused by Python"] * 3
