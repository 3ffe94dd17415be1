"""The shipped problems are what they claim to be. All programs here are our own, so plain `exec` will do."""

import ast
import signal
import tomllib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.resources import files
from typing import Any

import pytest

from codea1_env.problems.problem import GoldenCase, Problem, ProblemSet
from codea1_env.problems.starter import DIFFICULTIES, load

FOLDER = files("codea1_env.problems").joinpath("starter_data")
FILES = {path.name[:-5]: path.read_text("utf-8") for path in FOLDER.iterdir() if path.name.endswith(".toml")}
PROBLEMS = [pytest.param(problem, id=problem.entry_point) for problem in load()]

Answer = tuple[str, Any]
"""What an evaluation gave: "value" and the value, or "error" and the exception's name."""


@contextmanager
def cpu_guard(seconds: float) -> Iterator[None]:
    """Fail the test, even within a loop that does not end, when the block uses more processor time."""
    before = signal.signal(signal.SIGVTALRM, lambda *_: pytest.fail(f"more than {seconds} s"))
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def loader_of(problem: Problem, program: str) -> Callable[[], dict[str, Any]]:
    """Return what makes a fresh namespace in which the program has run; it is compiled once."""
    code = compile(problem.imports + "\n" + program, problem.id, "exec")

    def fresh() -> dict[str, Any]:
        namespace: dict[str, Any] = {"__name__": "candidate"}
        exec(code, namespace)
        return namespace

    return fresh


def answer(expression: str, namespace: dict[str, Any]) -> Answer:
    try:
        return "value", eval(expression, namespace)
    except Exception as error:  # noqa: BLE001  -- a wrong program may raise anything
        return "error", type(error).__name__


def expected(case: GoldenCase) -> Answer:
    return "value", ast.literal_eval(case.expected)


def golden_cases(problem: Problem) -> list[GoldenCase]:
    assert all(isinstance(test, GoldenCase) for test in problem.golden)
    return [test for test in problem.golden if isinstance(test, GoldenCase)]


def example_cases(problem: Problem) -> list[GoldenCase]:
    sides = [ast.parse(line).body[0].test for line in problem.examples]  # type: ignore[attr-defined]
    return [GoldenCase(ast.unparse(side.left), ast.unparse(side.comparators[0])) for side in sides]


def failures(problem: Problem, program: str, cases: list[GoldenCase]) -> list[str]:
    """Return the expressions on which the program is wrong, each tried in a namespace of its own."""
    fresh = loader_of(problem, program)
    return [case.expression for case in cases if answer(case.expression, fresh()) != expected(case)]


def is_plain(value: Any) -> bool:
    if isinstance(value, dict):
        return all(is_plain(part) for pair in value.items() for part in pair)
    if isinstance(value, list | tuple | set | frozenset):
        return all(is_plain(part) for part in value)
    return type(value) in (str, int, float, bool, type(None))


def test_the_set_is_big_ordered_and_unique() -> None:
    problems = load()
    assert isinstance(problems, ProblemSet)
    assert problems.name == "starter"
    assert len(problems) >= 48
    assert {problem.id for problem in problems} == {f"starter/{name}" for name in FILES}
    ranks = [DIFFICULTIES.index(tomllib.loads(FILES[problem.entry_point])["difficulty"]) for problem in problems]
    assert ranks == sorted(ranks)
    assert set(ranks) == {0, 1, 2}
    assert load() is problems


def test_the_set_covers_the_promised_topics() -> None:
    topics = {topic for text in FILES.values() for topic in tomllib.loads(text)["topics"]}
    assert topics >= {"strings", "numbers", "lists", "dicts", "recursion", "floats", "state"}


@pytest.mark.parametrize("name", sorted(FILES))
def test_a_file_is_named_by_its_entry_point_and_labelled(name: str) -> None:
    table = tomllib.loads(FILES[name])
    assert table["entry_point"] == name
    assert table["difficulty"] in DIFFICULTIES
    assert table["topics"]
    assert all(isinstance(topic, str) and topic.islower() for topic in table["topics"])


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_statement_is_a_whole_typed_function_without_a_body(problem: Problem) -> None:
    compile(problem.imports + "\n" + problem.statement, problem.id, "exec")
    function = ast.parse(problem.statement).body[-1]
    assert isinstance(function, ast.FunctionDef)
    assert function.name == problem.entry_point
    assert ast.get_docstring(function)
    assert len(function.body) == 1
    assert function.returns is not None
    assert all(argument.annotation is not None for argument in function.args.args)
    assert problem.examples


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_solution_passes_everything_quickly_and_returns_plain_data(problem: Problem) -> None:
    cases = golden_cases(problem) + example_cases(problem)
    with cpu_guard(1.0):
        assert failures(problem, problem.solution, cases) == []
    namespace = loader_of(problem, problem.solution)()
    assert all(is_plain(answer(case.expression, namespace)[1]) for case in cases)


@pytest.mark.parametrize("problem", PROBLEMS)
def test_the_solution_does_not_depend_on_the_order_of_calls(problem: Problem) -> None:
    cases = golden_cases(problem)
    namespace = loader_of(problem, problem.solution)()
    wanted = [repr(answer(case.expression, namespace)) for case in cases]
    assert [repr(answer(case.expression, namespace)) for case in cases] == wanted
    assert [repr(answer(case.expression, namespace)) for case in reversed(cases)] == wanted[::-1]


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
def test_golden_tests_are_many_and_distinct(problem: Problem) -> None:
    expressions = [case.expression for case in golden_cases(problem)]
    assert len(expressions) >= 10
    assert len(set(expressions)) == len(expressions)
    assert len(problem.examples) >= 2


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
    with cpu_guard(5.0):
        for wrong in problem.wrong_programs:
            assert callable(loader_of(problem, wrong.program)().get(problem.entry_point)), wrong.note
            failed = failures(problem, wrong.program, cases)
            assert failed, f"not caught: {wrong.note}"
            count.setdefault(wrong.subtlety, []).append(len(failed))
    assert max(count[min(count)]) >= max(count[max(count)])
