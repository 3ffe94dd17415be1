"""Direct calls: expressions that are safe in the process of the program under test.

A direct call is one call of the entry point whose arguments are all literals.

Most tests are an entry-point call with plain arguments and a plain predicted value, which `read_plain_case` reads in
one walk. Plain are None, bool, numbers without a plus sign, texts, bytes, and lists, tuples and dicts of them. No name
of the file can change their meaning, and `repr` of the value is the text that `ast.unparse` writes. Everything else
(sets, complex numbers, names, duplicate keys, deep nesting) takes the general path, which gives the same result.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Callable, Iterable
from typing import Any, TypeGuard

from codea1_env import values
from codea1_env.facts.entry_points import EntryPoint, read_entry_point
from codea1_env.facts.submissions import TestCase
from codea1_env.python_text import MAX_DEPTH, UnreadableError, parse, write
from codea1_env.rules.reading.literals import LiteralError, encoded_literal
from codea1_env.rules.reading.statements import Places, arguments_in, nodes_in

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

_FOLDED_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_LARGE = 1 << 64


def is_direct_call(expression: str, entry_point: str) -> bool:
    """Whether `expression` is exactly one call of `entry_point` by name whose arguments are all literals.

    Literals are constants, numbers with a sign, complex numbers written as a sum, and displays of lists, tuples, sets
    and dicts of literals. Starred arguments, f-strings, comprehensions and names are not literals. Accepts any text.
    """
    try:
        body = parse(expression).body
    except UnreadableError:
        return False
    return len(body) == 1 and isinstance(body[0], ast.Expr) and is_direct(body[0].value, entry_point)


def is_direct(node: ast.expr, entry_point: str) -> bool:
    """`is_direct_call` for a tree."""
    if not is_call_of(node, entry_point) or not has_plain_keywords(node):
        return False
    return _all_literal(arguments_in(node))


def has_plain_keywords(node: ast.Call) -> bool:
    """Whether the keywords of a call are distinct names, without **mapping; a repeated name does not compile."""
    keywords = [keyword.arg for keyword in node.keywords]
    return None not in keywords and len(set(keywords)) == len(keywords)


def is_call_of(node: ast.AST, entry_point: str) -> TypeGuard[ast.Call]:
    """Whether `node` calls `entry_point` by its name; a method on a new instance of its class."""
    return isinstance(node, ast.Call) and refers_to(node.func, entry_point)


def refers_to(node: ast.expr, entry_point: str) -> bool:
    """Whether `node` is the name of `entry_point`, or its method of a new instance."""
    return node.id == entry_point if isinstance(node, ast.Name) else names_method(node, entry_point)


def names_method(node: ast.expr, entry_point: str) -> bool:
    """Whether `node` is the method that `entry_point` names, of a new instance: `Solution().two_sum`."""
    match node:
        case ast.Attribute(value=ast.Call(func=ast.Name(id=name), args=[], keywords=[]), attr=method):
            return EntryPoint(name, method) == read_entry_point(entry_point)
    return False


def entry_point_node(entry_point: str) -> ast.expr:
    """Return the expression that `entry_point` writes."""
    name, method = read_entry_point(entry_point)
    node = ast.Name(name, ast.Load())
    return ast.Attribute(ast.Call(node, [], []), method, ast.Load()) if method else node


def calls_of(node: ast.AST, entry_point: str) -> list[ast.Call]:
    """Return all calls of `entry_point` by its name in a tree, nested ones included, and those that `raises` makes."""
    calls = (part for part in nodes_in(node) if isinstance(part, ast.Call))
    found = (call if is_call_of(call, entry_point) else raised_call(call, entry_point) for call in calls)
    return [call for call in found if call is not None]


def makes_call(node: ast.AST, entry_point: str) -> bool:
    """Whether a tree calls `entry_point` by its name."""
    return is_call_of(node, entry_point) or (not isinstance(node, ast.Constant) and bool(calls_of(node, entry_point)))


def calls_in(expression: str, entry_point: str) -> tuple[str, ...]:
    """Return the calls of `entry_point` in an expression, as text."""
    return tuple(map(ast.unparse, calls_of(parse(expression), entry_point)))


def raised_call(node: ast.AST, entry_point: str) -> ast.Call | None:
    """Return the call that `raises(Class, f, *arguments)` makes of the entry point; None for other nodes."""
    match node:
        case ast.Call(func=ast.Name(id="raises"), args=[_, function, *arguments], keywords=keywords):
            call = ast.Call(function, arguments, keywords)
            return call if is_call_of(call, entry_point) else None
    return None


def direct_calls_in(node: ast.AST, entry_point: str) -> tuple[str, ...]:
    """Return the calls of `entry_point` in a tree, each once, sorted; empty unless all of them are direct.

    Sums, differences and products of integers are computed first, so that `f(2 - 1)` is `f(1)`.
    """
    calls = [_folded_call(call) for call in calls_of(node, entry_point)]
    if not all(is_direct(call, entry_point) for call in calls):
        return ()
    return tuple(sorted({write(call, shared=True) for call in calls}))


def is_literal(node: ast.expr) -> bool:
    """Whether `node` is a literal in the sense of `is_direct_call`."""
    return _all_literal([node])


def _folded_call(call: ast.Call) -> ast.Call:
    keywords = [ast.keyword(keyword.arg, _folded(keyword.value)) for keyword in call.keywords]
    return ast.Call(call.func, [_folded(argument) for argument in call.args], keywords)


def _folded(node: ast.expr) -> ast.expr:
    match node:
        case ast.List(elts=items):
            return ast.List([_folded(item) for item in items], node.ctx)
        case ast.Tuple(elts=items):
            return ast.Tuple([_folded(item) for item in items], node.ctx)
        case ast.BinOp():
            number = whole_number(node)
            return node if number is None else number_node(number)
    return node


def whole_number(node: ast.expr) -> int | None:
    """Return the integer that an expression of integers is; None for other nodes."""
    match node:
        case ast.Constant(value=int() as number) if type(number) is int:
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = whole_number(operand)
            return None if inner is None else -inner
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _FOLDED_OPERATORS:
            one, other = whole_number(left), whole_number(right)
            if one is None or other is None or max(abs(one), abs(other)) > _LARGE:
                return None
            return _FOLDED_OPERATORS[type(op)](one, other)
    return None


def number_node(number: int) -> ast.expr:
    """Return the expression that writes an integer."""
    constant = ast.Constant(abs(number))
    return constant if number >= 0 else ast.UnaryOp(ast.USub(), constant)


def _all_literal(nodes: list[ast.expr]) -> bool:
    pending: list[ast.expr | None] = list(nodes)
    while pending:
        node = pending.pop()
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            pending.extend(node.elts)
        elif isinstance(node, ast.Dict):
            pending.extend(node.keys)  # None stands for **mapping
            pending.extend(node.values)
        elif not (isinstance(node, ast.Constant) or _is_signed_number(node) or _is_complex_sum(node)):
            return False
    return True


def _is_signed_number(node: ast.expr | None) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.UAdd | ast.USub):
        node = node.operand
    return isinstance(node, ast.Constant) and type(node.value) in (int, float, complex)


def _is_complex_sum(node: ast.expr | None) -> bool:
    return (
        isinstance(node, ast.BinOp)
        and isinstance(node.op, ast.Add | ast.Sub)
        and _is_signed_number(node.left)
        and isinstance(node.right, ast.Constant)
        and type(node.right.value) is complex
    )
