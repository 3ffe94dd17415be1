"""The environment for verifiers, played through its own machinery against a chat endpoint on loopback."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from codea1_env.errors import UserError
from codea1_env.problems import ProblemSet, WrongProgram
from tests.codea1_agents.adapters.conftest import python_of
from tests.support.toys import ADD, BROKEN, LOOKS_RIGHT, RIGHT, SHARP, WRONG

pytest.importorskip("verifiers", reason="the extra verifiers is not installed: make harnesses-test")

import verifiers.v1 as vf

from codea1_agents.adapters.verifiers_game import load_environment

PROBLEMS = ProblemSet("toys", (replace(ADD, wrong_programs=(WrongProgram(WRONG, "subtracts", 1),)),))


def problems() -> ProblemSet:
    return PROBLEMS


@pytest.fixture
def played(chat_server, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Any]:
    """Play the first task against a coder and a tester that reply as given; return the episode."""
    monkeypatch.setenv("MY_KEY", "none")

    def play(program: str = RIGHT, suite: str = SHARP, **settings: Any) -> Any:
        server = chat_server(lambda prompt: suite if "Write 8 tests" in prompt else program)
        env = load_environment(problems=f"{__name__}:problems", **settings)
        client = vf.EvalClientConfig(base_url=server.url, api_key_var="MY_KEY")
        context = vf.ModelContext(model="m", client=client)

        async def episode() -> Any:
            async with env.serving():
                return await env.run_episode(next(iter(env.taskset)), context)

        return asyncio.run(episode())

    return play


def rewards(episode: Any) -> dict[str, dict[str, float]]:
    return {
        trace.agent.name: {name: reward.value for name, reward in trace.rewards.items()} for trace in episode.traces
    }


def test_each_role_has_its_own_reward_with_parts(played) -> None:
    episode = played(LOOKS_RIGHT)
    assert episode.ok, episode.errors
    assert rewards(episode) == {"coder": {"coder": 0.5}, "tester": {"tester": 0.1875}}
    coder, tester = episode.traces
    assert sum(tester.metrics.values()) == pytest.approx(0.1875)
    assert "abs(a + b)" in tester.task.data.program
    assert all(trace.agent.trainable and trace.agent.runtime.type == "subprocess" for trace in (coder, tester))


def test_a_tester_has_no_turn_if_the_program_does_not_load(played) -> None:
    assert rewards(played(BROKEN)) == {"coder": {"coder": 0.0}}


@pytest.mark.parametrize(("roles", "reward"), [("coder", 1.0), ("tester", 0.25)])
def test_one_role_plays_alone(played, roles: str, reward: float) -> None:
    episode = played(roles=roles)
    assert rewards(episode) == {roles: {roles: reward}}


def test_a_masked_reward_is_an_error_of_its_own(played, broken_sandbox_name) -> None:
    episode = played(sandbox=broken_sandbox_name)
    (trace,) = episode.traces
    assert (trace.ok, episode.ok, trace.rewards) == (False, False, {})
    assert (trace.last_error.type, trace.last_error.message) == ("MaskedReward", "internal error")


def test_an_endpoint_that_fails_is_no_reward(chat_server, played) -> None:
    def fails(prompt: str) -> str:
        raise ConnectionAbortedError

    client = {"type": "eval", "base_url": chat_server(fails).url, "api_key_var": "MY_KEY"}
    episode = played(coder={"client": client})
    assert not episode.ok
    assert episode.traces[0].last_error.type == "ProviderError"
    assert episode.traces[0].rewards == {}


def test_a_wrong_setting_is_one_sentence() -> None:
    with pytest.raises(UserError, match="roles"):
        load_environment(roles="judge")


def test_the_command_of_verifiers_plays_it_and_uploads_nothing(chat_server, tmp_path: Path) -> None:
    server = chat_server(lambda prompt: "```python\nassert True\n```")
    command = f"""codea1-game --model m --client.base-url {server.url} --client.api-key-var MY_KEY
        --select.limit 2 --no-rich --output-dir {tmp_path}"""
    program = "from verifiers.v1.cli.eval.main import main; main()"
    environment = os.environ | {"MY_KEY": "none", "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program, *command.split()],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    (log,) = tmp_path.rglob("traces.jsonl")
    episodes = list(map(json.loads, log.read_text().splitlines()))
    assert [episode["ok"] for episode in episodes] == [True, True]
    assert [episode["run"]["id"].partition("-")[0] for episode in episodes] == ["disabled"] * 2


def test_the_page_runs(chat_server, monkeypatch: pytest.MonkeyPatch, capsys) -> None:
    monkeypatch.setenv("MY_ENDPOINT", chat_server(lambda prompt: "```python\nassert True\n```").url)
    monkeypatch.setenv("MY_KEY", "none")
    exec(compile(python_of("verifiers"), "verifiers.md", "exec"), {})
    assert capsys.readouterr().out == "{'coder': 0.0}\n"
