"""A node's append-only record of everything that came from outside.

One JSON object per line:

    {"number":7,"kind":"answered","time":12.5,"payload":{...},"check":"1a2b3c4d"}

`number` counts 1, 2, 3 …, `time` is given by the caller (a journal has no clock), `payload` belongs to the
kind, `check` is the CRC-32 of the line before it. Guarantees:

- `append` returns once the bytes are with the operating system: `kill -9` loses no accepted record.
- A power loss can take the records that are not yet on the disk: with `Sync(every=1.0)`, the default, those
  of about the last second; with `Sync(every=0)` none; with `Sync(every=None)` those since the last `sync()`,
  which checkpoints call.
- One process writes (`flock`), from any of its threads; readers need no lock and see a prefix of the records.
- The file cut anywhere is a journal: a last line without its newline was never accepted, is ignored by
  readers, and is cut off before the next record is appended.
- Any other damage (a changed byte, a missing line) is a RunError that names the place.
- A full disk is a RunError; the record is then not in the journal, and the records before it are.
"""

from __future__ import annotations

import math
import os
import threading
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Protocol

import msgspec

from shoal.errors import RunError
from shoal.files import force_to_disk, refuse_irregular
from shoal.runs.lock import Owner, claim, release

MOST_LINE_BYTES = 8 << 20
"""A longer record is refused by `append`; a longer line is damage to a reader."""

MOST_TIME = 1e15
"""Seconds, before or after; no clock goes that far, and microseconds of it are still whole numbers."""

_CHECK_BYTES = len(',"check":"00000000"}\n')


class Record(msgspec.Struct, frozen=True):
    """One thing that came from outside. `payload` is JSON; its type depends on the kind (records.py)."""

    number: int
    kind: str
    time: Annotated[float, msgspec.Meta(ge=-MOST_TIME, le=MOST_TIME)]
    payload: msgspec.Raw


class Sync(msgspec.Struct, frozen=True):
    """Records reach the disk `every` so many seconds of record time (0: each one, None: only by `sync`)."""

    every: float | None = 1.0


class JournalLike(Protocol):
    """A journal as a node uses it: a file in the field, memory in the simulator."""

    @property
    def last_number(self) -> int: ...
    def append(self, kind: str, time: float, payload: object) -> Record: ...
    def append_all(self, kind: str, time: float, payloads: Sequence[object]) -> list[Record]: ...
    def read(self) -> Iterator[Record]: ...
    def sync_if_due(self, time: float) -> None: ...
    def sync(self) -> None: ...
    def close(self) -> None: ...


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Record).decode


def encode_line(record: Record) -> bytes:
    body = _encode(record)[:-1]
    return b'%b,"check":"%08x"}\n' % (body, zlib.crc32(body))


def decode_line(line: bytes, number: int, where: str) -> Record:
    """The record in a whole line, which must be the `number`-th; RunError names `where` otherwise."""
    body = line[:-_CHECK_BYTES]
    remedy = "Restore the file from a copy, or start a new run."
    if line[-_CHECK_BYTES:] != b',"check":"%08x"}\n' % zlib.crc32(body):
        raise RunError(f"{where}: the line of record {number} is damaged. {remedy}")
    try:
        record = _decode(body + b"}")
    except (msgspec.DecodeError, RecursionError) as error:
        raise RunError(f"{where}: the line of record {number} is not a record: {error}. {remedy}") from error
    if record.number != number:
        raise RunError(f"{where}: found record {record.number} in place of record {number}. {remedy}")
    return record


def _make_records(
    first: int, kind: str, time: float, payloads: Sequence[object]
) -> tuple[list[Record], list[bytes]]:
    """The records with numbers from `first` on, and their lines; RunError if one cannot be written."""
    if not abs(time) <= MOST_TIME:
        raise RunError(f"record {first} ({kind}): its time is {time}, which no journal can hold.")
    records: list[Record] = []
    lines: list[bytes] = []
    for number, payload in enumerate(payloads, first):
        try:
            records.append(Record(number, kind, time, msgspec.Raw(_encode(payload))))
        except (TypeError, ValueError, msgspec.MsgspecError) as error:
            raise RunError(f"record {number} ({kind}) cannot be written as JSON: {error}.") from error
        lines.append(encode_line(records[-1]))
        if len(lines[-1]) > MOST_LINE_BYTES:
            raise RunError(
                f"record {number} ({kind}) has {len(lines[-1])} bytes, more than {MOST_LINE_BYTES}. "
                "Bound what is taken in from outside."
            )
    return records, lines


