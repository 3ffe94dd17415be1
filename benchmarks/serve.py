"""Measures `codea1 serve` under load: what clients get, and what the server's memory does.

    python benchmarks/serve.py [--clients N] [--requests N] [--json]

The server is a process of its own. Four parts:

- *load*: each client sends `POST /judge` about the starter problems over one connection, one request after the other,
  with right and with wrong programs, of which no two have the same text. Printed: how often each status came, requests
  per second, the server's memory after a fifth and after all of them, and how many verdicts are not the library's.
- *refusals*: the same with few places, so that many requests are refused.
- *half-sent requests*: 300 connections that send half a request, and an honest client's time with and without them.
- *greedy clients*: each asks again and again for as much as the limits allow, in values, jobs, calls or the body.
  Printed: the most memory that the server has had, and the longest time of an honest client.

`--greedy SECONDS` measures the last part only.
"""

from __future__ import annotations

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
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from measuring import machine, memory_of, option_parser
from rich.console import Console
from rich.table import Table

from codea1_env.problems import ProblemSet, load_problems
from codea1_env.rounds.referee import Referee

N_HALF_SENT = 300
_N_GREEDY = 32
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


_MOST = {"value_bytes": 32 << 20, "memory_mb": 1024, "cpu_s": 20, "wall_s": 20}
_ID, _ECHO = "starter/squeeze_runs", "def squeeze_runs(text, limit): return text"


def greedy_requests() -> list[tuple[str, Any]]:
    """Return paths and bodies of requests for as much as the limits allow, each in another way."""
    many = {"problem_ids": [_ID] * 1000, "programs": [f"{_ECHO}\n#{n}" for n in range(1000)]}
    job = {"program": _ECHO, "entry_point": "squeeze_runs", "limits": _MOST}
    case = {"prediction": None, "imports": [], "direct": True, "line": 0, "expected": f'"{"a" * 3500}"', "actual": ""}
    cases = [case | {"expression": f"squeeze_runs('a', {n})"} for n in range(4000)]
    suites = ["\n".join(f"assert squeeze_runs('a', {1000 * k + n}) == ''" for n in range(300)) for k in range(1000)]
    values = "\n".join(f"assert squeeze_runs('a' * {3_000_000 + n}, 5000000) == ''" for n in range(8))
    records = "[candidate('a' * 1000000 + str(i), 1) for i in range(100)] and 0"
    return [
        ("/jobs", [job | {"calls": [[f"squeeze_runs('a' * {33_000_000 + n}, 1)"] for n in range(20)]}]),
        (
            "/jobs",
            [job | {"program": f"{_ECHO}\n#{n}", "calls": [["squeeze_runs('a' * 10**6, 1)"]]} for n in range(500)],
        ),
        ("/jobs", [job | {"program": "#" + "\u00e9" * 7_000_000}]),
        ("/jobs", [job | {"calls": [["squeeze_runs('a', 1)"]] * 60_000}] * 2),
        ("/jobs", [job | {"harness": {"source": ""}, "calls": [[records, [], "harness"]] * 50}]),
        ("/judge", many | {"suites": [values] * 1000, "limits": _MOST}),
        ("/judge", many | {"suites": suites, "rules": {"name": "fixed", "tests_per_suite": 10_000}}),
        (
            "/judge",
            many | {"replayed": {_ID: [each | {"prediction_right": None, "verdict": "passed"} for each in cases]}},
        ),
    ]


def greedy(n_clients: int, seconds: float) -> dict[str, Any]:
    """Return the server's peak memory beside greedy clients, and how an honest client was answered."""
    bodies = [(path, json.dumps(body, ensure_ascii=False).encode()) for path, body in greedy_requests()]
    honest = [("/judge", json.dumps({"problem_ids": [_ID], "programs": [_ECHO]}).encode())]
    found: Counter[str] = Counter()
    times: list[float] = []
    with server() as (url, pid):
        end = time.monotonic() + seconds

        def client(requests: Sequence[tuple[str, bytes]], n: int) -> None:
            while time.monotonic() < end:
                connection = http.client.HTTPConnection(str(urlsplit(url).hostname), urlsplit(url).port, timeout=300)
                started = time.monotonic()
                try:
                    connection.request("POST", *requests[n % len(requests)], {"Content-Type": "application/json"})
                    response = connection.getresponse()
                    while response.read(1 << 20):
                        pass
                    found[f"{'honest' if requests is honest else 'greedy'} {response.status}"] += 1
                except OSError:
                    found["cut off"] += 1  # refused before its body was read
                connection.close()
                if requests is honest:
                    times.append(time.monotonic() - started)

        with ThreadPoolExecutor(n_clients + 1) as pool:
            list(pool.map(client, [bodies] * n_clients + [honest], range(n_clients + 1)))
        peak = Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]
    return {"peak_mb": int(peak) / 1024, "honest_s": max(times), "statuses": dict(found)}


def measured(n_clients: int, n_requests: int) -> dict[str, Any]:
    found: dict[str, Any] = {"machine": machine(), "clients": n_clients, "requests": n_requests}
    with server() as (url, pid):
        found["load"] = load(url, pid, n_clients, n_requests)
        found["half_sent"] = half_sent(url)
    with server("--running", "2", "--waiting", "4") as (url, pid):
        found["refusals"] = load(url, pid, n_clients, n_requests // 5)
    found["greedy"] = greedy(_N_GREEDY, 30)
    return found


def main() -> None:
    parser = option_parser(__doc__, json="one JSON object")
    parser.add_argument("--clients", type=int, default=64, help="clients at the same time, each a process")
    parser.add_argument("--requests", type=int, default=10_000, help="requests in all")
    parser.add_argument("--greedy", type=float, help="seconds of the greedy clients; then the other parts are left out")
    options = parser.parse_args()
    if options.greedy:
        print(json.dumps(greedy(_N_GREEDY, options.greedy)))
        return
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
    seconds, mb = (found["greedy"][name] for name in ("honest_s", "peak_mb"))
    print(f"beside {_N_GREEDY} greedy ones: at most {seconds:.1f} s; server: at most {mb:.0f} MB")


if __name__ == "__main__":
    main()
