"""The claim of an assert without its wrapping: two values are equal, or an expression is true.

`bool(x == y)`, `(x == y) is True`, `not x != y`, `(x != y) == False` and `x in [y]` all claim `x == y`. The ruleset's
tolerance applies only where the judge compares values. So each of these forms must reach the judge as an equality.
Otherwise a correct program could fail for the rounding of a float.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

from codea1_env.rules.reading.written import placed

_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_BOOLEAN_FUNCTIONS = frozenset({"all", "any", "bool", "callable", "isinstance", "issubclass"})
_DISPLAYS = (ast.List, ast.Tuple, ast.Set)


def plain_claim(condition: ast.expr, bindings: Mapping[str, str]) -> ast.expr:
    """Return the plainest expression that is true iff `condition` is.

    Args:
        condition: with its names inlined.
        bindings: as in `Inlined`.
    """
    node, expected = condition, True
    while True:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                node, expected = inner, not expected
            case ast.Call(func=ast.Name(id="bool"), args=[inner], keywords=[]) if is_built_in(
                "bool", bindings
            ) and not isinstance(inner, ast.Starred):
                node = inner
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                compared = _compared_with_bool(left, op, right, bindings) or _compared_with_bool(
                    right, op, left, bindings
                )
                if compared is None:
                    return placed(_equality_for_membership(_comparison(left, op, right, expected)), node)
                node, expected = compared[0], expected is compared[1]
            case _:
                return node if expected else ast.UnaryOp(ast.Not(), node)


def sides_of_equality(condition: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Return both sides if `condition` is one equality of values that the judge can compare; else None."""
    match condition:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return None if _is_type_call(left) or _is_type_call(right) else (left, right)
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[right]) if _is_singleton(left) or _is_singleton(right):
            return left, right
    return None


def has_one_object(node: ast.expr, bindings: Mapping[str, str]) -> bool:
    """Whether a value is the same object wherever it is: a constant, a truth value, a class."""
    return isinstance(node, ast.Constant) or _is_type_call(node) or _is_boolean(node, bindings)


def is_built_in(name: str, bindings: Mapping[str, str]) -> bool:
    """Whether a free name refers to the object of that name in `builtins`."""
    return not bindings.get(name, "")


def _compared_with_bool(
    compared: ast.expr, op: ast.cmpop, constant: ast.expr, bindings: Mapping[str, str]
) -> tuple[ast.expr, bool] | None:
    """Return the expression that is compared with True or False, and that constant; None for other comparisons."""
    if not (isinstance(constant, ast.Constant) and _is_boolean(compared, bindings)):
        return None
    value = constant.value
    by_identity = isinstance(op, ast.Is | ast.IsNot) and isinstance(value, bool)
    by_value = isinstance(op, ast.Eq | ast.NotEq) and isinstance(value, int | float) and value in (0, 1)
    if not (by_identity or by_value):
        return None
    return compared, bool(value) is isinstance(op, ast.Is | ast.Eq)


def _is_boolean(node: ast.expr, bindings: Mapping[str, str]) -> bool:
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp(values=values):
            return all(_is_boolean(value, bindings) for value in values)
        case ast.Call(func=ast.Name(id=name)):
            return name in _BOOLEAN_FUNCTIONS and is_built_in(name, bindings)
    return False


def _comparison(left: ast.expr, op: ast.cmpop, right: ast.expr, expected: bool) -> ast.expr:
    if expected:
        return ast.Compare(left, [op], [right])
    opposite = _OPPOSITES.get(type(op))  # < and >= are not opposites: both are false for nan
    if opposite is None:
        return ast.UnaryOp(ast.Not(), ast.Compare(left, [op], [right]))
    return ast.Compare(left, [opposite()], [right])


def _equality_for_membership(node: ast.expr) -> ast.expr:
    match node:
        case ast.Compare(left=left, ops=[op], comparators=[ast.List() | ast.Tuple() | ast.Set() as display]) if (
            isinstance(op, ast.In | ast.NotIn)
            and len(display.elts) == 1
            and not isinstance(display.elts[0], ast.Starred)
        ):
            return ast.Compare(left, [ast.Eq() if isinstance(op, ast.In) else ast.NotEq()], display.elts)
    return node


def _is_type_call(node: ast.expr) -> bool:
    """Whether `node` is `type(...)` or a display of such calls. A class is not plain data: the test must compare it."""
    if isinstance(node, _DISPLAYS):
        return any(map(_is_type_call, node.elts))
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"


def _is_singleton(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))
