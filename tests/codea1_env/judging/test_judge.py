"""The matrix of verdicts, made by real processes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from codea1_env import values
from codea1_env.book.store import Leaving, MistakeBook, StoredEntry
from codea1_env.facts.submissions import Candidate, RejectionReason, Suite, TestCase
from codea1_env.facts.verdicts import CandidateReport, ValidCase, Verdict
from codea1_env.judging.judge import Duel, Judge
from codea1_env.problems import Problem
from codea1_env.rules.replies import read_suite
from codea1_env.rules.rewards import score, score_group
from codea1_env.rules.ruleset import PRESETS, BookUpdate, Reading, Ruleset, preset
from codea1_env.sandbox import Job, JobReport, Limits, Sandbox
from tests.support.books import entry_of, fill
from tests.support.replies import reasons
from tests.support.sandboxes import Counting, Wrapper
from tests.support.toys import ADD, LAST, fenced

RIGHT = ADD.solution
LIMITS = Limits(cpu_s=0.5, wall_s=5)
MINUS = "def add(a, b):\n    return a - b\n"


def suite(*lines: str, entry_point: str = "add") -> Suite:
    return read_suite(fenced("\n".join(lines)), Reading.STRICT, entry_point=entry_point)


def judge_one(
    sandbox: Sandbox, program: str, *lines: str, problem: Problem = ADD, rules: Ruleset | None = None, **options: object
) -> CandidateReport:
    """A candidate's report under one suite of these lines."""
    asked = suite(*lines, entry_point=problem.entry_point)
    judge = Judge(sandbox, rules or preset("fixed"), **options)  # type: ignore[arg-type]
    return judge.judge([Duel(problem, (Candidate(program),), ((asked,),))])[0].candidates[0]


def verdicts(report: CandidateReport, n: int = 0) -> list[str]:
    return [case.verdict.value for case in report.suites[n].cases]


def test_a_whole_matrix_of_candidates_and_suites(sandbox):
    good, weak = suite("assert add(1, 2) == 3", "assert add(0, 5) == 5"), suite("assert add(3, 0) == 3")
    duel = Duel(ADD, (Candidate(RIGHT), Candidate(MINUS)), ((good, weak), (good, weak)))
    (report,) = Judge(sandbox, preset("fixed")).judge([duel])
    assert [[verdicts(c, n) for n in (0, 1)] for c in report.candidates] == [
        [["passed", "passed"], ["passed"]],
        [["wrong_answer", "wrong_answer"], ["passed"]],
    ]
    rewards = [score(candidate, preset("fixed")) for candidate in report.candidates]
    assert (rewards[0].coder.value, rewards[1].coder.value) == (1.0, 0.5)
    assert rewards[1].testers[0].value > rewards[1].testers[1].value


def test_crossed_suites_give_what_they_give_candidate_by_candidate(sandbox):
    candidates = (Candidate(RIGHT), Candidate(MINUS), Candidate("x ="))
    suites = (suite("assert add(1, 2) == 3", "assert add(0, 5) == 6"), suite("assert add(3, 0) == 3"))
    judge = Judge(sandbox, preset("fixed"))
    crossed, apart = judge.judge([Duel.crossed(ADD, candidates, suites), Duel(ADD, candidates, (suites,) * 3)])
    assert crossed.candidates == apart.candidates
    assert (crossed.shares_suites, apart.shares_suites) == (True, False)
    assert judge.judge([Duel.crossed(ADD, (), suites)])[0].candidates == ()
    with pytest.raises(ValueError, match="these differ"):
        Duel(ADD, candidates[:2], (suites, suites[:1]), shares_suites=True)


def test_many_problems_in_one_batch_equal_one_by_one(sandbox):
    even, last = suite("assert add(2, 2) == 4"), suite("assert last([1, 2]) == 2", entry_point="last")
    duels = [
        Duel(ADD, (Candidate(MINUS),), ((even,),)),
        Duel(LAST, (Candidate("def last(i): return i[0]"),), ((last,),)),
        Duel(ADD, (Candidate("x ="), Candidate(RIGHT)), ((even,), ())),
        Duel(ADD, (), ()),
    ]
    judge = Judge(sandbox, preset("fixed"))
    assert judge.judge(duels) == [Judge(sandbox, preset("fixed")).judge([duel])[0] for duel in duels]
    assert judge.judge([]) == []


