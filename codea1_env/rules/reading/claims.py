"""What the condition of an assert claims, however it is wrapped: that two things are equal, or that something is true.

`bool(x == y)`, `(x == y) is True`, `not x != y`, `(x != y) == False` and `x in [y]` all say `x == y`. Values are
compared within the ruleset's tolerance only where the judge compares them, so a claim must not escape that by the way
it is put (method.md 2.2, D15).
"""

from __future__ import annotations

import ast
from collections.abc import Mapping

_OPPOSITES: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}
_SAYING_YES_OR_NO = frozenset({"all", "any", "bool", "callable", "isinstance", "issubclass"})
_DISPLAYS = (ast.List, ast.Tuple, ast.Set)


def plain_claim(condition: ast.expr, meanings: Mapping[str, str]) -> ast.expr:
    """Return the plainest expression that is true iff `condition` is.

    Args:
        condition: names filled in.
        meanings: as of `Filled`.
    """
    node, wanted = condition, True
    while True:
        match node:
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                node, wanted = inner, not wanted
            case ast.Call(func=ast.Name(id="bool"), args=[inner], keywords=[]) if is_built_in(
                "bool", meanings
            ) and not isinstance(inner, ast.Starred):
                node = inner
            case ast.Compare(left=left, ops=[op], comparators=[right]):
                told = _told_by_comparison(left, op, right, meanings) or _told_by_comparison(right, op, left, meanings)
                if told is None:
                    return _equality_for_membership(_turned(left, op, right, wanted))
                node, wanted = told[0], wanted is told[1]
            case _:
                return node if wanted else ast.UnaryOp(ast.Not(), node)


def sides_of_equality(condition: ast.expr) -> tuple[ast.expr, ast.expr] | None:
    """Return the sides if `condition` is one equality of values that can be told outside the test; else None."""
    match condition:
        case ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]):
            return None if _shows_class(left) or _shows_class(right) else (left, right)
        case ast.Compare(left=left, ops=[ast.Is()], comparators=[right]) if _is_singleton(left) or _is_singleton(right):
            return left, right
    return None


def is_built_in(name: str, meanings: Mapping[str, str]) -> bool:
    """Whether a free name means what it means in `builtins`."""
    return not meanings.get(name, "")


def _told_by_comparison(
    told: ast.expr, op: ast.cmpop, constant: ast.expr, meanings: Mapping[str, str]
) -> tuple[ast.expr, bool] | None:
    """Return what is compared with True or False, and with which of them; None if it is something else."""
    if not (isinstance(constant, ast.Constant) and _says_yes_or_no(told, meanings)):
        return None
    value = constant.value
    by_identity = isinstance(op, ast.Is | ast.IsNot) and isinstance(value, bool)
    by_value = isinstance(op, ast.Eq | ast.NotEq) and isinstance(value, int | float) and value in (0, 1)
    if not (by_identity or by_value):
        return None
    return told, bool(value) is isinstance(op, ast.Is | ast.Eq)


def _says_yes_or_no(node: ast.expr, meanings: Mapping[str, str]) -> bool:
    match node:
        case ast.Compare() | ast.UnaryOp(op=ast.Not()):
            return True
        case ast.BoolOp(values=values):
            return all(_says_yes_or_no(value, meanings) for value in values)
        case ast.Call(func=ast.Name(id=name)):
            return name in _SAYING_YES_OR_NO and is_built_in(name, meanings)
    return False


def _turned(left: ast.expr, op: ast.cmpop, right: ast.expr, wanted: bool) -> ast.expr:
    if wanted:
        return ast.Compare(left, [op], [right])
    opposite = _OPPOSITES.get(type(op))  # not of < and the like: nan is neither less nor more
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


def _shows_class(node: ast.expr) -> bool:
    """Whether `node` is `type(...)`, or a display of such: a class is no plain data, so it is compared on the spot."""
    if isinstance(node, _DISPLAYS):
        return any(map(_shows_class, node.elts))
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "type"


def _is_singleton(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and (node.value is None or isinstance(node.value, bool))
