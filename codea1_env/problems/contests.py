"""Contest problems, whose programs read standard input: rows of APPS, CodeContests and LiveCodeBench.

The statement's samples become examples, all tests golden tests. Of several solutions the first that is Python 3 is
used; `codea1 check problems` shows whether it passes the tests. Outputs are compared by their words. A row whose
statement accepts several outputs is refused, since its tests state only one of them.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from codea1_env.errors import BrokenInput
from codea1_env.problems.columns import Row, checked_text, optional_text, sub_row, text
from codea1_env.problems.problem import RUN, GoldenCase, Problem, ProblemKind
from codea1_env.problems.python_source import require_program

_PYTHON_3 = 3  # the number of the language in CodeContests
_N_EXAMPLES = 3  # of APPS, where samples and other tests are not distinguished
_SEVERAL_OUTPUTS = re.compile(
    r"\b(?:(?:print|output|return|find|report|display)\s+any\b|any\s+(?:one\s+)?of\s+(?:them|these|the)\b"
    r"|(?:multiple|several|many)\s+(?:\w+\s+)?(?:answers|solutions|outputs|ways)\b[^.]{0,60}\b(?:any|either)\b)",
    re.IGNORECASE,
)


def apps_problem(row: Row) -> Problem:
    """Return the problem of a row of APPS with `problem_id`, `question`, `solutions` and `input_output`.

    Raises:
        BrokenInput: a column is missing or no JSON, no solution is Python 3, or several outputs are right.
    """
    tests = _json(row, "input_output")
    if not isinstance(tests, Mapping):
        raise _wrong("input_output", tests, 'an object such as {"inputs": ["1 2\\n"], "outputs": ["3\\n"]}')
    if tests.get("fn_name"):
        raise BrokenInput(
            f"column 'input_output' tests the function {tests['fn_name']!r} and not a program on standard input; write"
            " the row in the project's own layout, with fn_name as the entry point"
        )
    golden = _cases(tests.get("inputs"), tests.get("outputs"), "column 'input_output'")
    return _problem(
        f"APPS/{row['problem_id']}",
        _statement(row, "question"),
        _first_program(_solutions(_json(row, "solutions")), "column 'solutions'"),
        golden,
        golden[:_N_EXAMPLES],
        source="APPS",
    )


def code_contests_problem(row: Row) -> Problem:
    """Return the problem of a row of CodeContests with `name`, `description`, `public_tests` and `solutions`.

    `private_tests` and `generated_tests` are read if they are there.

    Raises:
        BrokenInput: a column is missing or of another form, no solution is Python 3, the program would read or write a
            file, or several outputs are right.
    """
    for column in ("input_file", "output_file"):
        if optional_text(row, column):
            raise BrokenInput(f"column {column!r} names a file, and programs have only standard input and output")
    solutions = sub_row(row, "solutions")
    languages, programs = solutions.get("language") or (), solutions.get("solution") or ()
    in_python = [program for language, program in zip(languages, programs, strict=False) if language == _PYTHON_3]
    public = _column_cases(row, "public_tests")
    return _problem(
        f"CodeContests/{text(row, 'name')}",
        _statement(row, "description"),
        _first_program(in_python, "column 'solutions'"),
        [*public, *_column_cases(row, "private_tests"), *_column_cases(row, "generated_tests")],
        public,
        source="CodeContests",
        licence="CC-BY-4.0",
    )


def live_code_bench_problem(row: Row) -> Problem:
    """Return the problem of a row of LiveCodeBench to which a column `solution` has been added.

    Raises:
        BrokenInput: a column is missing or no JSON, a test calls a function, or several outputs are right.
    """
    if not optional_text(row, "solution").strip():
        raise BrokenInput("LiveCodeBench has no solutions, which the game needs: add the column 'solution', a program")
    public = _listed_cases(row, "public_test_cases")
    private = _listed_cases(row, "private_test_cases") if optional_text(row, "private_test_cases").strip() else []
    return _problem(
        f"LiveCodeBench/{text(row, 'question_id')}",
        _statement(row, "question_content"),
        _first_program([text(row, "solution")], "column 'solution'"),
        [*public, *private],
        public,
        source="LiveCodeBench",
    )


def _problem(
    name: str,
    statement: str,
    solution: str,
    golden: Iterable[GoldenCase],
    examples: Iterable[GoldenCase],
    *,
    source: str,
    licence: str = "",
) -> Problem:
    return Problem(
        id=name,
        statement=statement,
        entry_point=RUN,
        solution=solution,
        golden=tuple(dict.fromkeys(golden)),
        examples=tuple(f"assert {case.expression} == {case.expected}" for case in examples),
        source=source,
        licence=licence,
        kind=ProblemKind.STDIN,
    )


def _statement(row: Row, column: str) -> str:
    statement = text(row, column)
    found = _SEVERAL_OUTPUTS.search(statement)
    if found:
        raise BrokenInput(
            f"column {column!r} accepts several outputs ({' '.join(found.group().split())!r}), and the tests state one:"
            " such a problem needs a checker"
        )
    return statement


def _json(row: Row, column: str) -> Any:
    try:
        return json.loads(text(row, column))
    except (ValueError, RecursionError) as error:
        raise BrokenInput(f"column {column!r} is not JSON: {error}") from error


def _solutions(found: object) -> Iterator[str]:
    if not isinstance(found, list):
        raise _wrong("solutions", found, "a list of programs")
    return (checked_text(each, "an item of 'solutions'") for each in found)


def _first_program(programs: Iterable[str], what: str) -> str:
    reason = f"{what} holds no Python 3 program"
    for program in islice(programs, 64):
        try:
            require_program(program, what)
        except BrokenInput as error:
            reason = f"{what} holds no Python 3 program; the first: {error}"
        else:
            return program
    raise BrokenInput(reason)


def _column_cases(row: Row, column: str) -> list[GoldenCase]:
    tests = sub_row(row, column)
    return _cases(tests.get("input") or [], tests.get("output") or [], f"column {column!r}")


def _listed_cases(row: Row, column: str) -> list[GoldenCase]:
    try:
        tests = _json(row, column)
    except BrokenInput as error:
        raise BrokenInput(
            f"{error}; a compressed column must be unpacked before, since that runs code of its file"
        ) from error
    if not isinstance(tests, list) or not all(isinstance(test, Mapping) for test in tests):
        raise _wrong(column, tests, 'a list such as [{"input": "1 2\\n", "output": "3\\n", "testtype": "stdin"}]')
    if any(test.get("testtype", "stdin") != "stdin" for test in tests):
        raise BrokenInput(f"column {column!r} tests a function and not a program on standard input")
    return _cases([test.get("input") for test in tests], [test.get("output") for test in tests], f"column {column!r}")


def _cases(inputs: object, outputs: object, what: str) -> list[GoldenCase]:
    lists = inputs, outputs
    if not all(isinstance(each, Sequence) and not isinstance(each, str | bytes) for each in lists):
        raise BrokenInput(f"{what}: inputs and outputs must be lists of texts")
    given, printed = list(inputs), list(outputs)  # type: ignore[call-overload]  # just checked
    if len(given) != len(printed):
        raise BrokenInput(f"{what} has {len(given)} inputs, but {len(printed)} outputs; each input needs one")
    return [
        GoldenCase(
            f"{RUN}({checked_text(one, f'an input of {what}')!r})", repr(checked_text(other, f"an output of {what}"))
        )
        for one, other in zip(given, printed, strict=True)
    ]


def _wrong(column: str, found: object, expected: str) -> BrokenInput:
    return BrokenInput(f"column {column!r} holds {type(found).__name__}; expected {expected}")
