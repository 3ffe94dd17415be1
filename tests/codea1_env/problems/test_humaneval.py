from __future__ import annotations

from typing import Any

import pytest

from codea1_env.errors import UserError
from codea1_env.problems import GoldenHarness
from codea1_env.problems.humaneval import load, problem_from_row
from tests.support.data_set_rows import HUMANEVAL


def run(source: str, **names: Any) -> dict[str, Any]:
    namespace = dict(names)
    exec(source, namespace)
    return namespace


def test_it_holds_the_164_problems_with_their_licence() -> None:
    problems = load()
    assert len(problems) == 164
    assert load() is problems, "it is read once"
    assert {problem.licence for problem in problems} == {"MIT"}
    assert problems[0].id == "HumanEval/0"
    assert problems.by_id("HumanEval/0").imports == "from typing import List"


def test_every_example_of_every_statement_holds_for_the_solution() -> None:
    for problem in load():
        namespace = run(problem.solution)
        for example in problem.examples:
            exec(example, dict(namespace))  # an AssertionError names the line


def test_most_statements_yield_examples() -> None:
    problems = load()
    assert sum(1 for problem in problems if problem.examples) >= 140
    assert problems.by_id("HumanEval/12").examples[0] == "assert longest([]) == None"
    assert problems.by_id("HumanEval/79").examples[0] == "assert decimal_to_binary(15) == 'db1111db'"


def test_every_solution_passes_its_golden_harness_and_a_program_that_returns_nothing_fails_it() -> None:
    for problem in load():
        (golden,) = problem.golden
        assert isinstance(golden, GoldenHarness)
        solution = run(problem.solution)[problem.entry_point]
        run(golden.source, candidate=solution, **{problem.entry_point: solution})["check"](solution)
        with pytest.raises((AssertionError, TypeError)):
            run(golden.source, **{problem.entry_point: lambda *_: None})["check"](lambda *_: None)


def test_a_harness_brings_the_statements_helpers_but_not_the_solution() -> None:
    problem = load().by_id("HumanEval/38")
    (golden,) = problem.golden
    assert isinstance(golden, GoldenHarness)
    assert "def encode_cyclic" in golden.source
    assert "def decode_cyclic" not in golden.source


def test_rows_of_other_origin_get_no_licence() -> None:
    problem = problem_from_row(HUMANEVAL | {"task_id": "Mine/1"})
    assert (problem.source, problem.licence) == ("", "")
    assert problem.solution == HUMANEVAL["prompt"] + HUMANEVAL["canonical_solution"]


def test_a_solution_that_defines_something_else_is_refused() -> None:
    with pytest.raises(UserError, match="does not define g"):
        problem_from_row(HUMANEVAL | {"entry_point": "g"})
