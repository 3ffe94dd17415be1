"""Keys and passwords of agents are on no screen and in no file, whatever a server does with them."""

from __future__ import annotations

import base64
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from codea1_agents.cli.app import all_commands

pytestmark = pytest.mark.slow

pytest.importorskip("openai")

KEY, USER, PASSWORD, QUERY = "canary-key-0123", "canary-user", "canary-password", "canary-query"
CANARIES = (KEY, PASSWORD, QUERY, base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode())

AGENTS = """\
class Tells:
    stateless = True

    def __init__(self, *, api_key):
        self.key, self.n_asked = api_key, 0

    def __repr__(self):
        return f"Tells({self.key})"

    def act(self, observation, info):
        self.n_asked += 1
        if info["role"] == "tester":
            return f"assert {observation['entry_point']}({self.key!r}) == 1  # {self.key}"
        return f"def {observation['entry_point']}(*_):\\n    return {self.key!r}"


class Fails(Tells):
    def act(self, observation, info):
        try:
            raise KeyError(self.key)
        except KeyError as error:
            raise ValueError(f"who is {self.key}?") from error


class Leaves(Tells):
    def act(self, observation, info):
        raise SystemExit(f"bad key {self.key}")


class Refuses:
    def __init__(self, *, api_key):
        raise ValueError(f"bad key {api_key}")

    def act(self, observation, info):
        return ""
"""


class _Echo(BaseHTTPRequestHandler):
    """Says what it was sent: in an error to every fourth request, else in the reply."""

    server: Any

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        told = f"{self.path} {self.headers['authorization']} {dict(self.headers)!r}"
        self.server.n_asked += 1
        if self.server.n_asked % 4 == 0:
            self._send(400, {"error": {"message": f"I refuse {told}"}})
            return
        text = f"```python\n# {told}\nassert f(1) == 2\n\ndef f(n):\n    return n + 1  # {told}\n```"
        message = {"role": "assistant", "content": text, "reasoning": told}
        choice = {"index": 0, "message": message, "finish_reason": "stop"}
        self._send(200, {"id": "x", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]})

    def _send(self, status: int, data: Any) -> None:
        body = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@pytest.fixture
