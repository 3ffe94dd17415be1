"""ULT and PLT (UnLeakedTestBench): real-world functions without published tests."""

from __future__ import annotations

from codea1_env.problems.assumed_imports import assumed_imports
from codea1_env.problems.columns import Row, identifier, text
from codea1_env.problems.examples import find_examples
from codea1_env.problems.problem import Problem
from codea1_env.problems.python_source import parse, require_definition, with_declaration
from codea1_env.problems.refusals import playable_statement, solution_text


def problem_from_row(row: Row) -> Problem:
    """Return the problem of a row with `task_id`, `prompt`, `code` and `func_name`.

    The benchmark keeps its tests back, so golden tests are missing. The imports are those that its evaluator puts
    before the code, as far as the code needs them.

    Raises:
        BrokenInput: a column is missing or of another type, or the code does not define the function.
        RefusedRow: the row lacks code, or the statement accepts several answers.
    """
    code, entry_point = solution_text(row, "code"), text(row, "func_name")
    require_definition(code, entry_point, "column 'code'")
    statement = with_declaration(playable_statement(row, "prompt"), parse(code, "column 'code'"), entry_point)
    return Problem(
        id=f"ULT/{identifier(row, 'task_id')}",
        statement=statement,
        entry_point=entry_point,
        solution=code,
        golden=(),
        imports=assumed_imports(code),
        examples=find_examples(statement, entry_point),
        source="ULT",
        licence="MIT",
    )
