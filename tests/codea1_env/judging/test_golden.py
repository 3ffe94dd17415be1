from __future__ import annotations

from dataclasses import replace

import pytest

from codea1_env.facts.answers import Comparison
from codea1_env.facts.submissions import Candidate
from codea1_env.facts.verdicts import Outcome, OutcomeKind, Verdict
from codea1_env.judging.golden import (
    GOLDEN_LIMITS,
    SHORT,
    ExpectedValues,
    GoldenResult,
    GoldenRun,
    GoldenTests,
    golden_jobs,
    golden_pass_rate,
    golden_reports,
    golden_results,
    run_golden,
)
from codea1_env.observations import coder_feedback
from codea1_env.problems import GoldenCase, GoldenHarness, GoldenTest, Problem
from codea1_env.sandbox.interface import LOADED_TOO_OFTEN, JobReport, Limits, Place, Sandbox
from tests.support.sandboxes import Counting

DOUBLE = "def f(x):\n    return 2 * x\n"
FAILING = GoldenHarness("def check(candidate):\n    assert False")
HARNESS = GoldenHarness("def check(candidate):\n    assert candidate(3) == 6 == f(3)\n")


def problem(*golden: GoldenTest, imports: str = "") -> Problem:
    return Problem("toy", "Double it.", "f", DOUBLE, golden, imports=imports)


def results(
    sandbox: Sandbox,
    given: Problem,
    program: str = DOUBLE,
    comparison: Comparison | None = None,
    limits: Limits = GOLDEN_LIMITS,
) -> tuple[GoldenResult, ...]:
    reports = sandbox.run(golden_jobs(given, program, limits))
    return golden_results(given, reports, ExpectedValues(sandbox, limits).of([given]), comparison or Comparison())


def verdicts(sandbox: Sandbox, given: Problem, program: str = DOUBLE) -> list[Verdict]:
    return [result.verdict for result in results(sandbox, given, program)]


def test_value_cases_share_one_job_and_each_harness_has_its_own() -> None:
    jobs = golden_jobs(problem(GoldenCase("f(1)", "2"), HARNESS, GoldenCase("f(2)", "4"), HARNESS), DOUBLE)
    assert [len(job.calls) for job in jobs] == [2, 1, 1]


def test_no_expected_value_reaches_the_programs_process() -> None:
    given = problem(GoldenCase("f(1)", "2"), GoldenCase("f(2)", "2 + 2"), GoldenCase("f(f(1))", "4"), HARNESS)
    calls = [call.expression for job in golden_jobs(given, DOUBLE) for call in job.calls]
    assert "2 + 2" not in calls
    in_program = [call for job in golden_jobs(given, DOUBLE) for call in job.calls if call.place is Place.PROGRAM]
    assert [call.expression for call in in_program] == ["f(1)", "f(2)"]


def test_results_stand_in_the_order_of_the_tests(sandbox: Sandbox) -> None:
    given = problem(HARNESS, GoldenCase("f(1)", "3"), FAILING, GoldenCase("f(1)", "2"))
    assert verdicts(sandbox, given) == [Verdict.PASSED, Verdict.WRONG_ANSWER, Verdict.WRONG_ANSWER, Verdict.PASSED]


@pytest.mark.parametrize(
    ("case", "program"),
    [
        (GoldenCase("f(1)", "2"), DOUBLE),
        (GoldenCase("f(1)", "1 + 1"), DOUBLE),
        (GoldenCase("f(x=[1])", "[1, 1]"), DOUBLE),
        (GoldenCase("sorted(f([2, 1]))", "[1, 1, 2, 2]"), DOUBLE),
        (GoldenCase("f(Fraction(1, 4))", "Fraction(1, 2)", ("from fractions import Fraction",)), DOUBLE),
        (GoldenCase("f(1)", "float('inf')"), "def f(x):\n    return float('inf')"),
        (GoldenCase("f(1)", "{1, 2}"), "def f(x):\n    return {2, 1}"),
    ],
)
def test_a_case_passes_where_the_values_are_equal(sandbox: Sandbox, case: GoldenCase, program: str) -> None:
    assert verdicts(sandbox, problem(case), program) == [Verdict.PASSED]
    assert verdicts(sandbox, problem(case), "def f(x):\n    return 'wrong'") == [Verdict.WRONG_ANSWER]


def test_the_comparison_decides_how_near_floats_must_be(sandbox: Sandbox) -> None:
    given = problem(GoldenCase("f(0.3)", "0.6000000001"))
    assert [result.passed for result in results(sandbox, given)] == [False]
    assert [result.passed for result in results(sandbox, given, comparison=Comparison(abs_tol=1e-6))] == [True]


