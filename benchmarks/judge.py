"""Measures the cost of judging a group and a step of several groups, and that of the official code's protocol.

    python benchmarks/judge.py [--quick] [--groups N] [--rounds N] [--only NAME] [--alone] [--json]
    python benchmarks/judge.py --confirmation N

A group has 8 candidates x 8 suites x 8 asserts, all calls distinct, and 8 replayed cases: 64 + 8 asserts per candidate,
and 64 for the solution, which runs them twice. Groups take 8 problems in turn, so a step of 8 groups has each problem
once. The same group is also judged otherwise (`WAYS`): with the calls in lists; by programs that could see their calls,
so that each comes after the previous answer; with each candidate confirmed; with a process for each call.

All figures are per candidate, from the same rounds in one process. Each round has its own texts, so no cache helps it.
Processor time is that of the whole process tree (see `measuring.py`), split by the clocks of this process's two threads
and of its phases. "Candidates' own code" is the cost of the same module bodies and calls when this process runs them
directly.

For comparison, one script per candidate runs through `subprocess` (see `release_protocol.py`), as many at a time as
there are cores. The reading of replies is counted on neither side; it has the separate row "replies".

`--confirmation N` measures instead what it costs to confirm 8 replayed cases on the solution, in N rounds of each size,
as the ratio of the processor times (of this process and of the programs) of two judges of the same round, of which one
confirms nothing: the median, and a 95 % interval of it.
"""

from __future__ import annotations

import argparse
import contextlib
import inspect
import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from types import CodeType
from typing import Any

import numpy as np
from book import fill
from measuring import Metered, Pauses, Spread, TreeClock, machine, option_parser, threads_time_s
from release_protocol import passed, replayed_asserts, script
from rich.console import Console
from rich.table import Table
from workload import N_CANDIDATES, N_CASES, N_REPLAYED, N_SUITES, Group, groups

from codea1_env import values
from codea1_env.book.store import MistakeBook, StoredEntry
from codea1_env.facts.verdicts import CaseReport, ProblemReport, ValidCase, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.judging.solution_values import Answers
from codea1_env.problems import Problem
from codea1_env.rules.replies import is_readable, read_candidate, read_suite
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import Isolation, Ruleset, preset
from codea1_env.sandbox.local import LocalSandbox

RULES = preset("fixed")
MAX_COMPARED = 8  # groups that the protocol of the official code judges, too
ROWS = {
    "replies": "reading replies (not counted below)",
    "judge": "validation, comparison, reports",
    "scheduler": "the sandbox's scheduler thread",
    "rewards": "rewards",
    "own": "trainer's own share (sum of the three)",
    "pauses": "garbage collection within it",
    "book": "Mistake Book, in memory (not counted below)",
    "zygotes": "sandbox: warm interpreters that fork",
    "programs": "sandbox: processes of solution and candidates",
    "total": "all processes",
    "own_code": "candidates' and solutions' own code",
    "outside": "share of time outside it",
    "wall": "wall clock",
    "release_parent": "release's protocol: parent",
    "release_scripts": "release's protocol: scripts",
    "release_total": "release's protocol: all processes",
    "release_wall": "release's protocol: wall clock",
    "ratio": "ours / release's, processor time",
    "wall_ratio": "ours / release's, wall clock",
}
SUMS = ("own", "total", "outside", "ratio", "wall_ratio")
SECTIONS = ("replies", "book", "outside", "wall", "release_wall")
TREE = TreeClock()


def as_properties(reply: str) -> str:
    """Return a tester's reply without plain calls, so that all asserts run in a harness."""
    lines = (line.rpartition(" == ") for line in reply.split("\n"))
    asserts = (
        f"assert [{left.removeprefix('assert ')}] == [{right}]" if equals and left.startswith("assert ") else right
        for left, equals, right in lines
    )
    return "\n".join(asserts)


@dataclass(frozen=True)
class Way:
    """How a group is judged."""

    rules: Ruleset = RULES
    asserted: Callable[[str], str] = str
    """Applied to a tester's reply."""
    imports: str = ""
    """Before each candidate."""


