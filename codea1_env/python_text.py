"""Python text that somebody else wrote: parsed at a price that is known before anything is walked, and written back.

A short text can cost a lot: each field of an f-string takes a pass over the whole of it, and a name that stands for
`[x, x]` doubles with every line. So whoever reads a text has a `TextBudget`. What a text costs to parse, a constant and
a price for each token, is counted lexically and taken from it first; what is done with the tree is taken from the same
budget, step by step. Replies of both roles, rows of data sets, programs and the bodies of requests are all parsed here,
by `parse`.

Trees deeper than `MAX_DEPTH` are not written, so that no later recursion over a tree depends on the depth of the
caller's stack.
"""

from __future__ import annotations

import ast
import re
import symtable
import threading
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, NamedTuple, TypeVar, cast

from codea1_env.facts.submissions import RejectionReason

_F = TypeVar("_F", bound=Callable[..., Any])
_REMEMBERED = 1 << 24  # characters of the texts whose results one function remembers

MAX_DEPTH = 64
"""Deepest nesting of expressions in a tree that is written back."""

MAX_BRACKETS = 128
"""Most brackets within each other. CPython stops at 200, and writing a tree adds some."""

_PARSE_US, _TOKEN_US, _FIELD_US, _NODE_US, _STEP_US = 40, 8, 60, 60, 2
_FIELD_STEPS = 6  # 2**6 characters of f-strings per microsecond: dear, since nobody needs many
_CHARACTERS = 2
_LINES_PER_CHARACTER = 32  # empty lines that cost no more than to walk over a character's share of a tree
_RETRIES = 5
_ROW_US = 100_000_000

PYTHON_ERRORS = (SyntaxError, ValueError, RecursionError, MemoryError, OverflowError, SystemError)
"""The exceptions of `ast.parse` and `ast.unparse`: ValueError for NUL, surrogates and too many digits, RecursionError
or MemoryError for depth, and SystemError for an inconsistent depth counter of early 3.11 releases."""

# Two threads that enter catch_warnings at once can change the process's filters permanently.
_WARNING_FILTERS = threading.Lock()

_TOKEN = re.compile(r"\w+|[^\w\s]")
_BRACKET_OR_TEXT = re.compile(
    r"""[(\[{]|[)\]}]|#[^\n]*|(?<!\w)(?:([fF][rR]?|[rR][fF])|[bBuUrR]{0,2})"""
    r"""(?:(?P<triple>\"{3}|'{3})(?:[^\\]|\\.)*?(?:(?P=triple)|\Z)|"(?:[^"\\\n]|\\.)*+"?|'(?:[^'\\\n]|\\.)*+'?)""",
    re.DOTALL,
)
"""A bracket, a comment or a literal of text; group 1 is the prefix of an f-string."""
# ast.unparse writes these without brackets, so after an operator they would bind differently.
_LOOSER_THAN_EQUALS = (ast.BoolOp, ast.Compare, ast.IfExp, ast.Lambda)


