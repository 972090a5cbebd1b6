"""The page in one file: its scripts stand beside each other, and no data can break out of it."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re
from pathlib import Path

from shoal.cli import main
from shoal.cli.dashboard import facts_of
from shoal.dashboard.single_file import assets, bundled, page, single_file
from tests.dashboard.samples import HOSTILE, training, two_node_search

MODULES = sorted(name for name in assets() if name.endswith(".js"))


class Scripts(html.parser.HTMLParser):
    """What a browser would see as scripts, and whether anything else could run or be fetched."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.scripts: list[tuple[dict, str]] = []
        self.policy = ""
        self.fetched: list[str] = []
        self._inside = False
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list) -> None:
        found = dict(attrs)
        assert not [name for name in found if name.startswith("on")]
        self.fetched += [
            value for name, value in attrs if name in ("src", "href") and not value.startswith("#")
        ]
        if found.get("http-equiv") == "Content-Security-Policy":
            self.policy = found["content"]
        if tag == "script":
            self._inside = True
            self.scripts.append((found, ""))

    def handle_endtag(self, tag: str) -> None:
        if tag == "script":
            self._inside = False

    def handle_data(self, data: str) -> None:
        if self._inside:
            self.scripts[-1] = (self.scripts[-1][0], self.scripts[-1][1] + data)


def test_hostile_data_stay_data() -> None:
    attack = f"</script><script>window.owned=1</script><!-- {HOSTILE} ]]>"
    text = page({"message": attack, "programs": {attack: []}, "replays": []}, attack)
    found = Scripts(text)
    assert [attributes.get("type") for attributes, _ in found.scripts] == ["application/json", "module"]
    assert json.loads(found.scripts[0][1])["message"] == attack
    assert not found.fetched
    assert "\u2028" not in text


def test_exactly_the_page_s_own_script_may_run(tmp_path: Path) -> None:
    run, digests = two_node_search(tmp_path / "run")
    found = Scripts(single_file(run, facts_of(run)))
    digest = base64.b64encode(hashlib.sha256(found.scripts[1][1].encode()).digest()).decode()
    assert f"script-src 'sha256-{digest}'" in found.policy
    assert found.policy.startswith("default-src 'none'")
    data = json.loads(found.scripts[0][1])
    assert set(data["programs"]) == {digests["parent"], digests["child"], digests["own"]}
    assert data["replays"]


def test_modules_can_be_put_beside_each_other() -> None:
    """`bundled` knows one form of import and export, and needs names that differ."""
    names: dict[str, str] = {}
    for module in MODULES:
        source = assets()[module][0].decode()
        imports = re.findall(r"^import .*$", source, re.MULTILINE)
        assert all(re.fullmatch(r'import \{ [\w, ]+ \} from "\./[a-z_]+\.js";', line) for line in imports), (
            module
        )
        assert "innerHTML" not in source
        assert "outerHTML" not in source
        assert "insertAdjacentHTML" not in source
        assert "document.write" not in source
        assert not re.search(r"\beval\b|new Function", source)
        for name in re.findall(
            r"^(?:export )?(?:async )?(?:function|const|let|class) (\w+)", source, re.MULTILINE
        ):
            assert name not in names, f"{name} is in {module} and in {names[name]}"
            names[name] = module
    script = bundled("app.js")
    assert not re.search(r"^(?:import|export)\b", script, re.MULTILINE)
    assert all(f"// {module}\n" in script for module in MODULES)


def test_the_report_can_be_interactive(tmp_path: Path) -> None:
    for run in (two_node_search(tmp_path / "run")[0], training(tmp_path / "training")):
        assert main(["report", str(run), "--interactive"]) == 0
        text = (run / "report.html").read_text()
        assert text.startswith("<!doctype html>")
        assert "<script>window.owned" not in text
