"""Keys of agents are on no screen and in no file, whatever a server does with them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.chat_server import chat_servers, said
from tests.support.command_line import codea1
from tests.support.commands import all_commands

pytestmark = pytest.mark.slow

pytest.importorskip("openai")

KEY = "canary-key-0123"


@pytest.fixture
def server() -> Iterator[Any]:
    """Says what it was sent: in an error to every fourth request, else in the reply."""

    def echo(handler: Any, _: Any) -> None:
        told = f"{handler.path} {handler.headers['authorization']} {dict(handler.headers)!r}"
        handler.server.n_asked += KEY in told
        if handler.server.n_asked % 4 == 0:
            handler.send(400, json.dumps({"error": {"message": f"I refuse {told}"}}))
        else:
            text = f"```python\n# {told}\nassert f(1) == 2\n\ndef f(n):\n    return n + 1  # {told}\n```"
            handler.send(*said(text, reasoning=told))

    with chat_servers() as start:
        found: Any = start(echo)
        found.n_asked = 0
        yield found


@pytest.fixture
def spec(server: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    """An agent whose key is in a variable."""
    monkeypatch.setenv("OF_MINE", KEY)
    return f"openai,model=m,base_url={server.url},api_key_env=OF_MINE,retries=0"


PLAY = ("play", "-p", "two.jsonl", "-n", 6)
BOTH = ("--coder", "SPEC", "--tester", "SPEC", "--out", "run")
SELECT = ("eval", "select", "--problems", "two.jsonl", "-n", 3, "-m", 3, *BOTH)
TESTER = ("--problems", "two.jsonl", "--agent", "SPEC", "--out", "run")
COMMANDS = {
    "play": (*PLAY, *BOTH, "--show", 2),
    "play at once": (*PLAY, *BOTH, "--concurrency", 2, "--json"),
    "eval coder": ("eval", "coder", "-n", 3, "--problems", "two.jsonl", "--agent", "SPEC", "--out", "run"),
    "eval tester": ("eval", "tester", *TESTER),
    "eval select": SELECT,
    "export tests": ("export", "tests", *TESTER, "--coder", "SPEC"),
    "check agent": ("check", "agent", "SPEC"),
    "advise": ("advise", "-p", "two.jsonl", "--coder", "SPEC", "--tester", "SPEC"),
    "crossplay": ("crossplay", "-p", "two.jsonl", "--coders", "SPEC", "--testers", "mine=SPEC", "--out", "run"),
    "sft": ("sft", "MODEL", "--problems", "two.jsonl", "--coder", "SPEC", "--out", "run", "--measured", 0),
}
"""How each command takes an agent."""

SLIPS = {
    "an argument too many": ("eval", "coder", "SPEC"),
    "no such option": ("eval", "coder", "--agnet=SPEC"),
    "no number": (*PLAY, "--seed", "SPEC"),
    "no table": ("train", "--set", "agents.tester=SPEC"),
    "an unknown preset": ("train", "SPEC"),
    "no run folder": ("report", "SPEC"),
    "no experiment": ("experiment", "SPEC"),
    "no sandbox": (*PLAY, "--sandbox", "SPEC"),
    "no problems": ("play", "-p", "SPEC"),
    "a server": ("web", "-p", "two.jsonl", "--testers", "SPEC"),
}


@pytest.fixture(autouse=True)
def problems(folder: Path) -> None:
    row = {"statement": "def f(n): ...", "entry_point": "f", "solution": "def f(n):\n    return n + 1"}
    rows = [{"id": f"p/{number}", **row, "golden": ["assert f(1) == 2"]} for number in range(2)]
    (folder / "two.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))


def filled(arguments: tuple[object, ...], spec: str, model: str = "") -> list[str]:
    return [str(each).replace("SPEC", spec).replace("MODEL", model) for each in arguments]


def holders(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and KEY.encode() in path.read_bytes()]


@pytest.mark.parametrize("command", [command for command in COMMANDS if command != "sft"])
def test_no_command_shows_or_writes_a_key(spec: str, folder: Path, command: str, server: Any) -> None:
    result = codea1(*filled(COMMANDS[command], spec), "--traceback")
    assert server.n_asked
    assert result.exit_code in (0, 1, 2, 3)
    assert KEY not in result.stdout + result.stderr
    assert holders(folder) == []
    if (folder / "run" / "config.toml").exists():
        again = codea1("report", "run", "--out", "page.html")
        assert again.exit_code == 0
        assert KEY not in again.stdout + again.stderr
        assert holders(folder) == []


def test_a_fine_tuning_keeps_the_key_of_its_coder(spec: str, folder: Path, server: Any, model_folder: str) -> None:
    result = codea1(*filled(COMMANDS["sft"], spec, model_folder))
    assert server.n_asked
    assert KEY not in result.stdout + result.stderr
    assert holders(folder) == []


@pytest.mark.parametrize("arguments", [*COMMANDS.values(), *SLIPS.values()], ids=[*COMMANDS, *SLIPS])
@pytest.mark.parametrize("spec", [f"openai,model=m,api_key={KEY}", f"openai,base_url=http://me:{KEY}@h/v1"])
def test_a_key_on_the_command_line_is_not_repeated(folder: Path, arguments: tuple[object, ...], spec: str) -> None:
    before = sorted(folder.rglob("*"))
    result = codea1(*filled(arguments, spec))
    assert result.exit_code == 2
    assert "api_key_env=MY_KEY" in result.stderr
    assert result.stderr.count("\n") == 1
    assert KEY not in result.stdout + result.stderr
    assert sorted(folder.rglob("*")) == before


def test_every_command_that_takes_an_agent_is_among_these() -> None:
    taking = {
        path
        for path, command in all_commands().items()
        if {each.name for each in command.params}
        & {"agent", "spec", "name", "coder", "tester", "coders", "testers", "players"}
    }
    # `list agents` makes no agent; the options of `train` name models, those of `new` files.
    # `web` serves until it is stopped; it is among the slips.
    of_something_else = {"sandbox check", "experiment", "train", "list agents", "web"}
    of_something_else |= {name for name in taking if name.startswith("new ")}
    covered = {" ".join(str(each) for each in arguments[:2]) for arguments in COMMANDS.values()}
    covered |= {str(arguments[0]) for arguments in COMMANDS.values()}
    assert taking - of_something_else <= covered


@pytest.mark.models
def test_an_experiment_takes_no_keys(folder: Path) -> None:
    pytest.importorskip("ray", reason="Ray is not installed")
    declared = f"""name = "mine"
[[systems]]
name = "one"
preset = "coevolve"
set = {{ "agents.tester.agent" = "openai,model=m,api_key={KEY}" }}
"""
    (folder / "mine.toml").write_text(declared)
    result = codea1("experiment", "mine.toml", "--out", "grid")
    assert result.exit_code == 2
    assert "api_key_env" in result.stderr
    assert KEY not in result.stdout + result.stderr
    assert not (folder / "grid").exists()
