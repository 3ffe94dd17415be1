"""KodCode-V1 and its selections for SFT and RL: questions with a solution and pytest tests that import it."""

from __future__ import annotations

import ast

from codea1_env.errors import BrokenInput
from codea1_env.problems.columns import Row, identifier, optional_text, text
from codea1_env.problems.examples import find_examples
from codea1_env.problems.problem import Problem, Refusal
from codea1_env.problems.python_source import functions_of, imports_of, parse, require_definition, with_declaration
from codea1_env.problems.refusals import RefusedRow, playable_statement, solution_text
from codea1_env.problems.snippets import read_test, solution_names, tested_function

_ONLINE_JUDGE = "online_judge"


def problem_from_row(row: Row) -> Problem:
    """Return the problem of a row with `question_id`, `question`, `solution` and `test` (or `test_code`, as published).

    The entry point is the function that the test imports from `solution`. The statement is the question; the
    function's declaration is added if the question does not name it.

    Raises:
        BrokenInput: a column is missing or of another type, a test or solution is not Python, or the style is
            `online_judge`, whose tests are not pytest's.
        RefusedRow: the row lacks a solution, the test imports several functions or a class, or the statement accepts
            several answers.
    """
    if optional_text(row, "style") == _ONLINE_JUDGE:
        raise BrokenInput(f"only rows with pytest tests can be read, got column 'style' = {_ONLINE_JUDGE!r}")
    column = "test" if optional_text(row, "test").strip() else "test_code"
    question, solution, test = playable_statement(row, "question"), solution_text(row, "solution"), text(row, column)
    tree = parse(solution, "column 'solution'")
    entry_point = _entry_point(tree, parse(test, f"column {column!r}"))
    require_definition(solution, entry_point, "column 'solution'")
    statement = with_declaration(question, tree, entry_point)
    return Problem(
        id=identifier(row, "question_id"),
        statement=statement,
        entry_point=entry_point,
        solution=solution,
        golden=read_test(test, question, entry_point),
        imports=imports_of(question),
        examples=find_examples(statement, entry_point),
        source="KodCode-V1",
        licence="CC-BY-NC-4.0",
    )


def _entry_point(solution: ast.Module, test: ast.Module) -> str:
    imported = sorted(set(solution_names(test)) - {"*"})
    if len(imported) > 1:
        raise RefusedRow(
            Refusal.SEVERAL_FUNCTIONS, f"column 'test' imports {', '.join(imported)}; expected one entry point"
        )
    if imported and imported[0] not in functions_of(solution):
        raise RefusedRow(
            Refusal.SEVERAL_FUNCTIONS, f"column 'test' imports {imported[0]}, which the solution does not define"
        )
    return tested_function(solution, [test])