WAYS = {
    "one group": Way(),
    "one group of property tests": Way(asserted=as_properties),
    "one group, calls one by one": Way(imports="import sys\n"),
    "one group, a process for each call": Way(replace(RULES, isolation=Isolation.CALL)),
}


@dataclass
class Figures:
    """Milliseconds per candidate (shares and ratios: plain numbers) by row, one entry per round."""

    rounds: dict[str, list[float]] = field(default_factory=dict)

    def add(self, figures: dict[str, float]) -> None:
        """Add one round."""
        for row, figure in figures.items():
            self.rounds.setdefault(row, []).append(figure)

    def spreads(self) -> dict[str, Spread]:
        """Return the spreads, in the order of `ROWS`."""
        return {row: Spread.of(self.rounds[row]) for row in ROWS if row in self.rounds}


def main() -> None:
    options = arguments()
    if options.confirmation:
        show_confirmation(options.confirmation)
        return
    sizes = {**dict.fromkeys(WAYS, 1), f"a step of {options.groups} groups": options.groups}
    sizes = {name: size for name, size in sizes.items() if options.only in (None, name)}
    found = {name: Figures() for name in sizes}
    agreement = Agreement()
    with LocalSandbox() as sandbox:
        tier, guarantee = sandbox.tier, sandbox.guarantee.value
        judged(groups(1, -1), sandbox)  # everything that happens only once
        for number in range(options.rounds):
            for name, size in sizes.items():
                drawn = groups(size, number)
                way = WAYS.get(name, Way())
                ours, reports = judged(drawn, sandbox, way)
                found[name].add(ours)
                if way == Way() and not options.alone:
                    found[name].add(compared(drawn[:MAX_COMPARED], reports, ours, agreement))
    about = {**machine(), "tier": tier, "guarantee": guarantee, "rounds": options.rounds, "agreement": str(agreement)}
    if options.json:
        scenarios = {name: {row: s.to_json() for row, s in f.spreads().items()} for name, f in found.items()}
        print(json.dumps({"about": about, "per_candidate_ms": scenarios}, indent=1))
    else:
        show(found, about)


def arguments() -> argparse.Namespace:
    parser = option_parser(__doc__, json="figures for programs")
    parser.add_argument("--quick", action="store_true", help="a step of 2 groups, 3 rounds")
    parser.add_argument("--groups", type=int, help="size of a step; 256 is a whole one (default 8)")
    parser.add_argument("--rounds", type=int, help="default 7")
    parser.add_argument("--only", metavar="NAME", help=f"one row of figures: {', '.join(WAYS)}")
    parser.add_argument("--alone", action="store_true", help="without the release's protocol")
    parser.add_argument("--confirmation", type=int, metavar="N", help="only the cost of confirming replays")
    options = parser.parse_args()
    options.groups = options.groups or (2 if options.quick else 8)
    options.rounds = options.rounds or (3 if options.quick else 7)
    return options


# -- ours --


class Clock:
    """Measures this thread's processor time by phase, in milliseconds."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}

    @contextlib.contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the context to a phase."""
        started = time.thread_time()
        yield
        self.spent[name] = self.spent.get(name, 0.0) + 1000 * (time.thread_time() - started)


