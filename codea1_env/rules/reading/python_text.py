"""Parse untrusted Python text into syntax trees, and write trees as text.

CPython limits its own parser (200 open brackets, about 6,000 grammar frames) and raises one of several exceptions
beyond that. This module turns all of them into `UnreadableError`. It rejects trees deeper than `MAX_DEPTH`, so that no
later recursion over a tree depends on the depth of the caller's stack.
"""

from __future__ import annotations

import ast
import threading
import warnings
from typing import Any

from codea1_env.facts.submissions import RejectionReason
from codea1_env.rules.reading.logical_lines import bracket_depth

MAX_DEPTH = 64
"""Deepest nesting of expressions in a tree that is written back."""

_MAX_BRACKETS = 2 * MAX_DEPTH  # writing a tree adds brackets; CPython stops at 200

_MAX_RETRIES = 5

# Two threads that enter catch_warnings at once can change the process's filters permanently.
_WARNING_FILTERS = threading.Lock()

PARSER_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, SystemError)
"""The exceptions of `ast.parse` and `ast.unparse`: ValueError for NUL, surrogates and too many digits, RecursionError
or MemoryError for depth, and SystemError for an inconsistent depth counter of early 3.11 releases."""

# ast.unparse writes these without brackets, so after an operator they would bind differently.
_LOOSER_THAN_EQUALS = (ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda)


class UnreadableError(Exception):
    """A piece of text cannot be used; carries the reason and the detail of its `Rejection`."""

    def __init__(self, reason: RejectionReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def _tree(text: str) -> ast.Module:
    """Parse, and retry where CPython before 3.11.8 mixes up the depth counters of two parsing threads."""
    for _ in range(_MAX_RETRIES):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)


def parse(text: str) -> ast.Module:
    """Return the syntax tree of `text`; suppresses Python's warnings.

    Raises:
        UnreadableError: SYNTAX_ERROR if the text is not Python, or nested too deeply.
    """
    if bracket_depth(text, _MAX_BRACKETS) > _MAX_BRACKETS:
        raise UnreadableError(RejectionReason.SYNTAX_ERROR, "brackets are nested too deeply")
    try:
        with _WARNING_FILTERS, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _tree(text)
    except PARSER_ERRORS as error:
        raise UnreadableError(RejectionReason.SYNTAX_ERROR, _parser_message(error)) from None


def write(node: ast.expr, *, shared: bool = False, formatted: bool = False) -> str:
    """Return `node` as one line of source that may stand on either side of `==`.

    Equal trees give equal text, and reading the text again gives an equal tree.

    Args:
        node: no deeper than `MAX_DEPTH`.
        shared: whether a subtree may occur in several places.
        formatted: whether it holds an f-string, whose quotes cannot always be written back.

    Raises:
        UnreadableError: SYNTAX_ERROR if it has no source of one line; TOO_LONG for a number with too many digits.
    """
    try:
        text = ast.unparse(_unshared(node) if shared else node)
        stable = not formatted or ast.unparse(ast.parse(text, mode="eval")) == text
    except PARSER_ERRORS as error:
        too_long = "digits" in str(error)  # ValueError of sys.set_int_max_str_digits
        reason = RejectionReason.TOO_LONG if too_long else RejectionReason.SYNTAX_ERROR
        raise UnreadableError(
            reason, "holds a number that is too long" if too_long else _parser_message(error)
        ) from None
    if not stable or "\n" in text:
        raise UnreadableError(RejectionReason.SYNTAX_ERROR, "holds an f-string that cannot be written on one line")
    if isinstance(node, _LOOSER_THAN_EQUALS) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return f"({text})"
    return text


def _unshared(field: Any) -> Any:
    """Return a copy without shared subtrees: ast.unparse stores one precedence per node object."""
    if isinstance(field, list):
        return [_unshared(item) for item in field]
    if isinstance(field, ast.AST):
        return type(field)(**{name: _unshared(value) for name, value in ast.iter_fields(field)})
    return field


def _parser_message(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return error.msg or "invalid syntax"
    if isinstance(error, RecursionError | MemoryError):
        return "nested too deeply"
    return str(error)[:200].encode("ascii", "backslashreplace").decode()
