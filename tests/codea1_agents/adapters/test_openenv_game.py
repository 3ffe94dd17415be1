"""The server of games for OpenEnv, in a process of its own, and its client."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, contextmanager, suppress
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from codea1_agents.adapters.played_game import PlayedGame
from codea1_env.problems import ProblemSet, load_problems
from tests.codea1_agents.adapters.conftest import python_of
from tests.support.toys import ADD, LOOKS_RIGHT, RIGHT, SHARP
from tests.support.waiting import wait_until

pytest.importorskip("openenv", reason="the extra openenv is not installed: make adapters-test-openenv")

from openenv.core.env_server.serialization import serialize_observation

from codea1_agents.adapters.openenv_game import GameAction, GameClient, GameEnvironment

SESSIONS = 12
STARTER = load_problems("starter")
TOYS = ProblemSet("toys", (ADD,))

VICTIM = """
import json, sys
from websockets.sync.client import connect
with connect(sys.argv[1], proxy=None) as game:
    game.send(json.dumps({"type": "reset", "data": {"seed": 1}}))
    print(json.loads(game.recv())["data"]["observation"]["agent"], flush=True)
    game.recv()
"""


SERVER = [sys.executable, "-m", "codea1_agents.adapters.openenv_game"]


@contextmanager
def serving() -> Iterator[str]:
    """The address of a server with 12 places."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    options = ["--port", str(port), "--sessions", str(SESSIONS), "--problems", "starter"]
    server = subprocess.Popen([*SERVER, *options])

    def answers() -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
            return True
        return False

    try:
        assert wait_until(lambda: server.poll() is not None or answers(), 60)
        assert server.poll() is None
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(20)


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    with serving() as found:
        yield found


def reply(agent: str, problem_id: str) -> str:
    """A known wrong program, and golden tests, of which it fails one."""
    problem = STARTER.by_id(problem_id)
    golden = (f"assert {case.expression} == {case.expected}" for case in problem.golden)
    return problem.wrong_programs[0].program if agent == "coder" else "\n".join(golden)


def outcome(found: Any) -> tuple[Any, ...]:
    return found.problem_id, dict(found.rewards), dict(found.reward_parts), found.verdict


def played_alone(seed: int) -> tuple[Any, ...]:
    game = PlayedGame(STARTER)
    state = game.reset(seed)
    while not state.done:
        state = game.submit(state.agent, reply(state.agent, state.problem_id))
    return outcome(state)


async def finished(client: GameClient, result: Any) -> tuple[Any, ...]:
    while not result.done:
        seen = result.observation
        result = await client.step(GameAction(text=reply(seen.agent, seen.problem_id)))
    return outcome(result.observation)


@pytest.fixture(scope="module")
def alone() -> list[tuple[Any, ...]]:
    """The outcomes of games that were played without a server, by seed."""
    return list(map(played_alone, range(SESSIONS)))


def test_twelve_games_at_once_are_those_of_their_seeds(address: str, alone) -> None:
    async def played(seed: int) -> tuple[Any, ...]:
        async with GameClient(address) as client:
            return await finished(client, await client.reset(seed=seed))

    async def all_of_them() -> list[tuple[Any, ...]]:
        return await asyncio.gather(*map(played, range(SESSIONS)))

    assert asyncio.run(all_of_them()) == alone
    assert len({problem_id for problem_id, *_ in alone}) > 1
    assert all(rewards["tester"] for _, rewards, *_ in alone)


def test_a_killed_client_costs_the_others_nothing(address: str, alone) -> None:
    url = address.replace("http", "ws") + "/ws"
    others = SESSIONS - 1

    async def played() -> list[tuple[Any, ...]]:
        async with AsyncExitStack() as stack:
            clients = [await stack.enter_async_context(GameClient(address)) for _ in range(others)]
            begun = [await client.reset(seed=seed) for seed, client in enumerate(clients)]
            victim = subprocess.Popen([sys.executable, "-c", VICTIM, url], stdout=subprocess.PIPE, text=True)
            with victim:
                assert await asyncio.to_thread(victim.stdout.readline) == "coder\n"
                victim.kill()
            found = await asyncio.gather(*map(finished, clients, begun))
            last = await stack.enter_async_context(GameClient(address))  # takes the free place
            return [*found, await finished(last, await last.reset(seed=others))]

    assert asyncio.run(played()) == alone


