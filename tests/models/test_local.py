"""Weights on this machine: presets, how they are found and checked, and folders for transformers."""

from __future__ import annotations

import asyncio
import hashlib
import shutil
import sys
import types
from pathlib import Path
from typing import Any

import pytest

from shoal.errors import ConfigError, ModelServerError, ModelSettingError, ModelTimeoutError
from shoal.models import (
    PRESETS,
    ChatRequest,
    ChatSampling,
    Endpoints,
    LlamaSettings,
    catalogue,
    local_settings,
    open_model,
    parse_spec,
)
from shoal.models.llama import LlamaModel
from shoal.models.presets import Preset
from shoal.models.transformers_folder import TransformersModel
from tests.models.server import Misbehaving

REQUEST = ChatRequest.ask(
    "hello", system="be brief", sampling=ChatSampling(max_tokens=5, seed=3, stop=("STOP",))
)


def installed(folder: Path, texts: list[bytes], monkeypatch: pytest.MonkeyPatch) -> Preset:
    """A preset of pieces that are installed in `folder`."""
    monkeypatch.syspath_prepend(str(folder))
    parts = []
    for number, text in enumerate(texts):
        package = folder / f"some_model_part{number}"
        package.mkdir()
        (package / "__init__.py").write_text("raise RuntimeError('a model package must not be imported')")
        (package / "part.bin").write_bytes(text)
        parts.append((package.name, "part.bin"))
    whole = b"".join(texts)
    return Preset(
        "some", "Some", ("some-model==1",), tuple(parts), len(whole), hashlib.sha256(whole).hexdigest(), "MIT"
    )


def test_pieces_are_joined_once_and_checked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preset = installed(tmp_path, [b"GGUF", b"abc", b"def"], monkeypatch)
    monkeypatch.setenv("SHOAL_CACHE", str(tmp_path / "cache"))
    path = preset.file()
    assert path.read_bytes() == b"GGUFabcdef"
    assert preset.file() == path
    assert list((tmp_path / "cache" / "models").iterdir()) == [path]


def test_a_whole_file_is_used_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preset = installed(tmp_path, [b"GGUFabc"], monkeypatch)
    assert preset.file() == tmp_path / "some_model_part0" / "part.bin"


@pytest.mark.parametrize("pieces", [1, 3])
def test_a_changed_file_is_refused(tmp_path: Path, pieces: int, monkeypatch: pytest.MonkeyPatch) -> None:
    preset = installed(tmp_path, [b"x"] * pieces, monkeypatch)
    (tmp_path / "some_model_part0" / "part.bin").write_bytes(b"y")
    cache = tmp_path / "cache"
    monkeypatch.setenv("SHOAL_CACHE", str(cache))
    with pytest.raises(ConfigError, match="not the file"):
        preset.file()
    assert not [path for path in cache.rglob("*") if path != cache / "models"]


def test_a_missing_package_gives_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    preset = installed(tmp_path, [b"x"], monkeypatch)
    shutil.rmtree(tmp_path / "some_model_part0")
    with pytest.raises(ConfigError, match=r"pip install some-model==1` \(MIT\)"):
        preset.file()


def test_presets_are_pinned() -> None:
    for name, preset in PRESETS.items():
        assert name == preset.name
        assert len(preset.sha256) == 64
        assert preset.licence
        assert all("==" in requirement for requirement in preset.requirements)


def test_local_specs_find_files_and_folders(tmp_path: Path) -> None:
    (tmp_path / "a.gguf").write_bytes(b"GGUF")
    expected = LlamaSettings(str(tmp_path / "a.gguf"), "a", threads=2, context=512, parallel=3)
    for name in (tmp_path / "a.gguf", tmp_path):
        assert local_settings(parse_spec(f"local:{name}?threads=2&context=512&concurrency=3")) == expected
    (tmp_path / "b.gguf").write_bytes(b"GGUF")
    with pytest.raises(ConfigError, match="holds 2 GGUF files"):
        local_settings(parse_spec(f"local:{tmp_path}"))
    (tmp_path / "config.json").write_text("{}")
    assert local_settings(parse_spec(f"local:{tmp_path}")) == tmp_path
    with pytest.raises(ConfigError, match="presets: smollm2"):
        local_settings(parse_spec("local:no-such-model"))


def test_a_file_that_is_no_model_is_a_named_error(tmp_path: Path) -> None:
    pytest.importorskip("xllamacpp")
    (tmp_path / "bad.gguf").write_bytes(b"GGUF" + b"x" * 500)
    model = LlamaModel("local:bad", LlamaSettings(str(tmp_path / "bad.gguf"), "bad"))
    with pytest.raises(ModelServerError, match="whole GGUF file") as caught:
        asyncio.run(model.answer(REQUEST, timeout=20))
    assert not caught.value.reached
    assert not caught.value.transient


