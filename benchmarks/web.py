"""Measures `codea1 web` with many visitors at once, some of whom send endless loops; or reading a large run.

    python benchmarks/web.py [--visitors N] [--loops N] [--seconds S] [--think S] [--json]
    python benchmarks/web.py --read [--json]
    python benchmarks/web.py --greedy SECONDS

The server is a process of its own with its usual settings. With `--read`, headless Chromium opens a training run of
10,000 steps that kept 5,000 episodes, twice, and scrolls to its end. Printed: seconds until the page with its charts is
shown and until the list of episodes is, the longest time between two frames while it scrolls, and the processor time
that the server spent on it.

Otherwise, each visitor begins a game, thinks, and sends tries until it
is over, then begins the next: tests of a duel; or, if the visitor sends loops, programs none of whose calls ends, one
after the other without a pause. Printed: how long the answers to both kinds of visitors took, how many of the games
that a visitor saw were not its own, and the server's memory after a fifth of the time and at the end.

With `--greedy`, 32 visitors ask for as much as the limits allow, each in another way: long programs and suites, values
as long as they may be, a new cookie for each game. One honest visitor plays beside them. Printed: the most memory that
the server has had, and the longest time of the honest visitor's answers.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from urllib.parse import urlsplit

from measuring import machine, memory_of, option_parser
from rich.console import Console
from rich.table import Table

from codea1_agents.scripted.duels import N_DUELS, duel
from codea1_env.facts.judge_version import JUDGE_VERSION

LOOP = "\n    while True:\n        pass\n"
N_GREEDY, _LONG = 32, 120_000  # visitors, characters

CODEA1 = [sys.executable, "-c", "from codea1_agents.cli import main; main()"]
STEPS, EPISODES, PER_SAMPLE = 10_000, 5_000, 20
SCROLLED = """const done = arguments[0];
let last = performance.now(), most = 0;
function step(now) {
    [most, last] = [Math.max(most, now - last), now];
    scrollBy({ top: 200, behavior: "instant" });
    if (innerHeight + scrollY >= document.documentElement.scrollHeight - 1) done(most / 1000);
    else requestAnimationFrame(step);
}
requestAnimationFrame(step);"""


@contextmanager
def server(*arguments: str) -> Iterator[tuple[str, int]]:
    """Yield the address and the process id of a new server."""
    command = [*CODEA1, "web", *arguments, "--port", "0", "--json"]
    environment = os.environ | {"CODEA1_SERVE_TOKEN": ""}
    with subprocess.Popen(command, stdout=subprocess.PIPE, env=environment) as process:
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
    greed: int = -1
    """How much it asks for, see `greedy_try`; -1: it is not greedy."""

    def play(self, end: float) -> None:
        """Play until the clock shows `end`."""
        started = self.number
        while time.perf_counter() < end:
            started += 1
            number = started % N_DUELS + 1
            start = {"role": "coder"} if self.sends_loops else {"role": "tester", "duel": number}
            if self.greed >= 0:
                start = {"role": "coder" if self.greed % 2 else "tester"}
                self.cookie = "" if self.greed % 4 < 2 else self.cookie
            game = self.ask("/play/game", start).get("game")
            while game and not game["is_over"] and time.perf_counter() < end:
                time.sleep(0 if self.sends_loops else self.think_s)
                answer = self.ask("/play/try", {"text": self.text(game, number)})
                told = answer.get("game")
                self.n_not_own += bool(told) and told["title"] != game["title"]
                game = told

    def text(self, game: dict[str, Any], number: int) -> str:
        """Return a try: a loop, or tests that do not win, so that each game takes all tries."""
        if self.greed >= 0:
            return greedy_try(game, self.greed, time.perf_counter())
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


def greedy_try(game: dict[str, Any], greed: int, stamp: float) -> str:
    """Return a try that takes as much of the server as it can, of one of eight kinds."""
    name = game["program"].partition("(")[0].rpartition(" ")[2] if game["role"] == "tester" else ""
    example = game["examples"][0].removeprefix("assert ").rpartition("==")[0]
    tests = (
        "\n".join(f"assert {example} == {n}" for n in range(_LONG // (len(game["examples"][0]) + 8))),
        f"assert {example} == '{'a' * _LONG}'",
        "\n".join(f"assert [{example}, {n}] * 400 == ['{'b' * 4000}']" for n in range(25)),
        f"assert {'(' * 100}{name}{')' * 100} == " + "[" * 100 + "]" * 100 + "#" * _LONG,
    )
    programs = (
        "\n".join(f"x{n} = {n}" for n in range(_LONG // 16)),
        "def f(*arguments): return 'a' * 4000",
        "x = '" + "a" * _LONG + "'",
        "\n".join(f"def f(*arguments): return [[{n}]] * 1000" for n in range(_LONG // 50)),
    )
    if game["role"] == "tester":
        return tests[greed // 4 % 4] + f"\n# {stamp}"
    draft = game["draft"].partition("(")[0].rpartition(" ")[2]
    return programs[greed // 4 % 4].replace("def f(", f"def {draft}(") + f"\n# {stamp}"


def greedy(seconds: float) -> dict[str, Any]:
    """Return the server's peak memory beside greedy visitors, and how an honest one was answered."""
    visitors = [Visitor("", n, False, 0.5 if n == N_GREEDY else 0.0) for n in range(N_GREEDY + 1)]
    with server("--public") as (url, pid), ThreadPoolExecutor(len(visitors)) as pool:
        for n, visitor in enumerate(visitors):
            visitor.url, visitor.greed = url, -1 if n == N_GREEDY else n
        end = time.perf_counter() + seconds
        list(pool.map(lambda visitor: visitor.play(end), visitors))
        peak = Path(f"/proc/{pid}/status").read_text().split("VmHWM:")[1].split()[0]
    *greedy_ones, honest = visitors
    n_greedy = sum(len(visitor.taken_s) for visitor in greedy_ones)
    n_refused = sum(len(visitor.refused) for visitor in greedy_ones)
    figures = {"honest_s": max(honest.taken_s), "honest": len(honest.taken_s), "honest_refused": honest.refused}
    return {"peak_mb": int(peak) / 1024, **figures, "greedy": n_greedy, "greedy_refused": n_refused}


