"""`shoal cache`."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from shoal.models.cache import made_whole
from tests.cli.conftest import Shoal

DIGEST = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path))
    for name in (f"tiny-llama-{DIGEST}", f"smollm2-{DIGEST}-1"):
        with made_whole(tmp_path / "policies" / name) as aside:
            aside.mkdir()
            (aside / "model.safetensors").write_bytes(b"x" * 2_000_000)
    return tmp_path


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in (folder / "policies").iterdir())


def test_an_empty_cache(shoal: Shoal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path))
    done = shoal("cache")
    assert (done.code, done.out) == (0, f"The cache at {tmp_path} is empty.\n")


def test_entries_are_shown_with_their_models_and_sizes(shoal: Shoal, folder: Path) -> None:
    done = shoal("cache")
    assert done.code == 0, done.err
    assert "tiny:llama" in done.out
    assert "unpacked for training" in done.out
    assert f"4.0 MB in {folder}" in done.out
    listed = json.loads(shoal("cache", "--json").out)
    assert listed["bytes"] == 4_000_000
    assert {one["model"] for one in listed["entries"]} == {"tiny:llama", "local:smollm2"}
    assert len(names(folder)) == 2, "nothing is removed unless asked"


def test_one_model_is_removed(shoal: Shoal, folder: Path) -> None:
    done = shoal("cache", "--clear", "tiny:llama")
    assert (done.code, done.out) == (0, f"1 of 1 entries removed from {folder}.\n")
    assert names(folder) == [f"smollm2-{DIGEST}-1"]


def test_all_are_removed(shoal: Shoal, folder: Path) -> None:
    (folder / "policies" / "of the user").mkdir()
    assert shoal("cache", "--clear").code == 0
    assert names(folder) == ["of the user"]


def test_an_unknown_name_removes_nothing(shoal: Shoal, folder: Path) -> None:
    done = shoal("cache", "--clear", "tiny:other")
    assert done.code == 2
    assert "tiny:other is not in the cache" in done.err
    assert "tiny:llama" in done.err
    assert len(names(folder)) == 2


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_a_used_entry_is_kept_and_told(shoal: Shoal, folder: Path) -> None:
    from shoal.models.cache import use

    use(folder / "policies" / f"tiny-llama-{DIGEST}")
    done = shoal("cache", "--clear")
    assert done.code == 2
    assert "in use" in done.err
    assert names(folder) == [f"tiny-llama-{DIGEST}"]
