"""MBPP, its sanitized part, and MBPP+ as published by EvalPlus on the Hugging Face hub."""

from __future__ import annotations

import ast

from codea1_env.errors import BrokenInput
from codea1_env.problems.columns import Row, identifier, optional_text, texts_of
from codea1_env.problems.examples import find_examples
from codea1_env.problems.problem import GoldenTest, Problem, Refusal
from codea1_env.problems.python_source import imports_of, join_sources, parse, require_definition
from codea1_env.problems.refusals import RefusedRow, playable_statement, solution_text
from codea1_env.problems.snippets import read_test, tested_function


def problem_from_row(row: Row) -> Problem:
    """Return the problem of a row with `task_id`, `text`, `code` and `test_list`; see `sanitized_problem`.

    `challenge_test_list` is read if it is there.

    Raises:
        BrokenInput: as `sanitized_problem`.
        RefusedRow: likewise; or `test_setup_code` makes objects of the solution's classes.
    """
    setup = optional_text(row, "test_setup_code")
    if any(not isinstance(node, ast.Import | ast.ImportFrom) for node in parse(setup, "column 'test_setup_code'").body):
        raise RefusedRow(
            Refusal.OBJECTS, "column 'test_setup_code' creates objects for the tests; programs get plain data only"
        )
    return _problem(row, "text", setup)


def sanitized_problem(row: Row) -> Problem:
    """Return the problem of a row with `task_id`, `prompt`, `code` and `test_list`.

    The statement is the sentence with the first test, which shows the function's name and its arguments. The tests of
    `test_list`, and of MBPP+'s `test`, are golden; they begin with `test_imports`.

    Raises:
        BrokenInput: a column is missing or of another type, or a test or the solution is not Python.
        RefusedRow: the row lacks a solution, or the statement accepts several answers.
    """
    return _problem(row, "prompt", "\n".join(texts_of(row.get("test_imports"), "column 'test_imports'")))


def _problem(row: Row, column: str, setup: str) -> Problem:
    solution, tests = solution_text(row, "code"), texts_of(row.get("test_list"), "column 'test_list'")
    if not tests:
        raise BrokenInput("column 'test_list' is empty")
    more = texts_of(row.get("challenge_test_list"), "column 'challenge_test_list'")
    tests = (*tests, *more, *filter(None, [optional_text(row, "test")]))
    tree = parse(solution, "column 'code'")
    entry_point = tested_function(tree, [parse(test, "a test") for test in tests[:1]])
    require_definition(solution, entry_point, "column 'code'")
    statement = f"{playable_statement(row, column).rstrip()}\n\n{tests[0].strip()}\n"
    golden: list[GoldenTest] = []
    for number, test in enumerate(tests, start=1):
        golden.extend(read_test(join_sources(setup, test), "", entry_point, f"test {number}"))
    return Problem(
        id=f"Mbpp/{identifier(row, 'task_id')}",
        statement=statement,
        entry_point=entry_point,
        solution=solution,
        golden=tuple(dict.fromkeys(golden)),
        imports=imports_of(setup),
        examples=find_examples(statement, entry_point),
        source="MBPP",
        licence="CC-BY-4.0 AND Apache-2.0" if optional_text(row, "test") else "CC-BY-4.0",
    )
