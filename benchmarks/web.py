"""Measures `codea1 web` with many visitors at once, some of whom send endless loops.

    python benchmarks/web.py [--visitors N] [--loops N] [--seconds S] [--think S] [--json]

The server is a process of its own with its usual settings. Each visitor begins a game, thinks, and sends tries until it
is over, then begins the next: tests of a duel; or, if the visitor sends loops, programs none of whose calls ends, one
after the other without a pause. Printed: how long the answers to both kinds of visitors took, how many of the games
that a visitor saw were not its own, and the server's memory after a fifth of the time and at the end.
"""

from __future__ import annotations

import http.client
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

from measuring import machine, memory_of, option_parser
from rich.console import Console
from rich.table import Table

from codea1_agents.scripted.duels import N_DUELS, duel

LOOP = "\n    while True:\n        pass\n"


@contextmanager
def server() -> Iterator[tuple[str, int]]:
    """Yield the address and the process id of a new server for the public."""
    command = [sys.executable, "-c", "from codea1_agents.cli import main; main()", "web", "--public"]
    environment = os.environ | {"CODEA1_SERVE_TOKEN": ""}
    with subprocess.Popen([*command, "--port", "0", "--json"], stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"], process.pid
        process.terminate()


@dataclass
class Visitor:
    """One browser."""

    url: str
    number: int
    sends_loops: bool
    think_s: float
    cookie: str = ""
    taken_s: list[float] = field(default_factory=list)
    """Of each answer."""
    n_not_own: int = 0
    refused: list[str] = field(default_factory=list)

    def play(self, end: float) -> None:
        """Play until the clock shows `end`."""
        started = self.number
        while time.perf_counter() < end:
            started += 1
            number = started % N_DUELS + 1
            start = {"role": "coder"} if self.sends_loops else {"role": "tester", "duel": number}
            game = self.ask("/play/game", start).get("game")
            while game and not game["is_over"] and time.perf_counter() < end:
                time.sleep(0 if self.sends_loops else self.think_s)
                answer = self.ask("/play/try", {"text": self.text(game, number)})
                told = answer.get("game")
                self.n_not_own += bool(told) and told["title"] != game["title"]
                game = told

    def text(self, game: dict[str, Any], number: int) -> str:
        """Return a try: a loop, or tests that do not win, so that each game takes all tries."""
        if self.sends_loops:
            return f"def {game['entry_point']}(*arguments, **named):{LOOP}# {time.perf_counter()}"
        return "\n".join(duel(number).problem.examples)

    def ask(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a POST; {} where it is refused."""
        address = urlsplit(self.url)
        connection = http.client.HTTPConnection(str(address.hostname), address.port, timeout=300)
        headers = {"Content-Type": "application/json", "Origin": self.url, "Cookie": self.cookie}
        begun = time.perf_counter()
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
        self.taken_s.append(time.perf_counter() - begun)
        self.cookie = (response.getheader("set-cookie") or self.cookie).partition(";")[0]
        connection.close()
        if response.status == http.HTTPStatus.OK:
            return answer
        self.refused.append(answer["detail"])
        return {}


def megabytes(pid: int) -> float:
    found = memory_of([pid])
    return 0.0 if found is None else found.unique


def measured(n_visitors: int, n_loops: int, seconds: float, think_s: float) -> dict[str, Any]:
    with server() as (url, pid), ThreadPoolExecutor(n_visitors) as pool:
        visitors = [Visitor(url, n, n < n_loops, think_s) for n in range(n_visitors)]
        begun = time.perf_counter()
        playing = [pool.submit(visitor.play, begun + seconds) for visitor in visitors]
        time.sleep(seconds / 5)
        memory = [megabytes(pid)]
        for each in playing:
            each.result()
        memory.append(megabytes(pid))
    found: dict[str, Any] = {"machine": machine(), "load": os.getloadavg()[0], "visitors": n_visitors, "loops": n_loops}
    for kind in (False, True):
        taken = sorted(s for visitor in visitors if visitor.sends_loops == kind for s in visitor.taken_s)
        p95 = statistics.quantiles(taken, n=20)[-1] if len(taken) > 1 else 0.0
        found["of_loops" if kind else "of_others"] = {
            "answers": len(taken),
            "median_s": statistics.median(taken) if taken else 0.0,
            "p95_s": p95,
            "most_s": max(taken, default=0.0),
        }
    refused = [why for visitor in visitors for why in visitor.refused]
    not_own = sum(visitor.n_not_own for visitor in visitors)
    return found | {"refused": refused, "not_own": not_own, "mb_after_a_fifth": memory[0], "mb": memory[1]}


def main() -> None:
    parser = option_parser(__doc__, json="one JSON object")
    parser.add_argument("--visitors", type=int, default=50, help="at the same time, each a thread")
    parser.add_argument("--loops", type=int, default=10, help="of them send endless loops")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long they play")
    parser.add_argument("--think", type=float, default=2.0, help="seconds before each try of the others")
    options = parser.parse_args()
    found = measured(options.visitors, options.loops, options.seconds, options.think)
    if options.json:
        print(json.dumps(found))
        return
    table = Table("visitors", "answers", "median, s", "p95, s", "longest, s")
    for name in ("of_others", "of_loops"):
        of = found[name]
        table.add_row(name, str(of["answers"]), *(f"{of[each]:.2f}" for each in ("median_s", "p95_s", "most_s")))
    Console().print(table)
    print(f"games of others seen: {found['not_own']}; refused: {len(found['refused'])}; load {found['load']:.1f}")
    print(f"memory: {found['mb_after_a_fifth']:.0f} MB after a fifth of the time, {found['mb']:.0f} MB at the end")


if __name__ == "__main__":
    main()
