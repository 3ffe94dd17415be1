"""The project's own problems, one TOML file each in `starter_data/`, from easy to subtle.

A file is named after its entry point and holds `difficulty`, `topics`, `entry_point`, `statement`, `solution`,
`golden` (asserts), optionally `imports`, and `[[wrong_programs]]` with `subtlety`, `note` and `program`. The examples
are not written twice: they are the doctest lines of the statement.
"""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Mapping, Sequence
from doctest import DocTestParser, Example
from functools import cache
from importlib.resources import files
from typing import Any, TypeVar

from codea1_env.errors import BrokenInput, UserError
from codea1_env.problems.problem import GoldenCase, Problem, ProblemSet, WrongProgram

__all__ = ["DIFFICULTIES", "load", "read_problem"]

DIFFICULTIES = ("easy", "medium", "hard")

_KEYS = {"difficulty", "topics", "entry_point", "imports", "statement", "solution", "golden", "wrong_programs"}

Value = TypeVar("Value")


@cache
def load() -> ProblemSet:
    """Return the shipped problems, easy ones first and by name within a difficulty; read once per process.

    Raises:
        BrokenInput: a file of the installation is damaged.
    """
    folder = files("codea1_env.problems").joinpath("starter_data")
    texts = {path.name: path.read_text("utf-8") for path in folder.iterdir() if path.name.endswith(".toml")}
    tables = {name: _table(texts[name], name) for name in sorted(texts)}
    order = sorted(tables, key=lambda name: _rank(tables[name], name))
    return ProblemSet("starter", tuple(_problem(tables[name], name) for name in order))


def read_problem(text: str, place: str) -> Problem:
    """Return the problem that a TOML text describes.

    Args:
        text: the whole file.
        place: the file's name, for error messages.

    Raises:
        BrokenInput: not TOML, a key is missing, unknown or of the wrong type, an example or golden test is not of
            the form "expression equals literal".
    """
    return _problem(_table(text, place), place)


def _problem(table: Mapping[str, Any], place: str) -> Problem:
    entry_point = _value(table, "entry_point", str, place)
    statement = _value(table, "statement", str, place)
    try:
        return Problem(
            id=f"starter/{entry_point}",
            statement=statement,
            entry_point=entry_point,
            solution=_value(table, "solution", str, place),
            golden=tuple(_golden(line, entry_point, place) for line in _value(table, "golden", list, place)),
            imports=_value(table, "imports", str, place) if "imports" in table else "",
            examples=_examples(statement, entry_point, place),
            source="codea1-env",
            licence="Apache-2.0",
            wrong_programs=tuple(_wrong_program(row, place) for row in _value(table, "wrong_programs", list, place)),
        )
    except BrokenInput:
        raise
    except UserError as error:
        raise BrokenInput(f"{place}: {error}") from error


def _table(text: str, place: str) -> dict[str, Any]:
    try:
        table = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BrokenInput(f"{place}: not TOML ({error})") from error
    if unknown := sorted(table.keys() - _KEYS):
        raise BrokenInput(f"{place}: unknown key {unknown[0]!r}")
    return table


def _value(table: Mapping[str, Any], key: str, kind: type[Value], place: str) -> Value:
    value = table.get(key)
    if type(value) is not kind:
        raise BrokenInput(f"{place}: {key} is missing or not of type {kind.__name__}")
    return value


def _rank(table: Mapping[str, Any], place: str) -> int:
    difficulty = _value(table, "difficulty", str, place)
    if difficulty not in DIFFICULTIES:
        raise BrokenInput(f"{place}: difficulty {difficulty!r} is none of {', '.join(DIFFICULTIES)}")
    return DIFFICULTIES.index(difficulty)


def _examples(statement: str, entry_point: str, place: str) -> tuple[str, ...]:
    """Return one assert per doctest example of the entry point's docstring."""
    try:
        module = ast.parse(statement)
        functions = [node for node in module.body if isinstance(node, ast.FunctionDef) and node.name == entry_point]
        found = DocTestParser().get_examples(ast.get_docstring(functions[-1]) or "") if functions else []
    except (SyntaxError, ValueError) as error:
        raise BrokenInput(f"{place}: the statement cannot be read ({error})") from error
    if not found:
        raise BrokenInput(f"{place}: the statement has no example of {entry_point}")
    return tuple(_example_assert(example, entry_point, place) for example in found)


def _example_assert(example: Example, entry_point: str, place: str) -> str:
    expected = " ".join(example.want.split("\n")).strip() or "None"  # a prompt shows nothing for None
    line = f"assert {example.source.strip()} == {expected}"
    _golden(line, entry_point, place)
    return line


def _golden(line: object, entry_point: str, place: str) -> GoldenCase:
    if not isinstance(line, str):
        raise BrokenInput(f"{place}: golden test {line!r} is not text")
    try:
        test = _equality(ast.parse(line).body)
        ast.literal_eval(test.comparators[0])
    except (SyntaxError, ValueError) as error:
        raise BrokenInput(f"{place}: {line!r} is not `assert call == literal` ({error})") from error
    calls = [node.func for node in ast.walk(test.left) if isinstance(node, ast.Call)]
    if not any(isinstance(called, ast.Name) and called.id == entry_point for called in calls):
        raise BrokenInput(f"{place}: {line!r} does not call {entry_point}")
    expression, expected = (ast.get_source_segment(line, node) or "" for node in (test.left, test.comparators[0]))
    return GoldenCase(expression, expected)


def _equality(body: Sequence[ast.stmt]) -> ast.Compare:
    match body:
        case [ast.Assert(test=ast.Compare(ops=[ast.Eq()]) as test, msg=None)]:
            return test
    raise ValueError("another kind of statement")


def _wrong_program(row: object, place: str) -> WrongProgram:
    if not isinstance(row, dict):
        raise BrokenInput(f"{place}: wrong program {row!r} is not a table")
    subtlety = _value(row, "subtlety", int, place)
    if subtlety not in range(1, 5):
        raise BrokenInput(f"{place}: subtlety {subtlety} is not in 1..4")
    return WrongProgram(_value(row, "program", str, place), _value(row, "note", str, place), subtlety)