@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        ("def f(x):\n    raise ValueError('no')", Verdict.RUNTIME_ERROR),
        ("def f(x):\n    while True: pass", Verdict.TIME_LIMIT),
        ("def f(x):\n    return object()", Verdict.WRONG_ANSWER),
        ("def f(x):\n    return 'x' * 10**6", Verdict.OUTPUT_LIMIT),
        ("import os\ndef f(x):\n    os._exit(0)", Verdict.RUNTIME_ERROR),
        ("def f(x:", Verdict.SYNTAX_ERROR),
        ("def g(x): ...", Verdict.NO_ENTRY_POINT),
        ("raise ValueError('early')", Verdict.RUNTIME_ERROR),
    ],
)
def test_a_programs_misdeeds_fail_both_kinds_of_tests(sandbox: Sandbox, program: str, verdict: Verdict) -> None:
    limits = Limits(cpu_s=0.3, value_bytes=10_000)
    found = results(sandbox, problem(GoldenCase("f(3)", "6"), HARNESS), program, limits=limits)
    assert [result.passed for result in found] == [False, False]
    assert found[0].verdict is verdict
    assert all(result.detail for result in found)


SOMETHING = GoldenHarness("def check(candidate):\n    assert candidate(1) is not None\n    assert f(1) is not None\n")
CALLED = GoldenHarness("def check(candidate):\n    assert candidate(3) == 6")
FUTURE = GoldenHarness(f"from __future__ import annotations\n{HARNESS.source}")
CHECK = replace(problem(CALLED), entry_point="check", solution=DOUBLE.replace("f(", "check("))
COPIES = GoldenHarness("def check(candidate):\n    x = [2, 1]\n    assert candidate(x) == [1, 2] and x == [2, 1]")
FORGER = "class Yes:\n    def __eq__(self, other):\n        return True\ndef f(x):\n    return Yes()\n"


@pytest.mark.parametrize(
    ("given", "program", "verdict"),
    [
        # Overloading equality passes neither kind of test.
        (problem(GoldenCase("f(3)", "6")), FORGER, Verdict.WRONG_ANSWER),
        (problem(HARNESS), FORGER, Verdict.WRONG_ANSWER),
        # A value that is not plain data is something for a harness.
        (problem(SOMETHING), "import re\ndef f(x):\n    return re.match('a', 'a')", Verdict.PASSED),
        (problem(SOMETHING), "def f(x):\n    return None", Verdict.WRONG_ANSWER),
        # A harness may import from the future; the problem's imports stand before the program.
        (problem(FUTURE), DOUBLE, Verdict.PASSED),
        (problem(GoldenCase("f(1.5)", "2"), imports="import math"), "f = lambda x: math.ceil(x)", Verdict.PASSED),
        # The entry point may have the name of the harness.
        (CHECK, CHECK.solution, Verdict.PASSED),
        (CHECK, "def check(x):\n    return x", Verdict.WRONG_ANSWER),
        # A benchmark does not see what a program does to its arguments.
        (problem(COPIES), "def f(x):\n    x.sort()\n    return x", Verdict.PASSED),
    ],
)
def test_a_golden_test_means_what_it_means_in_python(
    sandbox: Sandbox, given: Problem, program: str, verdict: Verdict
) -> None:
    assert verdicts(sandbox, given, program) == [verdict]


def test_a_broken_expected_value_is_not_held_against_the_program(sandbox: Sandbox) -> None:
    broken, fine = results(sandbox, problem(GoldenCase("f(1)", "1 / 0"), GoldenCase("f(1)", "2")))
    assert (broken.passed, broken.broken_test, fine.passed) == (None, True, True)
    assert "1 / 0 cannot be evaluated: ZeroDivisionError" in broken.detail


def test_our_own_failure_is_no_evidence(broken_sandbox: Sandbox) -> None:
    given = problem(GoldenCase("f(1)", "2"), HARNESS)
    found = results(broken_sandbox, given)
    assert [result.passed for result in found] == [None, None]
    assert golden_pass_rate(found) is None


@pytest.mark.parametrize(("error_type", "passed"), [("", False), (LOADED_TOO_OFTEN, None)])
def test_tests_that_were_not_reached_are_not_passed_unless_loading_took_the_time(
    error_type: str, passed: bool | None
) -> None:
    given = problem(GoldenCase("f(1)", "2"), GoldenCase("f(2)", "4"))
    not_run = Outcome(OutcomeKind.NOT_RUN, error_type=error_type)
    report = JobReport(Outcome(OutcomeKind.VALUE, b"null"), (not_run, not_run))
    assert [result.passed for result in golden_results(given, [report], {}, Comparison())] == [passed] * 2