def megabytes(pid: int) -> float:
    found = memory_of([pid])
    return 0.0 if found is None else found.unique


def measured(n_visitors: int, n_loops: int, seconds: float, think_s: float) -> dict[str, Any]:
    with server("--public") as (url, pid), ThreadPoolExecutor(n_visitors) as pool:
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


def write_training(path: Path) -> None:
    """Write a training run that kept episodes: some games, repeated under other numbers."""
    games, draw = path.parent.parent / "games", random.Random(0)
    command = [*CODEA1, "play", "-p", "starter", "--episodes", str(PER_SAMPLE), "-o", str(games)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    names = [f"{role}_{name}" for role in ("coder", "tester") for name in ("reward", "tokens", "spread_share", "kl")]
    names += ["kill_rate", "suite_validity", "valid_candidates", "validity", "adversarial", "book_size", "book_added"]
    path.mkdir()
    (path / "config.toml").write_text(f"run.steps = {STEPS}\n")
    (path / "run.json").write_text(json.dumps({"judge_version": JUDGE_VERSION}))
    with (path / "metrics.jsonl").open("w") as lines:
        for step in range(1, STEPS + 1):
            line = {"step": step, "figures": {name: draw.random() for name in names}, "times": {"judge_s": 1.0}}
            lines.write(json.dumps(line) + "\n")
    n_samples = EPISODES // PER_SAMPLE
    for number in range(n_samples):
        shutil.copytree(games, path / "samples" / f"step-{(number + 1) * STEPS // n_samples:06}")


def read(folder: Path) -> dict[str, Any]:
    """Open the run below a folder in a browser, and scroll."""
    from selenium import webdriver  # noqa: PLC0415  of the extra dev-browser

    write_training(folder / "runs" / "training")
    options = webdriver.ChromeOptions()
    options.binary_location = shutil.which("chromium") or ""  # else Selenium would ask the network for one
    for argument in ("--headless=new", "--no-sandbox", "--window-size=1280,800"):
        options.add_argument(argument)
    found: dict[str, Any] = {"machine": machine(), "load": os.getloadavg()[0], "steps": STEPS, "episodes": EPISODES}
    with server(str(folder / "runs")) as (url, pid):
        spent = processor_s(pid)
        driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
        try:
            for name in ("first", "second"):
                begun = time.perf_counter()
                driver.get(f"{url}/watch/report?run=training")
                shown = time.perf_counter() - begun
                while driver.execute_script("return document.documentElement.dataset.ready") != "yes":
                    time.sleep(0.02)
                listed = time.perf_counter() - begun
                found[name] = {"shown_s": shown, "listed_s": listed, "server_s": processor_s(pid) - spent}
                spent = processor_s(pid)
            found["longest_frame_s"] = driver.execute_async_script(SCROLLED)
        finally:
            driver.quit()
    return found


def processor_s(pid: int) -> float:
    """Return the processor time of a process, without its children's."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = option_parser(__doc__, json="one JSON object")
    parser.add_argument("--visitors", type=int, default=50, help="at the same time, each a thread")
    parser.add_argument("--loops", type=int, default=10, help="of them send endless loops")
    parser.add_argument("--seconds", type=float, default=60.0, help="how long they play")
    parser.add_argument("--think", type=float, default=2.0, help="seconds before each try of the others")
    parser.add_argument("--read", action="store_true", help="open a large run in a browser instead")
    parser.add_argument("--greedy", type=float, help="seconds that greedy visitors play beside an honest one instead")
    options = parser.parse_args()
    if options.greedy:
        print(json.dumps(greedy(options.greedy)))
        return
    if options.read:
        with TemporaryDirectory() as folder:
            (Path(folder) / "runs").mkdir()
            print(json.dumps(read(Path(folder)), indent=None if options.json else 2))
        return
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
