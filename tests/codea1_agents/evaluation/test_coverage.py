from __future__ import annotations

import ast

import pytest

from codea1_agents.evaluation.coverage import Coverage, instrumented, read_coverage
from codea1_env.facts.problem_kinds import ProblemKind, programs_of
from codea1_env.problems import load_problems
from codea1_env.sandbox import Call, Job, Sandbox

SOURCE = '''\
"""A module."""
from __future__ import annotations

import math

def f(n, items=()):
    """Documented."""
    global seen
    seen = n
    if n > 10:
        return math.floor(n)
    elif n == 7:
        return -1
    while n > 5:
        n -= 1
    for item in items:
        if item:
            break
    else:
        n = 0
    try:
        return f(20) + n
    except ValueError:
        pass
'''


def reached(sandbox: Sandbox, source: str, *calls: str) -> tuple[list[str], Coverage, Coverage]:
    solution = instrumented(source, "f")
    job = Job(solution.program, "f", (*map(Call, calls), Call(solution.report_call)))
    (report,) = sandbox.run([job])
    reached_code = read_coverage(report.outcomes[-1])
    assert reached_code is not None, report
    return [str(outcome.value) for outcome in report.outcomes[:-1]], reached_code, solution.all


def test_lines_are_where_statements_start(sandbox: Sandbox) -> None:
    _, _, everything = reached(sandbox, SOURCE)
    assert sorted(everything.lines) == [4, 6, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 21, 22, 24]
    assert len(everything.branches) == 2 * 5  # if, elif, while, for, if


def test_loading_reaches_what_stands_outside_of_functions(sandbox: Sandbox) -> None:
    _, reached_code, _ = reached(sandbox, SOURCE)
    assert sorted(reached_code.lines) == [4, 6]
    assert not reached_code.branches


@pytest.mark.parametrize(
    ("call", "lines", "n_branches"),
    [
        ("f(11)", [9, 10, 11], 1),
        ("f(7)", [9, 10, 12, 13], 2),
        ("f(6)", [9, 10, 11, 12, 14, 15, 16, 20, 21, 22], 6),
        ("f(1, [0, 1])", [9, 10, 11, 12, 14, 16, 17, 18, 21, 22], 7),
    ],
)
def test_a_call_reaches_its_lines_and_ways(sandbox: Sandbox, call: str, lines: list[int], n_branches: int) -> None:
    _, reached_code, _ = reached(sandbox, SOURCE, call)
    assert sorted(reached_code.lines) == [4, 6, *lines]
    assert len(reached_code.branches) == n_branches


def test_the_instrumentation_changes_no_value(sandbox: Sandbox) -> None:
    for problem in load_problems("starter", limit=12):
        calls = tuple(
            Call(ast.unparse(node.test.left))
            for line in problem.examples
            for node in ast.parse(line).body
            if isinstance(node, ast.Assert) and isinstance(node.test, ast.Compare)
        )
        plain = Job(problem.solution, problem.entry_point, calls, problem.imports)
        noting = Job(
            instrumented(problem.solution, problem.entry_point, problem.imports).program, problem.entry_point, calls
        )
        first, second = sandbox.run([plain, noting])
        assert first.outcomes == second.outcomes
        assert calls


def test_deep_recursion_stays_possible(sandbox: Sandbox) -> None:
    source = "def f(n):\n    if n == 0:\n        return 0\n    return 1 + f(n - 1)\n"
    values, _, _ = reached(sandbox, source, "f(900)")
    assert values == ["b'900'"]


def test_match_cases_are_one_branch_each(sandbox: Sandbox) -> None:
    source = "def f(n):\n    match n:\n        case 1:\n            return 1\n        case _:\n            return 2\n"
    _, reached_code, everything = reached(sandbox, source, "f(1)")
    assert (len(reached_code.branches), len(everything.branches)) == (1, 2)
    assert sorted(reached_code.lines) == [1, 2, 4]


def test_a_constant_condition_is_no_branch(sandbox: Sandbox) -> None:
    _, _, everything = reached(sandbox, "def f(n):\n    while True:\n        return n\n", "f(1)")
    assert not everything.branches


def test_line_counts_are_those_of_coverage(tmp_path: object) -> None:
    coverage = pytest.importorskip("coverage", reason="coverage is not installed")
    parser = pytest.importorskip("coverage.parser")
    assert coverage
    for problem in load_problems("starter"):
        theirs = parser.PythonParser(text=problem.solution)
        theirs.parse_source()
        ours = instrumented(problem.solution, problem.entry_point).all.lines
        handlers = {n.lineno for n in ast.walk(ast.parse(problem.solution)) if isinstance(n, ast.excepthandler)}
        assert theirs.statements - handlers == ours, problem.id


def test_methods_and_programs_that_print_are_measured(sandbox: Sandbox) -> None:
    method = "class Solution:\n    def f(self, x):\n        if x:\n            return 1\n        return 2\n"
    script = "import sys\nx = input()\nif x:\n    print(1)\n    sys.exit(0)\nprint(2)\n"
    arguments = script.replace("input()", "sys.argv[1]")
    for source, kind, entry_point, calls in (
        (method, ProblemKind.METHOD, "Solution().f", ("Solution().f(1)", "Solution().f(0)")),
        (script, ProblemKind.STDIN, "run", ("run('1')", "run('\\n')")),
        (arguments, ProblemKind.COMMAND_LINE, "run", ("run('1')", "run('')")),
    ):
        solution = instrumented(source, entry_point, receives=programs_of(kind).receives)
        for n_calls in (1, 2):
            made = (*map(Call, calls[:n_calls]), Call(solution.report_call))
            (report,) = sandbox.run([Job(solution.program, entry_point, made)])
            found = read_coverage(report.outcomes[-1])
            assert found is not None, report
            assert len(found.branches) == n_calls
            assert (found.lines == solution.all.lines) is (n_calls == 2)