def judged(
    drawn: list[Group], sandbox: LocalSandbox, way: Way = WAYS["one group"]
) -> tuple[dict[str, float], list[ProblemReport]]:
    """Read, judge, score and record; return milliseconds per candidate, and the reports."""
    book = filled_book(drawn)
    texts = [
        (
            group,
            tuple(reply.replace("```python\n", f"```python\n{way.imports}") for reply in group.coder_replies),
            tuple(tuple(map(way.asserted, replies)) for replies in group.tester_replies),
        )
        for group in drawn
    ]
    metered, clock, pauses = Metered(sandbox), Clock(), Pauses()
    judge = Judge(metered, way.rules)
    with clock.phase("replies"):
        duels = [read(*text) for text in texts]
    with clock.phase("book"):
        duels = [with_replays(duel, book) for duel in duels]
    paused, tree, scheduler, wall = pauses.total_s, TREE.now(), scheduler_s(), time.perf_counter()
    with clock.phase("judge"):
        reports = judge.judge(duels)
    wall = time.perf_counter() - wall
    scheduler, tree, paused = scheduler_s() - scheduler, TREE.now().since(tree), pauses.total_s - paused
    with clock.phase("rewards"):
        for report in reports:
            for candidate in report.candidates:
                score(candidate, RULES)
    with clock.phase("book"):
        for report in reports:
            book.record(report, RULES.book)
    spent = clock.spent | {
        "scheduler": 1000 * scheduler,
        "pauses": 1000 * paused,
        "zygotes": 1000 * tree.living_s,
        "programs": 1000 * metered.jobs_cpu_s,
        "own_code": 1000 * sum(map(own_code_s, drawn)),
        "wall": 1000 * wall,
    }
    spent["own"] = spent["judge"] + spent["scheduler"] + spent["rewards"]
    spent["total"] = spent["own"] + spent["zygotes"] + spent["programs"]
    figures = {row: milliseconds / (len(drawn) * N_CANDIDATES) for row, milliseconds in spent.items()}
    return figures | {"outside": 1 - figures["own_code"] / figures["total"]}, reports


def scheduler_s() -> float:
    return threads_time_s("codea1-sandbox")


def filled_book(drawn: list[Group]) -> MistakeBook:
    book = MistakeBook()
    stored = (StoredEntry(group.problem.id, entry) for group in drawn for entry in group.book)
    fill(book, stored, at_round=1)
    return book


def read(group: Group, coder_replies: tuple[str, ...], tester_replies: tuple[tuple[str, ...], ...]) -> Duel:
    name, k = group.problem.entry_point, RULES.tests_per_suite
    return Duel(
        group.problem,
        tuple(read_candidate(reply, RULES.reading, entry_point=name) for reply in coder_replies),
        tuple(
            tuple(read_suite(reply, RULES.reading, entry_point=name, tests_per_suite=k) for reply in replies)
            for replies in tester_replies
        ),
    )


def with_replays(duel: Duel, book: MistakeBook) -> Duel:
    entries = book.retrieve(duel.problem.id, RULES.book)
    return Duel(duel.problem, duel.candidates, duel.suites, tuple(entry.to_valid_case() for entry in entries))


def own_code_s(group: Group) -> float:
    """Return the processor seconds of the module bodies and calls of one group, run directly."""
    calls = [[case.call for suite in suites for case in suite] for suites in group.suites]
    replayed = [entry.expression for entry in group.book]
    name = group.problem.entry_point
    once = run_s(group.problem.solution, [call for of_candidate in calls for call in of_candidate], name)
    return 2 * once + sum(
        run_s(program, [*replayed, *own], name) for program, own in zip(group.programs, calls, strict=True)
    )


def run_s(program: str, calls: list[str], name: str) -> float:
    body, codes = compile(program, "<program>", "exec"), [compile(call, "<call>", "eval") for call in calls]
    started = time.thread_time()
    namespace: dict[str, Any] = {"__name__": "program"}
    exec(body, namespace)
    for code in codes:
        attempt(code, {name: namespace[name]})
    return time.thread_time() - started


def attempt(code: CodeType, scope: dict[str, Callable[..., Any]]) -> None:
    with contextlib.suppress(Exception):
        eval(code, scope)


# -- confirmation of replays --


class Believing(Judge):
    """Takes the book at its word."""

    def _may_run(self, case: ValidCase, problem: Problem) -> bool:
        return False

    def _unconfirmed(self, duel: Duel, answers: Answers) -> dict[ValidCase, CaseReport]:
        return {}


