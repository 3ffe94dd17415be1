"""Methods and programs on standard input, from a tester's reply to the verdict."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

import pytest

from codea1_env.audit import Auditor, AuditResult, HostileProgram, load_attacks
from codea1_env.facts.outcomes import OutcomeKind
from codea1_env.facts.outputs import OutputForm
from codea1_env.facts.problem_kinds import ProblemKind
from codea1_env.facts.submissions import RejectionReason, Suite
from codea1_env.facts.verdicts import CandidateReport, GoldenFinding, Verdict
from codea1_env.judging.golden_runs import run_golden
from codea1_env.judging.judge import Duel, Judge
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems import Problem, WrongProgram, load_problems
from codea1_env.problems.own_rows import problem_from_row
from codea1_env.rounds.rounds import candidate_of
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox import Sandbox
from codea1_env.sandbox.interface import Call, Job
from tests.support.styles import classes_like, scripts_like

FIXED = preset("fixed")
SUM = problem_from_row(
    {
        "id": "mine/sum",
        "kind": "stdin",
        "statement": "Print the sum of the numbers, then the greatest.",
        "solution": "numbers = list(map(int, input().split()))\nprint(sum(numbers))\nprint(max(numbers))\n",
        "golden": [{"input": "3 4\n", "output": "7\n4\n"}],
        "examples": ["assert run('1 2') == '3\\n2\\n'"],
    }
)
GREET = problem_from_row(
    {
        "id": "mine/greet",
        "statement": "class Solution:\n    def greet(self, name, sign='!'): ...",
        "entry_point": "Solution().greet",
        "solution": "class Solution:\n    def greet(self, name, sign='!'):\n        return f'hi {name}{sign}'\n",
        "golden": [
            "assert Solution().greet('a') == 'hi a!'",
            "def check(candidate):\n    assert candidate('b') == 'hi b!'",
        ],
        "examples": ["assert Solution().greet('ann') == 'hi ann!'"],
    }
)
STARTERS = [problem for part in ("stdin", "methods") for problem in load_problems(f"starter:{part}")]


def judged(
    problem: Problem, suite: str, *programs: str, sandbox: Sandbox, rules: Ruleset = FIXED
) -> list[CandidateReport]:
    candidates = [candidate_of(program, problem, rules) for program in programs]
    read = read_suite(suite, rules.reading, entry_point=problem.entry_point, output=problem.script)
    (report,) = Judge(sandbox, rules).judge([Duel.crossed(problem, candidates, [read])])
    return list(report.candidates)


def verdicts(report: CandidateReport) -> list[Verdict]:
    return [case.verdict for case in report.suites[0].cases]


def reasons(report: CandidateReport) -> list[RejectionReason]:
    return [rejection.reason for rejection in report.suites[0].suite.rejections]


def suite_of(problem: Problem, text: str) -> Suite:
    return read_suite(text, FIXED.reading, entry_point=problem.entry_point, output=problem.script)


# Programs on standard input


def test_outputs_are_compared_by_their_words(sandbox: Sandbox) -> None:
    suite = (
        "assert run('1 5\\n') == '6\\n5\\n'\nassert run('2 2') == '4 2'\nassert run('-1') == '\\n'.join(['-1', '-1'])"
    )
    one_line = "n = [*map(int, input().split())]\nprint(sum(n), '', max(n))"
    wrong = "n = [*map(int, input().split())]\nprint(sum(n))"
    right, joined, half = judged(SUM, suite, SUM.solution, one_line, wrong, sandbox=sandbox)
    assert verdicts(right) == verdicts(joined) == [Verdict.PASSED] * 3
    assert verdicts(half) == [Verdict.WRONG_ANSWER] * 3
    assert reasons(right) == []


def test_exact_outputs_keep_their_lines(sandbox: Sandbox) -> None:
    exact = dataclasses.replace(SUM, output=OutputForm.EXACT)
    one_line = "n = [*map(int, input().split())]\nprint(sum(n), max(n))"
    suite = "assert run('1 5') == '6\\n5\\n'\nassert run('2 2') == '4 2'"
    right, joined = judged(exact, suite, exact.solution, one_line, sandbox=sandbox)
    assert verdicts(right) == [Verdict.PASSED] * 2
    assert verdicts(joined) == [Verdict.WRONG_ANSWER] * 2
    assert reasons(right) == [RejectionReason.WRONG_PREDICTION]


def test_an_input_with_other_white_space_at_its_end_is_the_same_call(sandbox: Sandbox) -> None:
    suite = "assert run('1 5') == '6 5'\nassert run('1 5\\n') == '6 5'\nassert run('1 5 \\r\\n') == '6 5'\n"
    (report,) = judged(SUM, suite + "assert int(run('1 5').split()[0]) == 6", SUM.solution, sandbox=sandbox)
    assert len(report.suites[0].cases) == 1
    assert reasons(report) == [RejectionReason.DUPLICATE] * 3


def test_an_example_of_the_statement_is_recognised(sandbox: Sandbox) -> None:
    (report,) = judged(SUM, "assert run('1 2\\n') == '3 2'\nassert run('9') == '9 9'", SUM.solution, sandbox=sandbox)
    assert [case.case.is_example for case in report.suites[0].cases] == [True, False]


def test_cases_that_are_no_plain_call_run_and_vacuous_ones_are_dropped(sandbox: Sandbox) -> None:
    suite = (
        "assert run('1 2').split()[0] == '3'\nassert int(run('4').split()[1]) > 3\n"
        "assert run('5 6') != run('5 7')\nassert len(run('8')) >= 0"
    )
    right, wrong = judged(SUM, suite, SUM.solution, "print(3, 0)", sandbox=sandbox)
    assert verdicts(right) == [Verdict.PASSED] * 3
    assert verdicts(wrong) == [Verdict.PASSED, Verdict.WRONG_ANSWER, Verdict.WRONG_ANSWER]
    assert reasons(right) == [RejectionReason.VACUOUS]


@pytest.mark.parametrize(
    "line", ["run('3') == run('3')[:]", "int(run('3').split()[0]) ** 2 >= 0", "' ' in run('3') + ' '"]
)
def test_a_case_that_any_output_passes_is_vacuous(sandbox: Sandbox, line: str) -> None:
    (report,) = judged(SUM, f"assert {line}", SUM.solution, sandbox=sandbox)
    assert reasons(report) == [RejectionReason.VACUOUS]


@pytest.mark.parametrize("line", ["int(run('3').split()[1]) > 2", "'3' in run('3')", "len(run('3').split()) == 2"])
def test_a_case_that_some_output_fails_is_none(sandbox: Sandbox, line: str) -> None:
    (report,) = judged(SUM, f"assert {line}", SUM.solution, sandbox=sandbox)
    assert verdicts(report) == [Verdict.PASSED]


def test_an_input_that_the_solution_refuses_is_no_test(sandbox: Sandbox) -> None:
    (report,) = judged(SUM, "assert run('x') == ''\nassert run(5) == ''", SUM.solution, sandbox=sandbox)
    assert reasons(report) == [RejectionReason.SOLUTION_ERROR] * 2


def test_a_program_is_valid_if_it_compiles(sandbox: Sandbox) -> None:
    fails, broken, prose = judged(
        SUM,
        "assert run('1') == '1 1'",
        "```python\n1 / 0\n```",
        "```python\nprint(\n```",
        "I cannot do that.",
        sandbox=sandbox,
    )
    assert fails.verdict is Verdict.PASSED
    assert verdicts(fails) == [Verdict.RUNTIME_ERROR]
    assert broken.verdict is Verdict.SYNTAX_ERROR
    assert prose.verdict is Verdict.NO_CODE


@pytest.mark.parametrize("reply", ["print(7, 4)", "Here it is:\n\n```python\nprint(7, 4)\n```\nIt prints 7 and 4."])
def test_a_program_need_not_define_anything(reply: str) -> None:
    assert candidate_of(reply, SUM, FIXED).program == "print(7, 4)"


def test_the_release_reading_reads_the_same_suites(sandbox: Sandbox) -> None:
    suite = "```python\nassert run('1 5') == '6\\n5'\nassert run('2 2') == '9'\n```"
    right, wrong = judged(SUM, suite, SUM.solution, "print(6, 5)", sandbox=sandbox, rules=preset("release"))
    assert verdicts(right) == [Verdict.PASSED] * 2
    assert verdicts(wrong) == [Verdict.PASSED, Verdict.WRONG_ANSWER]


# Methods


def test_a_method_is_called_on_a_new_instance_each_time(sandbox: Sandbox) -> None:
    suite = (
        "s = Solution()\nassert s.greet('x') == 'hi x!'\nassert s.greet('y', '?') == 'hi y?'\n"
        "assert len(s.greet('zz')) == 6"
    )
    once = (
        "class Solution:\n    def __init__(self):\n        self.n = 0\n    def greet(self, name, sign='!'):\n"
        "        self.n += 1\n        return help(name) + sign if self.n == 1 else ''\n"
        "def help(name):\n    return f'hi {name}'"
    )
    for report in judged(GREET, suite, GREET.solution, once, sandbox=sandbox):
        assert verdicts(report) == [Verdict.PASSED] * 3
    expressions = [case.expression for case in suite_of(GREET, suite).cases]
    assert expressions == ["Solution().greet('x')", "Solution().greet('y', '?')", "len(Solution().greet('zz'))"]


def test_calls_that_differ_in_form_only_are_one_call(sandbox: Sandbox) -> None:
    lines = ["greet('x')", "greet(name='x')", "greet('x', '!')", "greet(sign='!', name='x')"]
    suite = "\n".join(f"assert Solution().{line} == 'hi x!'" for line in lines)
    (report,) = judged(GREET, suite + "\nassert Solution().greet('ann') == 'hi ann!'", GREET.solution, sandbox=sandbox)
    assert [case.case.is_example for case in report.suites[0].cases] == [False, True]
    assert reasons(report) == [RejectionReason.DUPLICATE] * 3


@pytest.mark.parametrize(
    "line",
    [
        "Solution.greet('x') == 1",
        "Solution(1).greet('x') == 1",
        "greet('x') == 1",
        "Solution().other('x') == 1",
        "isinstance(Solution(), object)",
        "(lambda Solution: Solution().greet('x'))(1) == 1",
        "Solution().greet == 1",
    ],
)
def test_only_the_method_of_a_new_instance_may_be_called(line: str) -> None:
    suite = suite_of(GREET, f"assert {line}")
    assert suite.cases == ()
    assert {rejection.reason for rejection in suite.rejections} <= {
        RejectionReason.FORBIDDEN_NAME,
        RejectionReason.NO_ENTRY_POINT_CALL,
    }


def test_a_reply_may_repeat_the_class(sandbox: Sandbox) -> None:
    suite = f"```python\n{GREET.solution}\nassert Solution().greet('x') == 'hi x!'\n```"
    (report,) = judged(GREET, suite, GREET.solution, sandbox=sandbox)
    assert verdicts(report) == [Verdict.PASSED]


@pytest.mark.parametrize(
    ("program", "missing"),
    [
        ("def greet(name): ...", "Solution"),
        ("class Solution: pass", "greet"),
        ("class Solution:\n    greet = 1", "greet"),
    ],
)
def test_a_program_without_the_method_is_invalid(sandbox: Sandbox, program: str, missing: str) -> None:
    (report,) = judged(GREET, "assert Solution().greet('x') == 'hi x!'", program, sandbox=sandbox)
    assert report.verdict is Verdict.NO_ENTRY_POINT
    assert missing in report.detail


def test_the_class_is_found_among_several_blocks() -> None:
    reply = f"```python\n{GREET.solution}```\nUse it so:\n```python\nprint(Solution().greet('you'))\n```"
    assert candidate_of(reply, GREET, FIXED).program == GREET.solution.strip()


# The starter problems


@pytest.mark.slow
def test_every_starter_problem_passes_its_own_tests(sandbox: Sandbox) -> None:
    assert {check.status for check in check_problems(STARTERS, sandbox)} == {CheckStatus.OK}


def golden_of(programs: list[tuple[Problem, str]], sandbox: Sandbox) -> Iterator[tuple[Problem, str, GoldenFinding]]:
    for (problem, program), found in zip(programs, run_golden(programs, sandbox, FIXED.comparison), strict=True):
        yield problem, program, found


@pytest.mark.slow
def test_wrong_programs_fail_some_golden_tests_but_not_all(sandbox: Sandbox) -> None:
    wrong: list[tuple[Problem, WrongProgram]] = [(each, one) for each in STARTERS for one in each.wrong_programs]
    assert len(STARTERS) == 20
    assert len(wrong) == 60
    for problem, program, found in golden_of([(each, one.program) for each, one in wrong], sandbox):
        assert found.passed is False, (problem.id, program)
        assert found.pass_rate, (problem.id, program)


@pytest.mark.slow
def test_right_programs_pass_in_five_styles(sandbox: Sandbox) -> None:
    programs = []
    for problem in STARTERS:
        is_script = problem.kind is ProblemKind.STDIN
        method = problem.entry_point.rpartition(".")[2]
        styles = scripts_like(problem.solution) if is_script else classes_like(problem.solution, method)
        assert len(styles) == 5
        programs += [(problem, program) for program in styles.values()]
    for problem, program, found in golden_of(programs, sandbox):
        assert found.passed, (problem.id, program, found.detail)


# Hostile programs


class Method(HostileProgram):
    """A hostile program, called as a method."""

    def to_job(self) -> Job:
        program = (
            f"{self.program}\n\nclass Solution:\n    def f(self, *args, **kwargs):\n        return f(*args, **kwargs)\n"
        )
        return Job(
            program, "Solution().f", tuple(Call(f"Solution().{call}") for call in self.calls), limits=self.limits
        )


class Script(HostileProgram):
    """A hostile program that prints what it would return."""

    def to_job(self) -> Job:
        calls = tuple(Call(f"run({call!r})") for call in self.calls)
        program = f"{self.program}\n\nprint(repr(eval(input())))\n"
        return Job(program, "run", calls, limits=self.limits, script=OutputForm.EXACT)


@pytest.fixture(scope="module")
def auditor(sandbox: Sandbox) -> Iterator[Auditor]:
    with Auditor(sandbox) as auditor:
        yield auditor


def printed(sources: tuple[str, ...]) -> tuple[str, ...]:
    """Return the texts of values, as Python source."""
    return tuple(repr(repr(ast.literal_eval(source))) for source in sources)


@pytest.mark.slow
@pytest.mark.xdist_group("watches the machine")
@pytest.mark.parametrize("attack", load_attacks().programs, ids=lambda attack: attack.name)
@pytest.mark.parametrize("form", [Method, Script])
def test_hostile_programs_gain_nothing_in_another_form(
    auditor: Auditor, form: type[HostileProgram], attack: HostileProgram
) -> None:
    fields = {field.name: getattr(attack, field.name) for field in dataclasses.fields(attack)}
    if form is Script:  # it prints texts, and ends in other ways
        fields |= {"evidence": printed(attack.evidence), "right": (), "values": ()}
        fields |= {"outcomes": frozenset(OutcomeKind) - {OutcomeKind.INTERNAL_ERROR}}
    finding = auditor.try_program(form(**fields))
    assert finding.result is AuditResult.HELD, finding.sentence
