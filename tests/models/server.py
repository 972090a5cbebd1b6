"""A local HTTP server that speaks OpenAI's and Anthropic's protocols and misbehaves on demand.

The model name in a request says what happens: `hang`, `html-error`, `huge`, … An unknown name gets a
proper answer.
"""

from __future__ import annotations

import json
import threading
import time
import zlib
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any

HUGE = 10 << 20


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Misbehaving

    def log_message(self, *_: object) -> None:
        return

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        self._json(200, {"object": "list", "data": [{"id": "any", "owned_by": self.server.owner}]})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        server = self.server
        with server.lock:
            server.paths.append(self.path)
            server.seen.append((dict(self.headers.items()), body))
            server.calls[body["model"]] += 1
            server.active += 1
            server.most_active = max(server.most_active, server.active)
            server.times.append(time.monotonic())
        try:
            self._act(body["model"], body, server.calls[body["model"]])
        finally:
            with server.lock:
                server.active -= 1

    def _act(self, model: str, body: dict[str, Any], number: int) -> None:
        key = self.headers.get("authorization", "").removeprefix("Bearer ") or self.headers.get(
            "x-api-key", ""
        )
        if model == "hang":
            self.server.released.wait(30)
            self.close_connection = True
        elif model in ("half-open", "drip"):
            self._head(200, "application/json", 5000)
            self.wfile.write(b'{"choices": [')
            self.wfile.flush()
            while model == "drip" and not self.server.released.wait(0.02):
                self.wfile.write(b" ")
                self.wfile.flush()
            self.server.released.wait(30)
            self.close_connection = True
        elif model == "drop":
            self._head(200, "application/json", 5000)
            self.wfile.write(b'{"choices": [')
            self.close_connection = True
        elif model == "garbage":
            self._send(200, "application/json", b"{]\xff not json")
        elif model == "nested":
            self._send(200, "application/json", b'{"choices":' + b"[" * 200_000)
        elif model == "html-error":
            self._send(502, "text/html", b"<!doctype html><html><h1>Bad gateway</h1>" + b"x" * 5000)
        elif model == "html-page":
            self._send(200, "text/html; charset=utf-8", b"<html>Welcome</html>")
        elif model == "wrong-type":
            self._send(200, "text/plain", json.dumps(self._completion(body)).encode())
        elif model in ("huge", "huge-error"):
            self._head(200 if model == "huge" else 500, "application/json", HUGE)
            for _ in range(HUGE >> 16):
                try:
                    self.wfile.write(b" " * (1 << 16))
                except OSError:
                    break
                self.server.sent += 1 << 16
            self.close_connection = True
        elif model == "packed":
            data = zlib.compress(b" " * HUGE)
            self._send(200, "application/json", data, {"content-encoding": "deflate"})
        elif model == "empty-choices":
            self._json(200, {"choices": [], "content": [], "usage": None})
        elif model == "unauthorized":
            self._json(401, {"error": {"message": f"Incorrect API key provided: {key}", "type": "auth"}})
        elif model == "echo":
            escaped = "".join(f"\\u{ord(letter):04x}" for letter in key)
            self._send(400, "application/json", b'{"error":{"message":"you sent %s"}}' % escaped.encode())
        elif model == "echo-answer":
            self._json(200, self._completion(body, f"your key is {key}", model=key))
        elif model == "forbidden":
            self._json(403, {"error": {"message": "not yours"}})
        elif model == "no-credit":
            self._json(429, {"error": {"message": "You exceeded your quota", "code": "insufficient_quota"}})
        elif model == "busy-once" and number == 1:
            self._json(429, {"error": {"message": "slow down"}}, {"retry-after": "0.05"})
        elif model == "busy":
            self._json(429, {"error": {"message": "slow down"}}, {"retry-after": "3600"})
        elif model == "broken-twice" and number <= 2:
            self._json(503, {"error": {"message": "overloaded"}})
        elif model == "broken":
            self._json(500, {"error": {"message": "oh no\nsecond line"}})
        elif model == "missing":
            self._json(
                404, {"error": {"message": "The model `missing` does not exist", "code": "model_not_found"}}
            )
        elif model == "redirect":
            self._send(302, "text/plain", b"", {"location": "http://127.0.0.1:1/elsewhere"})
        elif model == "short-context":
            message = "This model's maximum context length is 8 tokens, you requested 9 (max_tokens 5)"
            self._json(400, {"error": {"message": message, "code": "context_length_exceeded"}})
        elif model == "picky" and "temperature" in body:
            self._json(400, {"error": {"message": "Unsupported value", "param": "temperature"}})
        elif model == "picky" and "seed" in body:
            self._json(422, {"error": {"message": "Unknown field: seed is not permitted"}})
        elif model == "picky" and "max_tokens" in body:
            message = (
                "Unsupported parameter: 'max_tokens' is not supported. Use 'max_completion_tokens' instead."
            )
            self._json(400, {"error": {"message": message}})
        elif model == "no-limit" and ("max_tokens" in body or "max_completion_tokens" in body):
            name = "max_tokens" if "max_tokens" in body else "max_completion_tokens"
            self._json(400, {"error": {"message": "too large", "param": name}})
        elif model == "slow":
            time.sleep(0.05)
            self._json(200, self._completion(body))
        elif model == "no-usage":
            self._json(
                200, {name: value for name, value in self._completion(body).items() if name != "usage"}
            )
        else:
            self._json(200, self._completion(body))

    def _completion(self, body: dict[str, Any], text: str = "MOV 0, 1", model: str = "") -> dict[str, Any]:
        named = model or body["model"] + "-2026"
        if self.path.endswith("/messages"):
            usage = {"input_tokens": 10, "output_tokens": 5}
            usage |= {"cache_read_input_tokens": 100, "cache_creation_input_tokens": 20}
            return {
                "type": "message",
                "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": text}],
                "model": named,
                "stop_reason": "end_turn",
                "usage": usage,
            }
        usage2 = {"prompt_tokens": 12, "completion_tokens": 5, "prompt_tokens_details": {"cached_tokens": 4}}
        choice = {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        return {"choices": [choice], "model": named, "usage": usage2}

    def _json(self, status: int, data: object, headers: dict[str, str] | None = None) -> None:
        self._send(status, "application/json", json.dumps(data).encode(), headers)

    def _send(self, status: int, kind: str, data: bytes, headers: dict[str, str] | None = None) -> None:
        self._head(status, kind, len(data), headers)
        self.wfile.write(data)

    def _head(self, status: int, kind: str, length: int, headers: dict[str, str] | None = None) -> None:
        self.send_response(status)
        self.send_header("content-type", kind)
        self.send_header("content-length", str(length))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.flush()


class Misbehaving(ThreadingHTTPServer):
    """The server with what it saw; use it in a `with` block."""

    daemon_threads = True
    block_on_close = False

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.lock = threading.Lock()
        self.released = threading.Event()
        self.seen: list[tuple[dict[str, str], dict[str, Any]]] = []
        self.paths: list[str] = []
        self.times: list[float] = []
        self.calls: Counter[str] = Counter()
        self.owner = "somebody"
        self.active = self.most_active = self.sent = 0
        self._thread = threading.Thread(target=self.serve_forever, args=(0.02,), daemon=True)

    def handle_error(self, *_: object) -> None:
        return  # clients that hang up are the point

    @property
    def root(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def __enter__(self) -> Misbehaving:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.released.set()
        self.shutdown()
        self.server_close()
