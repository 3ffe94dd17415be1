from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from codea1_env.runs.folder import iter_episodes
from tests.codea1_agents.cli.conftest import folder  # noqa: F401  -- each test has one
from tests.support.chat_server import completion
from tests.support.command_line import codea1

pytestmark = pytest.mark.slow

pytest.importorskip("openai")

PLAY = ["play", "-p", "starter", "--coder", "mutant", "-n", "20", "--seed", "5", "--quiet"]


def told(body: dict[str, Any]) -> tuple[int, str]:
    """Reply with something that only this seed brings forth."""
    return 200, json.dumps(completion(f"draw {body['seed']}"))


def healthy(handler: Any, body: dict[str, Any]) -> None:
    handler.send(*told(body))


class Dying:
    """A behaviour that ends the server with the last of some replies."""

    def __init__(self, n_replies: int) -> None:
        self.left = n_replies
        self.ended = threading.Event()

    def __call__(self, handler: Any, body: dict[str, Any]) -> None:
        with handler.server.lock:
            self.left -= 1
            mine = self.left
        if mine >= 0:
            handler.send(*told(body))
        if mine == 0:
            threading.Thread(target=self.end, args=(handler.server,)).start()

    def end(self, server: Any) -> None:
        server.shutdown()
        server.server_close()
        self.ended.set()


@pytest.mark.parametrize("concurrency", [1, 4])
def test_a_server_that_is_started_again_loses_no_finished_game(faulty: Callable[..., Any], concurrency: int) -> None:
    dying = Dying(7)
    server = faulty(dying)
    tester = f"openai,model=m,base_url={server.url},retries=1,backoff_s=0.01"
    arguments = [*PLAY, "--tester", tester, "--concurrency", concurrency]
    broken = codea1(*arguments, "--out", "run")
    assert broken.exit_code == 3, broken.stderr
    assert "8 games in a row" in broken.stderr
    assert "continue with: codea1 play --resume run" in broken.stderr
    early = Path("run/early.jsonl")
    kept = [Path("run/episodes.jsonl").read_text(), early.read_text() if early.exists() else ""]
    n_kept = len({line for text in kept for line in text.splitlines()})
    assert 1 <= n_kept < 20

    assert json.loads(Path("run/metrics.json").read_text())["usage"]["tester"]["unanswered"] >= 8
    assert dying.ended.wait(10)
    again = faulty(healthy, port=server.server_port)
    resumed = codea1("play", "--resume", "run", "--quiet", "--tester", tester, "--concurrency", concurrency)
    assert resumed.exit_code == 0, resumed.stderr
    assert len(again.asked) <= 20 - n_kept
    assert not early.exists()
    assert codea1(*arguments, "--out", "whole").exit_code == 0
    runs = [list(iter_episodes(Path(name))) for name in ("run", "whole")]
    assert [a == b for a, b in zip(*runs, strict=True)] == [True] * 20


def test_the_record_tells_what_is_used_but_no_key(faulty: Callable[..., Any], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-0123")
    server = faulty((500, "busy"), healthy)
    tester = f"openai,model=m,base_url={server.url},backoff_s=0.01,api_key_env=MY_KEY"
    done = codea1(*PLAY[:-3], "--quiet", "-n", 3, "--tester", tester, "--out", "run", "--coder", "reference")
    assert done.exit_code == 0, done.stderr
    usage = json.loads(Path("run/metrics.json").read_text())["usage"]
    assert usage["coder"] is None
    assert {name: usage["tester"][name] for name in ("completions", "prompt_tokens", "retries", "unanswered")} == {
        "completions": 3,
        "prompt_tokens": 21,
        "retries": 1,
        "unanswered": 0,
    }
    for file in Path("run").iterdir():
        assert b"sk-0123" not in file.read_bytes()
    assert "sk-0123" not in done.stdout + done.stderr
    assert codea1("play", "--resume", "run", "-n", 4).exit_code == 0


def test_games_without_a_reply_are_masked_and_told_and_the_run_goes_on(faulty: Callable[..., Any]) -> None:
    filtered = (200, told({"seed": 0})[1].replace('"stop"', '"content_filter"'))
    server = faulty((400, '{"error": {"message": "too long"}}'), filtered, healthy)
    tester = f"openai,model=m,base_url={server.url},retries=0"
    done = codea1(*PLAY[:-1], "--tester", tester, "--coder", "reference", "--out", "run", "--json")
    assert done.exit_code == 0, done.stderr
    records = list(iter_episodes(Path("run")))
    assert [record.masked for record in records] == [True] * 2 + [False] * 18
    assert re.search(r"note: episode 0 \(\S+\) is masked: openai\(m at", done.stderr)
    assert json.loads(done.stdout)["n_masked_rounds"] == 2
    assert "the tester was unavailable" in Path("run/episodes.jsonl").read_text()
