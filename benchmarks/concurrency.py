"""Compares the time of many concurrent games with an ideal time.

    python benchmarks/concurrency.py [--games N] [--sleep MS] [--json]

Both agents are scripted and sleep before each reply, as if they waited for a server. The ideal time is that of the
sandbox alone, which judges the same games from the same threads without agents, plus the two sleeps of a game. A run
would take this time if all games slept at the same time and the sandbox were never idle in between. Two kinds of agents
are measured: with `aact` (one event loop), and with `act` and `thread_safe`. All figures are from one process on the
same problems; each run has its own book.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

from measuring import machine, option_parser
from rich.console import Console
from rich.table import Table

from codea1_agents.play.runner import play
from codea1_env import code_a1_v0
from codea1_env.problems import ProblemSet, load_problems
from codea1_env.sandbox import Sandbox, load_sandbox

_THREADS = 32


class Scripted:
    """Replies with the solution, or with the examples of the statement as tests."""

    def __init__(self, problems: ProblemSet) -> None:
        self._problems = problems

    def reply(self, observation: Any, info: Any) -> str:
        """Return the reply at once."""
        problem = self._problems.by_id(info["problem_id"])
        return problem.solution if info["role"] == "coder" else "\n".join(problem.examples)


class Threaded(Scripted):
    """Sleeps in the calling thread."""

    thread_safe = True

    def __init__(self, problems: ProblemSet, sleep_s: float) -> None:
        super().__init__(problems)
        self._sleep_s = sleep_s

    def act(self, observation: Any, info: Any) -> str:
        """Return the reply after the sleep."""
        time.sleep(self._sleep_s)
        return self.reply(observation, info)


class Asynchronous(Threaded):
    """Sleeps in the event loop."""

    async def aact(self, observation: Any, info: Any) -> str:
        """Return the reply after the sleep."""
        await asyncio.sleep(self._sleep_s)
        return self.reply(observation, info)


def timed(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def judged_only(problems: ProblemSet, sandbox: Sandbox) -> None:
    """Judge one game of each problem, without waiting for agents."""
    agent, first = Scripted(problems), code_a1_v0.env(problems=problems, sandbox=sandbox)

    def game(number: int) -> None:
        env = code_a1_v0.env(problems=problems, sandbox=sandbox)
        env.unwrapped.referee = first.unwrapped.referee  # as the runner does
        env.reset(seed=number, options={"problem_id": problems[number].id})
        while env.agents:
            observation, _, terminated, truncated, info = env.last()
            env.step(None if terminated or truncated else agent.reply(observation, info))
        env.close()

    with ThreadPoolExecutor(_THREADS) as threads:
        list(threads.map(game, range(len(problems))))


def several(n_games: int) -> ProblemSet:
    """Return one problem per game, because games of one problem never run at the same time."""
    base = load_problems("humaneval")
    some = (replace(base[n % len(base)], id=f"{base[n % len(base)].id}/{n}") for n in range(n_games))
    return ProblemSet("several", tuple(some))


def measured(n_games: int, sleep_s: float) -> dict[str, Any]:
    problems, sandbox = several(n_games), load_sandbox("local")
    judged_only(several(8), sandbox)  # starts workers and imports modules
    judging_s = timed(lambda: judged_only(problems, sandbox))
    ideal_s = judging_s + 2 * sleep_s
    found: dict[str, Any] = {"machine": machine(), "games": n_games, "sleep_s": sleep_s, "sandbox_s": judging_s}
    found |= {"ideal_s": ideal_s, "one_by_one_s": judging_s + 2 * sleep_s * n_games}
    for kind in (Asynchronous, Threaded):
        agent = kind(problems, sleep_s)
        options: dict[str, Any] = {"episodes": n_games, "concurrency": n_games, "sandbox": sandbox}
        wall_s = timed(lambda agent=agent, options=options: play(problems, agent, agent, **options))  # type: ignore[misc]
        found[kind.__name__.lower()] = {"wall_s": wall_s, "ratio": wall_s / ideal_s}
    return found


def main() -> None:
    parser = option_parser(__doc__, json="one JSON object")
    parser.add_argument("--games", type=int, default=256, help="number of games at the same time")
    parser.add_argument("--sleep", type=float, default=50.0, help="milliseconds before each reply")
    options = parser.parse_args()
    found = measured(options.games, options.sleep / 1000)
    if options.json:
        print(json.dumps(found))
        return
    table = Table("", "seconds", "times the ideal")
    table.add_row("sandbox alone", f"{found['sandbox_s']:.2f}", "")
    table.add_row("ideal: sandbox and two sleeps", f"{found['ideal_s']:.2f}", "1.00")
    table.add_row("sum, one game after the other", f"{found['one_by_one_s']:.2f}", "")
    for kind in ("asynchronous", "threaded"):
        table.add_row(f"played, {kind}", f"{found[kind]['wall_s']:.2f}", f"{found[kind]['ratio']:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