def server() -> Iterator[Any]:
    found: Any = ThreadingHTTPServer(("127.0.0.1", 0), _Echo)
    found.n_asked = 0
    threading.Thread(target=found.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
    yield found
    found.shutdown()
    found.server_close()


@pytest.fixture
def specs(server: Any, folder: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """Agents that have secrets, by what becomes of these."""
    (folder / "keyed.py").write_text(AGENTS)
    monkeypatch.syspath_prepend(folder)
    place = f"127.0.0.1:{server.server_port}/v1"
    monkeypatch.setenv("OF_MINE", KEY)
    return {
        "key": f"openai,model=m,base_url=http://{place},api_key={KEY},retries=0",
        "variable": f"openai,model=m,base_url=http://{place},key_env=OF_MINE,retries=0",
        "address": f"openai,model=m,base_url=http://{USER}:{PASSWORD}@{place}?key={QUERY},retries=0",
        "tape": f"tape,path=tape.jsonl,agent=openai;model=m;base_url=http://{place};api_key={KEY};retries=0",
        "tells": f"keyed:Tells,api_key={KEY}",
        "fails": f"keyed:Fails,api_key={KEY}",
        "leaves": f"keyed:Leaves,api_key={KEY}",
        "refuses": f"keyed:Refuses,api_key={KEY}",
        "unknown option": f"keyed:Tells,api_key={KEY},strength=1",
        "no option": f"keyed:Tells,api_key={KEY},{KEY}",
        "no agent": f"nobody,api_key={KEY}",
    }


PLAY = ("play", "-p", "two.jsonl", "-n", 6)
COMMANDS = {
    "play": (*PLAY, "--coder", "SPEC", "--tester", "SPEC", "--out", "run", "--show", 2),
    "play at once": (*PLAY, "--coder", "SPEC", "--tester", "SPEC", "--out", "run", "--concurrency", 2, "--json"),
    "eval coder": ("eval", "coder", "-n", 3, "--problems", "two.jsonl", "--agent", "SPEC", "--out", "run"),
    "eval tester": ("eval", "tester", "--problems", "two.jsonl", "--agent", "SPEC", "--coder", "SPEC", "--out", "run"),
    "eval select": (
        "eval",
        "select",
        "--problems",
        "two.jsonl",
        "-n",
        3,
        "-m",
        3,
        "--coder",
        "SPEC",
        "--tester",
        "SPEC",
        "--out",
        "run",
    ),
    "export tests": (
        "export",
        "tests",
        "--problems",
        "two.jsonl",
        "--agent",
        "SPEC",
        "--coder",
        "SPEC",
        "--out",
        "rows",
    ),
    "check agent": ("check", "agent", "SPEC"),
    "crossplay": ("crossplay", "-p", "two.jsonl", "--coders", "SPEC", "--testers", "mine=SPEC", "--out", "run"),
    "crossplay both": ("crossplay", "SPEC", "-p", "two.jsonl", "--out", "run", "--json"),
    "sft": ("sft", "MODEL", "--problems", "two.jsonl", "--coder", "SPEC", "--out", "run"),
}
"""How each command takes an agent."""

FAULTS = {
    "an argument too many": ("eval", "coder", "SPEC"),
    "no such option": ("eval", "coder", "--agnet=SPEC"),
    "no number": (*PLAY, "--seed", "SPEC"),
    "no table": ("train", "--set", "agents.tester=SPEC"),
    "no such setting": ("train", "--set", "agents.tester.SPEC"),
    "no seat of an agent": ("train", "--set", "agents.shared.agent=SPEC", "--set", "game.problems=two.jsonl"),
    "an unknown preset": ("train", "SPEC"),
    "no run folder": ("report", "SPEC"),
    "no experiment": ("experiment", "SPEC"),
    "no sandbox": (*PLAY, "--sandbox", "SPEC"),
    "no problems": ("play", "-p", "SPEC"),
}


@pytest.fixture(autouse=True)
def problems(folder: Path) -> None:
    rows = [
        {
            "id": f"p/{number}",
            "statement": "def f(n): ...",
            "entry_point": "f",
            "solution": "def f(n):\n    return n + 1",
            "golden": ["assert f(1) == 2"],
        }
        for number in range(2)
    ]
    (folder / "two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def filled(arguments: tuple[object, ...], spec: str) -> list[str]:
    return [str(each).replace("SPEC", spec) for each in arguments]


def holders(folder: Path) -> list[tuple[str, str]]:
    files = [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc"]
    return [(path.name, each) for path in files for each in CANARIES if each.encode() in path.read_bytes()]


def told(result: Any) -> list[str]:
    return [each for each in CANARIES if each in result.stdout + result.stderr]


@pytest.mark.parametrize(
    ("command", "agent"),
    [
        *((command, agent) for command in COMMANDS if command != "sft" for agent in ("address", "tells")),
        *(("play at once", agent) for agent in ("key", "variable", "tape", "fails", "leaves")),
        *(("eval coder", agent) for agent in ("key", "fails", "leaves")),
        *(("check agent", agent) for agent in ("key", "fails", "leaves")),
    ],
)
def test_no_command_shows_or_writes_what_an_agent_keeps(
    codea1: Callable[..., Any], specs: dict[str, str], folder: Path, command: str, agent: str, server: Any
) -> None:
    result = codea1(*filled(COMMANDS[command], specs[agent]))
    assert_nothing_is_told(result, folder)
    assert server.n_asked or not specs[agent].startswith(("openai", "tape"))
    if (folder / "run" / "config.toml").exists():
        report = codea1("report", "run", "--out", "page.html")
        again = codea1("rescore", "run")
        assert told(report) == told(again) == holders(folder) == []


@pytest.mark.parametrize("agent", ["address", "tells"])
def test_a_fine_tuning_keeps_the_secrets_of_its_coder(
    codea1: Callable[..., Any], specs: dict[str, str], folder: Path, agent: str, server: Any, model_folder: str
) -> None:
    arguments = [model_folder if each == "MODEL" else each for each in filled(COMMANDS["sft"], specs[agent])]
    result = codea1(*arguments, "--measured", 0)
    assert_nothing_is_told(result, folder)
    assert server.n_asked or agent != "address"
    assert (folder / "run" / "sft.json").exists() or agent != "tells"


def assert_nothing_is_told(result: Any, folder: Path) -> None:
    assert result.exit_code in (0, 1, 2, 3)
    assert told(result) == []
    assert holders(folder) == []


@pytest.mark.parametrize("agent", ["refuses", "unknown option", "no option", "no agent"])
@pytest.mark.parametrize("command", ["play", "eval coder", "check agent", "crossplay"])
def test_an_agent_that_cannot_be_made_is_one_sentence_without_its_key(
    codea1: Callable[..., Any], specs: dict[str, str], folder: Path, command: str, agent: str
) -> None:
    result = codea1(*filled(COMMANDS[command], specs[agent]))
    assert result.exit_code == 2
    assert told(result) == []
    assert holders(folder) == []


@pytest.mark.parametrize("fault", FAULTS)
def test_a_slip_on_the_command_line_shows_no_key(
    codea1: Callable[..., Any], specs: dict[str, str], folder: Path, fault: str
) -> None:
    result = codea1(*filled(FAULTS[fault], f"{specs['address']},api_key={KEY}"))
    assert result.exit_code == 2
    assert told(result) == []
    assert holders(folder) == []


def test_every_command_that_takes_an_agent_is_among_these() -> None:
    taking = {
        path
        for path, command in all_commands().items()
        if {each.name for each in command.params}
        & {"agent", "spec", "name", "coder", "tester", "coders", "testers", "players"}
    }
    # `list agents` makes no agent; the options of `train` name models.
    of_something_else = {"sandbox check", "experiment", "train", "list agents"}
    covered = {" ".join(str(each) for each in arguments[:2]) for arguments in COMMANDS.values()}
    covered |= {str(arguments[0]) for arguments in COMMANDS.values()}
    assert taking - of_something_else <= covered


def test_two_evaluations_are_compared_and_gone_on_with_without_a_key(
    codea1: Callable[..., Any], specs: dict[str, str], folder: Path
) -> None:
    for out in ("a", "b", "b"):
        done = codea1(*filled(COMMANDS["eval coder"][:-1], specs["tells"]), out)
        assert done.exit_code == 0, done.stderr
    assert json.loads((folder / "a" / "evaluation.json").read_text())["agent"] == "keyed:Tells,api_key=***"
    compared = codea1("eval", "compare", "a", "b")
    assert compared.exit_code == 0
    assert told(compared) == holders(folder) == []


@pytest.mark.models
def test_an_experiment_takes_no_keys(codea1: Callable[..., Any], specs: dict[str, str], folder: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    declared = f"""name = "mine"
[[systems]]
name = "one"
preset = "coevolve"
set = {{ "agents.tester.agent" = "{specs["key"]}" }}
"""
    (folder / "mine.toml").write_text(declared)
    result = codea1("experiment", "mine.toml", "--out", "grid")
    assert result.exit_code == 2
    assert "key_env" in result.stderr
    assert told(result) == []
    assert not (folder / "grid").exists()