@pytest.fixture
def wired() -> Callable[..., Any]:
    """Send an observation as OpenEnv's server does, and read it as the client does."""

    def sent(observation: Any) -> Any:
        return GameClient("http://127.0.0.1:1")._parse_result(serialize_observation(observation))

    return sent


@pytest.mark.parametrize(("role", "reward"), [("coder", 0.5), ("tester", 0.1875), ("", None)])
def test_both_rewards_are_on_the_wire_and_one_is_that_of_the_role(wired, role: str, reward: float | None) -> None:
    env = GameEnvironment(PlayedGame(TOYS))
    first = wired(env.reset(role=role, episode_id="e"))
    assert (first.observation.agent, first.observation.messages[-1]["role"], first.done) == ("coder", "user", False)
    second = wired(env.step(GameAction(text=LOOKS_RIGHT)))
    assert (second.observation.agent, "abs(a + b)" in second.observation.program) == ("tester", True)
    last = wired(env.step(GameAction(text=SHARP)))
    assert (last.done, last.reward) == (True, reward)
    assert last.observation.rewards == {"coder": 0.5, "tester": 0.1875}
    assert sum(last.observation.reward_parts["tester"].values()) == pytest.approx(0.1875)
    assert (env.state.episode_id, env.state.step_count) == ("e", 2)


def test_a_masked_reward_is_none_and_says_why(wired, broken_sandbox_name) -> None:
    env = GameEnvironment(PlayedGame(TOYS, sandbox=broken_sandbox_name))
    env.reset(role="coder")
    last = wired(env.step(GameAction(text=RIGHT)))
    assert (last.done, last.reward, last.observation.masked) == (True, None, True)
    assert last.observation.rewards == {"coder": None, "tester": None}
    assert last.observation.masked_because


def test_mistakes_are_errors_of_the_session_only(address: str) -> None:
    with GameClient(address).sync() as game:
        with pytest.raises(RuntimeError, match="no game is running"):
            game.step(GameAction(text="x"))
        with pytest.raises(RuntimeError, match="problem"):
            game.reset(problem="starter/free_gaps")
        assert game.reset(problem_id="starter/free_gaps").observation.problem_id == "starter/free_gaps"


FOREIGN = ({"Origin": "http://example.org"}, {"Origin": "null"})


@pytest.mark.parametrize("token", ["", "token-of-this-test"])
def test_senders_are_checked_as_those_of_serve(token: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CODEA1_SERVE_TOKEN", token)
    with serving() as address:
        with GameClient(address).sync() as game:
            assert game.reset(seed=1).observation.agent == "coder"
            with pytest.raises(Exception, match="too big"):
                game.step(GameAction(text="#" * (1 << 20)))
        monkeypatch.delenv("CODEA1_SERVE_TOKEN")
        for headers in [{}, {"Authorization": "Bearer " + "x" * 20}] if token else FOREIGN:
            with pytest.raises(ConnectionError, match="403"), GameClient(address, headers=headers).sync():
                pass
            request = Request(f"{address}/state", headers=headers | {"Host": "example.org"})
            with pytest.raises(HTTPError, match=r"40[13]"), urlopen(request, timeout=60):
                pass
        with urlopen(f"{address}/health", timeout=60) as answer:
            assert answer.status == 200


@pytest.mark.parametrize("options", [
    ["--host", "0.0.0.0"], ["--port", "99999"], ["--sessions", "0"], ["--rounds", "-1"], ["--problems", "nowhere"],
])  # fmt: skip
def test_what_cannot_be_served_is_said_in_a_sentence(options: list[str]) -> None:
    ended = subprocess.run([*SERVER, *options], check=False, capture_output=True, text=True, timeout=120)
    assert (ended.returncode, "Traceback" in ended.stderr) == (2, False)


def test_the_page_runs(address: str, capsys) -> None:
    exec(compile(python_of("openenv").replace("http://127.0.0.1:8000", address), "openenv.md", "exec"), {})
    assert capsys.readouterr().out == "True {'coder': 0.0, 'tester': None} no_entry_point\n"
