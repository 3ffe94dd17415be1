"""Contest problems: rows of APPS, TACO, CodeContests and LiveCodeBench.

Most are programs on standard input, whose outputs are compared by their words. Rows that name a function are read as
functions or methods. The statement's samples become examples, all tests golden tests. Of several solutions the first
that is Python 3 is used; `codea1 check problems` shows whether it passes the tests.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice

from codea1_env.errors import BrokenInput
from codea1_env.facts.problem_kinds import RUN, ProblemKind, kind_of
from codea1_env.problems.assumed_imports import assumed_imports
from codea1_env.problems.columns import (
    Row,
    checked_text,
    identifier,
    items_of,
    json_value,
    note,
    optional_text,
    sub_row,
    text,
)
from codea1_env.problems.contest_tests import call_cases, printed_cases, unwrap
from codea1_env.problems.packed_text import packed_text
from codea1_env.problems.problem import GoldenCase, Problem, Refusal
from codea1_env.problems.python_source import require_definition, with_starter_code
from codea1_env.problems.refusals import RefusedRow, no_solution, playable_statement, refuse_objects
from codea1_env.records.faults import read_json

_PYTHON_3 = 3  # the number of the language in CodeContests
_N_EXAMPLES = 3  # of APPS and TACO, where samples and other tests are not distinguished
_LONGEST_EXAMPLE = 1_000  # characters
_MOST_PROGRAMS = 64  # solutions that are tried


@dataclass(frozen=True, slots=True)
class _Origin:
    """The origin of a problem."""

    id: str
    source: str
    licence: str = ""


@dataclass(frozen=True, slots=True)
class _CallForm:
    """The way in which programs are called."""

    function: str = ""
    """The function or method that tests call; empty for a program on standard input."""
    starter_code: str = ""

    @property
    def entry_points(self) -> tuple[str, ...]:
        """The entry points that a solution may define: the form of the starter code, if there is one."""
        if not self.function:
            return (RUN,)
        method = f"Solution().{self.function}"
        if "class Solution" in self.starter_code:
            return (method,)
        return (self.function,) if self.starter_code.strip() else (method, self.function)


@dataclass(frozen=True, slots=True)
class _Solution:
    """A solution and the entry point that it defines."""

    entry_point: str
    program: str


def apps_problem(row: Row) -> Problem:
    """Return the problem of a row of APPS with `problem_id`, `question`, `solutions` and `input_output`.

    Raises:
        BrokenInput: a column is missing, or holds something else than JSON of the published form.
        RefusedRow: no solution is Python 3, or the problem cannot be played.
    """
    return _input_output_problem(row, _Origin(f"APPS/{identifier(row, 'problem_id')}", "APPS", "MIT"))


def taco_problem(row: Row) -> Problem:
    """Return the problem of a row of TACO, which has the columns of APPS without `problem_id`.

    Its id is a digest of the question.

    Raises:
        BrokenInput: as `apps_problem`.
        RefusedRow: likewise.
    """
    name = sha256(text(row, "question").encode()).hexdigest()[:12]
    return _input_output_problem(row, _Origin(f"TACO/{name}", "TACO", "Apache-2.0"))


def code_contests_problem(row: Row) -> Problem:
    """Return the problem of a row of CodeContests with `name`, `description`, `public_tests` and `solutions`.

    `private_tests` and `generated_tests` are read if they are there.

    Raises:
        BrokenInput: a column is missing or of another form.
        RefusedRow: no solution is Python 3, the program would read or write a file, or the problem cannot be played.
    """
    for column in ("input_file", "output_file"):
        if optional_text(row, column):
            raise RefusedRow(
                Refusal.FILES, f"column {column!r} names a file, but programs can only use standard input and output"
            )
    solutions = sub_row(row, "solutions")
    languages, programs = (
        items_of(solutions.get(name), f"{name!r} of 'solutions'") for name in ("language", "solution")
    )
    in_python = (program for language, program in zip(languages, programs, strict=False) if language == _PYTHON_3)
    cases = []
    for column in ("public_tests", "private_tests", "generated_tests"):
        tests = sub_row(row, column)
        cases.append(printed_cases(tests.get("input") or [], tests.get("output") or [], f"column {column!r}"))
    public, private, generated = cases
    return _problem(
        _Origin(f"CodeContests/{text(row, 'name')}", "CodeContests", "CC-BY-4.0"),
        playable_statement(row, "description"),
        _first_solution(in_python, _CallForm()),
        [*public, *private, *generated],
        public,
    )


def live_code_bench_problem(row: Row) -> Problem:
    """Return the problem of a row of LiveCodeBench to which a column `solution` has been added.

    Private tests are JSON, or compressed (`packed_text`). Those that cannot be read are noted.

    Raises:
        BrokenInput: a column is missing, or holds something else than JSON of the published form.
        RefusedRow: the row lacks a solution, or the problem cannot be played.
    """
    if not optional_text(row, "solution").strip():
        raise no_solution("LiveCodeBench publishes no solutions: add the column 'solution', a program, to the row")
    statement = playable_statement(row, "question_content")
    called = _CallForm(_function_name(row), optional_text(row, "starter_code"))
    solved = _first_solution([text(row, "solution")], called)
    public, private = _listed_tests(row, "public_test_cases"), _private_tests(row)
    return _problem(
        _Origin(f"LiveCodeBench/{text(row, 'question_id')}", "LiveCodeBench"),
        statement,
        solved,
        _listed_cases([*public, *private], solved, called),
        _listed_cases(public, solved, called),
        called,
    )


def _input_output_problem(row: Row, origin: _Origin) -> Problem:
    statement, what = playable_statement(row, "question"), "column 'input_output'"
    if row.get("solutions") in (None, ""):
        raise no_solution("column 'solutions' is empty")
    programs = items_of(json_value(row, "solutions"), "column 'solutions'")
    texts = (checked_text(program, "an item of 'solutions'") for program in programs)
    tests = json_value(row, "input_output")
    if not isinstance(tests, Mapping):
        raise _wrong(what, tests, 'an object such as {"inputs": ["1 2\\n"], "outputs": ["3\\n"]}')
    function = checked_text(tests.get("fn_name") or "", f"fn_name of {what}")
    called = _CallForm(function, optional_text(row, "starter_code"))
    solved = _first_solution(texts, called)
    inputs, outputs = tests.get("inputs"), tests.get("outputs")
    if function:
        golden = call_cases(solved.entry_point, inputs, unwrap(outputs), what)
    else:
        golden = printed_cases(inputs, outputs, what)
    return _problem(origin, statement, solved, golden, golden[:_N_EXAMPLES], called)


def _problem(
    origin: _Origin,
    statement: str,
    solved: _Solution,
    golden: Iterable[GoldenCase],
    examples: Iterable[GoldenCase],
    called: _CallForm = _CallForm(),
) -> Problem:
    refuse_objects(called.starter_code)
    is_call = bool(called.function)
    return Problem(
        id=origin.id,
        statement=with_starter_code(statement, called.starter_code) if is_call else statement,
        entry_point=solved.entry_point,
        solution=solved.program,
        golden=tuple(dict.fromkeys(golden)),
        imports=assumed_imports(solved.program, f"{called.starter_code.rstrip()} pass"),
        examples=tuple(
            f"assert {case.expression} == {case.expected}"
            for case in examples
            if len(case.expression) <= _LONGEST_EXAMPLE
        ),
        source=origin.source,
        licence=origin.licence,
        kind=kind_of(solved.entry_point) if is_call else ProblemKind.STDIN,
    )


def _first_solution(programs: Iterable[object], called: _CallForm) -> _Solution:
    """Return the first program that is Python 3 and defines the entry point."""
    reason = "the row has no Python 3 solution"
    for number, program in enumerate(islice(programs, _MOST_PROGRAMS), start=1):
        source = checked_text(program, f"solution {number}")
        for entry_point in called.entry_points:
            try:
                require_definition(source, entry_point if called.function else "", f"solution {number}")
            except BrokenInput as error:
                reason = f"the row has no Python 3 solution that can be used; the last: {error}"
            else:
                return _Solution(entry_point, source)
    raise no_solution(reason)


def _function_name(row: Row) -> str:
    """Return `func_name` of LiveCodeBench's metadata; empty for a program on standard input."""
    metadata = json_value(row, "metadata") if optional_text(row, "metadata").strip() else {}
    if not isinstance(metadata, Mapping):
        raise _wrong("column 'metadata'", metadata, 'an object such as {"func_name": "twoSum"}')
    return checked_text(metadata.get("func_name") or "", "func_name of column 'metadata'")


