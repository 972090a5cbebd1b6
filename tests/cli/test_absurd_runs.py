"""Run folders that no run wrote: pipes in place of files, and journals with right checksums and absurd content.

Every verb ends with one line about it and exit code 2, or shows what can be shown; none raises or waits.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.cli import main
from shoal.cli.dashboard import watch
from shoal.dashboard.messages import Cursor
from shoal.errors import ShoalError
from shoal.runs import read

LARGE, HUGE = 10**30, 10**400
DEEP = "[" * 3000 + "]" * 3000
Records = list[tuple[str, float, Any]]


class Literal(str):
    """JSON as it stands."""


@pytest.fixture(scope="module", params=["evolve", "train"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small finished run of each application; only for copying."""
    folder = tmp_path_factory.mktemp("absurd") / request.param
    options = {
        "evolve": ["--calls", "8", "--rounds", "2", "--models", "builtin:bomber,builtin:scanner", "--set",
                   "repeats=2", "--set", "retest_repeats=2", "--set", "options.cycles=800"],
        "train": ["--steps", "3", "--set", 'models=["table:small"]', "--set", "nodes=2", "--set", "held_out=4"],
    }[request.param]  # fmt: skip
    assert main([request.param, "--in-process", "--quiet", *options, "--out", str(folder)]) == 0
    return folder


def verbs(run: Path, out: Path) -> list[list[str]]:
    details = [["--cell", "0,0"], ["--lineage", "a"]] if run.name == "evolve" else [["--rollout", "1:2"]]
    return [
        ["show", str(run)],
        ["show", str(run), "--json"],
        *(["show", str(run), *detail] for detail in details),
        ["report", str(run), "-o", str(out / "report.html")],
        ["report", str(run), "--interactive", "-o", str(out / "page.html")],
        ["export", str(run), "-o", str(out / "exported")],
        ["track", str(run), "--to", f"jsonl:{out / 'curves.jsonl'}"],
        ["runs", str(run)],
        ["resume", str(run), "--in-process", "--quiet"],
    ]


def copied(run: Path, place: Path) -> Path:
    copy = place / run.name
    shutil.copytree(run, copy)
    for checkpoint in copy.glob("nodes/*/checkpoint-*"):
        shutil.rmtree(checkpoint)
    return copy


def journal_of(run: Path) -> Path:
    return sorted(run.glob("nodes/*/journal.jsonl"))[0]


def rewrite(path: Path, change: Callable[[Records], object]) -> None:
    """The same journal after `change`, with numbers and checksums as they must be."""
    records = [(one.kind, one.time, json.loads(bytes(one.payload))) for one in read(path)]
    change(records)
    lines = []
    for number, (kind, time, payload) in enumerate(records, start=1):
        written = payload if isinstance(payload, Literal) else _json(payload)
        body = f'{{"number":{number},"kind":"{kind}","time":{time!r},"payload":{written}'.encode()
        lines.append(b'%b,"check":"%08x"}\n' % (body, zlib.crc32(body)))
    path.write_bytes(b"".join(lines))


def _json(payload: Any) -> str:
    """With the literals in it put in as they are."""
    literals: list[str] = []

    def marked(value: Any) -> Any:
        if isinstance(value, Literal):
            literals.append(str(value))
            return f"@@{len(literals) - 1}@@"
        if isinstance(value, dict):
            return {key: marked(inner) for key, inner in value.items()}
        return [marked(inner) for inner in value] if isinstance(value, list) else value

    text = json.dumps(marked(payload))
    for place, literal in enumerate(literals):
        text = text.replace(f'"@@{place}@@"', literal)
    return text


def first(records: Records, kind: str) -> Any:
    return next(payload for name, _, payload in records if name == kind)


def put(kind: str, *path: str | int, value: Any) -> Callable[[Records], None]:
    """Puts a value into the last record of a kind."""

    def change(records: Records) -> None:
        place = [payload for name, _, payload in records if name == kind][-1]
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value

    return change


def answers_first(records: Records) -> None:
    records.sort(key=lambda record: record[0] != "answered")


def everything_twice(records: Records) -> None:
    records[1:] = records[1:] * 2


def far_away(records: Records) -> None:
    records[:] = [(kind, 1e300, payload) for kind, _, payload in records]


def of_another_node(records: Records) -> None:
    first(records, "started")["node"] = "9-other"


