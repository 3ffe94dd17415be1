"""This project's own layout: a problem as one JSON object with exactly the fields of `Problem`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Set
from dataclasses import asdict, fields
from difflib import get_close_matches
from typing import Any, TypeVar

from codea1_env.errors import BrokenInput, UnknownName, UserError
from codea1_env.facts.answers import CHECK, EQUAL_ANSWERS, AnswerRules, OutputForm
from codea1_env.facts.call_forms import CallForms
from codea1_env.facts.problem_kinds import PROGRAMS, RUN, ProblemKind, Programs, kind_of
from codea1_env.problems.columns import Row, checked_text, items_of, optional_text, sub_row, text, texts_of
from codea1_env.problems.problem import GoldenCase, GoldenHarness, GoldenTest, Problem, Refusal, WrongProgram
from codea1_env.problems.python_source import require_definition, require_expression
from codea1_env.problems.refusals import RefusedRow
from codea1_env.problems.snippets import read_snippet

_T = TypeVar("_T")

_FIELDS = tuple(field.name for field in fields(Problem))
REQUIRED = frozenset({"id", "statement", "solution"})
"""Fields of every row; `entry_point` has a default for programs that run anew for each call."""
_Member = TypeVar("_Member", ProblemKind, OutputForm)
_NO_ENTRY_POINT = 'column \'entry_point\' is missing; a program on standard input needs "kind": "stdin" instead'
_UNSUPPORTED = {
    "interactor": Refusal.INTERACTIVE,
    "files": Refusal.FILES,
    "modules": Refusal.SEVERAL_MODULES,
}
"""Columns of problems that cannot be played."""
_ADDED = {
    field.name: field.default for field in fields(Problem) if field.name in ("kind", "output", "answers", "calls")
}


def problem_to_row(problem: Problem) -> dict[str, Any]:
    """Return a row of JSON values, from which `problem_from_row` makes an equal problem.

    Fields that problems did not always have are left out at their defaults, so that digests of rows do not change.
    """
    row = asdict(problem)
    return {name: value for name, value in row.items() if name not in _ADDED or getattr(problem, name) != _ADDED[name]}


def is_nearly_own(columns: Set[object]) -> bool:
    """Whether a row is one of this layout that lacks or misspells one required field."""
    return len(REQUIRED & columns) == len(REQUIRED) - 1


def problem_from_row(row: Row) -> Problem:
    """Return the problem of a row with the fields of `Problem`.

    Only `id`, `statement`, `entry_point` and `solution` are required. A row of programs that run anew for each call
    needs no `entry_point`; one such as `Solution().two_sum` implies the kind `method`. Each item of `golden` is
    `{"expression", "expected"}`, what such a program is given (`Programs.given_as`) with its `"output"`,
    `{"source"}` (a harness that defines `check(candidate)`), or plain test text such as `"assert f(1) == 2"`.

    Raises:
        UserError: a field is misspelt, missing or of the wrong type, or the solution does not define the entry point.
            A column of another name is not used, which `codea1 check problems` notes.
    """
    for name in filter(row.get, _UNSUPPORTED):
        raise RefusedRow(_UNSUPPORTED[name], f"column {name!r}: problems with {name} are not supported")
    for name in sorted(set(row) - set(_FIELDS)):
        if get_close_matches(name.lower(), _FIELDS, cutoff=0.75):
            raise BrokenInput(str(UnknownName.of("field", name, _FIELDS)))
    kind = _member(ProblemKind, row, "kind", kind_of(optional_text(row, "entry_point")))
    programs = PROGRAMS[kind]
    if not programs.scripts and "entry_point" not in row:
        raise BrokenInput(_NO_ENTRY_POINT)
    entry_point = optional_text(row, "entry_point") or RUN if programs.scripts else text(row, "entry_point")
    solution = text(row, "solution")
    require_definition(solution, "" if programs.scripts else entry_point, "column 'solution'")
    calls = _make(CallForms, sub_row(row, "calls"), "column 'calls'")
    return Problem(
        id=text(row, "id"),
        statement=text(row, "statement"),
        entry_point=entry_point,
        solution=solution,
        golden=tuple(
            test
            for number, item in enumerate(items_of(row.get("golden"), "column 'golden'"), 1)
            for test in _golden(item, f"golden test {number}", entry_point, programs, calls)
        ),
        imports=optional_text(row, "imports"),
        examples=texts_of(row.get("examples"), "column 'examples'"),
        source=optional_text(row, "source"),
        licence=optional_text(row, "licence"),
        wrong_programs=tuple(
            _wrong_program(item) for item in items_of(row.get("wrong_programs"), "column 'wrong_programs'")
        ),
        kind=kind,
        output=_member(OutputForm, row, "output", OutputForm.WORDS),
        answers=answer_rules(row),
        calls=calls,
    )


def _member(kind: type[_Member], row: Row, column: str, default: _Member) -> _Member:
    stated = optional_text(row, column)
    try:
        return kind(stated) if stated else default
    except ValueError as error:
        raise BrokenInput(
            f"column {column!r}: {UnknownName.of(column, stated, [each.value for each in kind])}"
        ) from error


def answer_rules(row: Row) -> AnswerRules:
    """Return the rules in the column `answers` of a row; without it, answers must equal the solution's.

    Raises:
        BrokenInput: the column holds something else.
    """
    column = sub_row(row, "answers")
    rules = _make(AnswerRules, column, "column 'answers'") if column else EQUAL_ANSWERS
    if checked_text(rules.checker, "the checker of column 'answers'"):
        require_definition(rules.checker, CHECK, "the checker of column 'answers'", owner="the checker")
    return rules


def _make(kind: type[_T], row: Row, what: str) -> _T:
    """Return a dataclass made of a column's named fields; null stands for the default."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # its callers give dataclasses
    settings = {name: value for name, value in row.items() if value is not None}
    for name in settings:
        if name not in names:
            raise BrokenInput(f"{what}: {UnknownName.of('field', str(name), names)}")
    try:
        return kind(**settings)
    except UserError as error:
        raise BrokenInput(f"{what}: {error}") from error