def _listed_tests(row: Row, column: str) -> list[Mapping[str, object]]:
    tests = json_value(row, column)
    if not isinstance(tests, list) or not all(isinstance(test, Mapping) for test in tests):
        raise _wrong(
            f"column {column!r}", tests, 'a list such as [{"input": "1 2\\n", "output": "3\\n", "testtype": "stdin"}]'
        )
    return tests


def _private_tests(row: Row) -> list[Mapping[str, object]]:
    column = "private_test_cases"
    content = optional_text(row, column).strip()
    if not content or content.startswith("["):
        return _listed_tests(row, column) if content else []
    try:
        return _listed_tests({column: packed_text(content)}, column)
    except BrokenInput as error:
        note(row, f"column {column!r} cannot be read: {error}")
        return []


def _listed_cases(tests: Sequence[Mapping[str, object]], solved: _Solution, called: _CallForm) -> list[GoldenCase]:
    inputs, outputs = (
        [checked_text(test.get(name), f"a test's {name}") for test in tests] for name in ("input", "output")
    )
    if not called.function:
        return printed_cases(inputs, outputs, "the tests")
    arguments = [[read_json("an input line", line) for line in given.split("\n") if line.strip()] for given in inputs]
    return call_cases(solved.entry_point, arguments, [read_json("an output", each) for each in outputs], "the tests")


def _wrong(what: str, value: object, expected: str) -> BrokenInput:
    return BrokenInput(f"{what} must be {expected}, got {type(value).__name__}")
