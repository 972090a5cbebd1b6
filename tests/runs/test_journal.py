import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from shoal.errors import RunError
from shoal.runs import Follower, Journal, MemoryJournal, Sync, read
from shoal.runs.journal import MOST_LINE_BYTES

payloads = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
).filter(lambda value: "inf" not in repr(value))
entries = st.lists(st.tuples(st.text(min_size=1, max_size=8), st.floats(-1e9, 1e12), payloads), max_size=8)
in_one_folder = settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def write(path: Path, content: list[tuple[str, float, object]]) -> list[tuple[str, float, object]]:
    path.unlink(missing_ok=True)
    with Journal(path, Sync(every=None)) as journal:
        for kind, time, payload in content:
            journal.append(kind, time, payload)
    return content


def contents(path: Path) -> list[tuple[str, float, object]]:
    return [(record.kind, record.time, msgspec.json.decode(record.payload)) for record in read(path)]


@given(entries)
@in_one_folder
def test_what_was_appended_is_read_back_in_order(tmp_path: Path, content) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, content)
    assert contents(path) == content
    assert [record.number for record in read(path)] == list(range(1, len(content) + 1))


@given(entries, st.data())
@in_one_folder
def test_the_file_cut_at_any_byte_is_a_journal_that_goes_on(tmp_path: Path, content, data) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, content)
    whole = path.read_bytes()
    cut = data.draw(st.integers(0, len(whole)))
    path.write_bytes(whole[:cut])
    complete = whole[:cut].count(b"\n")
    assert contents(path) == content[:complete]
    with Journal(path, Sync(every=None)) as journal:
        assert journal.last_number == complete
        assert journal.append("more", 1.0, {"x": 1}).number == complete + 1
    assert contents(path) == [*content[:complete], ("more", 1.0, {"x": 1})]


@given(st.data())
@in_one_folder
def test_a_changed_byte_is_found_and_named(tmp_path: Path, data) -> None:
    path = tmp_path / "journal.jsonl"
    content = write(path, [("kind", float(n), {"text": "abc" * n}) for n in range(1, 5)])
    damaged = bytearray(path.read_bytes())
    position = data.draw(st.integers(0, len(damaged) - 2))
    damaged[position] ^= data.draw(st.integers(1, 255))
    path.write_bytes(damaged)
    line = path.read_bytes()[:position].count(b"\n") + 1
    with pytest.raises(RunError, match=f"line {line}, byte"):
        contents(path)
    assert len(content) == 4


def test_a_missing_line_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, [("kind", float(n), n) for n in range(4)])
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[2:]))
    with pytest.raises(RunError, match=r"line 2.*found record 3 in place of record 2"):
        contents(path)


def test_damage_in_the_last_whole_line_stops_the_writer(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, [("kind", 0.0, "text")])
    path.write_bytes(path.read_bytes().replace(b"text", b"taxt"))
    with pytest.raises(RunError, match="byte 0: the line of record 1 is damaged"):
        Journal(path)


def test_a_second_writer_is_refused_until_the_first_is_done(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    with Journal(path), pytest.raises(RunError, match="another process is writing this journal"):
        Journal(path)
    Journal(path).close()


def test_a_forked_child_does_not_keep_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path)
    started, wake = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:
        os.write(started[1], b"x")
        os.read(wake[0], 1)
        os._exit(0)
    os.read(started[0], 1)
    journal.close()
    Journal(path).close()  # while the child still lives
    os.write(wake[1], b"x")
    os.waitpid(child, 0)


