"""What stands in README and docs: code blocks, indented blocks and commands in the running text."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from markdown_it import MarkdownIt

ROOT = Path(__file__).parents[2]
_ASSIGNMENT = re.compile(r"[A-Z_]+=")
PAGES = (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")))


@dataclass(frozen=True, slots=True)
class Block:
    """`language` is what stands behind the fence, "" without; None for a block that is indented only."""

    page: Path
    line: int
    language: str | None
    text: str

    @property
    def place(self) -> str:
        return f"{self.page.relative_to(ROOT)}:{self.line}"


@dataclass(frozen=True, slots=True)
class Command:
    """One command as a shell would start it; `output` is the file that `>` sends its output to."""

    place: str
    words: tuple[str, ...]
    output: str | None = None

    @property
    def program(self) -> str:
        return self.words[0]

    def __str__(self) -> str:
        return f"{self.place}: {shlex.join(self.words)}"


def blocks(page: Path) -> list[Block]:
    found = []
    for token in MarkdownIt().parse(page.read_text(encoding="utf-8")):
        if token.type == "fence":
            assert token.map
            found.append(Block(page, token.map[0] + 2, token.info.strip(), token.content))
        elif token.type == "code_block":
            assert token.map
            found.append(Block(page, token.map[0] + 1, None, token.content))
    return found


def mentions(page: Path) -> Iterator[Command]:
    """`shoal …` in the running text."""
    for token in MarkdownIt().enable("table").parse(page.read_text(encoding="utf-8")):
        for child in token.children or ():
            if child.type == "code_inline" and child.content.startswith("shoal "):
                line = token.map[0] + 1 if token.map else 0
                yield from commands(child.content, f"{page.relative_to(ROOT)}:{line}")


def commands(text: str, place: str) -> Iterator[Command]:
    """The commands of a block, without comments and without the variables that are set in front of them; a
    backslash at the end of a line joins it with the next."""
    for line in text.replace("\\\n", " ").splitlines():
        lexer = shlex.shlex(line, posix=True, punctuation_chars="|&;<>")
        lexer.whitespace_split = True
        words: list[str] = []
        output = None
        pending = list(lexer)
        while pending:
            word = pending.pop(0)
            if word in ("&&", "||", "|", ";", "&"):
                yield Command(place, tuple(words), output)
                words, output = [], None
            elif word == ">":
                output = pending.pop(0)
            elif words or not _ASSIGNMENT.match(word):
                words.append(word)
        if words:
            yield Command(place, tuple(words), output)