@pytest.mark.slow
@pytest.mark.parametrize(
    ("program", "verdict"),
    [
        ("", Verdict.NO_CODE),
        *((program, Verdict.SYNTAX_ERROR) for program in ("def add(a, b) return a", "def add(a, b): \x00")),
        *((program, Verdict.NO_ENTRY_POINT) for program in ("add = 3", "def subtract(a, b): ...")),
        *(
            (f"import os, sys; {end}", Verdict.RUNTIME_ERROR)
            for end in ("raise ValueError('x')", "sys.exit(0)", "os._exit(0)")
        ),
        ("while True: pass", Verdict.TIME_LIMIT),
        ("x = 'a' * (10 ** 11)", Verdict.MEMORY_LIMIT),
    ],
)
def test_a_candidate_that_does_not_load_says_why(sandbox, program, verdict):
    report = judge_one(sandbox, program, "assert add(1, 2) == 3", limits=LIMITS)
    assert report.verdict is verdict
    assert not report.loads
    assert verdicts(report) == ["not_run"]
    assert score(report, preset("fixed")).coder.value == 0.0


@pytest.mark.parametrize(
    ("body", "verdict"),
    [
        *(("return a + b", "passed"), ("return float(a + b)", "passed")),
        *((f"return {wrong}", "wrong_answer") for wrong in ("a - b", "str(a + b)", "lambda: 3")),
        *(
            (end, "runtime_error")
            for end in ("raise KeyError(a)", "import os; os._exit(0)", "raise SystemExit(0)", "return add(a, b)")
        ),
        *(
            ("while True: pass", "time_limit"),
            ("return 'x' * (10 ** 11)", "memory_limit"),
            ("return 'x' * (10 ** 6)", "output_limit"),
        ),
    ],
)
def test_each_verdict_of_a_case_and_a_call_loses_only_itself(sandbox, body, verdict):
    program = f"def add(a, b):\n    if a != 1: return a + b\n    {body}\n"
    lines = [f"assert add({n}, 2) == {n + 2}" for n in range(3)]
    assert verdicts(judge_one(sandbox, program, *lines, limits=LIMITS)) == ["passed", verdict, "passed"]


def test_the_solutions_imports_stand_before_candidates(sandbox):
    root = "def root(x):\n    return math.isqrt(x)"
    problem = Problem("toy/root", "def root(x): ...", "root", root, (), imports="import math")
    program = f"from __future__ import annotations\n{root}"
    assert verdicts(judge_one(sandbox, program, "assert root(17) == 4", problem=problem)) == ["passed"]


def test_property_cases_and_computed_arguments_run_beside_the_candidate(sandbox):
    lines = [
        *("assert add(1, 2) != 4", "assert abs(add(0.1, 0.2) - 0.3) < 1e-9", "assert add(*[i for i in (2, 3)]) == 5"),
        *("assert sorted([add(2, 1), add(0, 1)]) == [1, 3]", "assert all(add(i, i) == 2 * i for i in range(20))"),
        "import math\nassert add(math.inf, 1) == math.inf",
    ]
    assert verdicts(judge_one(sandbox, RIGHT, *lines)) == ["passed"] * 6
    assert verdicts(judge_one(sandbox, "def add(a, b):\n    return 4\n", *lines)) == ["wrong_answer"] * 6


@pytest.mark.parametrize(("options", "rate"), [({"rules": preset("golden")}, 0.5), ({"golden": True}, 0.5), ({}, None)])
def test_golden_pass_rate_is_asked_for_by_the_scheme_or_by_hand(sandbox, options, rate):
    half = "def last(items):\n    return items[-1]\n"
    assert judge_one(sandbox, half, problem=LAST, **options).golden_pass_rate == rate


def test_replayed_cases_run_first_and_come_back_in_their_order(sandbox):
    (case,) = suite("assert add(1, 1) == 2").cases
    replayed = (ValidCase(case, values.encode(2), None), ValidCase(case, values.encode(3), None))
    (report,) = Judge(sandbox, preset("fixed")).judge([Duel(ADD, (Candidate(RIGHT),), ((),), replayed)])
    assert [case.verdict for case in report.candidates[0].replayed] == [Verdict.PASSED, Verdict.DENIED]


