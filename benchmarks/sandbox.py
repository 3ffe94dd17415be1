"""Measures the cost of a program and 8 asserts: our sandbox at each tier, a new interpreter, a fork of the grader.

    python benchmarks/sandbox.py [--quick] [--rounds N] [--only TIER] [--also SANDBOX] [--json]

All contestants run the same programs, in blocks. Each round has new calls and a new random order; ratios are within a
round. A block starts with some programs that are not measured, because a contestant may leave costs behind (after a
fork, this process copies its own memory). Processor time is that of the whole process tree (see `measuring.py`), with
as many programs at a time as there are cores. Latency is that of one program at a time. With our sandbox, this process
compares the expected values; the other contestants have asserts in the program's process (see `graders.py`).

The script also measures the growth of the cost with the number of asserts, the memory of workers, and, if the rows are
available, EvalPlus harnesses with hundreds of calls each. `--also docker` adds another sandbox by name. Its processes
are not visible here, so it has no processor time.
"""

from __future__ import annotations

import argparse
import json
import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from typing import Any, Protocol, TypeVar

from graders import ForkedGrader, has_passed, start_interpreter
from measuring import Memory, Metered, Spread, TreeClock, descendants, machine, memory_of, option_parser
from rich.console import Console
from rich.table import Table
from workload import EVALPLUS_ROWS, problems, right_cases

from codea1_env import values
from codea1_env.errors import CodeA1Error, SandboxError
from codea1_env.judging.golden import golden_jobs
from codea1_env.problems.problem import GoldenHarness, Problem
from codea1_env.problems.sources import load_problems
from codea1_env.sandbox import load_sandbox
from codea1_env.sandbox.interface import Call, Job, JobReport
from codea1_env.sandbox.local import TIERS, LocalSandbox

N_ASSERTS = 8
N_UNMEASURED = 8
"""Unmeasured programs at the start of a block."""
LENGTHS = (1, 8, 40, 72)
"""Numbers of asserts for which the cost of one more is measured."""

TREE = TreeClock()

Process = TypeVar("Process")


@dataclass(frozen=True)
class Task:
    """One program and its expected values, in the forms that contestants need."""

    job: Job
    expected: tuple[bytes, ...]
    program: str
    asserts: tuple[str, ...]

    @property
    def script(self) -> str:
        """The program and its asserts as one text."""
        return "\n".join((self.program, *self.asserts))


class Contestant(Protocol):
    """One way to run tasks."""

    name: str

    def run(self, tasks: Sequence[Task], *, at_a_time: int) -> Iterable[bool]:
        """Run all tasks; yield whether each passes."""

    @property
    def jobs_cpu_s(self) -> float | None:
        """Processor seconds so far that `TREE` does not measure; None if `TREE` measures none of its processes."""


@dataclass
class Ours:
    """A sandbox of this project."""

    name: str
    sandbox: Metered
    is_local: bool = True
    """Whether `TREE` measures its processes."""

    @property
    def jobs_cpu_s(self) -> float | None:
        """The processor time that its jobs report."""
        return self.sandbox.jobs_cpu_s if self.is_local else None

    def run(self, tasks: Sequence[Task], *, at_a_time: int) -> Iterable[bool]:
        """Run all tasks in one batch, or one after the other."""
        step = len(tasks) if at_a_time > 1 else 1
        for start in range(0, len(tasks), step):
            batch = tasks[start : start + step]
            yield from map(is_right, batch, self.sandbox.run([task.job for task in batch]))


class Interpreters:
    """`subprocess python -c`."""

    name = "subprocess python -c"
    jobs_cpu_s: float | None = 0.0

    def run(self, tasks: Sequence[Task], *, at_a_time: int) -> Iterable[bool]:
        """Run `at_a_time` interpreters at a time."""
        return windowed((partial(start_interpreter, task.script) for task in tasks), has_passed, at_a_time)


class Forks:
    """A fork of this process for each task."""

    name = "evalplus-style fork"
    jobs_cpu_s: float | None = 0.0

    def run(self, tasks: Sequence[Task], *, at_a_time: int) -> Iterable[bool]:
        """Run `at_a_time` children at a time."""
        starts = (partial(ForkedGrader, task.program, task.asserts) for task in tasks)
        return windowed(starts, ForkedGrader.has_passed, at_a_time)


def windowed(
    starts: Iterable[Callable[[], Process]], wait: Callable[[Process], bool], at_a_time: int
) -> Iterator[bool]:
    """Keep `at_a_time` processes running; yield the result of each."""
    running: list[Process] = []
    for start in starts:
        if len(running) == at_a_time:
            yield wait(running.pop(0))
        running.append(start())
    yield from map(wait, running)


