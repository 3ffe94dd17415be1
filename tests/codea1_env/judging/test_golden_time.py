"""A program that hangs costs little where the solution is quick, and gets time where the solution needs it."""

from __future__ import annotations

import pytest

from codea1_env.facts.answers import Comparison
from codea1_env.judging.golden import GOLDEN_LIMITS, SHORT, GoldenRun, GoldenTests, golden_jobs, run_golden
from codea1_env.problems import GoldenCase, Problem
from codea1_env.problems.problem import GoldenHarness
from codea1_env.sandbox.local import LocalSandbox
from tests.support.sandboxes import Counting

HEAD = "import time\ndef burn(s):\n  end = time.process_time() + s\n  while time.process_time() < end: pass\n"


def problem(body: str, n: int = 4, *, in_harness: bool = False) -> Problem:
    check = "def check(candidate):\n" + "".join(f"  assert candidate({x}) == {x}\n" for x in range(n))
    cases = tuple(GoldenCase(f"f({x})", str(x)) for x in range(n))
    solution = f"{HEAD}def f(x):\n  {body}\n  return x\n"
    golden = (GoldenHarness(check),) if in_harness else cases
    return Problem(id="p", statement="f", entry_point="f", solution=solution, golden=golden)


def passed(sandbox: LocalSandbox, of: Problem, body: str) -> bool | None:
    (finding,) = run_golden([(of, f"{HEAD}def f(x):\n  {body}\n  return x\n")], sandbox, Comparison())
    return finding.passed


@pytest.mark.parametrize("body", ["while True: pass", "time.sleep(99)"])
@pytest.mark.parametrize("in_harness", [False, True])
def test_a_program_that_hangs_is_not_asked_for_long(sandbox: LocalSandbox, body: str, in_harness: bool) -> None:
    quick, counting = problem("pass", 20, in_harness=in_harness), Counting(sandbox)
    jobs = golden_jobs(quick, f"import time\ndef f(x):\n  {body}\n", SHORT)
    run = GoldenRun(quick, jobs, tuple(sandbox.run(jobs)))
    assert run.reports[0].cpu_s < 2 * SHORT.cpu_s + 1
    known = GoldenTests(counting, Comparison())
    for _ in range(2):
        assert known.given_time([run, run]) == [run, run]
    assert [job.program for job in counting.jobs] == [quick.solution]  # once; the program does not run again


def test_nothing_more_runs_for_programs_in_time(sandbox: LocalSandbox) -> None:
    quick, counting = problem("pass"), Counting(sandbox)
    jobs = golden_jobs(quick, "def f(x): return 1 / 0", SHORT)
    assert GoldenTests(counting, Comparison()).given_time([GoldenRun(quick, jobs, tuple(sandbox.run(jobs)))])
    assert counting.jobs == []


@pytest.mark.slow
@pytest.mark.parametrize("in_harness", [False, True])
def test_a_program_may_take_as_long_as_follows_from_a_slow_solution(sandbox: LocalSandbox, in_harness: bool) -> None:
    slow = problem("burn(0.4 if x == 1 else 0)", in_harness=in_harness)
    assert passed(sandbox, slow, "burn(2.5 if x == 1 else 0)") is True
    assert passed(sandbox, problem("pass", in_harness=in_harness), "burn(2.5 if x == 1 else 0)") is False


@pytest.mark.slow
def test_a_program_may_sleep_where_the_solution_does(sandbox: LocalSandbox) -> None:
    assert passed(sandbox, problem("time.sleep(3.5 if x == 1 else 0)", 2), "time.sleep(4 if x == 1 else 0)") is True
    assert SHORT.wall_s < 3.5 < GOLDEN_LIMITS.wall_s
