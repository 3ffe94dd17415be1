"""The game for MCP: clients of the package mcp play with servers in processes of their own."""

from __future__ import annotations

import asyncio
import sys
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pytest

from codea1_env.problems import load_problems
from tests.codea1_agents.adapters.conftest import python_of
from tests.support.toys import RIGHT

pytest.importorskip("mcp", reason="the extra mcp is not installed")
if int(version("mcp").partition(".")[0]) < 2:
    pytest.skip("another package of this environment pins an older mcp", allow_module_level=True)

from mcp import StdioServerParameters, stdio_client
from mcp.client import Client

from codea1_agents.adapters.mcp_game import server
from codea1_agents.adapters.played_game import PlayedGame

STARTER = load_problems("starter")


def connected(*options: str) -> Client:
    """A client whose server is a new process."""
    command = ["-m", "codea1_agents.adapters.mcp_game", *options]
    return Client(stdio_client(StdioServerParameters(command=sys.executable, args=command)))


async def called(client: Client, tool: str, **arguments: str) -> dict[str, Any]:
    found = await client.call_tool(tool, arguments)
    assert not found.is_error, found.content
    return found.structured_content


async def one_game(client: Client) -> dict[str, Any]:
    """Play a known wrong program against golden tests."""
    turn = (await called(client, "submit_program"))["turn"]
    problem = STARTER.by_id(turn["problem_id"])
    golden = "\n".join(f"assert {case.expression} == {case.expected}" for case in problem.golden)
    after = await called(client, "submit_program", program=problem.wrong_programs[0].program)
    assert after["result"] is None
    assert problem.wrong_programs[0].program.strip() in after["turn"]["messages"][-1]["content"]
    return (await called(client, "submit_tests", tests=golden))["result"]


@pytest.mark.slow
def test_a_client_plays_ten_games_beside_another_that_plays_its_own() -> None:
    async def played() -> tuple[list[dict[str, Any]], list[str]]:
        async with connected() as first, connected("--seed", "0") as second:
            tools = [tool.name for tool in (await first.list_tools()).tools]
            before = (await called(second, "submit_program"))["turn"]
            games = [await one_game(first) for _ in range(10)]
            assert (await called(second, "submit_program"))["turn"] == before
            assert (await one_game(second))["problem_id"] == games[0]["problem_id"] == before["problem_id"]
            return games, tools

    games, tools = asyncio.run(played())
    assert tools == ["submit_program", "submit_tests"]
    assert len({game["problem_id"] for game in games}) == 10
    for game in games:
        assert game["rewards"]["tester"] > 0
        assert game["rewards"]["tester"] == pytest.approx(sum(game["reward_parts"]["tester"].values()))


def test_a_reply_out_of_turn_is_an_error_of_the_tool_and_changes_nothing() -> None:
    async def played() -> None:
        async with Client(server(PlayedGame(STARTER))) as client:
            before = await called(client, "submit_tests")
            found = await client.call_tool("submit_tests", {"tests": "assert True"})
            assert found.is_error
            assert "it is the coder's turn" in found.content[0].text
            assert await called(client, "submit_program") == before

    asyncio.run(played())


def test_an_empty_reply_is_a_reply() -> None:
    async def played() -> dict[str, Any]:
        async with Client(server(PlayedGame(STARTER))) as client:
            return (await called(client, "submit_program", program=""))["result"]

    assert asyncio.run(played())["verdict"] == "no_code"


def test_a_masked_game_ends_without_rewards(broken_sandbox_name) -> None:
    async def played() -> dict[str, Any]:
        game = PlayedGame(STARTER, sandbox=broken_sandbox_name)
        async with Client(server(game)) as client:
            return (await called(client, "submit_program", program=RIGHT))["result"]

    result = asyncio.run(played())
    assert (result["rewards"], result["masked"]) == ({"coder": None, "tester": None}, True)
    assert result["masked_because"]


@pytest.mark.slow
def test_the_page_runs(capfd, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(python_of("mcp"), "mcp.md", "exec"), {})
    begun = PlayedGame("starter").reset(seed=0)
    assert capfd.readouterr().out.splitlines()[-2:] == [begun.problem_id, "{'coder': 0.0, 'tester': None}"]