def test_replayed_cases_of_several_problems_are_those_of_their_own(sandbox):
    shift, move = (Problem(name, name, name, f"def {name}(x): return x + 1", ()) for name in ("shift", "move"))
    duels = [
        Duel(problem, (Candidate(problem.solution),), ((),), (ValidCase(case, values.encode(2), None),))
        for problem in (shift, move)
        for case in suite(f"assert {problem.id}(1) == 2", entry_point=problem.id).cases
    ]
    reports = Judge(sandbox, preset("fixed")).judge(duels)
    assert [case.verdict for each in reports for case in each.candidates[0].replayed] == [Verdict.PASSED] * 2


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    rules=st.sampled_from(sorted(set(PRESETS) - {"golden"})),
    kept=st.dictionaries(st.integers(0, 9), st.tuples(st.sampled_from((0, 1)), st.booleans()), max_size=5),
    shift=st.sampled_from((0, 1)),
)
def test_a_replay_says_something_only_if_the_present_solution_confirms_it(sandbox, rules, kept, shift):
    """The book's values are those of `x + error`; the present solution adds `shift`, and so does the right program."""
    chosen = preset(rules)
    problem = Problem("f", "f", "f", f"def f(x): return x + {shift}", ())
    cases = {
        n: ValidCase(
            TestCase(f"f({n})" if direct else f"abs(f({n}))", None, (), direct), values.encode(n + error), None
        )
        for n, (error, direct) in kept.items()
    }
    programs = (Candidate(problem.solution), Candidate("def f(x): return -99"), Candidate("def f("))
    duel = Duel(problem, programs, ((),) * 3, tuple(cases.values()))
    report = Judge(sandbox, chosen).judge([duel])[0]
    right = {n: error == shift for n, (error, _) in kept.items()}
    for candidate, verdict in zip(
        report.candidates, (Verdict.PASSED, Verdict.WRONG_ANSWER, Verdict.NOT_RUN), strict=True
    ):
        found = [case.verdict for case in candidate.replayed]
        assert found == [verdict if right[n] else Verdict.DENIED for n in kept]
    confirmed = tuple(cases[n] for n in kept if right[n])
    (alone,) = Judge(sandbox, chosen).judge([replace(duel, replayed=confirmed)])
    assert repr(score_group(report, chosen)) == repr(score_group(alone, chosen))  # the others cost nobody anything
    with MistakeBook() as book:
        fill(book, (StoredEntry("f", entry_of(case)) for case in cases.values()))
        denied = book.record(report, replace(chosen.book, update=BookUpdate.RELEASE)).denied
        assert denied == len(cases) - len(confirmed) == sum(each.how is Leaving.DENIED for each in book.departures())
        assert {each.entry.key.expression for each in book.entries()} <= {case.case.expression for case in confirmed}


@pytest.mark.parametrize(
    ("expression", "imports", "direct"),
    [
        ("__import__('os').getpid() * 0 + f(1)", (), True),  # would run in the program's process
        ("__import__('os').getpid() * 0 + f(1)", (), False),
        ("[__import__('os').getpid(), '''\n```python\nassert f(1) == 0\n```\n'''][0] * 0 + f(1)", (), False),
        ("f(1)", ("import os; f = lambda x: 1",), False),
        ("f((x := 1))", (), False),
        ("f(1)\n", ("f = abs",), False),
    ],
)
def test_a_stored_case_that_no_tester_could_write_runs_nowhere(sandbox, expression, imports, direct):
    problem = Problem("f", "f", "f", "def f(x): return x", ())
    case = ValidCase(TestCase(expression, None, imports, direct), values.encode(1), None)
    counting = Counting(sandbox)
    (report,) = Judge(counting, preset("fixed")).judge([Duel(problem, (Candidate(problem.solution),), ((),), (case,))])
    assert report.candidates[0].replayed[0].verdict is Verdict.DENIED
    assert all(call.expression != expression for job in counting.jobs for call in job.calls)


@pytest.mark.parametrize("rules", ["fixed", "release"])
@pytest.mark.parametrize("test", ["f(str(iter([])))", "f(str(zip())[-7:])", "f(repr([].append)[-9:])", "f('a')"])
def test_a_value_with_an_address_is_no_value(sandbox, rules, test):
    problem = Problem("f", "f", "f", "def f(x): return x", ())
    read = read_suite(fenced(f"assert {test} == 'a'"), preset(rules).reading, entry_point="f")
    (report,) = Judge(sandbox, preset(rules)).judge([Duel(problem, (Candidate("def f(x): return 1"),), ((read,),))])
    (found,) = report.candidates[0].suites
    assert reasons(found.suite) == ([] if test == "f('a')" else [RejectionReason.FLAKY])


class BrokenForCandidates(Wrapper):
    """Solutions run; candidates are lost."""

    def __init__(self, real: Sandbox, broken: Sandbox) -> None:
        super().__init__(real)
        self._broken = broken

    def run(self, jobs: Sequence[Job]) -> list[JobReport]:
        return [(self._sandbox if job.program == ADD.solution else self._broken).run([job])[0] for job in jobs]


def test_our_failure_is_never_a_verdict_about_anyone(sandbox, broken_sandbox):
    for broken in (broken_sandbox, BrokenForCandidates(sandbox, broken_sandbox)):
        report = judge_one(broken, MINUS, "assert add(1, 2) == 3")
        assert report.has_internal_error
        assert score(report, preset("fixed")).coder.masked


def test_rejections_of_validation_reach_the_report(sandbox):
    calls = ("add(1, 2) == 3", "add(1, 2) == 3", "add(1, 'a') == 3", "add(2, 2) == 5")
    (found,) = judge_one(sandbox, RIGHT, *(f"assert {call}" for call in calls)).suites
    expected = [RejectionReason.DUPLICATE, RejectionReason.SOLUTION_ERROR, RejectionReason.WRONG_PREDICTION]
    assert reasons(found.suite) == expected
    assert (found.suite.n_invalid, len(found.cases)) == (3, 2)
