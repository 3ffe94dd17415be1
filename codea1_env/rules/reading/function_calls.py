"""Calls with functions: arguments that are written as lambdas or built-in functions, and calls of returned functions.

A function cannot be sent between processes as data. But a call such as `apply(lambda x: x + 1, 3)` is closed: its text
says all about it. So the text is sent, and the program's process evaluates it. A closed call is a chain of calls, such
as `make_adder(2)(3)`, that begins with the entry point. Its arguments are literals, lambdas without state, built-in
functions, methods of built-in classes, closed calls, and displays of these, all without imported names. A function that
changes its argument has state, too: a program that calls it once more than the solution would get another result.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

from codea1_env.python_text import UnreadableError, parse, remembered_up_to
from codea1_env.rules.reading.allowed_names import SAFE_BUILTINS
from codea1_env.rules.reading.direct_calls import has_plain_keywords, is_call_of, is_direct, is_literal
from codea1_env.rules.reading.effects import CHANGING_METHODS, effects_of
from codea1_env.rules.reading.statements import arguments_in

SOURCE_CALL = "source_call"
"""Attribute of the stand-in for the entry point: it sends the text of a closed call."""


def is_closed_call(node: ast.expr, entry_point: str, imports: Iterable[str] = ()) -> bool:
    """Whether a tree is a closed call, outside of which no name of its own is bound.

    Args:
        node: an expression of a test, whose names may all be used.
        entry_point: its name.
        imports: the import statements of the test.
    """
    imported = effects_of(map(parse, imports)).bound
    return _is_chain(node, entry_point) and effects_of([node]).names <= SAFE_BUILTINS - imported | {entry_point}


class SentExpression(NamedTuple):
    """A harness expression as it is sent."""

    text: str
    source_calls: tuple[str, ...] = ()
    """The closed calls that it sends as text: all but those with literal arguments only."""


@remembered_up_to(512)
def with_source_calls(expression: str, imports: tuple[str, ...], entry_point: str) -> SentExpression:
    """Return a harness expression that sends its closed calls as text."""
    try:
        (statement,) = parse(expression).body
    except (UnreadableError, ValueError):
        return SentExpression(expression)
    sending = _Sending(entry_point, imports)
    tree = sending.visit(statement)
    return SentExpression(ast.unparse(tree) if sending.texts else expression, tuple(sending.texts))


class _Sending(ast.NodeTransformer):
    def __init__(self, entry_point: str, imports: tuple[str, ...]) -> None:
        self._entry_point = entry_point
        self._imports = imports
        self.texts: list[str] = []

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if is_direct(node, self._entry_point) or not is_closed_call(node, self._entry_point, self._imports):
            return self.generic_visit(node)
        text = ast.unparse(node)
        self.texts.append(text)
        send = ast.Attribute(ast.Name(self._entry_point, ast.Load()), SOURCE_CALL, ast.Load())
        return ast.Call(send, [ast.Constant(text)], [])


def _is_chain(node: ast.expr, entry_point: str) -> bool:
    if not isinstance(node, ast.Call) or not has_plain_keywords(node):
        return False
    if not all(_is_sendable(argument, entry_point) for argument in arguments_in(node)):
        return False
    return is_call_of(node, entry_point) or _is_chain(node.func, entry_point)


def _is_sendable(node: ast.expr, entry_point: str) -> bool:
    match node:
        case ast.Name() | ast.Attribute(value=ast.Name()):
            return not _changes_an_object(node)
        case ast.Lambda():
            return not _has_state(node)
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            return all(_is_sendable(item, entry_point) for item in items)
        case ast.Dict(keys=keys, values=items):
            return all(key is not None and _is_sendable(key, entry_point) for key in keys) and all(
                _is_sendable(item, entry_point) for item in items
            )
    return is_literal(node) or _is_chain(node, entry_point)


def _has_state(function: ast.Lambda) -> bool:
    """Whether a lambda may change a default or an argument, so that results would depend on the number of its calls."""
    if _changes_an_object(function):
        return True
    lambdas = [part for part in ast.walk(function) if isinstance(part, ast.Lambda)]
    defaults = [default for each in lambdas for default in (*each.args.defaults, *each.args.kw_defaults)]
    return not all(default is None or isinstance(default, ast.Constant) for default in defaults)


def _changes_an_object(node: ast.expr) -> bool:
    """Whether an expression names a method that changes its object."""
    return any(isinstance(part, ast.Attribute) and part.attr in CHANGING_METHODS for part in ast.walk(node))
