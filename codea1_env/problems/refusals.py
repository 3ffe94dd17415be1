"""Refuses rows of data sets: the error, and the statements that make a row unplayable."""

from __future__ import annotations

import re

from codea1_env.errors import BrokenInput
from codea1_env.problems.columns import Row, text
from codea1_env.problems.problem import Refusal


class RefusedRow(BrokenInput):
    """A row that can be read but not be played.

    Args:
        refusal: the cause.
        reason: one sentence about this row.
    """

    def __init__(self, refusal: Refusal, reason: str) -> None:
        super().__init__(refusal, reason)
        self.refusal = refusal
        self.reason = reason

    def __str__(self) -> str:
        return self.reason


def cause_of(error: BaseException) -> Refusal:
    """Return the cause for which a row is refused with this error."""
    return error.refusal if isinstance(error, RefusedRow) else Refusal.BROKEN


_ANSWERS = r"(?:answer|output|result|solution|list|array|string|sequence|permutation|way|path|them|integer)s?\b"
_SIGNS = (
    (
        Refusal.SEVERAL_ANSWERS,
        "accepts several answers, and the tests state one: state in the column 'answers' which are right",
        re.compile(
            r"\b(?:print|output|return)\s+any\b(?!thing)"
            r"|\b(?:any|either)\s+(?:one\s+)?of\s+(?:them|these)\b"
            r"|\b(?:print|output|return|report|answers?|results?|solutions?)\b[^.\n]{0,60}\bin\s+(?:any|arbitrary)\s+order\b"
            r"|\border\s+of\s+(?:the\s+|your\s+)?(?:output|answer|result)s?\b[^.\n]{0,20}(?:\bnot|n't)\s+matter\b"
            rf"|\b(?:multiple|several|many|more\s+than\s+one)\s+(?:\w+\s+){{0,2}}{_ANSWERS}[^.]{{0,60}}\b(?:any|either)\b"
            rf"|\bany\s+(?:valid|correct|possible|suitable|optimal)\s+{_ANSWERS}",
            re.IGNORECASE,
        ),
    ),
    (
        Refusal.INTERACTIVE,
        "describes an interactive program; programs get their whole input at once",
        re.compile(r"\binteractive\s+(?:problem|task)\b|\b(?:problem|task)\s+is\s+interactive\b", re.IGNORECASE),
    ),
    (
        Refusal.FILES,
        "names an input or output file; programs have only standard input and output",
        re.compile(r"\bfiles?\s+(?:named\s+|called\s+)?['\"`]?\w+\.(?:in|out|txt)\b", re.IGNORECASE),
    ),
)

_OBJECTS = re.compile(r"\b(?:ListNode|TreeNode|Node|NestedInteger)\b")


def playable_statement(row: Row, column: str) -> str:
    """Return the statement of a problem that needs no judge and no files, and has one right answer.

    With the column `answers`, it may have several.

    Raises:
        RefusedRow: the statement says otherwise.
        BrokenInput: the column is missing, empty or no text.
    """
    statement = text(row, column)
    for refusal, because, sign in _SIGNS:
        is_stated = refusal is Refusal.SEVERAL_ANSWERS and bool(row.get("answers"))
        if not is_stated and (match := sign.search(statement)):
            raise RefusedRow(refusal, f"column {column!r} {because} ({' '.join(match.group().split())!r})")
    return statement


def refuse_objects(starter_code: str) -> None:
    """Refuse a row whose starter code takes or returns objects of a class.

    Raises:
        RefusedRow: it does.
    """
    if match := _OBJECTS.search(starter_code):
        raise RefusedRow(
            Refusal.OBJECTS,
            f"column 'starter_code' names the class {match.group()}, whose objects cannot be sent between processes",
        )


def solution_text(row: Row, column: str) -> str:
    """Return the solution.

    Raises:
        RefusedRow: the row lacks one.
        BrokenInput: it is not text.
    """
    if row.get(column) in (None, "", "[]"):
        raise no_solution(f"column {column!r} is {'empty' if column in row else 'missing'}")
    return text(row, column)


def no_solution(reason: str) -> RefusedRow:
    """Return the error of a row without a solution."""
    return RefusedRow(Refusal.NO_SOLUTION, f"{reason}; without a solution there is no ground truth")