def _golden(item: object, what: str, entry_point: str, programs: Programs, calls: CallForms) -> tuple[GoldenTest, ...]:
    if isinstance(item, Mapping):  # in Parquet, each item of a list has the fields of all items, most of them null
        item = {name: value for name, value in item.items() if value is not None}
    match item:
        case str():
            return read_snippet(checked_text(item, what), entry_point, what, functions=calls.functions)
        case {"source": source, **rest} if not rest:
            return (GoldenHarness(checked_text(source, f"'source' of {what}")),)
        case {"output": printed, **given} if [*given] == [programs.given_as]:
            key, value = given.popitem()
            where = f"{key!r} of {what}"
            texts = texts_of(value, where) if programs.takes_list else [checked_text(value, where)]
            call = f"{entry_point}({', '.join(map(repr, texts))})"
            return (GoldenCase(call, repr(checked_text(printed, f"'output' of {what}"))),)
        case {"output": _, **given} if kinds := [kind for kind in ProblemKind if PROGRAMS[kind].given_as in given]:
            if programs not in map(PROGRAMS.__getitem__, kinds):
                raise BrokenInput(f'{what}, {{{", ".join(map(str, given))}, output}}, needs "kind": "{kinds[0]}"')
        case {"expression": expression, "expected": expected, **rest} if not rest.keys() - {"imports"}:
            return (
                GoldenCase(
                    _expression(expression, f"'expression' of {what}"),
                    _expression(expected, f"'expected' of {what}"),
                    texts_of(rest.get("imports"), f"'imports' of {what}"),
                ),
            )
    form = f"{{{programs.given_as}, output}}, nor " if programs.scripts else ""
    raise BrokenInput(f"{what} is neither {{expression, expected}}, nor {form}{{source}}, nor test text")


def _expression(value: object, what: str) -> str:
    if isinstance(value, int | float | list | dict):
        raise BrokenInput(f"{what} must be text, got {type(value).__name__}; as text it is {json.dumps(repr(value))}")
    source = checked_text(value, what)
    require_expression(source, what)
    return source


def _wrong_program(item: object) -> WrongProgram:
    match item:
        case {"program": str(program), "note": str(note), "subtlety": 1 | 2 | 3 | 4 as subtlety, **rest} if not rest:
            return WrongProgram(program, note, subtlety)
    raise BrokenInput("an item of 'wrong_programs' is not {program, note, subtlety of 1 to 4}")
