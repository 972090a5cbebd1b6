"""The assembler against pMARS: the same load files, byte for byte, and the same refusals.

The fuzz tests have a short form with a fixed seed, and a long one under the `soak` mark. They leave
out the sources on which pMARS reads memory that it never wrote (an operand written directly behind
the opcode, an EQU text that ends in a modifier, one of several lines within an operand) and those with
a lone `!` between values.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from shoal.corewar.redcode import assemble, listing
from shoal.corewar.settings import HILLS, Settings
from shoal.errors import AssemblyError
from tests.oracles.pmars import CORPUS, REPOSITORY, WARRIORS, PmarsCrash, need_pmars, pmars_listing

SOURCES = REPOSITORY / "tests" / "corewar" / "sources"
HILL_FOLDERS = ("88", "94", "94nop", "94x", "lp", "nano", "tiny")
STANDARD = HILLS["94"]


@pytest.fixture(autouse=True)
def _pmars() -> None:
    need_pmars()


def our_listing(source: bytes, settings: Settings) -> bytes | None:
    try:
        text = listing(assemble(source, settings, rounds=0, allow_empty=True), standard=settings.standard)
    except AssemblyError:
        return None
    name = text.partition("\n")[0]
    encoding = "latin-1" if name.encode("utf-8", "replace") not in source and _fits_latin_1(text) else "utf-8"
    return text.encode(encoding)


def _fits_latin_1(text: str) -> bool:
    return all(ord(character) < 256 for character in text)


def same(ours: bytes | None, theirs: bytes | None) -> bool:
    """Equal bytes; the encoding of a name does not matter."""
    if ours is None or theirs is None:
        return ours is theirs
    return ours == theirs or ours.decode("utf-8", "replace") == theirs.decode("utf-8", "replace")


def settings_of(path: Path) -> Settings:
    """The rules under which a file of our own folders is meant: its name may begin with 88."""
    return HILLS["88"] if path.name.startswith("88") else STANDARD


@pytest.mark.parametrize("path", sorted((SOURCES / "accepted").glob("*.red")), ids=lambda path: path.stem)
def test_each_feature_gives_the_same_load_file(path: Path) -> None:
    source, settings = path.read_bytes(), settings_of(path)
    theirs = pmars_listing(source, settings)
    assert theirs is not None
    assert our_listing(source, settings) == theirs


@pytest.mark.parametrize("path", sorted((SOURCES / "refused").glob("*.red")), ids=lambda path: path.stem)
def test_the_same_sources_are_refused(path: Path) -> None:
    source, settings = path.read_bytes(), settings_of(path)
    assert pmars_listing(source, settings) is None
    assert our_listing(source, settings) is None


def compare_all(files: list[Path], settings: Settings) -> None:
    different = [
        path.name
        for path in files
        if not same(our_listing(path.read_bytes(), settings), pmars_listing(path.read_bytes(), settings))
    ]
    assert not different


def test_the_warriors_that_come_with_pmars() -> None:
    for settings in (STANDARD, HILLS["88"], HILLS["tiny"]):
        compare_all(sorted(WARRIORS.glob("*.red")), settings)


@pytest.mark.parametrize("hill", HILL_FOLDERS)
def test_the_published_warriors_of_a_hill(hill: str) -> None:
    files = sorted((CORPUS / "warriors" / hill).glob("*"))
    if not files:
        pytest.skip(f"no warriors in {CORPUS / 'warriors' / hill}: set SHOAL_CORPUS")
    compare_all(files, HILLS[hill])


def test_load_files() -> None:
    files = sorted((CORPUS / "fights").glob("*.red"))
    if not files:
        pytest.skip(f"no load files in {CORPUS / 'fights'}: set SHOAL_CORPUS")
    compare_all(files, STANDARD)


@pytest.mark.parametrize("hill", ["88", "tiny", "nano"])
def test_warriors_under_the_rules_of_another_hill(hill: str) -> None:
    """Most are refused: too long, a failed assertion, or an instruction that came later."""
    files = sorted((CORPUS / "warriors" / "94nop").glob("*"))[::4]
    if not files:
        pytest.skip(f"no warriors in {CORPUS / 'warriors' / '94nop'}: set SHOAL_CORPUS")
    compare_all(files, HILLS[hill])


PIECES = [
    *(
    "dat mov add jmp spl djn seq nop ldp slt cmp mul MOV .i .ab .f .x , # $ @ < > * { } + - * / % ( ) == != <= >= && || "
    "= & : . ; 1 2 7 10 8000 01 a b i n x1 here CORESIZE CURLINE MAXLENGTH equ for rof org end pin ;assert ;name _ ?"
).split(),
    " ", "\t", ", ", "\n", "\n ", "\n\n",
]  # fmt: skip

UNPREDICTABLE = re.compile(
    rb"\b(?:dat|mov|add|sub|mul|div|mod|jmp|jmz|jmn|djn|cmp|seq|sne|slt|spl|nop|ldp|stp|org|end|pin)"
    rb"(?:[^\sA-Za-z0-9_.:;]|\s*\.\s*\w+[^\s\w])"  # an operand directly behind the opcode or modifier
    rb"|\.\s*\w+\s*(?:;|$)"  # a modifier at the end of a line
    rb"|\w\s*!\s*[^=\s]|!\s*$|![^=]*!"  # a lone ! between values
    rb"|^\s*equ\b"  # an EQU text of several lines, which confuses pMARS when it is used in an operand
    rb"|\d{14}",  # pMARS does not end on large numbers
    re.IGNORECASE | re.MULTILINE,
)


def mutants(generator: random.Random, count: int) -> Iterator[tuple[bytes, Settings]]:
    """Published warriors with a token or a line added, removed or replaced."""
    files = [(hill, path) for hill in HILL_FOLDERS for path in sorted((CORPUS / "warriors" / hill).glob("*"))]
    for _ in range(count if files else 0):
        hill, path = generator.choice(files)
        text = path.read_bytes().decode("latin-1")
        for _ in range(generator.choice((1, 1, 2))):
            place = generator.randrange(len(text) + 1)
            length = generator.choice((0, 1, 1, 2, 5))
            lines = text.split("\n")
            row = generator.randrange(len(lines))
            match generator.randrange(5):
                case 0:
                    text = text[:place] + text[place + length :]
                case 1:
                    text = text[:place] + generator.choice(PIECES) + text[place + length :]
                case 2:
                    text = "\n".join(lines[:row] + lines[row + 1 :])
                case 3:
                    text = "\n".join([*lines, lines[row]])
                case 4:
                    words = re.findall(r"\w+|\W", lines[row]) or [""]
                    words[generator.randrange(len(words))] = generator.choice(PIECES)
                    text = "\n".join([*lines[:row], "".join(words), *lines[row + 1 :]])
        yield text.encode("latin-1"), STANDARD if hill == "94nop" else HILLS[hill]


def compositions(generator: random.Random, count: int) -> Iterator[tuple[bytes, Settings]]:
    """Short programs made of loops, substitutions, labels and expressions, most of them wrong."""
    choose = generator.choice
    labels = ("here", "there", "n", "i", "x1", "q")

    def expression(depth: int) -> str:
        if depth > 2 or generator.random() < 0.5:
            return choose(("0", "1", "2", "5", "-1", "13", "a", "b", "CORESIZE", "CURLINE", *labels))
        inner = expression(depth + 1)
        if generator.random() < 0.25:
            return choose((f"({inner})", f"-{inner}", f"(a={inner})"))
        space = choose(("", "", " "))
        signs = ("+", "-", "*", "/", "%", "==", "!=", "<", ">", "<=", ">=", "&&", "||", "-", "*")
        return inner + space + choose(signs) + space + expression(depth + 1)

    def operand() -> str:
        return choose(("", "", "#", "$", "@", "<", ">", "*", "{", "}")) + expression(generator.randrange(4))

    def instruction() -> str:
        opcode = choose("dat mov add sub mul div mod jmp jmz jmn djn cmp seq sne slt spl nop ldp stp".split())
        second = choose((",", ", ", " , ")) + operand() if generator.random() < 0.85 else ""
        return opcode + choose(("", "", ".i", ".ab", ".f", ".x", ".ba")) + " " + operand() + second

    def block(depth: int) -> list[str]:
        lines: list[str] = []
        for _ in range(generator.randint(1, 5)):
            label = choose(labels)
            match generator.randrange(10):
                case 0 | 1 | 2 | 3 | 4:
                    lines.append(choose(("", " ", label + " ", label + ": ", label + "\n")) + instruction())
                case 5:
                    lines.append(
                        f"{label} equ {choose((expression(1), instruction(), operand(), '', '1+', '#'))}"
                    )
                    lines += [f" equ {instruction()}"] * choose((0, 0, 0, 1))
                case 6 | 7 if depth < 3:
                    body = [choose(("", "", f"here&{label} ")) + line for line in block(depth + 1)]
                    lines += [
                        f"{choose(('', label))} for {choose(('0', '1', '2', expression(1)))}",
                        *body,
                        "rof",
                    ]
                case 8:
                    lines.append(choose(("org ", "end ", "pin ", ";assert ")) + expression(1))
                case _:
                    lines.append(choose((label, label + ":", "", "; comment", ";name x")))
        return lines

    for _ in range(count):
        yield "\n".join(block(0)).encode(), choose((STANDARD, STANDARD, STANDARD, HILLS["88"]))


def fuzz(cases: Iterator[tuple[bytes, Settings]]) -> None:
    compared = 0
    for source, settings in cases:
        if UNPREDICTABLE.search(source):
            continue
        try:
            theirs = pmars_listing(source, settings)
        except PmarsCrash:
            continue
        compared += 1
        assert same(our_listing(source, settings), theirs), source.decode("latin-1")
    assert compared


def test_mutated_warriors() -> None:
    if not (CORPUS / "warriors").is_dir():
        pytest.skip(f"no warriors in {CORPUS}: set SHOAL_CORPUS")
    fuzz(mutants(random.Random(94), 300))


def test_composed_sources() -> None:
    fuzz(compositions(random.Random(88), 300))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_many_mutated_warriors(seed: int) -> None:
    if not (CORPUS / "warriors").is_dir():
        pytest.skip(f"no warriors in {CORPUS}: set SHOAL_CORPUS")
    fuzz(mutants(random.Random(seed), 1000))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(20))
def test_many_composed_sources(seed: int) -> None:
    fuzz(compositions(random.Random(seed), 1000))