def no_payloads(records: Records) -> None:
    records[:] = [(kind, time, None) for kind, time, _ in records]


def bad_evaluations(records: Records) -> None:
    """Of a search: numbers that no evaluation has. Of training: rewards that no page can draw."""
    for kind, _, payload in records:
        for one in payload["answer"].get("evaluations", []) if kind == "answered" else []:
            one["variance"], one["count"] = -1.0, 0
        if kind == "note" and "reward_local" in payload["note"]:
            payload["note"]["reward_local"] = 1e308 if payload["turn"] % 2 else -1e308


ABSURD: dict[str, Callable[[Records], object]] = {
    "turns below zero": put("turn", "turn", value=-1),
    "turns without end": put("asked", "turn", value=HUGE),
    "a turn in words": put("note", "turn", value="first"),
    "a reserve in words": put("asked", "reserve", value={"calls": "many", "tokens": "all"}),
    "a cost that is a loss": put("answered", "cost", value={"calls": -5, "tokens": -5}),
    "a cost beyond counting": put("answered", "cost", value={"calls": LARGE, "tokens": HUGE}),
    "a note in words": put("note", "note", value="it went well"),
    "a note with a huge turn": put("note", "note", "turn", value=HUGE),
    "a note with huge counts": put("note", "note", "used", value=LARGE),
    "a request of nothing": put("asked", "request", value=None),
    "an answer that is a list": put("answered", "answer", value=[1, 2, 3]),
    "an answer of another kind": put("answered", "answer", value={"type": "invented"}),
    "nested deeper than a stack": put("answered", "answer", value=Literal(DEEP)),
    "nested deeply": put("answered", "answer", value=Literal("[" * 900 + "]" * 900)),
    "not a number": put("note", "note", value=Literal('{"turn": NaN}')),
    "a float without end": put("note", "note", value=Literal('{"turn": 1e999}')),
    "thousands of digits": put("note", "turn", value=Literal("9" * 5000)),
    "a stray surrogate": put("note", "note", value=Literal('"\\ud800"')),
    "answers before questions": answers_first,
    "numbers that nothing measures": bad_evaluations,
    "everything twice": everything_twice,
    "times beyond all clocks": far_away,
    "the journal of another node": of_another_node,
    "no payloads": no_payloads,
}


@pytest.mark.parametrize("name", ABSURD)
def test_absurd_journals(run: Path, name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    copy = copied(run, tmp_path)
    rewrite(journal_of(copy), ABSURD[name])
    tell_about(copy, tmp_path, capsys)


@pytest.mark.parametrize("file", ["journal", "config.toml", "versions.json", ".owner"])
def test_a_pipe_in_place_of_a_file_is_not_waited_for(
    run: Path, file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = copied(run, tmp_path)
    path = journal_of(copy) if file == "journal" else copy / file
    path.unlink()
    os.mkfifo(path)
    codes = tell_about(copy, tmp_path, capsys)
    expected = {
        "journal": {"show", "report", "export", "track", "resume"},
        "config.toml": {"show", "report", "export", "track", "resume"},
        "versions.json": {"report"},
        ".owner": {"resume"},
    }[file]
    assert {verb for verb, code in codes if code == 2} == expected


def test_absurd_settings(run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for text in ("", "[[[", "a = " + DEEP, "application = 7", 'application = "swim"', "nodes = -1", "\x00"):
        copy = copied(run, tmp_path / str(len(text)))
        (copy / "config.toml").write_text(text)
        for verb, code in tell_about(copy, copy.parent, capsys):
            assert code == 2 or verb == "runs", (text[:20], verb)


def tell_about(run: Path, out: Path, capsys: pytest.CaptureFixture[str]) -> list[tuple[str, int]]:
    """Exit codes by verb. A refusal is one line; `track` also tells how much it wrote, and `resume` how to go
    on."""
    codes = []
    for arguments in verbs(run, out):
        capsys.readouterr()
        code = main(arguments)
        said = capsys.readouterr().err
        assert code in (0, 2), (arguments, said)
        assert "Traceback" not in said
        if code == 2:
            most = 1 if arguments[0] not in ("track", "resume") else 2
            assert 1 <= len(said.strip().splitlines()) <= most, said
        codes.append((arguments[0], code))
    with contextlib.suppress(ShoalError):
        watcher = watch([run])
        watcher.read_all()
        assert msgspec.json.encode(watcher.message(Cursor()))
    return codes