def test_a_reader_beside_a_writer_sees_a_growing_prefix(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    follower = Follower(path)
    assert list(follower.poll()) == []
    total = 400

    def work() -> None:
        with Journal(path, Sync(every=None)) as journal:
            for number in range(total):
                journal.append("kind", float(number), "x" * (number * 37 % 5000))

    writer = threading.Thread(target=work)
    writer.start()
    seen: list[int] = []
    while len(seen) < total:
        seen += [record.number for record in follower.poll()]
    writer.join(60)
    assert seen == list(range(1, total + 1))
    assert list(follower.poll()) == []


def test_a_record_too_long_is_refused_and_the_journal_goes_on(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal.jsonl") as journal:
        with pytest.raises(RunError, match=r"record 1 \(answer\) has .* bytes, more than"):
            journal.append("answer", 0.0, "x" * MOST_LINE_BYTES)
        assert journal.append("answer", 0.0, "x").number == 1


@pytest.mark.parametrize("journal_class", [Journal, MemoryJournal])
def test_what_json_cannot_hold_is_refused_by_name(tmp_path: Path, journal_class) -> None:
    journal = journal_class(tmp_path / "journal.jsonl") if journal_class is Journal else MemoryJournal()
    with pytest.raises(RunError, match="cannot be written as JSON"):
        journal.append("kind", 0.0, object())
    with pytest.raises(RunError, match="its time is nan"):
        journal.append("kind", float("nan"), 1)
    assert journal.append("kind", 0.0, 1).number == 1
    assert [record.number for record in journal.read()] == [1]
    journal.close()


@pytest.mark.parametrize(("every", "expected"), [(0.0, 5), (2.0, 3), (None, 1)])
def test_the_sync_policy_counts_in_record_time(tmp_path: Path, monkeypatch, every, expected) -> None:
    calls = []
    with Journal(tmp_path / "journal.jsonl", Sync(every=every)) as journal:
        monkeypatch.setattr(os, "fsync", calls.append)
        for time in range(5):
            journal.append("kind", float(time), None)
        journal.sync()
    assert len(calls) == expected


FULL_DISK = """
    import os, resource, sys
    from pathlib import Path
    from shoal.errors import RunError
    from shoal.runs import Journal, read
    path = Path(sys.argv[1])
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    journal, accepted = Journal(path), 0
    try:
        while True:
            accepted = journal.append("kind", 0.0, "x" * 777).number
    except RunError as error:
        print(error)
    assert sum(1 for _ in read(path)) == accepted == journal.last_number
    assert path.read_bytes().endswith(b"\\n")
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    assert journal.append("kind", 0.0, "there is room again").number == accepted + 1
"""


def test_a_full_disk_is_one_clear_line_and_nothing_half_accepted(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(FULL_DISK), str(tmp_path / "journal.jsonl")],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert "could not be written: File too large. Everything before it is safe" in done.stdout
    assert done.stdout.count("\n") == 1


def test_a_half_line_that_cannot_be_taken_back_closes_the_journal(tmp_path: Path, monkeypatch) -> None:
    path = tmp_path / "journal.jsonl"
    journal = Journal(path, Sync(every=None))
    journal.append("kind", 0.0, "first")
    really_write = os.write

    def no_room(*_: object) -> int:
        raise OSError(28, "No space left on device")

    def half(descriptor: int, line: memoryview) -> int:
        return really_write(descriptor, line[:20]) if len(line) > 60 else no_room()

    monkeypatch.setattr(os, "write", half)
    monkeypatch.setattr(os, "ftruncate", no_room)
    with pytest.raises(RunError, match="No space left on device"):
        journal.append("kind", 0.0, "second")
    monkeypatch.undo()
    with pytest.raises(RunError):
        journal.append("kind", 0.0, "third")
    assert contents(path) == [("kind", 0.0, "first")]
    with Journal(path) as reopened:
        assert reopened.append("kind", 0.0, "second").number == 2


def test_nothing_accepted_is_lost_by_kill_9(tmp_path: Path) -> None:
    """The child tells the number of each accepted record over a pipe and is killed while it writes."""
    path = tmp_path / "journal.jsonl"
    accepted = 0
    for _ in range(5):
        source, sink = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                journal = Journal(path, Sync(every=None))
                while True:
                    record = journal.append("kind", 0.0, "x" * 5000)
                    os.write(sink, b"%d\n" % record.number)
            finally:
                os._exit(1)
        os.close(sink)
        told = b""
        while told.count(b"\n") < 20:
            told += os.read(source, 65536)
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
        while more := os.read(source, 65536):
            told += more
        os.close(source)
        accepted = max(accepted, *(int(number) for number in told.decode().split("\n")[:-1]))
        numbers = [record.number for record in read(path)]
        assert numbers == list(range(1, len(numbers) + 1))
        assert accepted <= len(numbers) <= accepted + 1  # one may be written and not yet told


def test_reading_what_is_not_there_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="there is no such journal"):
        read(tmp_path / "journal.jsonl")
    with pytest.raises(RunError, match="cannot be opened"):
        Journal(tmp_path / "no" / "journal.jsonl")