@pytest.mark.parametrize(
    "program", ["import os\ndef f(x):\n    os.close(4)\n    return 1", "def f(x):\n    while 1: pass"]
)
def test_no_program_can_have_a_test_called_broken(sandbox: Sandbox, program: str) -> None:
    limits = Limits(cpu_s=0.3, max_restarts=0)
    given = problem(*(GoldenCase(f"f({n})", f"float('{n}') * 2") for n in range(6)))
    found = results(sandbox, given, program, limits=limits)
    assert [result.passed for result in found] == [False] * 6


@pytest.mark.parametrize(
    "answer",
    [
        *(pytest.param(each, marks=pytest.mark.slow) for each in ("[0] * 9_000", f"{'[' * 60}1{']' * 60}")),
        *("['a' * 60_000]", "9 ** 50_000"),
    ],
)
def test_no_size_of_an_answer_has_a_test_called_broken(sandbox: Sandbox, answer: str) -> None:
    tests = [
        GoldenCase("f(f(1) * 20)", "[0, 0] * 20 * 2"),
        GoldenCase("f([[[[[f(1)]]]]])", "[[[[[[0, 0]]]]]] * 2"),
        GoldenCase("f(1) * 40_000", "[0, 0] * 40_000"),
        GoldenHarness("def check(candidate):\n    assert candidate(candidate(1) * 20) == 0"),
    ]
    limits = Limits(value_bytes=400_000)
    found = results(sandbox, problem(*tests), f"def f(x):\n    return {answer} if x == 1 else x", limits=limits)
    assert [result.passed for result in found] == [False] * 4


def test_an_expected_value_is_evaluated_once(sandbox: Sandbox) -> None:
    counting = Counting(sandbox)
    known = ExpectedValues(counting)
    given = problem(GoldenCase("f(2)", "2 + 2"), GoldenCase("f(-2)", "2 + 2"), GoldenCase("f(1)", "2"))
    assert [outcome.value for outcome in known.of([given]).values()] == [b"4"]
    assert known.of([given]) == known.of([given, given])
    assert [len(job.calls) for job in counting.jobs] == [1]


def test_a_value_beyond_our_limit_is_said_to_be_that(sandbox: Sandbox) -> None:
    limits = Limits(value_bytes=10_000)
    (found,) = results(sandbox, problem(GoldenCase("f(1)", "'x' * 20_000")), limits=limits)
    assert (found.passed, found.verdict) == (None, Verdict.OUTPUT_LIMIT)
    assert "value_bytes" in found.detail


@pytest.mark.slow
def test_a_value_too_long_to_be_compared_passes_by_its_bytes_only(sandbox: Sandbox) -> None:
    given = problem(GoldenCase("f(1)", "[0] * 300_000"))
    assert verdicts(sandbox, given, "def f(x):\n    return [0] * 300_000") == [Verdict.PASSED]
    (found,) = results(sandbox, given, "def f(x):\n    return [0.0] * 300_000")
    assert (found.passed, found.verdict) == (False, Verdict.OUTPUT_LIMIT)
    assert "MAX_NODES" in found.detail
    (found,) = results(sandbox, problem(GoldenCase("f(1)", "[0]")), "def f(x):\n    return [0] * 300_000")
    assert found.passed is False


def test_what_cannot_be_carried_is_named(sandbox: Sandbox) -> None:
    takes = GoldenHarness("def check(candidate):\n    assert candidate(lambda x: x) == 3")
    (found,) = results(sandbox, problem(takes), "def f(g):\n    return g(3)")
    assert (found.passed, found.is_opaque) == (None, True)
    gives = GoldenHarness("def check(candidate):\n    assert candidate(1)(2) == 3")
    (found,) = results(sandbox, problem(gives), "def f(x):\n    return lambda y: x + y")
    assert (found.passed, found.is_opaque) == (False, True)


def test_the_pass_rate_is_the_share_of_tests_passed() -> None:
    passed, failed = GoldenResult(Verdict.PASSED), GoldenResult(Verdict.TIME_LIMIT)
    assert golden_pass_rate([passed, failed, passed, failed]) == 0.5
    assert golden_pass_rate([]) is None
    assert golden_pass_rate([passed, replace(failed, broken_test=True)]) is None


HEAD = "import time\ndef burn(s):\n  end = time.process_time() + s\n  while time.process_time() < end: pass\n"


def timed(body: str, n: int = 4, *, in_harness: bool = False) -> Problem:
    check = "def check(candidate):\n" + "".join(f"  assert candidate({x}) == {x}\n" for x in range(n))
    cases = tuple(GoldenCase(f"f({x})", str(x)) for x in range(n))
    solution = f"{HEAD}def f(x):\n  {body}\n  return x\n"
    golden = (GoldenHarness(check),) if in_harness else cases
    return Problem(id="p", statement="f", entry_point="f", solution=solution, golden=golden)


