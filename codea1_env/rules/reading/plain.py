"""A fast path for most tests: an entry-point call with plain arguments and a plain predicted value, read in one walk.

Plain are None, bool, numbers without a plus sign, texts, bytes, and lists, tuples and dicts of them. No name of the
file can change their meaning, and `repr` of the value is the text that `ast.unparse` writes. Everything else (sets,
complex numbers, names, duplicate keys, deep nesting) takes the general path, which gives the same result.
"""

from __future__ import annotations

import ast
import math
from collections.abc import Callable, Iterable
from typing import Any

from codea1_env import values
from codea1_env.facts.submissions import TestCase
from codea1_env.python_text import MAX_DEPTH
from codea1_env.rules.reading.direct_calls import is_call_of, is_literal
from codea1_env.rules.reading.literals import LiteralError, encoded_literal
from codea1_env.rules.reading.written import Places

_MAX_KEYS = 256  # keys that collide cost quadratic time
_MAX_LITERAL = 4096  # characters, for the same reason
_ATOMIC_TYPES = frozenset({int, str, bool, bytes, type(None)})


class _NotPlain(Exception):
    """The expression needs the general path."""


def read_plain_case(
    left: ast.expr, right: ast.expr, entry_point: str, statement: ast.stmt, places: Places | None
) -> TestCase | None:
    """Return the case that `left == right` states, None unless one side is a plain call and the other a plain value."""
    if not is_call_of(left, entry_point):
        left, right = right, left
        if not is_call_of(left, entry_point):
            return None
    try:
        arguments = [*map(repr, _items(left.args)), *map(_keyword, _distinct(left.keywords))]
        value = _value(right)
        expression, prediction = f"{entry_point}({', '.join(arguments)})", repr(value)
    except (_NotPlain, ValueError):  # more digits than Python writes
        return None
    # Every level opens a bracket, except for a sign and its number.
    if any(len(text) > MAX_DEPTH - 2 < _n_brackets(text) for text in (expression, prediction)):
        return None
    written = None if places is None else places.written(statement, left, right)
    return TestCase(expression, prediction, (), True, statement.lineno, _encoded(value), written=written)


def encoded_prediction(node: ast.expr, text: str) -> bytes | None:
    """Return the encoding of a predicted value; None if it is not a literal, or too long.

    Args:
        node: the prediction. The same `is_literal` decides whether it runs in `Place.PROGRAM`.
        text: the source of `node`.
    """
    if len(text) > _MAX_LITERAL or not is_literal(node):
        return None
    try:
        return encoded_literal(node)
    except LiteralError:
        return None


def plain_call(node: ast.expr, text: str) -> tuple[str, ...]:
    """Return a call with literal arguments in canonical form, e.g. `f({1, 2})` for `f({2, 1})`; () where unknown.

    Args:
        node: the call.
        text: the source of `node`.
    """
    if len(text) > _MAX_LITERAL or not isinstance(node, ast.Call):
        return ()
    try:
        given = [_source(argument) for argument in node.args]
        given += [f"{keyword.arg}={_source(keyword.value)}" for keyword in node.keywords]
    except LiteralError:
        return ()
    return (f"{ast.unparse(node.func)}({', '.join(given)})",)


def _source(node: ast.expr) -> str:
    source = values.to_source(encoded_literal(node))
    if source is None:
        raise LiteralError("no source has this value")
    return source.expression


def _distinct(keywords: list[ast.keyword]) -> list[ast.keyword]:
    if len({keyword.arg for keyword in keywords}) < len(keywords):
        raise _NotPlain
    return keywords


def _keyword(keyword: ast.keyword) -> str:
    if keyword.arg is None:
        raise _NotPlain
    return f"{keyword.arg}={_value(keyword.value)!r}"


def _encoded(value: object) -> bytes | None:
    try:
        return values.encode(value)
    except values.TooLarge:
        return None


def _n_brackets(text: str) -> int:
    return text.count("(") + text.count("[") + text.count("{")


def _value(node: ast.expr) -> Any:
    reader = _READERS.get(type(node))
    if reader is None:
        raise _NotPlain
    return reader(node)


def _items(nodes: Iterable[ast.expr | None]) -> list[Any]:
    return [
        node.value if type(node) is ast.Constant and type(node.value) in _ATOMIC_TYPES else _value(node)
        for node in nodes
        if node is not None
    ]


def _constant(node: ast.Constant) -> Any:
    value = node.value
    if type(value) in _ATOMIC_TYPES or (type(value) is float and math.isfinite(value)):
        return value
    raise _NotPlain


def _dict(node: ast.Dict) -> dict[Any, Any]:
    keys = _items(node.keys)
    if len(keys) > _MAX_KEYS or len(keys) < len(node.keys):  # {**other}
        raise _NotPlain
    try:
        made = dict(zip(keys, _items(node.values), strict=True))
    except TypeError as error:  # a key that cannot be hashed
        raise _NotPlain from error
    if len(made) < len(keys):
        raise _NotPlain
    return made


def _negative(node: ast.UnaryOp) -> int | float:
    operand = node.operand
    if isinstance(node.op, ast.USub) and isinstance(operand, ast.Constant):
        value = operand.value
        if (type(value) is int and value) or (type(value) is float and math.isfinite(value)):
            return -value
    raise _NotPlain


_READERS: dict[type[ast.expr], Callable[[Any], Any]] = {
    ast.Constant: _constant,
    ast.List: lambda node: _items(node.elts),
    ast.Tuple: lambda node: tuple(_items(node.elts)),
    ast.Dict: _dict,
    ast.UnaryOp: _negative,
}
