"""Methods and programs that print, from a tester's reply to the verdict."""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterator

import pytest

from codea1_env.audit import Auditor, AuditResult, HostileProgram, load_attacks
from codea1_env.facts.answers import AnswerRules, OutputForm
from codea1_env.facts.problem_kinds import Script
from codea1_env.facts.submissions import RejectionReason, Suite
from codea1_env.facts.verdicts import CandidateReport, OutcomeKind, Verdict
from codea1_env.judging.golden import run_golden
from codea1_env.judging.judge import Duel, Judge
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems import Problem, load_problems
from codea1_env.problems.own_rows import problem_from_row
from codea1_env.rounds.rounds import candidate_of
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Ruleset, preset
from codea1_env.sandbox import Sandbox
from codea1_env.sandbox.interface import Call, Job
from tests.support import argv_problems
from tests.support.replies import reasons
from tests.support.several_answers import verdicts

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
TOTAL, NUMBERED = load_problems(argv_problems.SOURCE)
STARTERS = [problem for part in ("stdin", "methods") for problem in load_problems(f"starter:{part}")]


def judged(
    problem: Problem, suite: str, *programs: str, sandbox: Sandbox, rules: Ruleset = FIXED
) -> list[CandidateReport]:
    candidates = [candidate_of(program, problem, rules) for program in programs]
    (report,) = Judge(sandbox, rules).judge([Duel.crossed(problem, candidates, [suite_of(problem, suite, rules)])])
    return list(report.candidates)


def rejected(report: CandidateReport) -> list[str]:
    return [reason.value for reason in reasons(report.suites[0].suite)]


def suite_of(problem: Problem, text: str, rules: Ruleset = FIXED) -> Suite:
    return read_suite(text, rules.reading, entry_point=problem.entry_point, output=problem.printed)


EXACT = dataclasses.replace(SUM, output=OutputForm.EXACT)
ONE_LINE = "n = [*map(int, input().split())]\nprint(sum(n), max(n))"
SPACED = ONE_LINE.replace("sum(n),", "sum(n), '',")
HALF = "n = [*map(int, input().split())]\nprint(sum(n))"
WORDS = ["run('1 5\\n') == '6\\n5\\n'", "run('2 2') == '4 2'"]
ENDS = [f"run('1 5{end}') == '6 5'" for end in ("", "\\n", " \\r\\n")]
PARTS = ["run('1 2').split()[0] == '3'", "int(run('4').split()[1]) > 3", "run('5 6') != run('5 7')"]
GREETINGS = ["greet('x')", "greet(name='x')", "greet('x', '!')", "greet(sign='!', name='x')"]
BAD_ARGUMENTS = [", 2", ", '\\0'", ", '\\ud800'", ", text='2'"]
LETTERS = {"E": Verdict.RUNTIME_ERROR, "P": Verdict.PASSED, "W": Verdict.WRONG_ANSWER}


