"""A server of chat completions on loopback that behaves as told."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


def completion(text: str | None, **message: Any) -> dict[str, Any]:
    finish = message.pop("finish_reason", "stop")
    choice = {"index": 0, "message": {"role": "assistant", "content": text, **message}, "finish_reason": finish}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


def said(text: str | None = "hello", **message: Any) -> tuple[int, str]:
    return 200, json.dumps(completion(text, **message))


class FaultyServer(ThreadingHTTPServer):
    """Answers each request with the next of some behaviours, the last one for ever; keeps what was asked."""

    daemon_threads = True

    def __init__(self, behaviours: tuple[Any, ...], port: int = 0) -> None:
        super().__init__(("127.0.0.1", port), _Handler)
        self.behaviours = list(behaviours)
        self.asked: list[dict[str, Any]] = []
        self.models = ["only"]
        self.give: Any = None
        """Answers GET; None: the list of `models` does."""
        self.lock = threading.Lock()
        self.busy = self.busiest = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/v1"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Clients that hang up are part of the tests."""


class _Handler(BaseHTTPRequestHandler):
    server: FaultyServer

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""

    def do_GET(self) -> None:
        if self.server.give is not None:
            self.server.give(self)
            return
        models = [{"id": name, "object": "model"} for name in self.server.models]
        self.send(200, json.dumps({"object": "list", "data": models}))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            self.server.asked.append(body)
            some = self.server.behaviours
            behaviour = some.pop(0) if len(some) > 1 else some[0]
            self.server.busy += 1
            self.server.busiest = max(self.server.busiest, self.server.busy)
        try:
            behaviour(self, body) if callable(behaviour) else self.send(*behaviour)
        finally:
            with self.server.lock:
                self.server.busy -= 1

    def send(self, status: int, text: str, kind: str = "application/json", **headers: str) -> None:
        data = text.encode()
        self.send_response(status)
        for name, value in {"content-type": kind, "content-length": str(len(data)), **headers}.items():
            self.send_header(name.replace("_", "-"), value)
        self.end_headers()
        self.wfile.write(data)


@contextmanager
def chat_servers() -> Iterator[Callable[..., FaultyServer]]:
    """Give a function that starts a server with the given behaviours; end all of them."""
    running: list[FaultyServer] = []

    def start(*behaviours: Any, port: int = 0) -> FaultyServer:
        server = FaultyServer(behaviours, port)
        running.append(server)
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        return server

    yield start
    for server in running:
        server.shutdown()
        server.server_close()
