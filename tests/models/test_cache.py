"""The cache: whole entries, sizes, removal, and locks that keep used entries."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from shoal.errors import ConfigError
from shoal.models.cache import Cached, cache_folder, cached, made_whole, remove, use

pytestmark = pytest.mark.timeout(120)

DIGEST = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def make(folder: Path, *names: str) -> None:
    for name in names:
        path = folder / name
        if path.suffix == ".gguf":
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(b"x" * 1000)
        else:
            path.mkdir(parents=True)
            (path / "model.safetensors").write_bytes(b"x" * 2000)
            (path / "config.json").write_bytes(b"{}")


def entries() -> dict[str, tuple[str, str, int]]:
    return {one.path.name: (one.spec, one.purpose, one.size) for one in cached()}


def test_the_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_CACHE", "/elsewhere")
    assert cache_folder() == Path("/elsewhere")
    monkeypatch.delenv("SHOAL_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", "/caches")
    assert cache_folder() == Path("/caches/shoal")


def test_each_entry_has_a_model_a_purpose_and_a_size(folder: Path) -> None:
    assert cached() == []
    make(folder, f"models/gemma3-270m-{DIGEST}.gguf", f"policies/tiny-llama-{DIGEST}")
    make(folder, f"policies/smollm2-{DIGEST}-1", f"policies/.tiny-qwen-{DIGEST}-abc", "policies/of the user")
    (folder / "policies" / "notes.txt").write_text("not Shoal's")
    assert entries() == {
        f"gemma3-270m-{DIGEST}.gguf": ("local:gemma3-270m", "joined from its packages", 1000),
        f"tiny-llama-{DIGEST}": ("tiny:llama", "made on first use", 2002),
        f"smollm2-{DIGEST}-1": ("local:smollm2", "unpacked for training", 2002),
        f".tiny-qwen-{DIGEST}-abc": ("", "left by an interrupted process", 2002),
    }


def test_only_shoals_own_entries_are_removed(folder: Path) -> None:
    make(folder, f"models/gemma3-270m-{DIGEST}.gguf", f"policies/tiny-llama-{DIGEST}", "policies/of the user")
    for entry in cached():
        remove(entry)
        remove(entry)  # somebody else may have been faster
    assert cached() == []
    assert [path.name for path in (folder / "policies").iterdir()] == ["of the user"]
    assert list((folder / "models").iterdir()) == []


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
@pytest.mark.parametrize("name", [f"models/gemma3-270m-{DIGEST}.gguf", f"policies/tiny-llama-{DIGEST}"])
def test_an_entry_that_another_process_uses_is_kept_until_it_ends(folder: Path, name: str) -> None:
    make(folder, name)
    (entry,) = cached()
    program = (
        "import sys; from pathlib import Path; from shoal.models.cache import use\n"
        "use(Path(sys.argv[1])); print('used', flush=True); sys.stdin.read()"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    user = subprocess.Popen(
        [sys.executable, "-c", program, str(entry.path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=environment,
    )
    try:
        assert user.stdout is not None
        assert user.stdout.readline() == "used\n"
        with pytest.raises(ConfigError, match="in use"):
            remove(entry)
        assert entry.path.exists()
    finally:
        user.kill()
        user.communicate(timeout=30)
    remove(entry)
    assert not entry.path.exists()


def test_a_place_outside_of_the_cache_is_not_locked(folder: Path, tmp_path: Path) -> None:
    own = tmp_path / f"tiny-own-{DIGEST}"
    own.mkdir()
    assert use(own) == own
    remove(Cached(own, "", "", 0))
    assert not own.exists()


def test_an_entry_appears_whole_or_not_at_all(folder: Path) -> None:
    path = folder / "policies" / f"tiny-llama-{DIGEST}"

    def interrupted() -> None:
        with made_whole(path) as aside:
            aside.mkdir()
            assert not path.exists()
            raise RuntimeError("interrupted")

    with pytest.raises(RuntimeError):
        interrupted()
    assert list(path.parent.iterdir()) == []
    with made_whole(path) as aside:
        aside.mkdir()
    assert list(path.parent.iterdir()) == [path]
    with made_whole(path) as aside:  # another process was faster
        aside.mkdir()
        (path / "there").write_text("")
    assert [one.name for one in path.iterdir()] == ["there"]


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_a_model_in_the_making_is_not_taken_for_a_remnant(folder: Path) -> None:
    with made_whole(folder / "policies" / f"tiny-llama-{DIGEST}") as aside:
        aside.mkdir()
        (entry,) = cached()
        assert entry.purpose == "left by an interrupted process"
        with pytest.raises(ConfigError, match="in use"):
            remove(entry)
    assert [one.spec for one in cached()] == ["tiny:llama"]


def test_a_place_that_cannot_be_written_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path / "file"))
    with pytest.raises(ConfigError, match="SHOAL_CACHE"), made_whole(cache_folder() / "models" / "x"):
        pass
