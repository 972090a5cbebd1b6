"""The files of `deploy/`, as far as they can be tried without a container engine, Slurm or systemd.

Scripts run with a `shoal` that only notes its arguments; the real option parser then reads them.
"""

from __future__ import annotations

import fnmatch
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml

from shoal.cli.app import app

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
SERVICES = ["shoal-node.service", "shoal-relay.service"]
SHOAL = typer.main.get_command(app)

Run = Callable[..., list[list[str]]]

PRETENDED = """
import json, sys, time
with open(NOTES, "a") as notes:
    print(json.dumps(sys.argv[1:]), file=notes)
if sys.argv[1] == "relay":
    time.sleep(60)  # until it is killed
"""


def parsed(words: list[str]) -> dict[str, Any]:
    """The options as the verb would get them; raises where one is unknown, wrong or missing."""
    assert words[0] in SHOAL.commands, f"there is no verb {words[0]!r}"  # type: ignore[attr-defined]
    verb = SHOAL.commands[words[0]]  # type: ignore[attr-defined]
    return dict(verb.make_context(words[0], words[1:]).params)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a script in an empty folder; returns the arguments of every `shoal` that it started."""
    programs, notes, desk = tmp_path / "bin", tmp_path / "notes.jsonl", tmp_path / "desk"
    programs.mkdir()
    desk.mkdir()
    program(programs / "shoal", f"#!{sys.executable}\nNOTES = {str(notes)!r}\n{PRETENDED}")
    monkeypatch.setenv("PATH", f"{programs}{os.pathsep}{os.environ['PATH']}")

    def run(words: list[str], **environment: str) -> list[list[str]]:
        notes.unlink(missing_ok=True)
        done = subprocess.run(
            words, cwd=desk, env={**os.environ, **environment}, capture_output=True, text=True, timeout=60
        )
        assert done.returncode == 0, done.stderr
        return [json.loads(line) for line in notes.read_text().splitlines()] if notes.exists() else []

    return run


def program(path: Path, text: str) -> None:
    path.write_text(text, encoding="utf-8")
    path.chmod(0o755)


# The image


def instructions() -> list[tuple[str, str]]:
    text = (DEPLOY / "Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    return [(line.split(maxsplit=1)[0], line.split(maxsplit=1)[1]) for line in lines]


def copied() -> list[str]:
    """The files and folders of this repository that the image is built from."""
    here = [words for name, words in instructions() if name == "COPY" and "--from=" not in words]
    return [source for words in here for source in words.split()[:-1]]


def test_the_image_is_built_from_files_that_exist() -> None:
    known = "FROM ARG ENV RUN COPY WORKDIR USER VOLUME EXPOSE ENTRYPOINT CMD LABEL".split()
    assert not [name for name, _ in instructions() if name not in known]
    assert instructions()[0][0] == "FROM"
    assert copied()
    for source in copied():
        assert (ROOT / source).exists(), f"COPY {source}: there is no such file"
    stages = [words.split()[-1] for name, words in instructions() if name == "FROM" and " AS " in words]
    for _, words in instructions():
        if stage := re.search(r"--from=(\S+)", words):
            assert stage[1] in stages
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    needed = {"pyproject.toml", "setup.py", "src", project["readme"], *project["license-files"]}
    assert needed <= set(copied()), "a wheel cannot be built without these"


def test_everything_that_is_copied_is_let_through_and_nothing_else() -> None:
    rules = [
        line
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.strip() and not line.startswith("#")
    ]
    assert rules[0] == "*"
    let_through = {rule[1:] for rule in rules if rule.startswith("!")}
    assert let_through == {source.rstrip("/") for source in copied()}
    for secret in ("identity.key", "runs", ".venv", ".git"):
        assert not any(fnmatch.fnmatch(secret, name) for name in let_through)


def test_the_image_starts_shoal_as_an_ordinary_user() -> None:
    last = dict(instructions())
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    (entry,) = json.loads(last["ENTRYPOINT"])
    assert entry in project["scripts"]
    assert json.loads(last["CMD"]) == ["--help"]
    user, home = last["USER"], last["WORKDIR"]
    made = [words for name, words in instructions() if name == "RUN" and "useradd" in words]
    assert any(words.split("useradd")[1].split("&&")[0].split()[-1] == user for words in made)
    assert home == last["VOLUME"] == f"/home/{user}"


def test_the_image_installs_extras_that_there_are() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    default = next(words for name, words in instructions() if name == "ARG" and words.startswith("EXTRAS="))
    wanted = default.removeprefix("EXTRAS=").split(",")
    added = re.findall(r"\$extras,(\w+)", (DEPLOY / "Containerfile").read_text())
    assert added
    assert {*wanted, *added} <= extras.keys()


# The composition


def filled_in(value: Any, given: dict[str, str]) -> Any:
    """`${NAME:-default}` and `$$` as compose reads them."""
    if isinstance(value, dict):
        return {key: filled_in(one, given) for key, one in value.items()}
    if isinstance(value, list):
        return [filled_in(one, given) for one in value]
    if not isinstance(value, str):
        return value

    def fill(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        assert found[1], f"a single dollar that compose would take: {value}"
        return given.get(found[1]) or found[2] or ""

    return re.sub(r"\$\$|\$\{(\w+)(?::-([^}]*))?\}|\$", fill, value)


def composition(**given: str) -> dict[str, Any]:
    return dict(filled_in(yaml.safe_load((DEPLOY / "compose.yml").read_text()), given))


def nodes(**given: str) -> dict[str, dict[str, Any]]:
    return {name: one for name, one in composition(**given)["services"].items() if name != "relay"}


def environment_of(node: dict[str, Any]) -> dict[str, str]:
    return {name: str(value) for name, value in node["environment"].items() if value is not None}


def test_the_relay_of_the_composition_is_where_the_nodes_look_for_it() -> None:
    services = composition()["services"]
    relay = parsed(services["relay"]["command"].split())
    (listen,) = relay["listen"]
    port = listen.rpartition(":")[2]
    assert services["relay"]["ports"] == [f"{port}:{port}"]
    for node in nodes().values():
        assert node["depends_on"] == ["relay"]
        assert node["environment"]["JOIN"] == f"tcp/relay:{port}"


def test_each_node_of_the_composition_has_one_model_and_a_volume_of_its_own(run: Run) -> None:
    found = {}
    for name, node in nodes(MODEL_2="openai:gpt-5-mini", CALLS="40").items():
        (words,) = run([*node["entrypoint"], *node["command"]], **environment_of(node))
        found[name] = parsed(words)
        (volume,) = node["volumes"]
        assert volume == f"{name}:/home/shoal"
        assert name in composition()["volumes"]
    chosen = [one["models"] for one in found.values()]
    assert chosen == ["builtin:bomber", "openai:gpt-5-mini", "builtin:scanner", "builtin:vampire"]
    assert len({one["seed"] for one in found.values()}) == len(found)
    for one in found.values():
        assert one["wait_for"] == len(found) - 1
        assert (one["calls"], one["swarm"]) == (40, "compose")


def test_a_node_of_the_composition_that_starts_again_goes_on(run: Run, tmp_path: Path) -> None:
    node = nodes()["node-1"]
    words = [*node["entrypoint"], *node["command"]]
    ((verb, *first),) = run(words, **environment_of(node))
    assert verb == "evolve"
    out = parsed([verb, *first])["out"]
    (tmp_path / "desk" / out).mkdir(parents=True)
    ((verb, *again),) = run(words, **environment_of(node))
    assert verb == "resume"
    chosen = parsed([verb, *again])
    assert (chosen["run"], chosen["wait_for"]) == (out, 0), "the others may be done"


def test_the_composition_builds_the_image_and_takes_rights_away() -> None:
    for name, service in composition()["services"].items():
        build = service["build"]
        assert (DEPLOY / build["context"]).resolve() == ROOT, name
        assert (ROOT / build["dockerfile"]).is_file(), name
        assert service["read_only"], name
        assert service["cap_drop"] == ["ALL"], name


# The Slurm job

SRUN = """#!/usr/bin/env bash
set -e
until [ -s ../notes.jsonl ]; do sleep 0.05; done  # the relay
while [ "${1#--}" != "$1" ]; do shift; done
for task in 0 1 2 3; do SLURM_PROCID=$task "$@"; done
"""


@pytest.fixture
def slurm(tmp_path: Path, run: Run) -> Callable[..., list[list[str]]]:
    """The job on four tasks, one after the other."""
    # More hosts than a pipe holds: a reader of the first line alone would break it.
    program(tmp_path / "bin" / "scontrol", "#!/usr/bin/env bash\necho alpha; seq 100000\n")
    program(tmp_path / "bin" / "srun", SRUN)

    def submit(**environment: str) -> list[list[str]]:
        job = ["bash", str(DEPLOY / "shoal.sbatch")]
        return run(job, SLURM_JOB_NODELIST="alpha,beta", SLURM_JOB_ID="12345", **environment)

    return submit


def test_the_job_is_a_script_with_directives_at_its_head() -> None:
    done = subprocess.run(
        ["bash", "-n", str(DEPLOY / "shoal.sbatch")], capture_output=True, text=True, timeout=30
    )
    assert done.returncode == 0, done.stderr
    lines = (DEPLOY / "shoal.sbatch").read_text(encoding="utf-8").splitlines()
    directives = [number for number, line in enumerate(lines) if line.startswith("#SBATCH")]
    first_command = next(number for number, line in enumerate(lines) if line and not line.startswith("#"))
    assert directives
    assert max(directives) < first_command, "Slurm reads directives before the first command only"
    assert all(re.fullmatch(r"#SBATCH --[a-z-]+=\S+", lines[number]) for number in directives)


def test_the_job_runs_a_relay_and_one_node_for_each_task(
    slurm: Callable[..., list[list[str]]], tmp_path: Path
) -> None:
    started = slurm(MODELS="table:small table:even tiny:llama")
    (relay,) = [parsed(words) for words in started if words[0] == "relay"]
    nodes = [parsed(words) for words in started if words[0] == "train"]
    assert len(started) == 5
    assert [one["models"] for one in nodes] == ["table:small", "table:even", "tiny:llama", "table:small"]
    port = relay["listen"][0].rpartition(":")[2]
    secret = tmp_path / "desk" / "runs" / "slurm" / "secret.txt"
    for one in nodes:
        assert one["nodes"] == 1
        assert one["join"] == [f"tcp/alpha:{port}"]
        assert one["secret_file"] == Path("runs/slurm/secret.txt")
    assert secret.stat().st_mode & 0o777 == 0o600
    assert len(secret.read_text().strip()) == 64
    for name in ("out", "key", "seed"):
        assert len({str(one[name]) for one in nodes}) == 4, f"each node needs its own {name}"

    (tmp_path / "desk" / nodes[1]["out"]).mkdir(parents=True)
    kept = secret.read_text()
    again = {words[0]: parsed(words) for words in slurm()}
    assert again.keys() == {"relay", "train", "resume"}
    assert again["resume"]["run"] == nodes[1]["out"]
    assert again["resume"]["key"] == nodes[1]["key"], "peers know it again"
    assert secret.read_text() == kept


# The services


def unit(name: str) -> dict[str, list[tuple[str, str]]]:
    """The sections of a unit; a key may stand there more than once."""
    sections: dict[str, list[tuple[str, str]]] = {}
    for line in (DEPLOY / name).read_text(encoding="utf-8").splitlines():
        if heading := re.fullmatch(r"\[(\w+)\]", line):
            section = sections.setdefault(heading[1], [])
        elif line and not line.startswith("#"):
            key, equals, value = line.partition("=")
            assert equals, f"{name}: {line}"
            assert re.fullmatch(r"[A-Z]\w+", key), f"{name}: {line}"
            section.append((key, value))
    return sections


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_starts_again_and_is_confined(name: str) -> None:
    sections = unit(name)
    assert sections.keys() == {"Unit", "Service", "Install"}
    service = dict(sections["Service"])
    assert service["Restart"] == "on-failure"
    assert service["DynamicUser"] == service["NoNewPrivileges"] == service["ProtectHome"] == "yes"
    assert dict(sections["Install"])["WantedBy"] == "multi-user.target"


def test_the_service_of_a_relay_starts_one() -> None:
    program, *words = dict(unit("shoal-relay.service")["Service"])["ExecStart"].split()
    assert program == "/opt/shoal/bin/shoal"
    assert parsed(words)["listen"] == ["tcp/0.0.0.0:7447"]


def test_the_service_of_a_node_searches_and_after_a_stop_goes_on(run: Run, tmp_path: Path) -> None:
    start = dict(unit("shoal-node.service")["Service"])["ExecStart"]
    assert "$" not in start.replace("$$", ""), "a single dollar would be systemd's"
    words = shlex.split(start.replace("$$", "$").replace("/opt/shoal/bin/shoal", "shoal"))
    page = (DEPLOY / "shoal-node.service").read_text(encoding="utf-8")
    settings = dict(re.findall(r"^#   ([A-Z]+)=(\S+)$", page, re.MULTILINE))
    assert settings.keys() == set(re.findall(r"\$\$(\w+)", start)), "the head lists what must be set"
    (first,) = run(words, **settings)
    chosen = parsed(first)
    assert first[0] == "evolve"
    assert (chosen["models"], chosen["calls"]) == (settings["MODEL"], int(settings["CALLS"]))
    (tmp_path / "desk" / chosen["out"]).mkdir()
    (again,) = run(words, **settings)
    assert again[0] == "resume"
    assert parsed(again)["run"] == chosen["out"]
    assert parsed(again)["join"] == chosen["join"] == [settings["JOIN"]]


@pytest.mark.parametrize("name", SERVICES)
@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="there is no systemd-analyze")
def test_systemd_finds_nothing_wrong_with_a_service(name: str, tmp_path: Path) -> None:
    text = (DEPLOY / name).read_text(encoding="utf-8")
    (tmp_path / name).write_text(text.replace("/opt/shoal/bin/shoal", "/bin/true"), encoding="utf-8")
    done = subprocess.run(
        ["systemd-analyze", "verify", str(tmp_path / name)], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_every_file_is_on_the_page_about_them() -> None:
    page = (ROOT / "docs" / "deploy.md").read_text(encoding="utf-8")
    for file in DEPLOY.iterdir():
        assert f"`{file.name}`" in page, f"docs/deploy.md says nothing about {file.name}"
