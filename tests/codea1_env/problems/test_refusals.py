from __future__ import annotations

import json
import pickle
from typing import Any

import pytest

from codea1_env.errors import BrokenInput
from codea1_env.facts.answers import AnswerRules
from codea1_env.problems import load_problems
from codea1_env.problems.layouts import read_row
from codea1_env.problems.problem import Refusal
from codea1_env.problems.refusals import RefusedRow, cause_of, playable_statement
from tests.support.data_set_rows import APPS, CODE_CONTESTS, KODCODE, MBPP, TACO

UNPLAYABLE = {
    Refusal.SEVERAL_ANSWERS: [
        "If there are multiple answers, print any.",
        "If there are several possible solutions, you may print any of them.",
        "You may return the answer in any order.",
        "Output the indices in arbitrary order.",
        "If there is more than one such string, return any valid string.",
        "The order of the output does not matter.",
        "Print either of them.",
    ],
    Refusal.INTERACTIVE: ["This problem is interactive.", "An interactive task: guess the number."],
    Refusal.FILES: ["INPUT FORMAT (file maze.in):", "Write to the file 'maze.out'."],
}


@pytest.mark.parametrize(
    ("refusal", "statement"), [(refusal, each) for refusal, statements in UNPLAYABLE.items() for each in statements]
)
def test_statements_of_unplayable_problems_are_recognised(refusal: Refusal, statement: str) -> None:
    with pytest.raises(RefusedRow) as caught:
        playable_statement({"question": statement}, "question")
    assert caught.value.refusal is refusal


@pytest.mark.parametrize(
    "statement",
    [
        "Return True if any number is even.",
        "The first line of the input file contains a number.",
        "The numbers are given in ascending order; print their sum.",
        "Return anything that was stored, in the order of the input.",
        "The ranges of each list come in any order.",
        "Print the number of ways.",
        "Is there any of length 3?",
        "Find the only answer.",
        "Any two numbers differ.",
        "Find how many of them are prime.",
        "Print the name of the file.",
    ],
)
def test_other_statements_are_not(statement: str) -> None:
    assert playable_statement({"question": statement}, "question") == statement


def test_no_statement_of_the_shipped_problems_is_taken_for_unplayable() -> None:
    shipped = (problem for part in ("functions", "methods", "stdin") for problem in load_problems(f"starter:{part}"))
    for problem in shipped:
        assert playable_statement({"question": problem.statement}, "question")


TWO = "from solution import doubled, tripled\ndef test_it():\n    assert doubled([]) == tripled([])\n"
STACK = {
    "solution": "class Stack:\n    pass\n\ndef doubled(x):\n    return x\n",
    "test": "from solution import Stack\ndef test_it():\n    assert Stack()\n",
}


@pytest.mark.parametrize(
    ("row", "reason", "refusal"),
    [
        (APPS | {"solutions": json.dumps(["print 1"])}, "no Python 3 solution .*Missing parentheses", "no solution"),
        (APPS | {"solutions": "[]"}, "no Python 3 solution; without", "no solution"),
        (APPS | {"question": "Print any of the numbers."}, "accepts several answers", "several right answers"),
        (APPS | {"question": "This is an interactive problem."}, "describes an interactive program", "interactive"),
        (APPS | {"question": "Read from the file doubles.in."}, "names an input or output file", "files"),
        (CODE_CONTESTS | {"input_file": "in.txt"}, "column 'input_file' names a file", "files"),
        (CODE_CONTESTS | {"solutions": {}}, "no Python 3 solution", "no solution"),
        (TACO | {"starter_code": "def tail(head: ListNode):\n"}, "'starter_code' names the class ListNode", "objects"),
        (MBPP | {"test_setup_code": "root = Node(1)"}, "creates objects for the tests", "objects"),
        (KODCODE | {"question": "Return the pairs in any order."}, "accepts several answers", "several right answers"),
        (KODCODE | {"test": TWO}, "'test' imports doubled, tripled; expected one entry point", "several functions"),
        (KODCODE | STACK, "column 'test' imports Stack, which the solution does not define", "several functions"),
    ],
)
def test_a_row_that_cannot_be_played_is_refused_with_its_cause(row: dict[str, Any], reason: str, refusal: str) -> None:
    with pytest.raises(RefusedRow, match=reason) as caught:
        read_row(row)
    assert caught.value.refusal is Refusal(refusal)
    assert "\n" not in str(caught.value)


def test_a_refusal_is_bad_input_that_pickles_with_its_cause() -> None:
    error = pickle.loads(pickle.dumps(RefusedRow(Refusal.FILES, "it reads a file")))
    assert isinstance(error, BrokenInput)
    assert (str(error), cause_of(error)) == ("it reads a file", Refusal.FILES)
    assert cause_of(BrokenInput("x")) is Refusal.BROKEN


def test_a_row_that_states_which_answers_are_right_may_have_several() -> None:
    row = {**KODCODE, "question": "Return the numbers in any order."}
    with pytest.raises(RefusedRow, match="column 'answers'"):
        read_row(row)
    assert read_row({**row, "answers": {"order": "unordered"}}).answers == AnswerRules(order="unordered")
    with pytest.raises(BrokenInput, match="column 'answers'"):
        read_row({**row, "answers": {"ordre": "unordered"}})
