"""The row layouts, and reading rows of any layout into a set of problems."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace

from codea1_env.errors import BrokenInput, UserError
from codea1_env.problems import (
    bigcodebench,
    contests,
    evalplus,
    humaneval,
    kodcode,
    leetcode,
    mbpp,
    own_rows,
    release_rows,
    ult,
)
from codea1_env.problems.columns import NotedRow, Row
from codea1_env.problems.problem import Problem, ProblemSet, SkippedRow
from codea1_env.problems.refusals import cause_of
from codea1_env.problems.snippets import with_known_imports


@dataclass(frozen=True, slots=True)
class Layout:
    """One format in which datasets store a problem as a row."""

    name: str
    columns: frozenset[str]
    """A row with all these columns has this layout."""
    read: Callable[[Row], Problem]


_PUBLISHED = (
    ("Code-A1 validation", "GT_code test extra_info", release_rows.validation_problem),
    ("Code-A1 training", "GT_code GT_test extra_info", release_rows.training_problem),
    ("EvalPlus", "task_id prompt entry_point canonical_solution base_input", evalplus.problem_from_row),
    ("HumanEval", "task_id prompt entry_point canonical_solution test", humaneval.problem_from_row),
    ("BigCodeBench", "task_id complete_prompt entry_point canonical_solution test", bigcodebench.problem_from_row),
    ("KodCode", "question_id question solution test test_info", kodcode.problem_from_row),
    ("KodCode as published", "question_id question solution test_code", kodcode.problem_from_row),
    ("ULT", "task_id prompt code func_name", ult.problem_from_row),
    ("MBPP", "task_id text code test_list", mbpp.problem_from_row),
    ("MBPP sanitized", "task_id prompt code test_list", mbpp.sanitized_problem),
    ("LeetCodeDataset v0.1 and v0.2", "task_id completion entry_point test meta", leetcode.problem_from_row),
    ("LeetCodeDataset", "task_id problem_description completion entry_point test", leetcode.problem_from_row),
    ("APPS", "problem_id question solutions input_output", contests.apps_problem),
    ("TACO", "question solutions input_output skill_types", contests.taco_problem),
    ("CodeContests", "name description public_tests solutions", contests.code_contests_problem),
    ("LiveCodeBench", "question_id question_content public_test_cases", contests.live_code_bench_problem),
)
LAYOUTS = (
    Layout("codea1-env", own_rows.REQUIRED, own_rows.problem_from_row),
    *(Layout(name, frozenset(columns.split()), read) for name, columns, read in _PUBLISHED),
)
"""A row may have the columns of several layouts: the one with the most columns reads it, or the first of these."""


@dataclass(frozen=True, slots=True)
class FoundRow:
    """A row at one place of a source, or the reason why it cannot be read."""

    place: str
    row: object = None
    fault: str = ""


def read_rows(name: str, rows: Iterable[FoundRow], *, strict: bool) -> ProblemSet:
    """Return the problems of all rows; a row that cannot be read is skipped with its reason.

    Raises:
        BrokenInput: no row is usable; or, if `strict`, a row is not.
    """
    places: dict[str, str] = {}
    problems: list[Problem] = []
    skipped: list[SkippedRow] = []
    notes: Counter[str] = Counter()
    for item in rows:
        try:
            problem, of_row = _read(item)
            if problem.id in places:
                raise BrokenInput(f"id {problem.id!r} is already used at {places[problem.id]}")
        except UserError as error:
            if strict:
                raise BrokenInput(f"{item.place}: {error}") from error
            skipped.append(SkippedRow(item.place, str(error), cause_of(error)))
            continue
        places[problem.id] = item.place
        problems.append(problem)
        notes.update(of_row)
    if not problems and skipped:
        first = f"{skipped[0].place}: {skipped[0].reason}"
        raise BrokenInput(f"{name}: none of its {len(skipped)} rows is a usable problem; the first, {first}")
    if not problems:
        raise BrokenInput(f"{name}: no rows were found")
    return ProblemSet(name, tuple(problems), tuple(skipped), dict(notes))


def read_row(row: Row) -> Problem:
    """Return the problem of a row of any known layout. A row of each of them may have the column `answers`.

    Raises:
        UserError: the row is broken, or its layout is unknown.
    """
    plain = row.row if isinstance(row, NotedRow) else row  # whose columns do not count as read
    columns = {column for column, value in plain.items() if value is not None and value != ""}
    # Published data sets contain rows in which a required column is empty; their layout says what they lack.
    for names in (columns, row.keys()):
        fitting = [layout for layout in LAYOUTS if layout.columns <= names]
        if fitting:
            layout = max(fitting, key=lambda each: len(each.columns))
            return replace(with_known_imports(layout.read(row)), answers=own_rows.answer_rules(row))
    if own_rows.is_nearly_own(columns):
        return own_rows.problem_from_row(row)  # names the misspelt or missing field
    nearest = max(LAYOUTS, key=lambda layout: len(layout.columns & columns) / len(layout.columns))
    listed = ", ".join(sorted(map(str, columns)))[:300] or "none"
    lacks = ", ".join(sorted(nearest.columns - columns))
    raise BrokenInput(
        f"unknown layout with the columns {listed}; the nearest known layout, {nearest.name}, also needs {lacks}"
    )


def _read(item: FoundRow) -> tuple[Problem, list[str]]:
    if item.fault:
        raise BrokenInput(item.fault)
    if not isinstance(item.row, Mapping):
        raise BrokenInput(f"expected an object with named fields, got {type(item.row).__name__}")
    if not item.row:
        raise BrokenInput("it is empty")
    row = NotedRow(item.row)
    return read_row(row), row.all_notes()
