"""BigCodeBench: rows whose test is a `unittest` class and whose statement has a complete and an instruct form."""

from __future__ import annotations

from codea1_env.problems.columns import Row, optional_text, text
from codea1_env.problems.examples import find_examples
from codea1_env.problems.problem import Problem
from codea1_env.problems.python_source import before_function, whole_solution
from codea1_env.problems.snippets import read_test


def problem_from_row(row: Row) -> Problem:
    """Return the problem of a row with `task_id`, `complete_prompt`, `canonical_solution`, `test` and `entry_point`.

    The statement is the complete form. Its imports and constants are put before the solution, the candidates and the
    tests. The golden test is one harness that runs every method of the `unittest` class, each on a new object with
    `setUp` and `tearDown`; `setUpClass` is not called.

    Candidates and tests run in separate processes, and only plain data crosses between them. So if the tests of a row
    examine figures or data frames, or patch a library for the candidate, its own solution fails them
    (`codea1 check problems` names such rows); they need the benchmark's own evaluator.

    Raises:
        UserError: a column is missing, or the solution is not a program that defines the entry point.
    """
    prompt, entry_point = text(row, "complete_prompt"), text(row, "entry_point")
    body = text(row, "canonical_solution")
    code_prompt = optional_text(row, "code_prompt")
    known = text(row, "task_id").startswith("BigCodeBench/")
    return Problem(
        id=text(row, "task_id"),
        statement=prompt,
        entry_point=entry_point,
        # The code prompt is the complete one without its docstring.
        solution=whole_solution(code_prompt if code_prompt.strip() else prompt, body, entry_point),
        golden=read_test(text(row, "test"), prompt, entry_point),
        imports=before_function(prompt, entry_point),
        examples=find_examples(prompt, entry_point),
        source="BigCodeBench" if known else "",
        licence="Apache-2.0" if known else "",
    )
