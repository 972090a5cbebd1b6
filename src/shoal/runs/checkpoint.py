"""Checkpoints: folders `checkpoint-<number>/` that are either complete or not there. A checkpoint is filled
aside, gets a manifest with the size and SHA-256 of each file, is forced to the disk, and only then renamed. A
resume uses the newest one that matches its manifest and names the damaged ones in `Found.passed_over`."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec

from shoal.errors import RunError
from shoal.files import force_to_disk

MANIFEST = "manifest.json"
_NAME = re.compile(r"checkpoint-(\d+)")


class FileEntry(msgspec.Struct, frozen=True):
    size: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """The files of a checkpoint. `journal_number` is the last record whose effect is in it."""

    number: int
    journal_number: int
    files: dict[str, FileEntry]


class Found(msgspec.Struct, frozen=True):
    """The newest complete checkpoint, if any, and the faults of newer ones."""

    path: Path | None
    number: int
    journal_number: int
    passed_over: tuple[str, ...]


class Checkpoints:
    """The checkpoints of one node, in `folder`; the newest `keep` are kept."""

    def __init__(self, folder: Path, *, keep: int = 2) -> None:
        if keep < 1:
            raise ValueError(f"keep is {keep}; at least one checkpoint must be kept")
        self.folder = folder
        self.keep = keep

    def write(self, number: int, journal_number: int, fill: Callable[[Path], None]) -> Path:
        """Makes the files of `fill` checkpoint `number`. A failure leaves the older ones as they were."""
        final = self.folder / f"checkpoint-{number:08d}"
        aside = self.folder / f".{final.name}.partial"
        try:
            shutil.rmtree(aside, ignore_errors=True)
            aside.mkdir(parents=True)
            fill(aside)
            files = {
                path.relative_to(aside).as_posix(): FileEntry(path.stat().st_size, _sha256(path))
                for path in sorted(aside.rglob("*"))
                if path.is_file()
            }
            manifest = Manifest(number, journal_number, files)
            (aside / MANIFEST).write_bytes(msgspec.json.format(msgspec.json.encode(manifest)))
            for path in (*aside.rglob("*"), aside):
                force_to_disk(path)
            if final.exists():  # a damaged one that was passed over, or the same turn reached again
                shutil.rmtree(final)
            os.rename(aside, final)
            force_to_disk(self.folder)
        except OSError as error:
            shutil.rmtree(aside, ignore_errors=True)
            raise RunError(
                f"{final}: the checkpoint could not be written: {error.strerror or error}. "
                "The older ones are untouched; make room and resume."
            ) from error
        self._prune(number)
        return final

    def newest(self) -> Found:
        passed_over: list[str] = []
        for number, path in sorted(self._all(), reverse=True):
            try:
                manifest = check(path)
            except RunError as error:
                passed_over.append(str(error))
                continue
            return Found(path, number, manifest.journal_number, tuple(passed_over))
        return Found(None, 0, 0, tuple(passed_over))

    def _all(self) -> list[tuple[int, Path]]:
        if not self.folder.is_dir():
            return []
        matches = [(_NAME.fullmatch(path.name), path) for path in self.folder.iterdir()]
        return [(int(match[1]), path) for match, path in matches if match]

    def _prune(self, newest: int) -> None:
        # A higher number is one that was passed over as damaged before this run went on from an older one.
        kept = sorted(number for number, _ in self._all() if number <= newest)[-self.keep :]
        for number, path in self._all():
            if number not in kept:
                shutil.rmtree(path, ignore_errors=True)


def check(path: Path) -> Manifest:
    """The manifest of the checkpoint at `path`; RunError names the first file that is not as written."""
    try:
        manifest = msgspec.json.decode((path / MANIFEST).read_bytes(), type=Manifest)
    except (OSError, msgspec.DecodeError) as error:
        raise RunError(f"{path}: the manifest cannot be read: {error}") from error
    for name, entry in manifest.files.items():
        file = path / name
        if not file.is_file():
            raise RunError(f"{file}: this file of the checkpoint is missing.")
        if file.stat().st_size != entry.size or _sha256(file) != entry.sha256:
            raise RunError(f"{file}: this file of the checkpoint is damaged.")
    return manifest


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
