from __future__ import annotations

from typing import Any

import pytest

from codea1_env.judging.problem_check import CheckStatus, check_problems
from codea1_env.problems.layouts import read_row
from codea1_env.problems.problem import Refusal
from codea1_env.problems.refusals import RefusedRow
from codea1_env.sandbox.interface import Sandbox
from tests.support.data_set_rows import KODCODE


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
