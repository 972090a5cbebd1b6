"""The files by which others work on Shoal: workflows, forms, hooks, citation and the guide for contributors."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

import shoal

ROOT = Path(__file__).parents[1]
GITHUB = ROOT / ".github"
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]


def load(path: Path) -> dict[Any, Any]:
    found = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(found, dict), path
    return found


CI, RELEASE = (load(GITHUB / "workflows" / name) for name in ("ci.yml", "release.yml"))
ON = True
"""YAML 1.1 takes the key `on` for a truth."""


def commands(workflow: dict[Any, Any], job: str) -> list[str]:
    return [step["run"] for step in workflow["jobs"][job]["steps"] if "run" in step]


def targets() -> set[str]:
    return set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))


@pytest.mark.parametrize(("job", "system"), [("linux", "ubuntu"), ("macos", "macos")])
def test_ci_tries_every_python_on_linux_and_macos(job: str, system: str) -> None:
    found = CI["jobs"][job]
    assert found["runs-on"].startswith(system)
    assert found["strategy"]["matrix"]["python"] == PYTHONS
    assert not found["strategy"]["fail-fast"], "one Python that fails says nothing about the others"
    assert PROJECT["requires-python"] == f">={PYTHONS[0]}"
    (setup,) = [step for step in found["steps"] if "setup-python" in step.get("uses", "")]
    assert setup["with"]["python-version"] == "${{ matrix.python }}"
    assert (ROOT / setup["with"]["cache-dependency-path"]).is_file()
    assert CI[ON].keys() == {"push", "pull_request"}


def test_ci_runs_the_readmes_test_command_and_prints_the_coverage() -> None:
    script = (ROOT / ".ci" / "run").read_text()
    assert os.access(ROOT / ".ci" / "run", os.X_OK)
    assert script.splitlines()[-1] == "make test"
    assert re.search(r"^make test ", (ROOT / "README.md").read_text(), re.MULTILINE)
    steps = [step for step in CI["jobs"]["linux"]["steps"] if "run" in step]
    assert [step["run"] for step in steps] == [".ci/run", ".venv/bin/python -m tests.coverage_by_room"]
    assert "--cov" in steps[0]["env"]["PYTEST_ADDOPTS"].split()


def test_a_fresh_clone_has_what_the_tests_need() -> None:
    wanted = {re.split(r"[^a-z-]", name)[0] for name in PROJECT["optional-dependencies"]["dev"]}
    pinned = {line.partition("==")[0].lower() for line in (ROOT / "constraints.txt").read_text().splitlines()}
    for name in "pytest pytest-cov pytest-timeout pytest-xdist pyyaml hypothesis setuptools".split():
        assert name in wanted
        assert name in pinned


def test_workflows_name_targets_and_files_that_exist() -> None:
    for workflow in (CI, RELEASE):
        for job in workflow["jobs"]:
            for command in commands(workflow, job):
                for target in re.findall(r"\bmake ([a-z-]+)", command):
                    assert target in targets(), f"{job}: make {target}"
                for path in re.findall(r"\btests/\S+", command):
                    assert (ROOT / path).exists(), f"{job}: {path}"


def test_jobs_may_only_read_unless_they_publish() -> None:
    for workflow in (CI, RELEASE):
        assert workflow["permissions"] == {"contents": "read"}
        for name, job in workflow["jobs"].items():
            assert job.get("permissions", {}) == ({"id-token": "write"} if name == "publish" else {})
            for step in job["steps"]:
                assert re.fullmatch(r"[\w./-]+@\S+", step.get("uses", "a@1")), "an action without a version"


def test_a_tag_publishes_wheels_and_source_by_trust() -> None:
    assert RELEASE[ON]["push"] == {"tags": ["v*"]}
    publish = RELEASE["jobs"]["publish"]
    assert publish["if"] == "github.ref_type == 'tag'"
    assert set(publish["needs"]) == {"wheels", "source"}
    assert publish["environment"] == "pypi"
    assert "pypa/gh-action-pypi-publish" in publish["steps"][-1]["uses"]
    assert "with" not in publish["steps"][-1], "no password: the index trusts this workflow"
    assert "secrets." not in (GITHUB / "workflows" / "release.yml").read_text()
    wheels = RELEASE["jobs"]["wheels"]
    assert any("pypa/cibuildwheel" in step.get("uses", "") for step in wheels["steps"])
    platforms = {one["platform"] for one in wheels["strategy"]["matrix"]["include"]}
    assert platforms == {f"{system}-x86_64" for system in ("linux", "macos")} | {
        "linux-aarch64",
        "macos-arm64",
    }
    assert any("--sdist" in command for command in commands(RELEASE, "source"))
    for job in ("wheels", "source"):
        assert RELEASE["jobs"][job]["needs"] == "version"


@pytest.mark.parametrize(
    ("tag", "heading", "message"),
    [
        ("v{version}", "## [{version}] - 2030-01-31", ""),
        ("v{version}", "## [{version}] - Unreleased", "CHANGELOG.md has no date"),
        ("v9.9.9", "## [{version}] - 2030-01-31", "tag v9.9.9, but shoal.__version__ is {version}"),
    ],
)
def test_a_release_needs_tag_version_and_changelog_to_agree(
    tag: str, heading: str, message: str, tmp_path: Path
) -> None:
    version = shoal.__version__
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    first = re.search(r"^## \[.*$", changelog, re.MULTILINE)
    assert first
    changed = changelog.replace(first[0], heading.format(version=version))
    (tmp_path / "CHANGELOG.md").write_text(changed, encoding="utf-8")
    package = tmp_path / "src" / "shoal"
    package.mkdir(parents=True)
    for path in (ROOT / "src" / "shoal").glob("*.py*"):
        shutil.copy(path, package)
    (compare,) = commands(RELEASE, "version")
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    # The copy of the package does not count as covered: it is gone when the table of lines is made.
    given = {name: value for name, value in os.environ.items() if not name.startswith("COV")}
    done = subprocess.run(
        ["bash", "-e", "-c", compare],
        cwd=tmp_path,
        env={**given, "PATH": path, "GITHUB_REF_NAME": tag.format(version=version)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert message.format(version=version) in done.stdout
    assert done.returncode == (1 if message else 0), done.stdout + done.stderr


def test_dependabot_looks_where_there_is_something() -> None:
    found = load(GITHUB / "dependabot.yml")
    assert found["version"] == 2
    manifests = {
        "github-actions": ".github/workflows/ci.yml",
        "pip": "pyproject.toml",
        "docker": "Containerfile",
    }
    assert {one["package-ecosystem"] for one in found["updates"]} == manifests.keys()
    for one in found["updates"]:
        assert (ROOT / one["directory"].strip("/") / manifests[one["package-ecosystem"]]).is_file()
        assert one["schedule"]["interval"] in ("weekly", "monthly")


def test_issue_forms_are_whole() -> None:
    forms = [path for path in (GITHUB / "ISSUE_TEMPLATE").iterdir() if path.name != "config.yml"]
    assert {path.stem for path in forms} == {"bug", "idea", "question"}
    assert load(GITHUB / "ISSUE_TEMPLATE" / "config.yml") == {"blank_issues_enabled": False}
    for path in forms:
        form = load(path)
        assert form.keys() >= {"name", "description", "body"}, path.name
        asked = [field for field in form["body"] if field["type"] != "markdown"]
        assert all(field["attributes"]["label"] for field in asked), path.name
        assert len({field["id"] for field in asked}) == len(asked), path.name
        assert any(field.get("validations", {}).get("required") for field in asked), path.name
    assert "make test" in (GITHUB / "pull_request_template.md").read_text()


def test_hooks_run_the_tools_of_the_tests() -> None:
    (local,) = load(ROOT / ".pre-commit-config.yaml")["repos"]
    assert local["repo"] == "local"
    tools = {Path(hook["entry"].split()[0]).name for hook in local["hooks"]}
    assert tools == {"ruff", "mypy"}
    assert all(hook["language"] == "system" and hook["name"] and hook["id"] for hook in local["hooks"])


def test_the_citation_is_of_this_version() -> None:
    found = load(ROOT / "CITATION.cff")
    assert found.keys() >= {"cff-version", "message", "title", "authors"}
    assert found["version"] == shoal.__version__
    assert found["license"] == PROJECT["license"]
    assert all(author["name"] for author in found["authors"])


def test_the_changelog_begins_with_this_version_and_keeps_its_form() -> None:
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.*)$", text, re.MULTILINE)
    assert headings[0].startswith(f"[{shoal.__version__}] - ")
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - (\d{4}-\d\d-\d\d|Unreleased)", one) for one in headings)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert set(re.findall(r"^### (.*)$", text, re.MULTILINE)) <= kinds


def test_the_guide_names_files_and_targets_that_exist() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    for heading in ("**One test.**", "**A domain**", "**A task**", "**A model**", "**A transport**"):
        assert heading in text
    paths = re.findall(r"\b((?:src|tests|bench|docs|\.github)/[\w./-]+\w)", text)
    assert len(paths) > 15
    for path in paths:
        assert (ROOT / path).exists(), f"CONTRIBUTING.md: {path} does not exist"
    for target in re.findall(r"`make ([a-z]+)`", text):
        assert target in targets()
