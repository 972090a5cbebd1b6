"""A policy that is sampled by a server and learns here, against a small server of this test."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")

from shoal.errors import ConfigError, ModelServerError
from shoal.policy.base import Learning, LearningGroup, Sampling
from shoal.policy.specification import open_policy
from tests.policy.small_models import make_folder


class Server(ThreadingHTTPServer):
    asked: list[tuple[str, Any]]
    broken: bytes | None = None


class Handler(BaseHTTPRequestHandler):
    server: Server

    def do_POST(self) -> None:
        content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.asked.append((self.path, content))
        if self.path.endswith("/completions"):
            choices = [
                {"text": f"ans{number}", "finish_reason": "stop" if number else "length"}
                for number in range(content["n"])
            ]
            body = json.dumps({"choices": choices}).encode()
        else:
            body = b"Success: LoRA adapter added"
        body = body if self.server.broken is None else self.server.broken
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server(("127.0.0.1", 0), Handler)
    made.asked = []
    threading.Thread(target=made.serve_forever, daemon=True).start()
    yield made
    made.shutdown()
    made.server_close()


def address(server: Server) -> str:
    return f"http://127.0.0.1:{server.server_address[1]}/v1"


def test_it_is_sampled_there_learns_here_and_hands_its_adapters_over(server: Server, tmp_path: Path) -> None:
    folder = make_folder("llama", tmp_path / "llama")
    policy = open_policy(f"local:{folder}?lora=2&server={address(server)}&name=base")
    sampling = Sampling(8, 1.0)
    (group,) = policy.sample(["1+1="], 3, sampling, 7)
    assert [one.text for one in group] == ["ans0", "ans1", "ans2"]
    assert [one.finished for one in group] == [False, True, True]
    assert len(group[1].ids) == len(group[0].ids) + 1  # the end token, restored where it ended by itself
    path, asked = server.asked[0]
    assert path == "/v1/completions"
    assert asked["model"] == "base"
    assert asked["n"] == 3
    assert all(isinstance(token, int) for token in asked["prompt"])

    policy.learn([LearningGroup("1+1=", group, [1.0, -1.0, 0.0])], Learning(), 1.0)
    path, asked = server.asked[1]
    assert path == "/v1/load_lora_adapter"
    assert (Path(asked["lora_path"]) / "adapter_model.safetensors").is_file()
    policy.sample(["1+1="], 2, sampling, 8)
    assert server.asked[2][1]["model"] == asked["lora_name"] == "shoal-1"


def test_a_server_that_cannot_take_new_weights_must_be_asked_for(server: Server, tmp_path: Path) -> None:
    folder = make_folder("llama", tmp_path / "llama")
    with pytest.raises(ConfigError, match="refresh=off"):
        open_policy(f"local:{folder}?server={address(server)}")
    policy = open_policy(f"local:{folder}?server={address(server)}&refresh=off")
    (group,) = policy.sample(["1+1="], 2, Sampling(8, 1.0), 1)
    policy.learn([LearningGroup("1+1=", group, [1.0, -1.0])], Learning(), 1.0)
    assert [path for path, _ in server.asked] == ["/v1/completions"]


@pytest.mark.parametrize("body", [b"[]", b"{}", b'{"choices": [{}, {}]}', b'{"choices": [1, 2]}', b"no json"])
def test_nonsense_from_a_server_is_one_line(server: Server, tmp_path: Path, body: bytes) -> None:
    folder = make_folder("llama", tmp_path / "llama")
    policy = open_policy(f"local:{folder}?server={address(server)}&refresh=off")
    server.broken = body
    with pytest.raises(ModelServerError) as error:
        policy.sample(["1+1="], 2, Sampling(8, 1.0), 1)
    assert "\n" not in str(error.value)


def test_no_server_is_one_line(tmp_path: Path) -> None:
    folder = make_folder("llama", tmp_path / "llama")
    policy = open_policy(f"local:{folder}?server=http://127.0.0.1:9/v1&refresh=off")
    with pytest.raises(ModelServerError, match="cannot be reached"):
        policy.sample(["1+1="], 2, Sampling(8, 1.0), 1)
    with pytest.raises(ConfigError, match="give an address"):
        open_policy(f"local:{folder}?server=ftp&refresh=off")
