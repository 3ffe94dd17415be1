"""Python text to syntax trees and back, for text that nobody has checked.

CPython bounds its own parser (200 open brackets, about 6,000 grammar frames) and answers worse text with one of
several exceptions; here all of them are one, and trees deeper than `MAX_DEPTH` are refused, so that no later
recursion over them depends on how deep the caller's stack already is.
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

_MAX_BRACKETS = 2 * MAX_DEPTH  # room for the brackets that writing adds; CPython stops at 200

_MAX_CONFUSIONS = 5

# Entering catch_warnings in two threads at once can leave the process's filters changed for good.
_WARNING_FILTERS = threading.Lock()

REFUSALS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, SystemError)
"""What `ast.parse` and `ast.unparse` say no with: NUL, surrogates and too many digits are ValueErrors, depth is a
RecursionError or MemoryError, and early 3.11 releases have a depth counter that may disagree with itself (SystemError).
"""

# Written by ast.unparse after an operator, these would bind differently without brackets.
_LOOSER_THAN_EQUALS = (ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda)


class UnreadableError(Exception):
    """A piece of text cannot be used; carries what its `Rejection` says."""

    def __init__(self, reason: RejectionReason, detail: str) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail


def _tree(text: str) -> ast.Module:
    """Parse, again where CPython before 3.11.8 confuses this thread's depth with that of another one that parses."""
    for _ in range(_MAX_CONFUSIONS):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)


def parse(text: str) -> ast.Module:
    """Return the syntax tree of `text`, silently where Python would warn.

    Raises:
        UnreadableError: SYNTAX_ERROR; not Python, or nested deeper than is read.
    """
    if bracket_depth(text, _MAX_BRACKETS) > _MAX_BRACKETS:
        raise UnreadableError(RejectionReason.SYNTAX_ERROR, "brackets are nested too deeply")
    try:
        with _WARNING_FILTERS, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _tree(text)
    except REFUSALS as error:
        raise UnreadableError(RejectionReason.SYNTAX_ERROR, _sentence(error)) from None


def write(node: ast.expr, *, shared: bool = False, formatted: bool = False) -> str:
    """Return `node` as one line of source that may stand on either side of `==`.

    Equal trees give equal text, and reading the text again gives an equal tree.

    Args:
        node: no deeper than `MAX_DEPTH`.
        shared: whether a subtree may stand in several places of it.
        formatted: whether it holds an f-string; the quotes of those cannot always be written back.

    Raises:
        UnreadableError: SYNTAX_ERROR for what has no one-line source; TOO_LONG for a number of too many digits.
    """
    try:
        text = ast.unparse(_unshared(node) if shared else node)
        stable = not formatted or ast.unparse(ast.parse(text, mode="eval")) == text
    except REFUSALS as error:
        too_long = "digits" in str(error)  # ValueError of sys.set_int_max_str_digits
        reason = RejectionReason.TOO_LONG if too_long else RejectionReason.SYNTAX_ERROR
        raise UnreadableError(reason, "holds a number that is too long" if too_long else _sentence(error)) from None
    if not stable or "\n" in text:
        raise UnreadableError(RejectionReason.SYNTAX_ERROR, "holds an f-string that cannot be written on one line")
    if isinstance(node, _LOOSER_THAN_EQUALS) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return f"({text})"
    return text


def _unshared(field: Any) -> Any:
    """Return a copy without shared subtrees: ast.unparse keeps one need for brackets per node object."""
    if isinstance(field, list):
        return [_unshared(item) for item in field]
    if isinstance(field, ast.AST):
        return type(field)(**{name: _unshared(value) for name, value in ast.iter_fields(field)})
    return field


def _sentence(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return error.msg or "invalid syntax"
    if isinstance(error, RecursionError | MemoryError):
        return "nested too deeply"
    return str(error)[:200].encode("ascii", "backslashreplace").decode()