class FakeIds(list[int]):
    """Stands for a tensor of token numbers."""

    @property
    def shape(self) -> tuple[int, int]:
        return (1, len(self))

    def __getitem__(self, index: Any) -> Any:
        found = super().__getitem__(index)
        return FakeIds(found) if isinstance(found, list) else found


def fake_transformers(monkeypatch: pytest.MonkeyPatch, said: str, room: int = 100) -> dict[str, Any]:
    """Modules that behave as far as the adapter sees; the result collects what they were asked."""
    asked: dict[str, Any] = {}

    class Tokenizer:
        chat_template = "a template"

        @classmethod
        def from_pretrained(cls, folder: str, **options: Any) -> Tokenizer:
            asked["options"] = options
            return cls()

        def apply_chat_template(self, texts: list[dict[str, str]], **_: Any) -> str:
            asked["texts"] = texts
            return " ".join(text["content"] for text in texts)

        def __call__(self, text: str, **_: Any) -> dict[str, Any]:
            return {"input_ids": FakeIds(range(len(text.split())))}

        def decode(self, ids: Any, **_: Any) -> str:
            return said

    class Network:
        config = types.SimpleNamespace(max_position_embeddings=room)

        @classmethod
        def from_pretrained(cls, folder: str, **options: Any) -> Network:
            return cls()

        def eval(self) -> None:
            asked["eval"] = True

        def generate(self, input_ids: FakeIds, stopping_criteria: list[Any], **options: Any) -> list[FakeIds]:
            asked["generate"] = options
            if said == "never ends":
                while not stopping_criteria[0](None, None):
                    pass
            return [FakeIds([*input_ids, 7, 7])]

    class Context:
        def __enter__(self) -> None: ...

        def __exit__(self, *_: object) -> None: ...

    torch = types.ModuleType("torch")
    torch.random = types.SimpleNamespace(fork_rng=Context)  # type: ignore[attr-defined]
    torch.no_grad = Context  # type: ignore[attr-defined]
    torch.manual_seed = lambda seed: asked.update(seed=seed)  # type: ignore[attr-defined]
    transformers = types.ModuleType("transformers")
    transformers.AutoTokenizer = Tokenizer  # type: ignore[attr-defined]
    transformers.AutoModelForCausalLM = Network  # type: ignore[attr-defined]
    transformers.StoppingCriteriaList = list  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "torch", torch)
    monkeypatch.setitem(sys.modules, "transformers", transformers)
    return asked


def test_a_transformers_folder_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = fake_transformers(monkeypatch, "some text STOP and more")
    (tmp_path / "config.json").write_text("{}")
    model = open_model(f"local:{tmp_path}", endpoints=Endpoints())
    assert isinstance(model, TransformersModel)
    answer = asyncio.run(model.answer(REQUEST, timeout=5))
    assert answer.text == "some text "
    assert (answer.usage.input, answer.usage.output) == (3, 2)
    assert answer.model == tmp_path.name
    assert asked["seed"] == 3
    assert asked["options"] == {"local_files_only": True, "trust_remote_code": False}
    assert [text["role"] for text in asked["texts"]] == ["system", "user"]


def test_a_transformers_folder_is_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_transformers(monkeypatch, "never ends")
    with pytest.raises(ModelTimeoutError):
        asyncio.run(TransformersModel("local:x", tmp_path).answer(REQUEST, timeout=0.1))
    fake_transformers(monkeypatch, "text", room=7)
    with pytest.raises(ModelSettingError, match="room for 7"):
        asyncio.run(TransformersModel("local:x", tmp_path).answer(REQUEST, timeout=5))


def test_a_missing_torch_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(ConfigError, match=r"shoal-swarm\[train\]"):
        TransformersModel("local:x", tmp_path)


def test_the_catalogue_says_what_can_be_used(server: Misbehaving, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("openai")
    pytest.importorskip("genai_prices")
    specs = [
        f"{server.root}/v1#x",
        "http://127.0.0.1:9/v1#x",
        "openai:gpt-5-mini",
        "openai:no-such-model",
        "builtin:bomber",
        "local:/nowhere/x.gguf",
    ]
    environment = {"OPENAI_API_KEY": "key"}
    listed = {entry.spec: entry for entry in catalogue(specs, environment=environment)}
    found = [(entry.status, entry.price.state) for entry in listed.values()]
    assert found == [
        ("ready", "unpriced"),
        ("unreachable", "unpriced"),
        ("ready", "priced"),
        ("ready", "unpriced"),
        ("ready", "free"),
        ("unusable", "free"),
    ]
    assert "$" in listed["openai:gpt-5-mini"].price.shown
    assert catalogue(["openai:gpt-5-mini"], environment={})[0].status == "no key"
    everything = catalogue(environment={})
    assert {f"local:{name}" for name in PRESETS} < {entry.spec for entry in everything}
    monkeypatch.setattr("shoal.models.presets.package_folder", lambda *_: None)
    missing = catalogue(["local:smollm2"], environment={})[0]
    assert (missing.status, missing.remedy) == ("not installed", PRESETS["smollm2"].command())