class Journal(Owner):
    """The journal of one node, open for appending. Creates the file where there is none."""

    def __init__(self, path: Path, sync: Sync | None = None) -> None:
        self.path = path
        self._sync = sync if sync is not None else Sync()
        self._last_sync = -math.inf
        self._unsynced = False
        self._lock = threading.Lock()
        is_new = not path.exists()
        self._descriptor = claim(
            path,
            os.O_RDWR | os.O_APPEND | os.O_CREAT,
            f"{path}: another process is writing this journal. Stop it first, or use another run folder.",
        )
        try:
            record, self._size = _last(self._descriptor, path)
            if self._size < os.fstat(self._descriptor).st_size:
                os.ftruncate(self._descriptor, self._size)  # a torn tail was never accepted
        except BaseException:
            release(self._descriptor)
            raise
        self.last_number = record.number if record else 0
        if is_new:
            force_to_disk(path.parent)

    def append(self, kind: str, time: float, payload: object) -> Record:
        """Writes one record and returns it as a reader will see it. After a RunError it is not there."""
        return self.append_all(kind, time, [payload])[0]

    def append_all(self, kind: str, time: float, payloads: Sequence[object]) -> list[Record]:
        """Writes several records at once, which costs less. After a RunError none of them is there."""
        with self._lock:
            records, lines = _make_records(self.last_number + 1, kind, time, payloads)
            whole = b"".join(lines)
            try:
                rest = memoryview(whole)
                while rest:  # a disk that fills up takes a part first, and fails only then
                    rest = rest[os.write(self._descriptor, rest) :]
            except OSError as error:
                self._take_back()
                raise RunError(
                    f"{self.path}: record {self.last_number + 1} ({kind}) could not be written: "
                    f"{error.strerror}. Everything before it is safe; make room and resume."
                ) from error
            self.last_number += len(records)
            self._size += len(whole)
            self._unsynced = True
            self.sync_if_due(time)
            return records

    def read(self) -> Iterator[Record]:
        return read(self.path)

    def sync_if_due(self, time: float) -> None:
        """Forces records to the disk if that is due at `time`, also when none is appended."""
        every = self._sync.every
        # abs(): a clock that was set back must not put the next sync off for as long.
        if self._unsynced and every is not None and abs(time - self._last_sync) >= every:
            self.sync()
            self._last_sync = time

    def sync(self) -> None:
        if self._unsynced:
            try:
                os.fsync(self._descriptor)
            except OSError as error:
                raise RunError(f"{self.path}: could not be forced to the disk: {error.strerror}.") from error
            self._unsynced = False

    def close(self) -> None:
        """Forces the rest to the disk and frees the file."""
        if self._descriptor >= 0:
            try:
                self.sync()
            finally:
                release(self._descriptor)
                self._descriptor = -1

    def _take_back(self) -> None:
        # If even this fails, the half line stays as a torn tail; appending onto it must not be possible.
        try:
            os.ftruncate(self._descriptor, self._size)
        except OSError:
            release(self._descriptor)
            self._descriptor = -1


def last_record(path: Path) -> Record | None:
    """The newest whole record, from the end of the file alone; None where there is none yet."""
    refuse_irregular(path)
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunError(f"{path}: cannot be read: {error.strerror}.") from error
    try:
        return _last(descriptor, path)[0]
    finally:
        os.close(descriptor)


def _last(descriptor: int, path: Path) -> tuple[Record | None, int]:
    """The last whole record and the size of the file up to its end."""
    end = _after_last_newline(descriptor, path, os.fstat(descriptor).st_size)
    if end == 0:
        return None, 0
    start = _after_last_newline(descriptor, path, end - 1)
    line = os.pread(descriptor, end - start, start)
    try:
        number = _decode(line[:-_CHECK_BYTES] + b"}").number
    except (msgspec.DecodeError, RecursionError):
        number = 0
    return decode_line(line, number, f"{path}, byte {start}"), end


def _after_last_newline(descriptor: int, path: Path, end: int) -> int:
    """The offset just behind the last newline before `end`; 0 if there is none."""
    position = end
    while position > 0:
        start = max(0, position - 65536)
        found = os.pread(descriptor, position - start, start).rfind(b"\n")
        if found >= 0:
            return start + found + 1
        position = start
        if end - position > MOST_LINE_BYTES:
            raise RunError(f"{path}, byte {position}: a line is longer than {MOST_LINE_BYTES} bytes.")
    return 0


class Follower:
    """Each `poll` gives the records that were completed since the last one, if the file exists. No lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.number = 0
        self.offset = 0  # bytes of the records that were read

    def poll(self) -> Iterator[Record]:
        if not self.path.exists():
            return
        refuse_irregular(self.path)
        try:
            file = self.path.open("rb")
        except OSError as error:
            raise RunError(f"{self.path}: cannot be read: {error.strerror}.") from error
        with file:
            file.seek(self.offset)
            while line := file.readline(MOST_LINE_BYTES + 1):
                where = f"{self.path}, line {self.number + 1}, byte {self.offset}"
                if not line.endswith(b"\n"):
                    if len(line) > MOST_LINE_BYTES:
                        raise RunError(f"{where}: the line is longer than {MOST_LINE_BYTES} bytes.")
                    return
                record = decode_line(line, self.number + 1, where)
                self.number = record.number
                self.offset += len(line)
                yield record


def read(path: Path) -> Iterator[Record]:
    """The records of a journal, one at a time, in order; RunError if there is no such file."""
    if not path.exists():
        raise RunError(f"{path}: there is no such journal.")
    return Follower(path).poll()


class MemoryJournal:
    """A journal without a file, with the same refusals. `keep=False` forgets its records: no replay."""

    def __init__(self, *, keep: bool = True) -> None:
        self.lines: list[bytes] = []
        self.last_number = 0
        self._keep = keep

    def append(self, kind: str, time: float, payload: object) -> Record:
        return self.append_all(kind, time, [payload])[0]

    def append_all(self, kind: str, time: float, payloads: Sequence[object]) -> list[Record]:
        records, lines = _make_records(self.last_number + 1, kind, time, payloads)
        self.last_number += len(records)
        if self._keep:
            self.lines += lines
        return records

    def read(self) -> Iterator[Record]:
        if not self._keep and self.last_number:
            raise RunError("this journal keeps nothing and cannot be replayed; use MemoryJournal(keep=True).")
        for number, line in enumerate(self.lines, start=1):
            yield decode_line(line, number, f"record {number} in memory")

    def sync_if_due(self, time: float) -> None:
        pass

    def sync(self) -> None:
        pass

    def close(self) -> None:
        pass
