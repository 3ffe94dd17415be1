"""The shipped problems are what they claim to be. All programs here are our own, so plain `exec` will do."""

import ast
import tomllib
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pytest

from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems.problem import GoldenCase, Problem, ProblemSet
from codea1_env.problems.starter import DIFFICULTIES, load
from codea1_env.sandbox import Sandbox

FOLDER = files("codea1_env.problems").joinpath("starter_data")
FILES = {path.name[:-5]: path.read_text("utf-8") for path in FOLDER.iterdir() if path.name.endswith(".toml")}
PROBLEMS = [pytest.param(problem, id=problem.entry_point) for problem in load()]


def loader_of(problem: Problem, program: str) -> Callable[[], dict[str, Any]]:
    """Return what makes a fresh namespace in which the program has run; it is compiled once."""
    code = compile(problem.imports + "\n" + program, problem.id, "exec")

    def fresh() -> dict[str, Any]:
        namespace: dict[str, Any] = {"__name__": "candidate"}
        exec(code, namespace)
        return namespace

    return fresh


def is_right(case: GoldenCase, namespace: dict[str, Any]) -> bool:
    try:
        return bool(eval(case.expression, namespace) == ast.literal_eval(case.expected))
    except Exception:  # noqa: BLE001  -- a wrong program may raise anything
        return False


def golden_cases(problem: Problem) -> list[GoldenCase]:
    assert all(isinstance(test, GoldenCase) for test in problem.golden)
    return [test for test in problem.golden if isinstance(test, GoldenCase)]


def example_cases(problem: Problem) -> list[GoldenCase]:
    sides = [ast.parse(line).body[0].test for line in problem.examples]  # type: ignore[attr-defined]
    return [GoldenCase(ast.unparse(side.left), ast.unparse(side.comparators[0])) for side in sides]


def failures(problem: Problem, program: str, cases: list[GoldenCase]) -> list[str]:
    """Return the expressions on which the program is wrong, each tried in a namespace of its own."""
    fresh = loader_of(problem, program)
    return [case.expression for case in cases if not is_right(case, fresh())]


def test_the_set_is_big_ordered_and_unique() -> None:
    problems = load()
    assert isinstance(problems, ProblemSet)
    assert problems.name == "starter"
    assert len(problems) >= 48
    assert {problem.id for problem in problems} == {f"starter/{name}" for name in FILES}
    tables = [tomllib.loads(FILES[problem.entry_point]) for problem in problems]
    ranks = [DIFFICULTIES.index(table["difficulty"]) for table in tables]
    assert ranks == sorted(ranks)
    assert set(ranks) == {0, 1, 2}
    assert load() is problems
    assert all(table["topics"] and "".join(table["topics"]).islower() for table in tables)
    topics = {topic for table in tables for topic in table["topics"]}
    assert topics >= {"strings", "numbers", "lists", "dicts", "recursion", "floats", "state"}


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_statement_is_a_whole_typed_function_without_a_body_and_tests_are_many(problem: Problem) -> None:
    expressions = [case.expression for case in golden_cases(problem)]
    assert len(set(expressions)) == len(expressions) >= 10
    compile(problem.imports + "\n" + problem.statement, problem.id, "exec")
    function = ast.parse(problem.statement).body[-1]
    assert isinstance(function, ast.FunctionDef)
    assert function.name == problem.entry_point
    assert ast.get_docstring(function)
    assert len(function.body) == 1
    assert function.returns is not None
    assert all(argument.annotation is not None for argument in function.args.args)
    assert len(problem.examples) >= 2


def test_solutions_pass_everything_quickly_in_any_order_with_plain_data(sandbox: Sandbox) -> None:
    found = check_problems(load(), sandbox, slow_s=1.0)
    assert [(each.problem_id, each.detail) for each in found if each.status is not CheckStatus.OK] == []


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_solution_passes_without_a_tolerance(problem: Problem) -> None:
    assert failures(problem, problem.solution, golden_cases(problem) + example_cases(problem)) == []


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_solution_leaves_its_arguments_alone(problem: Problem) -> None:
    solve = loader_of(problem, problem.solution)()[problem.entry_point]
    n_tried = 0
    for case in golden_cases(problem):
        call = ast.parse(case.expression, mode="eval").body
        if isinstance(call, ast.Call) and isinstance(call.func, ast.Name) and not call.keywords:
            arguments = [ast.literal_eval(argument) for argument in call.args]
            solve(*arguments)
            assert arguments == [ast.literal_eval(argument) for argument in call.args]
            n_tried += 1
    assert n_tried


@pytest.mark.parametrize("problem", PROBLEMS)
def test_wrong_programs_range_from_obvious_to_subtle(problem: Problem) -> None:
    wrong = problem.wrong_programs
    assert len(wrong) >= 4
    assert len({program.subtlety for program in wrong}) >= 3
    assert len({program.program for program in wrong}) == len(wrong)
    assert all(len(program.note) > 10 for program in wrong)
    subtle = [program for program in wrong if program.subtlety >= 3]
    assert any(failures(problem, program.program, example_cases(problem)) == [] for program in subtle)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_golden_tests_catch_every_wrong_program_and_the_obvious_ones_more_often(problem: Problem) -> None:
    cases = golden_cases(problem)
    count: dict[int, list[int]] = {}
    for wrong in problem.wrong_programs:
        assert callable(loader_of(problem, wrong.program)().get(problem.entry_point)), wrong.note
        failed = failures(problem, wrong.program, cases)
        assert failed, f"not caught: {wrong.note}"
        count.setdefault(wrong.subtlety, []).append(len(failed))
    assert max(count[min(count)]) >= max(count[max(count)])
