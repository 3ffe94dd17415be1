"""LeetCodeDataset: rows whose entry point is a method, `Solution().twoSum`."""

from __future__ import annotations

import ast
import re
from collections import ChainMap
from collections.abc import Iterator, Mapping

from codea1_env.errors import BrokenInput
from codea1_env.facts.entry_points import is_method
from codea1_env.facts.problem_kinds import ProblemKind
from codea1_env.problems.columns import Row, identifier, json_value, optional_text, text
from codea1_env.problems.problem import Problem
from codea1_env.problems.python_source import (
    expression,
    join_sources,
    literal,
    require_definition,
    unparse,
    with_starter_code,
)
from codea1_env.problems.refusals import playable_statement, refuse_objects, solution_text
from codea1_env.problems.snippets import read_test

_EXAMPLE = re.compile(r"\**Input:?\**:?\s*(?P<given>[^\n]+)\s*\n\s*\**Output:?\**:?\s*(?P<value>[^\n]+)")
_WORDS = {"true": "True", "false": "False", "null": "None"}


def problem_from_row(row: Row) -> Problem:
    """Return the problem of a row with `task_id`, `problem_description`, `completion`, `entry_point` and `test`.

    `prompt` holds imports and helper functions, which are put before the solution, the candidates and the tests. The
    statement ends with `starter_code`. The golden test is the row's `check(candidate)`. Examples of the form
    `Input: nums = [2,7], target = 9` with `Output: [0,1]` become asserts.

    Raises:
        BrokenInput: a column is missing, or the solution does not define the method.
        RefusedRow: the row lacks a solution, arguments are objects such as linked lists, or the statement accepts
            several answers.
    """
    meta = json_value(row, "meta") if row.get("meta") else {}  # in the first versions; later ones have columns
    row = ChainMap(row, meta if isinstance(meta, Mapping) else {})  # type: ignore[arg-type]  # it is only read
    entry_point = text(row, "entry_point")
    if not is_method(entry_point):
        raise BrokenInput(f"column 'entry_point' must be a method such as Solution().twoSum, got {entry_point!r}")
    description, before = playable_statement(row, "problem_description"), optional_text(row, "prompt")
    solution, starter_code = solution_text(row, "completion"), optional_text(row, "starter_code")
    refuse_objects(starter_code)
    require_definition(solution, entry_point, "column 'completion'")
    return Problem(
        id=f"LeetCode/{identifier(row, 'task_id')}",
        statement=with_starter_code(description, starter_code),
        entry_point=entry_point,
        solution=solution,
        golden=read_test(join_sources(before, text(row, "test")), "", entry_point),
        imports=before,
        examples=tuple(dict.fromkeys(_examples(description, entry_point))),
        source="LeetCodeDataset",
        licence="Apache-2.0",
        kind=ProblemKind.METHOD,
    )


def _examples(description: str, entry_point: str) -> Iterator[str]:
    for match in _EXAMPLE.finditer(description):
        call = expression(f"{entry_point}({match['given'].strip()})")
        printed = match["value"].strip()
        value = expression(_WORDS.get(printed, printed))
        if not isinstance(call, ast.Call) or call.args or value is None:
            continue
        if all(map(literal, (value, *(keyword.value for keyword in call.keywords)))):
            yield f"assert {unparse(call)} == {unparse(value)}"
