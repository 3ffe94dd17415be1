"""Checks whether verdicts depend on other load: judges the same programs on an idle machine and with busy processes.

    python benchmarks/verdict_stability.py [--mutants N] [--neighbours N] [--times N] [--json]

The harnesses of all available EvalPlus rows judge the solutions and random mutants of them, first without and then with
busy processes (`--neighbours`), each of which keeps one core busy. All runs must give a program the same verdicts. If
they do not, the exit status is 1, with a list. If there are no rows, it is 0, with the reason.

The processor time of a program varies, so a program near a limit may get different verdicts. The list states its
processor time in each run.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from measuring import machine, option_parser
from workload import EVALPLUS_ROWS

from codea1_agents.scripted.mutation import mutants
from codea1_env.facts.answers import Comparison
from codea1_env.facts.verdicts import Verdict
from codea1_env.judging.golden import GOLDEN_LIMITS, ExpectedValues, golden_jobs, golden_results
from codea1_env.problems.problem import Problem
from codea1_env.problems.sources import load_problems
from codea1_env.sandbox.interface import Job, Sandbox
from codea1_env.sandbox.local import LocalSandbox

MUTANT_LIMITS = replace(GOLDEN_LIMITS, cpu_s=2.0, wall_s=20.0)
"""Shorter limits, because some mutants never end."""
_SPIN = "while True: pass"
_BATCH = 16


@dataclass(frozen=True)
class Subject:
    """One program and the problem whose tests judge it."""

    name: str
    problem: Problem
    program: str
    is_mutant: bool

    @property
    def jobs(self) -> tuple[Job, ...]:
        """The jobs that judge the program."""
        return golden_jobs(self.problem, self.program, MUTANT_LIMITS if self.is_mutant else GOLDEN_LIMITS)


@dataclass(frozen=True)
class Judged:
    """The verdicts of one run about one program."""

    verdicts: tuple[Verdict, ...]
    """One per golden test."""
    cpu_s: float


@dataclass(frozen=True)
class Difference:
    """A program whose verdicts differ between runs."""

    name: str
    verdicts: list[list[str]]
    """(runs, tests)"""
    cpu_s: list[float]
    """(runs,) processor seconds of all its processes."""


def subjects(rows: Sequence[Problem], n_mutants: int, seed: int = 0) -> list[Subject]:
    """Return all solutions, and `n_mutants` random mutants of all of them together; all mutants if there are fewer."""
    found = [Subject(row.id, row, row.solution, False) for row in rows]
    every = [
        Subject(f"{row.id}, mutant {number}", row, mutant.program, True)
        for row in rows
        for number, mutant in enumerate(mutants(row.solution, entry_point=row.entry_point))
    ]
    drawn = np.random.default_rng(seed).permutation(len(every))[:n_mutants]
    return [*found, *(every[position] for position in sorted(drawn))]


def judged(programs: Sequence[Subject], sandbox: Sandbox) -> list[Judged]:
    """Judge every program once, in batches."""
    found = []
    for start in range(0, len(programs), _BATCH):
        batch = programs[start : start + _BATCH]
        reports = iter(sandbox.run([job for subject in batch for job in subject.jobs]))
        expected = ExpectedValues(sandbox).of(subject.problem for subject in batch)
        for subject in batch:
            own = [next(reports) for _ in subject.jobs]
            results = golden_results(subject.problem, own, expected, Comparison())
            verdicts = tuple(result.verdict for result in results)
            found.append(Judged(verdicts, sum(report.cpu_s for report in own)))
    return found


@contextlib.contextmanager
def busy_processes(number: int) -> Iterator[None]:
    """Keep `number` cores busy in the context."""
    started = [subprocess.Popen([sys.executable, "-S", "-c", _SPIN]) for _ in range(number)]
    try:
        yield
    finally:
        for each in started:
            each.kill()
            each.wait()


def differences(programs: Sequence[Subject], runs: Sequence[Sequence[Judged]]) -> list[Difference]:
    """Return the programs whose verdicts differ between runs."""
    by_subject = list(zip(*runs, strict=True))
    return [
        Difference(
            subject.name,
            [[verdict.value for verdict in run.verdicts] for run in found],
            [round(run.cpu_s, 3) for run in found],
        )
        for subject, found in zip(programs, by_subject, strict=True)
        if len({run.verdicts for run in found}) > 1
    ]


def stability(
    rows: Sequence[Problem], *, n_mutants: int, n_neighbours: int, times: int
) -> tuple[list[Difference], dict[str, Any]]:
    """Judge all programs `times` times idle and with busy processes; return the differences, and figures."""
    programs = subjects(rows, n_mutants)
    runs: list[list[Judged]] = []
    seconds: list[float] = []
    with LocalSandbox() as sandbox:
        tier = sandbox.tier
        for number in (0, n_neighbours):
            with busy_processes(number):
                for _ in range(times):
                    started = time.monotonic()
                    runs.append(judged(programs, sandbox))
                    seconds.append(round(time.monotonic() - started, 1))
                    print(f"{len(programs)} programs with {number} busy processes: {seconds[-1]:g} s", file=sys.stderr)
    about = {
        **machine(),
        "tier": tier,
        "rows": len(rows),
        "mutants": len(programs) - len(rows),
        "runs_idle": times,
        "runs_beside_neighbours": times,
        "neighbours": n_neighbours,
        "verdicts": dict(Counter(verdict.value for found in runs[0] for verdict in found.verdicts)),
        "wall_s": seconds,
    }
    return differences(programs, runs), about


def main() -> None:
    options = arguments()
    if not EVALPLUS_ROWS.exists():
        print(f"nothing judged: {EVALPLUS_ROWS.name} is not available")
        return
    rows = list(load_problems(EVALPLUS_ROWS))
    found, about = stability(rows, n_mutants=options.mutants, n_neighbours=options.neighbours, times=options.times)
    if options.json:
        print(json.dumps({"about": about, "differences": [asdict(each) for each in found]}, indent=1))
    else:
        print("\n".join(f"{key}: {value}" for key, value in about.items()))
        for each in found:
            print(f"{each.name}: {each.verdicts}, processor seconds {each.cpu_s}")
        print("all verdicts are identical" if not found else f"the verdicts of {len(found)} programs differ")
    sys.exit(bool(found))


def arguments() -> argparse.Namespace:
    parser = option_parser(__doc__, json="figures for programs")
    parser.add_argument("--mutants", type=int, default=500, help="default 500")
    parser.add_argument("--neighbours", type=int, default=8, help="busy processes (default 8)")
    parser.add_argument(
        "--times", type=int, default=3, help="runs without and runs with busy processes, each (default 3)"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
