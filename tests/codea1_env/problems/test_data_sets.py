from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codea1_env.facts.problem_kinds import ProblemKind
from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems import GoldenCase, GoldenHarness
from codea1_env.problems.humaneval import load
from codea1_env.problems.layouts import read_row
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


WITHOUT_LICENCE = HUMANEVAL | {"task_id": "Mine/1"}
DOUBLED = f"{KODCODE['question']}\n\ndef doubled(numbers):\n"
SUMS = ("assert Solution().doubleSum(nums=[1, 2], step=3) == 18", "assert Solution().doubleSum(nums=[]) == 0")
CASES = tuple(GoldenCase(f"double({x})", str(2 * x)) for x in (2, -1, 0))


@pytest.mark.parametrize(
    ("row", "fields"),
    [
        (WITHOUT_LICENCE, {"source": "", "licence": "", "solution": f"{HUMANEVAL['prompt']}    return 2 * x\n"}),
        (BIGCODEBENCH, {"id": "BigCodeBench/9000", "entry_point": "task_func", "source": "BigCodeBench"}),
        (KODCODE, {"id": "Prefill_0_I", "entry_point": "doubled", "statement": DOUBLED, "licence": "CC-BY-NC-4.0"}),
        (LEETCODE, {"id": "LeetCode/double-sum", "kind": ProblemKind.METHOD, "examples": SUMS}),
        (MBPP, {"id": "Mbpp/9001", "entry_point": "double", "examples": ("assert double(2) == 4",), "golden": CASES}),
        (MBPP, {"statement": "Write a function to double a number.\n\nassert double(2) == 4\n"}),
        (ULT, {"id": "ULT/12", "entry_point": "root", "golden": (), "solution": ULT["code"]}),
        (ULT, {"imports": "import math\nfrom typing import List"}),  # of the evaluator
    ],
)
def test_a_row_becomes_a_problem_with_these_fields(row: dict[str, Any], fields: dict[str, Any]) -> None:
    problem = read_row(row)
    assert {name: getattr(problem, name) for name in fields} == fields


RIGHT = "def task_func(words, power=2):\n    return {w: n ** power for w, n in Counter(words).items() if n > 1}\n"


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


def test_a_row_of_big_code_bench_has_examples_and_may_lack_a_code_prompt() -> None:
    assert read_row(BIGCODEBENCH).examples
    assert '"""' in read_row(BIGCODEBENCH | {"code_prompt": None}).solution


def test_a_question_that_shows_a_call_is_the_statement() -> None:
    question = "Write `doubled`, which doubles the numbers of a list."
    assert read_row(KODCODE | {"question": question}).statement == question


@pytest.mark.parametrize(
    "changes",
    [
        {"test": KODCODE["test"].replace("import doubled", "import *")},
        {"solution": f"def twice(n):\n    return 2 * n\n\n{KODCODE['solution'].replace('2 * n', 'twice(n)')}"},
    ],
)
def test_neither_imports_of_everything_nor_a_helper_hide_the_entry_point(changes: dict[str, str]) -> None:
    assert read_row(KODCODE | changes).entry_point == "doubled"


def test_every_test_function_counts(sandbox: Sandbox) -> None:  # test_layouts tells that the solution passes
    wrong = read_row(KODCODE | {"solution": "def doubled(numbers):\n    return [2 * n for n in numbers]\n"})
    assert [check.status for check in check_problems([wrong], sandbox, runs=1)] == [CheckStatus.WRONG]


def test_a_row_with_a_method_shows_its_starter_code_and_has_one_harness() -> None:
    problem = read_row(LEETCODE)
    assert problem.statement.endswith("-> int:")
    assert [type(test) for test in problem.golden] == [GoldenHarness]


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


def test_a_prompt_that_does_not_show_the_function_is_followed_by_its_declaration() -> None:
    assert read_row(ULT).statement.endswith("none.\n\ndef root(numbers: List[float]) -> float:\n")
    shown = 'def root(numbers):\n    """The root of the sum."""\n'
    assert read_row(ULT | {"prompt": shown}).statement == shown
