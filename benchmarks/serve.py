"""Measures `codea1 serve` under load: what clients get, and what the server's memory does.

    python benchmarks/serve.py [--clients N] [--requests N] [--json]

The server is a process of its own. Three parts:

- *load*: each client sends `POST /judge` about the starter problems over one connection, one request after the other,
  with right and with wrong programs, of which no two have the same text. Printed: how often each status came, requests
  per second, the server's memory after a fifth and after all of them, and how many verdicts are not the library's.
- *refusals*: the same with few places, so that many requests are refused.
- *half-sent requests*: 300 connections that send half a request, and an honest client's time with and without them.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import socket
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from measuring import machine, memory_of
from rich.console import Console
from rich.table import Table

from codea1_env.problems import ProblemSet, load_problems
from codea1_env.rounds.referee import Referee

N_HALF_SENT = 300
_PROBES = 200
_N_VARIANTS = 4


@contextmanager
def server(*options: str) -> Iterator[tuple[str, int]]:
    """Yield the address and the process id of a new server of the starter problems."""
    command = [sys.executable, "-c", "from codea1_agents.cli import main; main()", "serve", "-p", "starter"]
    environment = os.environ | {"CODEA1_SERVE_TOKEN": ""}
    with subprocess.Popen(
        [*command, "--port", "0", "--json", *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment,
    ) as process:
        assert process.stdout is not None
        yield json.loads(process.stdout.readline())["url"], process.pid
        process.terminate()


def bodies(problems: ProblemSet) -> list[dict[str, Any]]:
    """Return requests about all problems: right and wrong programs, with tests of different numbers."""
    found = []
    for problem in problems:
        programs = [problem.solution, *(wrong.program for wrong in problem.wrong_programs)][:_N_VARIANTS]
        for n, program in enumerate(programs):
            suite = "\n".join(problem.examples[: n + 1])
            found.append({"problem_ids": [problem.id], "programs": [program], "suites": [suite]})
    return found


def expected(requests: Sequence[dict[str, Any]]) -> list[list[Any]]:
    """Return what the library says about each request."""
    referee = Referee("starter")
    columns = [[each[name][0] for each in requests] for name in ("problem_ids", "programs", "suites")]
    return [_told(scored.record()) for scored in referee.rewards(*columns)]


def _told(scored: dict[str, Any]) -> list[Any]:
    return [scored["coder"], scored["tester"], scored["parts"]]


def client(url: str, requests: Sequence[dict[str, Any]], rights: Sequence[Any], numbers: Sequence[int]) -> Counter[str]:
    """Send some requests over one connection; return how often each status came, and `wrong` verdicts."""
    found: Counter[str] = Counter()
    connection = http.client.HTTPConnection(str(urlsplit(url).hostname), urlsplit(url).port, timeout=120)
    for number in numbers:
        place = number % len(requests)
        body = requests[place] | {"programs": [f"{requests[place]['programs'][0]}\n# {number}\n"]}
        connection.request("POST", "/judge", json.dumps(body), {"Content-Type": "application/json"})
        response = connection.getresponse()
        answer = json.loads(response.read())
        found[str(response.status)] += 1
        if response.status == http.HTTPStatus.OK:
            found["wrong"] += _told(answer["items"][0]) != rights[place]
    connection.close()
    return found


def load(url: str, pid: int, n_clients: int, n_requests: int) -> dict[str, Any]:
    """Return the figures of one load."""
    requests = bodies(load_problems("starter"))
    rights = expected(requests)
    found: Counter[str] = Counter()
    memory, started, first = [], time.perf_counter(), n_requests // 5
    with ThreadPoolExecutor(n_clients) as pool:
        for start, end in ((0, first), (first, n_requests)):
            numbers = [range(start + n, end, n_clients) for n in range(n_clients)]
            found.update(sum(pool.map(lambda each: client(url, requests, rights, each), numbers), Counter()))
            of_server = memory_of([pid])
            memory.append(0.0 if of_server is None else of_server.unique)
    wall_s = time.perf_counter() - started
    return {"statuses": dict(found), "per_s": n_requests / wall_s, "mb_after_a_fifth": memory[0], "mb": memory[1]}


def probe_s(url: str) -> float:
    """Return the median seconds of a small honest request on a connection of its own."""
    request = bodies(load_problems("starter"))[0]
    times = []
    for _ in range(_PROBES):
        started = time.perf_counter()
        assert client(url, [request], [None], [0])["200"] == 1
        times.append(time.perf_counter() - started)
    return statistics.median(times)


def half_sent(url: str) -> dict[str, float]:
    """Return an honest client's seconds without and with connections that send half a request."""
    address = (str(urlsplit(url).hostname), urlsplit(url).port or 0)
    head = b"POST /judge HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n{"
    before = probe_s(url)
    connections = [socket.create_connection(address) for _ in range(N_HALF_SENT)]
    for n, connection in enumerate(connections):
        connection.sendall(head if n % 2 else head[:40])
    during = probe_s(url)
    for connection in connections:
        connection.close()
    return {"without_ms": before * 1000, "with_ms": during * 1000}


def measured(n_clients: int, n_requests: int) -> dict[str, Any]:
    found: dict[str, Any] = {"machine": machine(), "clients": n_clients, "requests": n_requests}
    with server() as (url, pid):
        found["load"] = load(url, pid, n_clients, n_requests)
        found["half_sent"] = half_sent(url)
    with server("--running", "2", "--waiting", "4") as (url, pid):
        found["refusals"] = load(url, pid, n_clients, n_requests // 5)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clients", type=int, default=64, help="clients at the same time, each a process")
    parser.add_argument("--requests", type=int, default=10_000, help="requests in all")
    parser.add_argument("--json", action="store_true", help="one JSON object")
    options = parser.parse_args()
    found = measured(options.clients, options.requests)
    if options.json:
        print(json.dumps(found))
        return
    table = Table("", "200", "429", "others", "wrong verdicts", "per second", "MB after a fifth", "MB")
    for name in ("load", "refusals"):
        of, counts = found[name], found[name]["statuses"]
        others = sum(count for status, count in counts.items() if status not in ("200", "429", "wrong"))
        cells = [counts.get("200", 0), counts.get("429", 0), others, counts.get("wrong", 0)]
        figures = [f"{of[each]:.0f}" for each in ("per_s", "mb_after_a_fifth", "mb")]
        table.add_row(name, *map(str, cells), *figures)
    Console().print(table)
    times = found["half_sent"]
    print(f"honest client: {times['without_ms']:.1f} ms; beside {N_HALF_SENT} half-sent: {times['with_ms']:.1f} ms")


if __name__ == "__main__":
    main()