def is_right(task: Task, report: JobReport) -> bool:
    """Whether a report has the expected values."""
    return report.loaded and all(
        outcome.value is not None and values.equal(expected, outcome.value)
        for expected, outcome in zip(task.expected, report.outcomes, strict=True)
    )


# -- tasks --


def small_tasks(number: int, n_asserts: int, seed: int) -> list[Task]:
    """Return right programs with `n_asserts` asserts each, of all problems in turn."""
    available = problems()
    return [
        small_task(available[index % len(available)], n_asserts, random.Random(f"{seed} {index} {n_asserts}"))
        for index in range(number)
    ]


def small_task(problem: Problem, n_asserts: int, rng: random.Random) -> Task:
    cases = list(islice(right_cases(problem, rng), n_asserts))
    return Task(
        Job(problem.solution, problem.entry_point, tuple(Call(case.call) for case in cases), problem.imports),
        tuple(values.encode(case.value) for case in cases),
        f"{problem.imports}\n{problem.solution}",
        tuple(f"assert {case.call} == {case.value!r}" for case in cases),
    )


def evalplus_tasks(number: int) -> list[Task]:
    """Return tasks from rows spread over the file; none if it is not available."""
    if not (number and EVALPLUS_ROWS.exists()):
        return []
    rows = [problem for problem in load_problems(EVALPLUS_ROWS) if isinstance(problem.golden[0], GoldenHarness)]
    return [heavy_task(problem) for problem in rows[:: max(1, len(rows) // number)][:number]]


def heavy_task(problem: Problem) -> Task:
    (harness,) = problem.golden
    assert isinstance(harness, GoldenHarness)
    (job,) = golden_jobs(problem, problem.solution)
    program = f"{problem.imports}\n{problem.solution}"
    return Task(job, (values.encode(None),), program, (f"{harness.source}\ncheck({problem.entry_point})",))


# -- measuring --


@dataclass
class Block:
    """Measurements of some tasks by one contestant."""

    cpu_ms: float | None
    """Processor time per task."""
    wall_ms: float
    """Wall-clock time per task."""
    n_passed: int


def timed(contestant: Contestant, tasks: Sequence[Task], at_a_time: int) -> Block:
    jobs, tree, wall = contestant.jobs_cpu_s, TREE.now(), time.perf_counter()
    n_passed = sum(contestant.run(tasks, at_a_time=at_a_time))
    wall, spent, jobs_after = time.perf_counter() - wall, TREE.now().since(tree), contestant.jobs_cpu_s
    n = len(tasks)
    cpu_ms = None if jobs is None or jobs_after is None else 1000 * (spent.total_s + jobs_after - jobs) / n
    return Block(cpu_ms, 1000 * wall / n, n_passed)


def latency_ms(contestant: Contestant, task: Task) -> float:
    started = time.perf_counter()
    list(contestant.run([task], at_a_time=1))
    return 1000 * (time.perf_counter() - started)


@dataclass
class Results:
    """All figures of one contestant."""

    cpu_ms: list[float] = field(default_factory=list)
    per_second: list[float] = field(default_factory=list)
    latencies_ms: list[float] = field(default_factory=list)
    lengths: dict[int, list[float]] = field(default_factory=dict)
    heavy_cpu_ms: list[float] = field(default_factory=list)
    memory: Memory | None = None
    n_failed: int = 0

    def add(self, block: Block, n_tasks: int) -> None:
        """Add a block of small tasks."""
        if block.cpu_ms is not None:
            self.cpu_ms.append(block.cpu_ms)
        self.per_second.append(1000 / block.wall_ms)
        self.n_failed += n_tasks - block.n_passed

    @property
    def growth(self) -> list[float]:
        """By round, the cost of one more assert at 72, as a share of the cost of a program with one assert."""
        first, *_, fewer, most = (self.lengths[n] for n in LENGTHS)
        width = LENGTHS[-1] - LENGTHS[-2]
        return [(c - b) / width / a for a, b, c in zip(first, fewer, most, strict=True)]


@dataclass
class Run:
    """The whole benchmark."""

    options: argparse.Namespace
    contestants: list[Contestant] = field(default_factory=list)
    results: dict[str, Results] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def add(self, contestant: Contestant) -> None:
        """Add a contestant."""
        self.contestants.append(contestant)
        self.results[contestant.name] = Results()

    def add_tiers(self) -> None:
        """Add our sandbox at each tier that this machine supports, the strongest first."""
        for tier in (self.options.only,) if self.options.only else TIERS:
            before = set(descendants())
            sandbox = LocalSandbox(tiers=(tier,))
            ours = Ours(f"ours, {tier}", Metered(sandbox))
            try:
                warm_up(ours)
            except SandboxError as error:
                self.notes.append(f"no tier {tier!r} here: {error}")
                sandbox.close()
                continue
            self.add(ours)
            new = set(descendants()) - before
            memory = memory_of(new)
            n_workers = machine()["cores"]
            if memory is not None:
                self.results[ours.name].memory = Memory(memory.proportional / n_workers, memory.unique / n_workers)

    def add_others(self) -> None:
        """Add the sandboxes that the command line names."""
        for name in self.options.also:
            try:
                other = Ours(name, Metered(load_sandbox(name)), is_local=False)
                warm_up(other)
            except CodeA1Error as error:
                self.notes.append(f"no sandbox {name!r} here: {error}")
            else:
                self.add(other)

    def round(self, number: int) -> None:
        """Run the same tasks with all contestants, in the order of this round."""
        at_a_time = machine()["cores"]
        first = small_tasks(N_UNMEASURED, N_ASSERTS, -2 - number)
        tasks = small_tasks(self.options.tasks, N_ASSERTS, number)
        lengths = {n: small_tasks(self.options.tasks, n, number) for n in LENGTHS}
        for contestant in random.Random(number).sample(self.contestants, len(self.contestants)):
            results = self.results[contestant.name]
            list(contestant.run(first, at_a_time=at_a_time))
            results.add(timed(contestant, tasks, at_a_time), len(tasks))
            results.latencies_ms += [latency_ms(contestant, task) for task in tasks[: self.options.alone]]
            if contestant is self.contestants[0]:
                for n, of_length in lengths.items():
                    results.lengths.setdefault(n, []).append(timed(contestant, of_length, at_a_time).cpu_ms or 0.0)

    def heavy_round(self, tasks: Sequence[Task], *, counts: bool) -> None:
        """Run EvalPlus rows with all contestants."""
        for contestant in self.contestants:
            block = timed(contestant, tasks, machine()["cores"])
            if counts and block.cpu_ms is not None:
                self.results[contestant.name].heavy_cpu_ms.append(block.cpu_ms)
            self.results[contestant.name].n_failed += len(tasks) - block.n_passed

    def close(self) -> None:
        """Close our sandboxes."""
        for contestant in self.contestants:
            if isinstance(contestant, Ours):
                contestant.sandbox.close()


def warm_up(contestant: Contestant) -> None:
    """Start all workers of a contestant."""
    for _ in range(3):
        list(contestant.run(small_tasks(4 * machine()["cores"], N_ASSERTS, -1), at_a_time=2))


def main() -> None:
    run = Run(arguments())
    try:
        run.add_tiers()
        if not run.options.only:
            run.add(Interpreters())
            run.add(Forks())
        run.add_others()
        for number in range(run.options.rounds):
            run.round(number)
        heavy = evalplus_tasks(0 if run.options.only else run.options.heavy)
        for number in range(1 + run.options.heavy_rounds if heavy else 0):
            run.heavy_round(heavy, counts=number > 0)  # the first round starts the workers that import numpy
    finally:
        run.close()
    if not (heavy or run.options.only):
        run.notes.append(f"no EvalPlus rows: {EVALPLUS_ROWS.name} is not available")
    failed = {name: results.n_failed for name, results in run.results.items() if results.n_failed}
    run.notes.append(f"right programs that did not pass: {failed or 'none'}")
    if run.options.json:
        print(json.dumps(to_json(run), indent=1))
    else:
        show(run)


def arguments() -> argparse.Namespace:
    parser = option_parser(__doc__, json="figures for programs")
    parser.add_argument("--quick", action="store_true", help="fewer rounds of fewer programs")
    parser.add_argument("--rounds", type=int, help="default 9")
    parser.add_argument("--only", choices=TIERS, help="only this tier")
    parser.add_argument("--also", action="append", default=[], metavar="SANDBOX", help="another sandbox, by name")
    options = parser.parse_args()
    quick = options.quick
    options.rounds = options.rounds or (3 if quick else 9)
    options.tasks, options.alone = (16, 8) if quick else (64, 16)
    options.heavy, options.heavy_rounds = (4, 1) if quick else (12, 3)
    return options


# -- showing --


def ratios(results: Results, base: Results) -> list[float]:
    """Return the ratios of processor time to that of the base, by round."""
    return [a / b for a, b in zip(results.cpu_ms, base.cpu_ms, strict=False)]


def figures(run: Run) -> Iterator[tuple[str, str, Spread]]:
    """Yield the name of a contestant, the name of a figure, and its values."""
    base = run.results[run.contestants[0].name]
    weakest = next((results for name, results in reversed(run.results.items()) if name.startswith("ours, ")), base)
    for name, results in run.results.items():
        measured = {
            "cpu_ms": results.cpu_ms,
            "cpu_ratio_to_first": ratios(results, base),
            "cpu_ratio_to_weakest_tier": ratios(results, weakest) if name.startswith("ours, ") else [],
            "per_second": results.per_second,
            "heavy_cpu_ms": results.heavy_cpu_ms,
        }
        yield from ((name, key, Spread.of(values)) for key, values in measured.items() if values)
    yield from ((run.contestants[0].name, f"cpu_ms_{n}_asserts", Spread.of(cpu)) for n, cpu in base.lengths.items())
    yield run.contestants[0].name, "72nd_assert_to_first", Spread.of(base.growth)


def to_json(run: Run) -> dict[str, Any]:
    found: dict[str, Any] = {name: {} for name in run.results}
    for name, key, spread in figures(run):
        found[name][key] = spread.to_json()
    for name, results in run.results.items():
        found[name]["latency_ms"] = {"p50": quantile(results, 0.5), "p99": quantile(results, 0.99)}
        if results.memory is not None:
            found[name]["memory_mb"] = {"pss": results.memory.proportional, "uss": results.memory.unique}
    about = {**machine(), "rounds": run.options.rounds, "programs_per_round": run.options.tasks}
    return {"about": about, "contestants": found, "notes": run.notes}


def quantile(results: Results, share: float) -> float:
    ordered = sorted(results.latencies_ms)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def show(run: Run) -> None:
    console = Console(width=130)
    about = machine()
    console.print(
        f"{about['system']}, Python {about['python']}, {about['cores']} cores, load {about['load']}; "
        f"{run.options.rounds} rounds of {run.options.tasks} programs with {N_ASSERTS} asserts each"
    )
    known = {(name, key): spread for name, key, spread in figures(run)}
    first = run.contestants[0].name
    console.print("\nprocessor time of a program and 8 asserts", cost_table(run, known))
    console.print(
        "\nprograms per second on all cores; latency of one at a time, ms; memory per worker, MB",
        speed_table(run, known),
    )
    console.print(f"\n{first}: processor time in ms by the number of asserts", growth_table(run, known))
    if any(results.heavy_cpu_ms for results in run.results.values()):
        title = f"\n{run.options.heavy} EvalPlus rows, hundreds of calls each: processor time of one in ms"
        console.print(title, heavy_table(run, known))
    for note in run.notes:
        console.print(note)


Known = dict[tuple[str, str], Spread]


def cost_table(run: Run, known: Known) -> Table:
    table = unnamed()
    for heading in (
        "ms: min",
        "median",
        "max",
        "/ first row: min",
        "median",
        "max",
        "/ weakest tier: min",
        "median",
        "max",
    ):
        table.add_column(heading, justify="right")
    for name in run.results:
        spreads = [known.get((name, key)) for key in ("cpu_ms", "cpu_ratio_to_first", "cpu_ratio_to_weakest_tier")]
        table.add_row(name, *(cell for spread in spreads for cell in (spread.cells() if spread else ("", "", ""))))
    return table


def speed_table(run: Run, known: Known) -> Table:
    table = unnamed()
    for heading in ("per second: min", "median", "max", "latency: p50", "p99", "PSS", "USS"):
        table.add_column(heading, justify="right")
    for name, results in run.results.items():
        memory = results.memory
        table.add_row(
            name,
            *known[name, "per_second"].cells(0),
            f"{quantile(results, 0.5):.1f}",
            f"{quantile(results, 0.99):.1f}",
            *(("", "") if memory is None else (f"{memory.proportional:.1f}", f"{memory.unique:.1f}")),
        )
    return table


def growth_table(run: Run, known: Known) -> Table:
    name = run.contestants[0].name
    table = unnamed()
    for column in ("min", "median", "max"):
        table.add_column(column, justify="right")
    for n in LENGTHS:
        table.add_row(f"{n} assert{'s' * (n > 1)}", *known[name, f"cpu_ms_{n}_asserts"].cells(3))
    share = known[name, "72nd_assert_to_first"]
    table.add_row("the 72nd assert / a program with one assert", *share.cells(4), style="bold")
    return table


def heavy_table(run: Run, known: Known) -> Table:
    table = unnamed()
    for column in ("min", "median", "max"):
        table.add_column(column, justify="right")
    for name in run.results:
        if (name, "heavy_cpu_ms") in known:
            table.add_row(name, *known[name, "heavy_cpu_ms"].cells(1))
    return table


def unnamed() -> Table:
    table = Table()
    table.add_column("", no_wrap=True)
    return table


if __name__ == "__main__":
    main()