def remembered_up_to(longest: int) -> Callable[[_F], _F]:
    """Cache a function of texts: what clients send must not fill memory, however long or many they are.

    Args:
        longest: characters of all arguments, as `repr` writes them; results for longer ones are not kept.
    """

    def remember(function: _F) -> _F:
        @lru_cache(_REMEMBERED // longest)
        def remembered(*texts: Any) -> Any:
            if len(repr(texts)) > longest:
                raise _TooLongToRemember
            return function(*texts)

        @wraps(function)
        def called(*texts: Any) -> Any:
            try:
                return remembered(*texts)  # what is known is not measured again
            except _TooLongToRemember:
                pass
            return function(*texts)

        return cast(_F, called)

    return remember


class _TooLongToRemember(Exception):
    """The arguments of a call are too long to be kept."""


class UnreadableError(Exception):
    """A piece of text cannot be used; carries the reason and the detail of its `Rejection`, and a line if known."""

    def __init__(self, reason: RejectionReason, detail: str, line: int | None = None) -> None:
        super().__init__(detail)
        self.reason = reason
        self.detail = detail
        self.line = line


@dataclass(slots=True)
class TextBudget:
    """What reading the texts of one sender may still cost.

    The unit is a microsecond of a slow machine, by a list of prices: nothing is measured, so that the same text is
    read or refused everywhere.
    """

    left_us: int = 800_000

    @classmethod
    def of_row(cls) -> TextBudget:
        """Return the budget for a text of a file that the user has chosen, in which megabytes of inputs are usual."""
        return cls(_ROW_US)

    def take_parsing(self, text: str) -> None:
        """Pay for one parse of a text.

        Raises:
            UnreadableError: TOO_LONG if it costs more than is left, SYNTAX_ERROR if it nests brackets deeper than
                `MAX_BRACKETS`.
        """
        self.take_characters(len(text))  # the counting itself
        self._take(_PARSE_US + _TOKEN_US * len(_TOKEN.findall(text)), "it is too long")
        if "{" in text or sum(map(text.count, "([")) > MAX_BRACKETS:
            costs = _lexical_costs(text)
            if costs.depth > MAX_BRACKETS:
                raise UnreadableError(RejectionReason.SYNTAX_ERROR, "brackets are nested too deeply")
            price_us = _FIELD_US * costs.n_fields + (costs.n_field_steps >> _FIELD_STEPS)
            self._take(price_us, "it has an f-string of too many fields")

    def take_characters(self, n_characters: int) -> None:
        """Pay for a pass over some characters.

        Raises:
            UnreadableError: TOO_LONG if it costs more than is left; as in all that follow.
        """
        self._take(n_characters >> _CHARACTERS, "it is too long")

    def take_nodes(self, n_nodes: int) -> None:
        """Pay for syntax nodes that are written as text."""
        self._take(_NODE_US * n_nodes, "it is too long once its names are inlined")

    def take_steps(self, n_steps: int) -> None:
        """Pay for visits of nodes and of names."""
        self._take(_STEP_US * n_steps, "its names take too many steps to inline")

    def _take(self, price_us: int, why: str) -> None:
        if price_us > self.left_us:
            raise UnreadableError(RejectionReason.TOO_LONG, why)
        self.left_us -= price_us


class _Costs(NamedTuple):
    depth: int
    """The deepest nesting of brackets outside strings and comments."""
    n_fields: int
    """Replacement fields of f-strings, at most."""
    n_field_steps: int
    """Characters that Python reads of f-strings: each whole text once for each of its fields."""


def _lexical_costs(text: str) -> _Costs:
    depth = deepest = n_fields = n_steps = 0
    for match in _BRACKET_OR_TEXT.finditer(text):
        token = match[0]
        if token in "([{":
            depth += 1
            deepest = max(deepest, depth)
        elif token in ")]}":
            depth = max(0, depth - 1)
        elif match[1] is not None:
            n_fields += token.count("{")
            n_steps += token.count("{") * len(token)
    return _Costs(deepest, n_fields, n_steps)


def parse(text: str, budget: TextBudget | None = None, first_line: int = 1) -> ast.Module:
    """Return the syntax tree of a text; its warnings are suppressed.

    Args:
        text: any text.
        budget: what its sender may still spend; None if the text came alone.
        first_line: the line number that the tree gives to the first line; errors count from 1.

    Raises:
        UnreadableError: SYNTAX_ERROR if it is not Python, TOO_LONG if it costs more than is left.
    """
    (TextBudget() if budget is None else budget).take_parsing(text)
    try:
        with _WARNING_FILTERS, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return _tree(text) if first_line == 1 else _tree_from(first_line, text)
    except PYTHON_ERRORS as error:
        line = error.lineno if isinstance(error, SyntaxError) else None
        raise UnreadableError(RejectionReason.SYNTAX_ERROR, _message(error), line) from error


def _tree(text: str) -> ast.Module:
    """Parse, and retry where CPython before 3.11.8 mixes up the depth counters of two parsing threads."""
    for _ in range(_RETRIES):
        try:
            return ast.parse(text)
        except SystemError:
            continue
    return ast.parse(text)


def _tree_from(first_line: int, text: str) -> ast.Module:
    """Parse and number the lines. Empty lines before the text do so at once, but they count in messages, too."""
    if first_line <= _LINES_PER_CHARACTER * len(text):
        try:
            return _tree("\n" * (first_line - 1) + text)
        except PYTHON_ERRORS:
            pass
    return ast.increment_lineno(_tree(text), first_line - 1)


def free_names(program: str) -> set[str]:
    """Return the names that a program uses and does not define; none for text that is not Python."""
    try:
        top = _symbols(program)
    except PYTHON_ERRORS:
        return set()
    bound = {name.get_name() for name in top.get_symbols() if name.is_assigned() or name.is_imported()}
    return _names_in(top) - bound


def names_used(program: str) -> dict[str, set[str]]:
    """Return the names of the module that each of its functions and classes uses; empty for text that is not Python."""
    try:
        top = _symbols(program)
    except PYTHON_ERRORS:
        return {}
    return {table.get_name(): _names_in(table) for table in top.get_children()}


def _symbols(program: str) -> symtable.SymbolTable:
    with _WARNING_FILTERS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return symtable.symtable(program, "<program>", "exec")


def _names_in(table: symtable.SymbolTable) -> set[str]:
    used, pending = set[str](), [table]
    while pending:  # no recursion: lambdas nest without brackets
        inner = pending.pop()
        is_top = inner.get_type() == "module"
        used |= {
            name.get_name() for name in inner.get_symbols() if name.is_referenced() and (is_top or name.is_global())
        }
        pending += inner.get_children()
    return used


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
        text = ast.unparse(_copy_shared(node) if shared else node)
        stable = not formatted or ast.unparse(ast.parse(text, mode="eval")) == text
    except PYTHON_ERRORS as error:
        too_long = "digits" in str(error)  # ValueError of sys.set_int_max_str_digits
        reason = RejectionReason.TOO_LONG if too_long else RejectionReason.SYNTAX_ERROR
        raise UnreadableError(reason, "contains a number that is too long" if too_long else _message(error)) from None
    if not stable or "\n" in text:
        raise UnreadableError(RejectionReason.SYNTAX_ERROR, "contains an f-string that cannot be written on one line")
    if isinstance(node, _LOOSER_THAN_EQUALS) or (isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)):
        return f"({text})"
    return text


def _copy_shared(field: Any) -> Any:
    """Return a copy without shared subtrees: ast.unparse stores one precedence per node object."""
    if isinstance(field, list):
        return [_copy_shared(item) for item in field]
    if isinstance(field, ast.AST):
        return type(field)(**{name: _copy_shared(value) for name, value in ast.iter_fields(field)})
    return field


def _message(error: BaseException) -> str:
    if isinstance(error, SyntaxError):
        return error.msg or "invalid syntax"
    if isinstance(error, RecursionError | MemoryError):
        return "nested too deeply"
    return str(error)[:200].encode("ascii", "backslashreplace").decode()
