"""The page of `codea1 web`, served on any free port, and visitors without a browser."""

from __future__ import annotations

import http.client
import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

pytest.importorskip("fastapi", reason="fastapi is not installed")

from codea1_env.agent import AgentContext
from codea1_env.problems import ProblemSet, load_problems
from codea1_env.sandbox import Sandbox
from codea1_env.service.admission import Admission
from codea1_lab.web.app import BOUNDS, WebServer
from codea1_lab.web.play import Opponent, Play


class Client:
    """One visitor: keeps cookies as a browser does."""

    def __init__(self, server: WebServer) -> None:
        self.server, self.cookies = server, {}

    def ask(self, path: str, body: object = None, **headers: str) -> tuple[int, Any, dict[str, str]]:
        """Return status, body (JSON if it is) and headers; a body makes it a POST of the page itself."""
        connection = http.client.HTTPConnection(*self.server.address, timeout=60)
        host, port = self.server.address
        sent = {
            "Host": f"{host}:{port}",
            "Cookie": "; ".join(f"{name}={value}" for name, value in self.cookies.items()),
        }
        if body is not None:
            sent |= {"Content-Type": "application/json", "Origin": f"http://{host}:{port}"}
        try:
            data = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
            connection.request("GET" if body is None else "POST", path, data, sent | headers)
            response = connection.getresponse()
            text, found = response.read().decode(), dict(response.getheaders())
        finally:
            connection.close()
        if cookie := found.get("set-cookie"):
            name, _, value = cookie.partition(";")[0].partition("=")
            self.cookies[name] = value
        return response.status, json.loads(text) if text.startswith("{") else text, found

    def post(self, path: str, body: object) -> Any:
        """Return the answer to a POST that succeeds."""
        status, answer, _ = self.ask(path, body)
        assert status == 200, answer
        return answer


Serving = Callable[..., Any]


@pytest.fixture
def serving_page(sandbox: Sandbox) -> Serving:
    """A context manager of a server with given opponents, and settings of `WebServer` and `Play`."""

    @contextmanager
    def served(
        problems: ProblemSet | None = None, *, note: Any = print, sandbox_: Sandbox = sandbox, **settings: Any
    ) -> Iterator[WebServer]:
        chosen = problems or load_problems("starter", limit=8)
        context = AgentContext(chosen, sandbox_)
        coders, testers = settings.pop("coders", ["mutant,strength=1"]), settings.pop("testers", ["fuzz"])
        agents = {"coder": coders, "tester": testers}
        made = {role: [Opponent(spec, role, context, note) for spec in specs] for role, specs in agents.items()}
        admission = Admission(BOUNDS.n_running, 0)
        play = Play(chosen, made["coder"], made["tester"], sandbox_, admission, n_running=2)
        with WebServer([play.part()], admission, port=0, **settings) as server:
            yield server

    return served
