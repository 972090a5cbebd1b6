from pathlib import Path

import pytest

from shoal.errors import RunError
from shoal.runs import Checkpoints


def fill_with(text: str):
    def fill(folder: Path) -> None:
        (folder / "weights").mkdir()
        (folder / "weights" / "a.bin").write_bytes(text.encode() * 1000)
        (folder / "state.json").write_text(text)

    return fill


def test_the_newest_complete_one_is_found_and_old_ones_are_pruned(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path / "node", keep=2)
    assert checkpoints.newest().path is None
    for number in (1, 5, 12):
        checkpoints.write(number, number * 10, fill_with(f"state {number}"))
    found = checkpoints.newest()
    assert (found.number, found.journal_number, found.passed_over) == (12, 120, ())
    assert found.path is not None
    assert (found.path / "state.json").read_text() == "state 12"
    assert sorted(path.name for path in (tmp_path / "node").iterdir()) == [
        "checkpoint-00000005",
        "checkpoint-00000012",
    ]


@pytest.mark.parametrize("damage", ["flip", "shorten", "remove", "manifest", "no manifest"])
def test_a_damaged_one_is_passed_over_by_name(tmp_path: Path, damage: str) -> None:
    checkpoints = Checkpoints(tmp_path, keep=3)
    checkpoints.write(1, 10, fill_with("one"))
    newest = checkpoints.write(2, 20, fill_with("two"))
    weights, manifest = newest / "weights" / "a.bin", newest / "manifest.json"
    if damage == "flip":
        weights.write_bytes(b"X" + weights.read_bytes()[1:])
    elif damage == "shorten":
        weights.write_bytes(weights.read_bytes()[:-1])
    elif damage == "remove":
        weights.unlink()
    elif damage == "manifest":
        manifest.write_bytes(manifest.read_bytes()[:-9])
    else:
        manifest.unlink()
    found = checkpoints.newest()
    assert found.number == 1
    assert len(found.passed_over) == 1
    assert str(newest) in found.passed_over[0]
    # Going on from the older one makes the damaged one's place free again.
    checkpoints.write(2, 25, fill_with("two again"))
    assert checkpoints.newest().journal_number == 25


def test_a_failure_while_filling_leaves_the_older_ones(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    checkpoints.write(1, 10, fill_with("one"))

    def full_disk(folder: Path) -> None:
        (folder / "half").write_text("half")
        raise OSError(28, "No space left on device")

    with pytest.raises(RunError, match=r"No space left on device. The older ones are untouched"):
        checkpoints.write(2, 20, full_disk)
    assert checkpoints.newest().number == 1
    assert [path.name for path in tmp_path.iterdir()] == ["checkpoint-00000001"]


def test_what_a_killed_process_left_half_done_is_not_seen(tmp_path: Path) -> None:
    checkpoints = Checkpoints(tmp_path)
    half = tmp_path / ".checkpoint-00000003.partial"
    half.mkdir()
    (half / "state.json").write_text("half")
    assert checkpoints.newest().path is None
    checkpoints.write(3, 30, fill_with("three"))
    assert checkpoints.newest().number == 3
    assert not half.exists()