def show_confirmation(n_rounds: int) -> None:
    """Print the ratios of rounds that confirm 8 replayed cases to rounds that do not."""
    ratios: dict[str, list[float]] = {}
    with LocalSandbox() as local:
        judged(groups(1, -1), local)
        sandbox = Metered(local)
        for number in range(n_rounds):
            (group,) = groups(1, number)
            whole = with_replays(read(group, group.coder_replies, group.tester_replies), filled_book([group]))
            one = replace(whole, candidates=whole.candidates[:1], suites=((whole.suites[0][0],),))
            for size, duel in (("8 candidates x 8 suites", whole), ("1 candidate x 1 suite", one)):
                cached = Judge(sandbox, RULES)
                cached.judge([Duel(duel.problem, (), (), duel.replayed)])
                judges = {"none": Believing(sandbox, RULES), "fresh": Judge(sandbox, RULES), "cached": cached}
                taken = {}
                for name in list(judges)[:: -1 if number % 2 else 1]:
                    if name == "fresh":
                        inspect.getclosurevars(is_readable).nonlocals["remembered"].cache_clear()
                    started = time.process_time() + sandbox.jobs_cpu_s
                    judges[name].judge([duel])
                    taken[name] = time.process_time() + sandbox.jobs_cpu_s - started
                for name in ("fresh", "cached"):
                    ratios.setdefault(f"{size}, {name}", []).append(taken[name] / taken["none"])
    rng = np.random.default_rng(0)
    for name, found in ratios.items():
        drawn = np.median(rng.choice(found, (2000, len(found))), axis=1)
        low, high = np.quantile(drawn, (0.025, 0.975))
        print(f"{name}: {np.median(found):.3f} ({low:.3f} to {high:.3f}), {len(found)} pairs")


# -- the release's protocol --


class Agreement:
    """Counts the candidates with the same number of passed cases in both protocols."""

    def __init__(self) -> None:
        self.same = self.all = 0

    def count(self, ours: int, theirs: int) -> None:
        """Add one candidate."""
        self.same += ours == theirs
        self.all += 1

    def __str__(self) -> str:
        return f"{self.same} of {self.all} candidates pass the same number of cases in both protocols"


def compared(
    drawn: list[Group], reports: list[ProblemReport], ours: dict[str, float], agreement: Agreement
) -> dict[str, float]:
    """Judge the same cases with scripts; return milliseconds per candidate, and ratios."""
    expected = [[text_of(entry.key.expected) for entry in group.book] for group in drawn]
    before, wall = TREE.now(), time.perf_counter()
    scripts = [
        script(group, m, replayed_asserts(group, texts))
        for group, texts in zip(drawn, expected, strict=True)
        for m in range(N_CANDIDATES)
    ]
    with ThreadPoolExecutor(machine()["cores"]) as pool:
        counts = list(pool.map(passed, scripts))
    wall, spent = time.perf_counter() - wall, TREE.now().since(before)
    candidates = [candidate for report in reports[: len(drawn)] for candidate in report.candidates]
    for candidate, theirs in zip(candidates, counts, strict=True):
        cases = [*candidate.replayed, *(case for suite in candidate.suites for case in suite.cases)]
        agreement.count(sum(case.verdict is Verdict.PASSED for case in cases), theirs)
    n = len(scripts)
    total, each_wall = 1000 * (spent.own_s + spent.ended_s) / n, 1000 * wall / n
    return {
        "release_parent": 1000 * spent.own_s / n,
        "release_scripts": 1000 * spent.ended_s / n,
        "release_total": total,
        "release_wall": each_wall,
        "ratio": ours["total"] / total,
        "wall_ratio": ours["wall"] / each_wall,
    }


def text_of(value: bytes) -> str:
    source = values.to_source(value)
    assert source is not None
    return source.expression


# -- showing --


def show(found: dict[str, Figures], about: dict[str, Any]) -> None:
    console = Console(width=100)
    console.print(
        f"{about['system']}, Python {about['python']}, {about['cores']} cores, load {about['load']}; "
        f"sandbox tier {about['tier']} ({about['guarantee']}); {about['rounds']} rounds"
    )
    for name, figures in found.items():
        n_asserts = N_SUITES * N_CASES + N_REPLAYED
        title = f"\n{name}: ms per candidate with {n_asserts} asserts, including its share of the solution's runs"
        table = Table()
        table.add_column("processor time", no_wrap=True)
        for column in ("min", "median", "max"):
            table.add_column(column, justify="right")
        for row, spread in figures.spreads().items():
            style = "bold" if row in SUMS else None
            table.add_row(ROWS[row], *spread.cells(), style=style, end_section=row in SECTIONS)
        console.print(title, table)
    console.print(str(about["agreement"]))


if __name__ == "__main__":
    main()