@pytest.mark.parametrize(
    ("problem", "conditions", "expected", "reasons"),
    [
        # Outputs are compared by their words, or exactly.
        (SUM, [*WORDS, "run('-1') == '\\n'.join(['-1'] * 2)"], {SUM.solution: "PPP", SPACED: "PPP", HALF: "WWW"}, []),
        (EXACT, WORDS, {EXACT.solution: "PP", ONE_LINE: "WW"}, ["wrong_prediction"]),
        # Other white space at the end of an input, or another form of a method's call, makes no other call.
        (SUM, [*ENDS, "int(run('1 5').split()[0]) == 6"], {SUM.solution: "P"}, ["duplicate"] * 3),
        (GREET, [f"Solution().{each} == 'hi x!'" for each in GREETINGS], {GREET.solution: "P"}, ["duplicate"] * 3),
        # Cases that are not plain calls run, and what any output passes is dropped.
        (SUM, [*PARTS, "len(run('8')) >= 0"], {SUM.solution: "PPP", "print(3, 0)": "PWW"}, ["vacuous"]),
        (SUM, ["run('3') == run('3')[:]"], {SUM.solution: ""}, ["vacuous"]),
        (SUM, ["int(run('3').split()[0]) ** 2 >= 0"], {SUM.solution: ""}, ["vacuous"]),
        (SUM, ["' ' in run('3') + ' '"], {SUM.solution: ""}, ["vacuous"]),
        (SUM, ["int(run('3').split()[1]) > 2"], {SUM.solution: "P"}, []),
        (SUM, ["'3' in run('3')"], {SUM.solution: "P"}, []),
        (SUM, ["len(run('3').split()) == 2"], {SUM.solution: "P"}, []),
        (SUM, ["run('x') == ''", "run(5) == ''"], {SUM.solution: ""}, ["solution_error"] * 2),
        # Arguments of a command line are texts, of which every character counts, and as many as a test gives.
        (
            TOTAL,
            ["run('3', '4') == ' 7\\n'", "run() == '0'"],
            {TOTAL.solution: "PP", "print(7)": "PW", "print(1 / 0)": "EE"},
            [],
        ),
        (TOTAL, ["run('3', '4') == '7'", "run('3',\"4\") == '7'"], {TOTAL.solution: "P"}, ["duplicate"]),
        (TOTAL, ["int(run('3', '4')) > 6", "int(run(*['8'])) == 8"], {TOTAL.solution: "PP", "print(7)": "PW"}, []),
        (TOTAL, [f"run('1'{more}) == '1'" for more in BAD_ARGUMENTS], {TOTAL.solution: ""}, ["solution_error"] * 4),
        (NUMBERED, [f"run('{end}') == '1: {end}'" for end in ("", " ", "-")], {NUMBERED.solution: "PPP"}, []),
        (NUMBERED, ["run('a', 'b') == '1: a 2: b'"], {NUMBERED.solution: "P"}, ["wrong_prediction"]),
        (NUMBERED, ["run('a  b') == '1: a  b'"], dict.fromkeys([NUMBERED.wrong_programs[0].program], "W"), []),
    ],
)
def test_a_suite_has_its_cases_verdicts_and_rejections(
    sandbox: Sandbox, problem: Problem, conditions: list[str], expected: dict[str, str], reasons: list[str]
) -> None:
    suite = "\n".join(f"assert {condition}" for condition in conditions)
    found = judged(problem, suite, *expected, sandbox=sandbox)
    assert [verdicts(report) for report in found] == [[LETTERS[each] for each in said] for said in expected.values()]
    assert rejected(found[0]) == reasons


@pytest.mark.parametrize(
    ("problem", "suite"),
    [
        (SUM, "assert run('1 2\\n') == '3 2'\nassert run('9') == '9 9'"),
        (TOTAL, "assert run('--greatest', '1', '2') == '2'\nassert run('1', '2', '3') == '6'"),
        (GREET, "assert Solution().greet('ann') == 'hi ann!'\nassert Solution().greet('x') == 'hi x!'"),
    ],
)
def test_an_example_of_the_statement_is_recognised(sandbox: Sandbox, problem: Problem, suite: str) -> None:
    (report,) = judged(problem, suite, problem.solution, sandbox=sandbox)
    assert [case.case.is_example for case in report.suites[0].cases] == [True, False]


def test_a_program_is_valid_if_it_compiles(sandbox: Sandbox) -> None:
    programs = ("```python\n1 / 0\n```", "```python\nprint(\n```", "I cannot do that.")
    fails, broken, prose = judged(SUM, "assert run('1') == '1 1'", *programs, sandbox=sandbox)
    assert fails.verdict is Verdict.PASSED
    assert verdicts(fails) == [Verdict.RUNTIME_ERROR]
    assert broken.verdict is Verdict.SYNTAX_ERROR
    assert prose.verdict is Verdict.NO_CODE


def test_a_program_need_not_define_anything() -> None:
    for reply in ("print(7, 4)", "Here it is:\n\n```python\nprint(7, 4)\n```\nIt prints 7 and 4."):
        assert candidate_of(reply, SUM, FIXED).program == "print(7, 4)"