def passed(sandbox: Sandbox, given: Problem, body: str) -> bool | None:
    (finding,) = run_golden([(given, f"{HEAD}def f(x):\n  {body}\n  return x\n")], sandbox, Comparison())
    return finding.passed


@pytest.mark.parametrize("body", ["while True: pass", "time.sleep(99)"])
@pytest.mark.parametrize("in_harness", [False, True])
def test_a_program_that_hangs_is_not_asked_for_long(sandbox: Sandbox, body: str, in_harness: bool) -> None:
    quick, counting = timed("pass", 20, in_harness=in_harness), Counting(sandbox)
    jobs = golden_jobs(quick, f"import time\ndef f(x):\n  {body}\n", SHORT)
    run = GoldenRun(quick, jobs, tuple(sandbox.run(jobs)))
    assert run.reports[0].cpu_s < 2 * SHORT.cpu_s + 1
    known = GoldenTests(counting, Comparison())
    for _ in range(2):
        assert known.given_time([run, run]) == [run, run]
    assert [job.program for job in counting.jobs] == [quick.solution]  # once; the program does not run again


def test_what_is_known_of_a_problem_is_not_believed_of_another_with_its_id(sandbox: Sandbox) -> None:
    problems = [timed("pass"), timed("x + 0"), replace(timed("pass"), golden=(GoldenCase("f(int(7))", "int(8)"),))]
    late = JobReport(Outcome(OutcomeKind.TIME_LIMIT), ())
    known = GoldenTests(counting := Counting(sandbox), Comparison())
    runs = [GoldenRun(problem, golden_jobs(problem, "def f(x): pass", SHORT), (late,)) for problem in problems]
    for run in (*runs, *runs):
        known.given_time([run])
    assert [(job.program, len(job.calls)) for job in counting.jobs] == [(p.solution, len(p.golden)) for p in problems]
    findings = run_golden([(problem, problem.solution) for problem in problems], sandbox, Comparison())
    assert [finding.passed for finding in findings] == [True, True, False]


def test_nothing_more_runs_for_programs_in_time(sandbox: Sandbox) -> None:
    quick, counting = timed("pass"), Counting(sandbox)
    jobs = golden_jobs(quick, "def f(x): return 1 / 0", SHORT)
    assert GoldenTests(counting, Comparison()).given_time([GoldenRun(quick, jobs, tuple(sandbox.run(jobs)))])
    assert counting.jobs == []


@pytest.mark.slow
@pytest.mark.parametrize("in_harness", [False, True])
def test_a_program_may_take_as_long_as_follows_from_a_slow_solution(sandbox: Sandbox, in_harness: bool) -> None:
    slow = timed("burn(0.4 if x == 1 else 0)", in_harness=in_harness)
    assert passed(sandbox, slow, "burn(2.5 if x == 1 else 0)") is True
    assert passed(sandbox, timed("pass", in_harness=in_harness), "burn(2.5 if x == 1 else 0)") is False


@pytest.mark.slow
def test_a_program_may_sleep_where_the_solution_does(sandbox: Sandbox) -> None:
    assert passed(sandbox, timed("time.sleep(3.5 if x == 1 else 0)", 2), "time.sleep(4 if x == 1 else 0)") is True
    assert SHORT.wall_s < 3.5 < GOLDEN_LIMITS.wall_s


@pytest.mark.parametrize(
    ("program", "verdict", "feedback"),
    [
        (DOUBLE, Verdict.PASSED, "0 of 5 tests failed."),
        (
            "def f(x):\n    return 1 // x",
            Verdict.PASSED,
            "4 of 5 tests failed.\nf(1) should be 2; it gave 1\nf(0) should be 0; it gave ZeroDivisionError: integer "
            "division or modulo by zero\nf(f(1)) should be 4; it gave 1\ncheck(f) should be None; it gave an assert is "
            "false",
        ),
        ("def f(x):", Verdict.SYNTAX_ERROR, "The program is invalid (syntax error). "),
        ("", Verdict.NO_CODE, "The program is invalid (no code)."),
    ],
)
def test_a_report_says_which_golden_tests_a_candidate_fails(
    sandbox: Sandbox, program: str, verdict: Verdict, feedback: str
) -> None:
    tests = [GoldenCase("f(1)", "2"), GoldenCase("f(0)", "1 - 1"), GoldenCase("f(f(1))", "4"), HARNESS]
    broken = GoldenCase("f(2)", "undefined")
    given = problem(*tests, GoldenCase("abs(f(0) if False else 0)", "0"), broken)
    (report,) = golden_reports([(given, Candidate(program))], sandbox, Comparison())
    assert report.verdict is verdict
    assert coder_feedback(report).startswith(feedback)
