"""Smaller versions of an expression that calls a function with literal arguments. Pure.

One step changes one literal: a container or a text loses elements, or a number becomes 0, 1 or closer to 0. The results
are ordered by size, so the first one with the required property is the smallest.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import AnyStr, TypeAlias

_MAX_STEPS = 400
_MAX_CUTS = 40


def size(expression: str) -> tuple[int, int]:
    """Return the measure of size: the number of literals and containers, then the number of characters."""
    return sum(isinstance(node, _COUNTED) for node in ast.walk(ast.parse(expression, mode="eval"))), len(expression)


_COUNTED = (ast.Constant, ast.List, ast.Tuple, ast.Dict, ast.Set)


def normalised(expression: str) -> str:
    """Return the expression in the notation of `ast.unparse`, so that white space and quotes make no difference.

    Raises:
        SyntaxError: not an expression.
    """
    return ast.unparse(ast.parse(expression, mode="eval"))


def simpler(expression: str) -> list[str]:
    """Return distinct expressions that are one step smaller, the smallest first; none if it is not a plain call.

    Raises:
        SyntaxError: not an expression.
    """
    tree = ast.parse(expression, mode="eval")
    if not isinstance(tree.body, ast.Call):
        return []
    found: dict[str, None] = {}
    for path in list(_literals(tree.body)):
        literal = _at(tree.body, path)
        for smaller in _smaller(literal):
            _put(tree.body, path, smaller)
            found.setdefault(ast.unparse(tree))
            if len(found) >= _MAX_STEPS:
                break
        _put(tree.body, path, literal)
    original = size(normalised(expression))
    return sorted((text for text in found if size(text) < original), key=lambda text: (size(text), text))


_Path: TypeAlias = tuple[tuple[str, int], ...]
"""The fields and positions that lead from a call to a node within it."""


def _literals(call: ast.Call) -> Iterator[_Path]:
    """Yield the path to each literal in a call's arguments, a container before its elements."""
    for number, argument in enumerate(call.args):
        yield from _within(argument, (("args", number),))
    for number, keyword in enumerate(call.keywords):
        yield from _within(keyword.value, (("keywords", number),))


def _within(node: ast.expr, path: _Path) -> Iterator[_Path]:
    yield path
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        for number, element in enumerate(node.elts):
            yield from _within(element, (*path, ("elts", number)))
    elif isinstance(node, ast.Dict):
        for field in ("keys", "values"):
            for number, child in enumerate(getattr(node, field)):
                yield from _within(child, (*path, (field, number)))


def _at(call: ast.expr, path: _Path) -> ast.expr:
    node: ast.expr = call
    for field, number in path:
        child = getattr(node, field)[number]
        node = child.value if isinstance(child, ast.keyword) else child
    return node


def _put(call: ast.expr, path: _Path, new: ast.expr) -> None:
    parent = _at(call, path[:-1])
    field, number = path[-1]
    children = getattr(parent, field)
    if isinstance(children[number], ast.keyword):
        children[number].value = new
    else:
        children[number] = new


def _smaller(node: ast.expr) -> Iterator[ast.expr]:
    if isinstance(node, ast.List | ast.Tuple | ast.Set):
        yield from _shorter_sequences(node)
    elif isinstance(node, ast.Dict):
        yield from _shorter_dicts(node)
    elif isinstance(node, ast.Constant):
        yield from map(ast.Constant, _smaller_constants(node.value))
    elif isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant):
        yield node.operand  # -3 becomes 3
        for smaller in _smaller_constants(node.operand.value):
            yield ast.UnaryOp(node.op, ast.Constant(smaller))


def _shorter_sequences(node: ast.List | ast.Tuple | ast.Set) -> Iterator[ast.expr]:
    kind, elements = type(node), node.elts
    half = len(elements) // 2
    wanted = [[], elements[:half], elements[half:], *(elements[:i] + elements[i + 1 :] for i in range(len(elements)))]
    for some in wanted:
        if len(some) < len(elements) and (some or kind is not ast.Set):  # {} would be a dict
            yield ast.Set(some) if kind is ast.Set else kind(some, ast.Load())  # type: ignore[call-arg, arg-type]


def _shorter_dicts(node: ast.Dict) -> Iterator[ast.expr]:
    pairs = list(zip(node.keys, node.values, strict=True))
    half = len(pairs) // 2
    for some in ([], pairs[:half], pairs[half:], *(pairs[:i] + pairs[i + 1 :] for i in range(len(pairs)))):
        if len(some) < len(pairs):
            yield ast.Dict([key for key, _ in some], [value for _, value in some])


def _smaller_constants(value: object) -> Iterator[str | bytes | int | float]:
    match value:
        case bool():
            return
        case str():
            yield from _shorter(value)
        case bytes():
            yield from _shorter(value)
        case int() if value:
            yield from dict.fromkeys((0, 1, value // 2, value - 1)) if value > 1 else (0,)
        case float() if value not in (0.0, 1.0):
            if value == value and abs(value) < 1e15 and value != int(value):
                yield float(int(value))
            yield from (0.0, 1.0)


def _shorter(text: AnyStr) -> Iterator[AnyStr]:
    half = len(text) // 2
    yield from (text[:0], text[:half], text[half:])
    yield from (text[:i] + text[i + 1 :] for i in range(min(len(text), _MAX_CUTS)))