def test_the_release_reading_reads_the_same_suites(sandbox: Sandbox) -> None:
    suite = "```python\nassert run('1 5') == '6\\n5'\nassert run('2 2') == '9'\n```"
    right, wrong = judged(SUM, suite, SUM.solution, "print(6, 5)", sandbox=sandbox, rules=preset("release"))
    assert verdicts(right) == [Verdict.PASSED] * 2
    assert verdicts(wrong) == [Verdict.PASSED, Verdict.WRONG_ANSWER]


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


@pytest.mark.parametrize(
    "line",
    [
        *("Solution.greet('x') == 1", "Solution(1).greet('x') == 1", "greet('x') == 1", "Solution().other('x') == 1"),
        *("isinstance(Solution(), object)", "(lambda Solution: Solution().greet('x'))(1) == 1"),
        "Solution().greet == 1",
    ],
)
def test_only_the_method_of_a_new_instance_may_be_called(line: str) -> None:
    suite = suite_of(GREET, f"assert {line}")
    assert suite.cases == ()
    assert set(reasons(suite)) <= {RejectionReason.FORBIDDEN_NAME, RejectionReason.NO_ENTRY_POINT_CALL}


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


@pytest.mark.parametrize("problem", [SUM, TOTAL])
def test_a_checker_gets_the_texts_of_a_call_whatever_the_solution_defines(sandbox: Sandbox, problem: Problem) -> None:
    rules = AnswerRules(checker="def check(arguments, expected, answer):\n    return answer == expected\n")
    defining = dataclasses.replace(problem, solution=f"def run(): ...\n{problem.solution}", answers=rules)
    (found,) = check_problems([defining], sandbox)
    assert found.status is CheckStatus.OK, found.detail


@pytest.mark.parametrize("problems", [[TOTAL, NUMBERED], pytest.param(STARTERS, marks=pytest.mark.slow)])
def test_solutions_pass_all_golden_tests_and_wrong_programs_some(sandbox: Sandbox, problems: list[Problem]) -> None:
    assert {check.status for check in check_problems(problems, sandbox)} == {CheckStatus.OK}
    wrong = [(problem, each.program) for problem in problems for each in problem.wrong_programs]
    assert (len(problems), len(wrong)) in ((2, 2), (20, 60))
    for (problem, program), found in zip(wrong, run_golden(wrong, sandbox, FIXED.comparison), strict=True):
        assert found.passed is False, (problem.id, program)
        assert found.pass_rate, (problem.id, program)


class Method(HostileProgram):
    """A hostile program, called as a method."""

    def to_job(self) -> Job:
        solution = "class Solution:\n    def f(self, *args, **kwargs):\n        return f(*args, **kwargs)\n"
        calls = tuple(Call(f"Solution().{call}") for call in self.calls)
        return Job(f"{self.program}\n\n{solution}", "Solution().f", calls, limits=self.limits)


class Printer(HostileProgram):
    """A hostile program that prints what it would return."""

    reads, script = "input()", Script.EXACT

    def to_job(self) -> Job:
        calls = tuple(Call(f"run({call!r})") for call in self.calls)
        program = f"{self.program}\n\nprint(repr(eval({self.reads})))\n"
        return Job(program, "run", calls, limits=self.limits, script=self.script)


class ArgumentPrinter(Printer):
    """The same with an argument instead of an input."""

    reads, script = "__import__('sys').argv[1]", Script.COMMAND_LINE_EXACT


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
@pytest.mark.parametrize("form", [Method, Printer, ArgumentPrinter])
def test_hostile_programs_gain_nothing_in_another_form(
    auditor: Auditor, form: type[HostileProgram], attack: HostileProgram
) -> None:
    fields = {field.name: getattr(attack, field.name) for field in dataclasses.fields(attack)}
    if issubclass(form, Printer):  # it prints texts, and ends in other ways
        fields |= {"evidence": printed(attack.evidence), "right": (), "values": ()}
        fields |= {"outcomes": frozenset(OutcomeKind) - {OutcomeKind.INTERNAL_ERROR}}
    finding = auditor.try_attack(form(**fields))
    assert finding.result is AuditResult.HELD, finding.sentence
