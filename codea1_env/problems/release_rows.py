"""The two row layouts of the Code-A1 release: training rows (`GT_test`) and validation rows (`test`)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from codea1_env.errors import BrokenInput
from codea1_env.problems.columns import Row, checked_text, optional_text, sub_row, text
from codea1_env.problems.examples import find_examples
from codea1_env.problems.problem import GoldenTest, Problem
from codea1_env.problems.python_source import (
    functions_of_text,
    imports_of,
    parse,
    require_definition,
    whole_solution,
)
from codea1_env.problems.snippets import read_test, tested_function

_LICENCES = {
    "humanevalplus": "MIT AND Apache-2.0",
    "mbppplus": "CC-BY-4.0 AND Apache-2.0",
    "kodcode": "CC-BY-NC-4.0",
    "kodcode_light": "CC-BY-NC-4.0",
}
"""By `data_source`: the licence of the problems, and that of the tests if they come from another project."""

_CHECK = re.compile(r"^def check\((?P<parameter>\w+)\):", re.MULTILINE)


def validation_problem(row: Row) -> Problem:
    """Return the problem of a row with `problem`, `GT_code`, `test` (defines `check(candidate)`) and `extra_info`.

    `GT_code` is either the whole program (MBPP+) or the function's body, which continues `problem` (HumanEval+).

    Raises:
        UserError: a column is missing or of the wrong type, or the solution is not a program that defines the function.
    """
    extra = sub_row(row, "extra_info")
    test = text(row, "test")
    statement = text(row, "problem" if optional_text(row, "problem").strip() else "description")
    entry_point = _tested_function(text(row, "GT_code"), test, text(extra, "function_name"))
    solution = whole_solution(statement, text(row, "GT_code"), entry_point)
    return _problem(row, statement, entry_point, solution, read_test(test, statement, entry_point))


def training_problem(row: Row) -> Problem:
    """Return the problem of a row with `clean_description`, `GT_code`, `GT_test` (test snippets) and `extra_info`.

    The entry point is `extra_info.function_name`; else the function of `GT_code` that the tests import or call most;
    else the last one.

    Raises:
        UserError: a column is missing or of the wrong type, the solution is not a program, or a snippet tests nothing.
    """
    statement = optional_text(row, "clean_description")
    statement = statement if statement.strip() else _last_message(row)
    solution = text(row, "GT_code")
    tree = parse(solution, "column 'GT_code'")
    snippets = _snippets(row)
    named = optional_text(sub_row(row, "extra_info"), "function_name").strip()
    tests = (parse(snippet, f"snippet {position} of GT_test") for position, snippet in enumerate(snippets, start=1))
    entry_point = named or tested_function(tree, tests)
    require_definition(solution, entry_point, "column 'GT_code'")
    golden: list[GoldenTest] = []
    for position, snippet in enumerate(snippets, start=1):
        golden.extend(read_test(snippet, statement, entry_point, f"snippet {position} of GT_test"))
    return _problem(row, statement, entry_point, solution, golden)


def _problem(row: Row, statement: str, entry_point: str, solution: str, golden: Iterable[GoldenTest]) -> Problem:
    extra, source = sub_row(row, "extra_info"), optional_text(row, "data_source")
    return Problem(
        id=text(extra, "question_id"),
        statement=statement,
        entry_point=entry_point,
        solution=solution,
        golden=tuple(golden),
        imports=optional_text(extra, "imports").strip() or imports_of(statement),
        examples=find_examples(statement, entry_point),
        source=source,
        licence=_LICENCES.get(source, ""),
    )


def _tested_function(code: str, test: str, named: str) -> str:
    """Return the function that `check` calls: in a few rows of MBPP+ `function_name` names a helper function."""
    check = _CHECK.search(test)
    if check is None:
        return named
    # Searches the text: parsing a test with half a megabyte of literals takes a second.
    body = test[check.end() :]
    if _n_calls(body, check["parameter"]):
        return named
    n_calls = {name: _n_calls(body, name) for name in functions_of_text(code)}
    called = max(n_calls, key=n_calls.__getitem__, default=named)
    return called if n_calls.get(called) else named


def _n_calls(text: str, name: str) -> int:
    return len(re.findall(rf"(?<![\w.]){re.escape(name)}\s*\(", text))


def _snippets(row: Row) -> list[str]:
    tests = row.get("GT_test")
    if isinstance(tests, str):
        tests = [tests]
    if not isinstance(tests, Sequence) or isinstance(tests, bytes):
        raise BrokenInput(f"column 'GT_test' must be a list of test snippets, got {type(tests).__name__}")
    if not tests:
        raise BrokenInput("column 'GT_test' is empty")
    return [checked_text(test, f"snippet {position} of GT_test") for position, test in enumerate(tests, start=1)]


def _last_message(row: Row) -> str:
    """Return the question in the last chat message, for rows without a description."""
    match row.get("prompt"):
        case str(prompt):
            message: object = prompt
        case [*_, Mapping() as last]:
            message = last.get("content")
        case _:
            raise BrokenInput("neither column 'clean_description' nor a chat in 'prompt' states the problem")
    return checked_text(message, "column 'prompt'").rpartition("Question:\n")[2]
