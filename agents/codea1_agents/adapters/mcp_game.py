"""MCP: the game as two tools, `submit_program` and `submit_tests`, over standard input and output.

::

    python -m codea1_agents.adapters.mcp_game --problems starter

The client starts the process and plays both roles, so each client has games of its own. A masked reward is None, with
the reason in `masked_because`.
"""

from __future__ import annotations

import threading
from typing import Annotated, Any

import typer

from codea1_agents.adapters.played_game import GameState, PlayedGame, sentences
from codea1_env.agent import Role
from codea1_env.errors import UserError, extra_needed

with extra_needed("the game for MCP", "mcp"):
    from mcp.server import MCPServer
    from mcp.server.mcpserver.exceptions import ToolError

INSTRUCTIONS = (
    "A game of two agents. A coder submits a program for a problem (submit_program). If the program loads, a tester, "
    "who sees it, submits tests which it should fail (submit_tests). Both get rewards, and the next game begins. "
    "Either tool without an argument returns whose turn it is and what to write, and changes nothing."
)


class ClientGames:
    """The games of one client, one after the other. Calls of tools wait for each other."""

    def __init__(self, game: PlayedGame, seed: int = 0) -> None:
        """Begin the first game; the seed determines the order of the problems."""
        self._game, self._lock = game, threading.Lock()
        self._state = game.reset(seed)

    def submit(self, role: Role, reply: str | None) -> dict[str, Any]:
        """Return what to do next and, if the reply ended a round, its result; None is not a reply.

        Raises:
            ToolError: it is not this role's turn; the client reads the message.
        """
        with self._lock:
            try:
                ended = None if reply is None else self._game.submit(role, reply)
            except UserError as error:
                raise ToolError(str(error)) from error
            if ended is not None:
                self._state = self._game.reset() if ended.done else ended
            return {"turn": _turn(self._state), "result": _result(ended)}


def server(game: PlayedGame, seed: int = 0) -> Any:
    """Return the server of one client's games; the seed determines the order of the problems."""
    found, games = MCPServer("codea1", instructions=INSTRUCTIONS), ClientGames(game, seed)

    def submit_program(program: str | None = None) -> dict[str, Any]:
        """Submit the coder's whole Python program for the present problem.

        Args:
            program: source code, alone or in a reply with one fenced block; without it, only say whose turn it is.
        """
        return games.submit("coder", program)

    def submit_tests(tests: str | None = None) -> dict[str, Any]:
        """Submit the tester's tests, which the coder's program should fail and a right program passes.

        Args:
            tests: lines of the form `assert f(arguments) == expected`; without them, only say whose turn it is.
        """
        return games.submit("tester", tests)

    found.add_tool(submit_program)
    found.add_tool(submit_tests)
    return found


def serve(
    problems: Annotated[str, typer.Option(help="A source of problems.")] = "starter",
    rules: Annotated[str, typer.Option(help="Name of the rules.")] = "fixed",
    rounds: Annotated[int, typer.Option(help="Rounds per game.")] = 1,
    sandbox: Annotated[str, typer.Option(help="What runs the programs.")] = "local",
    seed: Annotated[int, typer.Option(help="Of the order of the problems.")] = 0,
) -> None:
    """Serve the game to one MCP client on standard input and output."""
    with sentences():
        found = server(PlayedGame(problems, rules=rules, rounds=rounds, sandbox=sandbox), seed)
    found.run("stdio")


def _turn(state: GameState) -> dict[str, Any]:
    return {"agent": state.agent, "problem_id": state.problem_id, "messages": list(state.messages)}


def _result(ended: GameState | None) -> dict[str, Any] | None:
    """Return the result of a round; None: the reply ended none."""
    if ended is None or not (ended.verdict or ended.masked):
        return None
    return {
        "problem_id": ended.problem_id,
        "rewards": dict(ended.rewards),
        "reward_parts": {role: dict(terms) for role, terms in ended.reward_parts.items()},
        "masked": ended.masked,
        "masked_because": ended.masked_because,
        "verdict": ended.verdict,
    }


if __name__ == "__main__":
    typer.run(serve)
