from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codea1_env.errors import BrokenInput, UserError
from codea1_env.facts.problem_kinds import ProblemKind
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems import GoldenCase, GoldenHarness
from codea1_env.problems.humaneval import load, problem_from_row
from codea1_env.problems.layouts import read_row
from codea1_env.problems.problem import Refusal
from codea1_env.problems.refusals import RefusedRow
from codea1_env.sandbox import Sandbox
from tests.support.data_set_rows import BIGCODEBENCH, HUMANEVAL, KODCODE, LEETCODE, MBPP, MBPP_PLUS, MBPP_SANITIZED, ULT


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


# -- bigcodebench --


RIGHT = "def task_func(words, power=2):\n    return {w: n ** power for w, n in Counter(words).items() if n > 1}\n"


def test_a_row_is_recognised() -> None:
    problem = read_row(BIGCODEBENCH)
    assert (problem.id, problem.entry_point, problem.source) == ("BigCodeBench/9000", "task_func", "BigCodeBench")
    assert problem.examples


@pytest.mark.parametrize(
    ("program", "status"),
    [
        (RIGHT, CheckStatus.OK),
        (RIGHT.replace("n ** power", "math.pow(n, power)"), CheckStatus.OK),  # with the imports of the statement
        (RIGHT.replace("n ** power", "n ** 2"), CheckStatus.WRONG),  # only test_power tells
        (RIGHT.replace("n > 1", "n > 0"), CheckStatus.WRONG),
    ],
)
def test_every_method_of_the_test_class_counts(sandbox: Sandbox, program: str, status: CheckStatus) -> None:
    problem = replace(read_row(BIGCODEBENCH), solution=program, examples=())
    assert [check.status for check in check_problems([problem], sandbox, runs=1)] == [status]


def test_a_row_without_a_code_prompt_is_read_from_the_complete_one() -> None:
    assert '"""' in read_row(BIGCODEBENCH | {"code_prompt": None}).solution


def test_a_solution_of_another_function_is_broken() -> None:
    with pytest.raises(BrokenInput, match="does not define other"):
        read_row(BIGCODEBENCH | {"entry_point": "other"})


# -- kodcode --


def test_the_entry_point_is_the_imported_function_and_the_statement_declares_it() -> None:
    problem = read_row(KODCODE)
    assert (problem.id, problem.entry_point) == ("Prefill_0_I", "doubled")
    assert problem.statement == f"{KODCODE['question']}\n\ndef doubled(numbers):\n"
    assert problem.licence == "CC-BY-NC-4.0"


def test_a_question_that_shows_a_call_is_the_statement() -> None:
    question = "Write `doubled`, which doubles the numbers of a list."
    assert read_row(KODCODE | {"question": question}).statement == question


def test_a_test_may_import_everything() -> None:
    everything = KODCODE["test"].replace("import doubled", "import *")
    assert read_row(KODCODE | {"test": everything}).entry_point == "doubled"


def test_a_helper_beside_the_entry_point_is_no_entry_point() -> None:
    helped = (
        "def twice(n):\n    return 2 * n\n\ndef doubled(numbers):\n    return [twice(n) for n in numbers if n >= 0]\n"
    )
    assert read_row(KODCODE | {"solution": helped}).entry_point == "doubled"


def test_every_test_function_counts(sandbox: Sandbox) -> None:  # test_layouts tells that the solution passes
    wrong = read_row(KODCODE | {"solution": "def doubled(numbers):\n    return [2 * n for n in numbers]\n"})
    assert [check.status for check in check_problems([wrong], sandbox, runs=1)] == [CheckStatus.WRONG]


@pytest.mark.parametrize(
    ("changes", "reason", "refusal"),
    [
        (
            {"test": "from solution import doubled, tripled\ndef test_it():\n    assert doubled([]) == tripled([])\n"},
            "column 'test' imports doubled, tripled; expected one entry point",
            Refusal.SEVERAL_FUNCTIONS,
        ),
        (
            {
                "solution": "class Stack:\n    pass\n\ndef doubled(x):\n    return x\n",
                "test": "from solution import Stack\ndef test_it():\n    assert Stack()\n",
            },
            "column 'test' imports Stack, which the solution does not define",
            Refusal.SEVERAL_FUNCTIONS,
        ),
        ({"question": "Return the pairs in any order."}, "accepts several answers", Refusal.SEVERAL_ANSWERS),
    ],
)
def test_rows_that_cannot_be_played_are_refused(changes: dict[str, Any], reason: str, refusal: Refusal) -> None:
    with pytest.raises(RefusedRow, match=reason) as caught:
        read_row(KODCODE | changes)
    assert caught.value.refusal is refusal


# -- leetcode --


def test_a_row_becomes_a_problem_with_a_method() -> None:
    problem = read_row(LEETCODE)
    assert (problem.id, problem.kind) == ("LeetCode/double-sum", ProblemKind.METHOD)
    assert problem.statement.endswith("-> int:")
    assert [type(test) for test in problem.golden] == [GoldenHarness]
    assert problem.examples == (
        "assert Solution().doubleSum(nums=[1, 2], step=3) == 18",
        "assert Solution().doubleSum(nums=[]) == 0",
    )


# -- mbpp --


def test_the_statement_ends_with_the_first_test_and_all_tests_are_golden() -> None:
    problem = read_row(MBPP)
    assert (problem.id, problem.entry_point) == ("Mbpp/9001", "double")
    assert problem.statement == "Write a function to double a number.\n\nassert double(2) == 4\n"
    assert problem.examples == ("assert double(2) == 4",)
    assert problem.golden == (
        GoldenCase("double(2)", "4"),
        GoldenCase("double(-1)", "-2"),
        GoldenCase("double(0)", "0"),
    )


def test_imports_of_the_tests_are_put_before_them() -> None:
    problem = read_row(MBPP_SANITIZED)
    assert problem.imports == "import math"
    harness = problem.golden[1]
    assert isinstance(harness, GoldenHarness)
    assert harness.source.startswith("import math")


def test_the_added_tests_of_mbpp_plus_are_golden_too() -> None:
    plain, plus = read_row(MBPP_PLUS | {"test": None}), read_row(MBPP_PLUS)
    assert len(plus.golden) == len(plain.golden) + 1
    assert (plain.licence, plus.licence) == ("CC-BY-4.0", "CC-BY-4.0 AND Apache-2.0")


def test_tests_with_objects_are_refused() -> None:
    with pytest.raises(RefusedRow, match="creates objects for the tests") as caught:
        read_row(MBPP | {"test_setup_code": "root = Node(1)"})
    assert caught.value.refusal is Refusal.OBJECTS


# -- ult --


def test_the_code_is_the_solution_with_the_imports_of_the_evaluator_and_no_golden_tests() -> None:
    problem = read_row(ULT)
    assert (problem.id, problem.entry_point, problem.golden) == ("ULT/12", "root", ())
    assert problem.solution == ULT["code"]
    assert problem.imports == "import math\nfrom typing import List"


def test_a_prompt_that_does_not_show_the_function_is_followed_by_its_declaration() -> None:
    assert read_row(ULT).statement.endswith("none.\n\ndef root(numbers: List[float]) -> float:\n")
    shown = 'def root(numbers):\n    """The root of the sum."""\n'
    assert read_row(ULT | {"prompt": shown}).statement == shown


def test_code_of_another_function_is_broken() -> None:
    with pytest.raises(BrokenInput, match="the solution does not define leaf"):
        read_row(ULT | {"func_name": "leaf"})
