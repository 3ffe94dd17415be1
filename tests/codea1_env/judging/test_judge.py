"""The matrix of verdicts, made by real processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from codea1_env import values
from codea1_env.facts.submissions import Candidate, RejectionReason, Suite
from codea1_env.facts.verdicts import CandidateReport, ProblemReport, ValidCase, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.problems import GoldenCase, Problem
from codea1_env.rules.replies import read_candidate, read_suite
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import Reading, Ruleset, preset
from codea1_env.sandbox import Job, JobReport, Limits, Sandbox
from tests.support.toys import ADD

RIGHT = ADD.solution
MINUS = "def add(a, b):\n    return a - b\n"


def suite(*lines: str, entry_point: str = "add", reading: Reading = Reading.STRICT) -> Suite:
    return read_suite("```python\n" + "\n".join(lines) + "\n```", reading, entry_point=entry_point)


def judge_one(
    sandbox: Sandbox, problem: Problem, program: str, *suites: Suite, rules: Ruleset | None = None, **options: object
) -> CandidateReport:
    judge = Judge(sandbox, rules or preset("fixed"), **options)  # type: ignore[arg-type]
    return judge.judge([Duel(problem, (Candidate(program),), (suites,))])[0].candidates[0]


def verdicts(report: CandidateReport, n: int = 0) -> list[str]:
    return [case.verdict.value for case in report.suites[n].cases]


def test_a_whole_matrix_of_candidates_and_suites(sandbox, toys):
    add = toys.by_id("toy/add")
    good, weak = suite("assert add(1, 2) == 3", "assert add(0, 5) == 5"), suite("assert add(3, 0) == 3")
    report = Judge(sandbox, preset("fixed")).judge(
        [Duel(add, (Candidate(RIGHT), Candidate(MINUS)), ((good, weak), (good, weak)))]
    )[0]
    assert [[verdicts(c, n) for n in (0, 1)] for c in report.candidates] == [
        [["passed", "passed"], ["passed"]],
        [["wrong_answer", "wrong_answer"], ["passed"]],
    ]
    rewards = [score(candidate, preset("fixed")) for candidate in report.candidates]
    assert rewards[0].coder.value == 1.0
    assert rewards[1].coder.value == 0.5
    assert rewards[1].testers[0].value > rewards[1].testers[1].value


def test_crossed_suites_give_what_they_give_candidate_by_candidate(sandbox, toys):
    add = toys.by_id("toy/add")
    candidates = (Candidate(RIGHT), Candidate(MINUS), Candidate("x ="))
    suites = (suite("assert add(1, 2) == 3", "assert add(0, 5) == 6"), suite("assert add(3, 0) == 3"))
    judge = Judge(sandbox, preset("fixed"))
    crossed, apart = judge.judge([Duel.crossed(add, candidates, suites), Duel(add, candidates, (suites,) * 3)])
    assert crossed.candidates == apart.candidates
    assert (crossed.shares_suites, apart.shares_suites) == (True, False)
    assert judge.judge([Duel.crossed(add, (), suites)])[0].candidates == ()
    with pytest.raises(ValueError, match="these differ"):
        Duel(add, candidates[:2], (suites, suites[:1]), shares_suites=True)


def test_many_problems_in_one_batch_equal_one_by_one(sandbox, toys):
    add, last = toys.by_id("toy/add"), toys.by_id("toy/last")
    duels = [
        Duel(add, (Candidate(MINUS),), ((suite("assert add(2, 2) == 4"),),)),
        Duel(
            last, (Candidate("def last(i): return i[0]"),), ((suite("assert last([1, 2]) == 2", entry_point="last"),),)
        ),
        Duel(add, (Candidate("x ="), Candidate(RIGHT)), ((suite("assert add(2, 2) == 4"),), ())),
        Duel(add, (), ()),
    ]
    judge = Judge(sandbox, preset("fixed"))
    assert judge.judge(duels) == [Judge(sandbox, preset("fixed")).judge([duel])[0] for duel in duels]
    assert judge.judge([]) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        ("", Verdict.NO_CODE),
        ("def add(a, b) return a", Verdict.SYNTAX_ERROR),
        ("add = 3", Verdict.NO_ENTRY_POINT),
        ("def subtract(a, b): ...", Verdict.NO_ENTRY_POINT),
        ("raise ValueError('x')", Verdict.RUNTIME_ERROR),
        ("import sys; sys.exit(0)", Verdict.RUNTIME_ERROR),
        ("import os; os._exit(0)", Verdict.RUNTIME_ERROR),
        ("while True: pass", Verdict.TIME_LIMIT),
        ("x = 'a' * (10 ** 11)", Verdict.MEMORY_LIMIT),
        ("import no_such_module", Verdict.RUNTIME_ERROR),
        ("def add(a, b): \x00", Verdict.SYNTAX_ERROR),
    ],
)
def test_a_candidate_that_does_not_load_says_why(sandbox, toys, program, verdict):
    report = judge_one(
        sandbox, toys.by_id("toy/add"), program, suite("assert add(1, 2) == 3"), limits=Limits(cpu_s=0.5, wall_s=5)
    )
    assert report.verdict is verdict
    assert not report.is_valid
    assert verdicts(report) == ["not_run"]
    assert score(report, preset("fixed")).coder.value == 0.0


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        ("return a + b", "passed"),
        ("return a - b", "wrong_answer"),
        ("return float(a + b)", "passed"),
        ("return str(a + b)", "wrong_answer"),
        ("return lambda: 3", "wrong_answer"),
        ("raise KeyError(a)", "runtime_error"),
        ("import os; os._exit(0)", "runtime_error"),
        ("raise SystemExit(0)", "runtime_error"),
        ("return add(a, b)", "runtime_error"),
        ("while True: pass", "time_limit"),
        ("return 'x' * (10 ** 11)", "memory_limit"),
        ("return 'x' * (10 ** 6)", "output_limit"),
    ],
)
def test_each_verdict_of_a_case(sandbox, toys, body, verdict):
    report = judge_one(
        sandbox,
        toys.by_id("toy/add"),
        f"def add(a, b):\n    {body}\n",
        suite("assert add(1, 2) == 3"),
        limits=Limits(cpu_s=0.5, wall_s=5),
    )
    assert verdicts(report) == [verdict]


def test_a_call_that_hangs_loses_only_itself(sandbox, toys):
    program = "def add(a, b):\n    while a == 13: pass\n    return a + b\n"
    report = judge_one(
        sandbox,
        toys.by_id("toy/add"),
        program,
        suite("assert add(1, 2) == 3", "assert add(13, 1) == 14", "assert add(2, 2) == 4"),
        limits=Limits(cpu_s=0.3, wall_s=5),
    )
    assert verdicts(report) == ["passed", "time_limit", "passed"]


def test_the_solutions_imports_stand_before_candidates(sandbox):
    problem = Problem(
        "toy/root", "def root(x): ...", "root", "def root(x):\n    return math.isqrt(x)", (), imports="import math"
    )
    report = judge_one(
        sandbox,
        problem,
        "from __future__ import annotations\ndef root(x):\n    return math.isqrt(x)",
        suite("assert root(17) == 4", entry_point="root"),
    )
    assert verdicts(report) == ["passed"]


def test_property_cases_and_computed_arguments_run_beside_the_candidate(sandbox, toys):
    lines = [
        "assert add(1, 2) != 4",
        "assert abs(add(0.1, 0.2) - 0.3) < 1e-9",
        "assert add(*[i for i in (2, 3)]) == 5",
        "assert sorted([add(2, 1), add(0, 1)]) == [1, 3]",
        "assert all(add(i, i) == 2 * i for i in range(20))",
        "import math\nassert add(math.inf, 1) == math.inf",
    ]
    right = judge_one(sandbox, toys.by_id("toy/add"), RIGHT, suite(*lines))
    assert verdicts(right) == ["passed"] * 6
    wrong = judge_one(sandbox, toys.by_id("toy/add"), "def add(a, b):\n    return 4\n", suite(*lines))
    assert verdicts(wrong) == ["wrong_answer"] * 6


def test_golden_pass_rate_is_asked_for_by_the_scheme_or_by_hand(sandbox, toys):
    last = replace(toys.by_id("toy/last"), golden=(GoldenCase("last([])", "None"), GoldenCase("last([1, 2])", "2")))
    half = "def last(items):\n    return items[-1]\n"
    assert judge_one(sandbox, last, half, rules=preset("golden")).golden_pass_rate == 0.5
    assert judge_one(sandbox, last, half, golden=True).golden_pass_rate == 0.5
    assert judge_one(sandbox, last, half).golden_pass_rate is None


def test_replayed_cases_run_first_and_come_back_in_their_order(sandbox, toys):
    case = read_suite("assert add(1, 1) == 2", Reading.STRICT, entry_point="add").cases[0]
    replayed = (ValidCase(case, values.encode(2), None), ValidCase(case, values.encode(3), None))
    report = Judge(sandbox, preset("fixed")).judge([Duel(toys.by_id("toy/add"), (Candidate(RIGHT),), ((),), replayed)])[
        0
    ]
    assert [case.verdict for case in report.candidates[0].replayed] == [Verdict.PASSED, Verdict.WRONG_ANSWER]


class BrokenForCandidates:
    """Solutions run; candidates are lost."""

    def __init__(self, real: Sandbox, broken: Sandbox, solution: str) -> None:
        self.real = real
        self.broken = broken
        self.solution = solution
        self.name, self.guarantee = broken.name, broken.guarantee

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        return [(self.real if job.program == self.solution else self.broken).run([job])[0] for job in jobs]

    def close(self) -> None:
        """Nothing to end."""


def test_our_failure_is_never_a_verdict_about_anyone(sandbox, broken_sandbox, toys):
    add = toys.by_id("toy/add")
    for broken in (broken_sandbox, BrokenForCandidates(sandbox, broken_sandbox, add.solution)):
        report = judge_one(broken, add, MINUS, suite("assert add(1, 2) == 3"))
        assert report.has_internal_error
        assert score(report, preset("fixed")).coder.masked


def report_of(sandbox: Sandbox, problem: Problem, reply: str, tests: str, rules: str) -> ProblemReport:
    reading = preset(rules).reading
    candidate = read_candidate(reply, reading, entry_point=problem.entry_point)
    asked = read_suite(tests, reading, entry_point=problem.entry_point)
    return Judge(sandbox, preset(rules)).judge([Duel(problem, (candidate,), ((asked,),))])[0]


def test_rejections_of_validation_reach_the_report(sandbox, toys):
    tests = (
        "```python\nassert add(1, 2) == 3\nassert add(1, 2) == 3\nassert add(1, 'a') == 3\nassert add(2, 2) == 5\n```"
    )
    report = report_of(sandbox, toys.by_id("toy/add"), f"```python\n{RIGHT}```", tests, "fixed")
    suite_report = report.candidates[0].suites[0]
    assert [r.reason for r in suite_report.suite.rejections] == [
        RejectionReason.DUPLICATE,
        RejectionReason.SOLUTION_ERROR,
        RejectionReason.WRONG_PREDICTION,
    ]
    assert suite_report.suite.n_invalid == 3
    assert len(suite_report.cases) == 2
