from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

from shoal.errors import IdentityError
from shoal.swarm import identity as module
from shoal.swarm.identity import (
    WEAK_KEYS,
    Identity,
    id_bytes,
    id_text,
    node_id,
    short_name,
    usable_key,
    verify,
)


def test_the_key_is_created_once_and_private(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "node.key"
    first = Identity.load_or_create(path)
    assert Identity.load_or_create(path).node_id == first.node_id
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert [entry.name for entry in path.parent.iterdir()] == ["node.key"]


def test_the_key_is_never_readable_by_others(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also under an umask that would allow it, at every moment at which the file exists under some name."""
    modes: list[int] = []
    real = os.fsync

    def watch(descriptor: int) -> None:
        modes.extend(stat.S_IMODE(entry.stat().st_mode) for entry in tmp_path.iterdir())
        real(descriptor)

    monkeypatch.setattr(module.os, "fsync", watch)
    old = os.umask(0)
    try:
        Identity.load_or_create(tmp_path / "node.key")
    finally:
        os.umask(old)
    assert set(modes) == {0o600}


def test_processes_that_create_it_at_once_agree(tmp_path: Path) -> None:
    path = tmp_path / "node.key"
    found: list[str] = []
    threads = [
        threading.Thread(target=lambda: found.append(Identity.load_or_create(path).node_id)) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(found) == 8
    assert len(set(found)) == 1


@pytest.mark.parametrize(
    "content", ["", "shoal-key-1", "shoal-key-1 " + "g" * 64, "other " + "00" * 32, "x" * 500]
)
def test_a_damaged_file_is_named(tmp_path: Path, content: str) -> None:
    path = tmp_path / "node.key"
    path.write_text(content)
    path.chmod(0o600)
    with pytest.raises(IdentityError, match="damaged"):
        Identity.load_or_create(path)


def test_a_file_open_to_others_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "node.key"
    Identity.load_or_create(path)
    path.chmod(0o644)
    with pytest.raises(IdentityError, match="chmod 600"):
        Identity.load_or_create(path)


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(IdentityError, match="cannot be created"):
        Identity.load_or_create(tmp_path / "file" / "node.key")


def test_ids_follow_from_the_key() -> None:
    one = Identity(bytes(32))
    assert one.node_id == node_id(one.public_key)
    assert len(one.node_id) == 32
    assert id_text(id_bytes(one.node_id)) == one.node_id
    assert one.name == short_name(one.node_id)
    assert one.node_id != Identity(bytes(31) + b"\1").node_id
    assert str(bytes(32).hex()) not in repr(one)


def test_signatures() -> None:
    one = Identity(bytes(32))
    signature = one.sign(b"message")
    assert verify(one.public_key, signature, b"message")
    assert not verify(one.public_key, signature, b"another")
    assert not verify(b"short", signature, b"message")


def test_keys_of_small_order_are_unusable() -> None:
    assert usable_key(Identity(bytes(32)).public_key)
    for key in WEAK_KEYS:
        assert not usable_key(key)
        assert not usable_key(key[:-1] + bytes((key[-1] | 0x80,)))
    # One of them accepts a signature of anything, which is why.
    assert verify(b"\1" + bytes(31), b"\1" + bytes(63), b"whatever")
