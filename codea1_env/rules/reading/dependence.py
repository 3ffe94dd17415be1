"""Reject asserts whose outcome does not depend on the entry point, judged by their syntax alone.

A condition tests nothing if it holds whatever the entry point returns, or if it can be evaluated without a call of the
entry point. The rules are syntactic, and simple enough for a rejection to state them:

- Every evaluation of the condition must call the entry point. A call does not count behind `and` or `or`, in one branch
  only, in a function that may not be called, or in a loop over items that may be empty.
- Where only truth matters, every operand of `and` and `or` and each branch must call the entry point.
- No result may be compared with itself or discarded: an item of a display that is not selected, an argument that a
  lambda ignores, a product with zero, the length of a display.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from codea1_env.rules.reading.direct_calls import calls_of, is_call_of, makes_call, raised_call, whole_number
from codea1_env.rules.reading.lengths import TAKE_ITEMS, Lengths
from codea1_env.rules.reading.statements import COMPREHENSIONS, arguments_in, nodes_in

_CANCELLING_OPERATORS = (ast.Sub, ast.BitXor, ast.Div, ast.FloorDiv, ast.Mod)


def vacuity_reason(condition: ast.expr, entry_point: str, bindings: Mapping[str, str]) -> str:
    """Return why `condition` may hold whatever the entry point returns; empty if its syntax does not show that.

    Args:
        condition: calls the entry point. Its names are inlined, and it is no larger than a tree that is written back.
        entry_point: its name.
        bindings: as in `Inlined`.
    """
    if not _CertainCalls(condition, entry_point, bindings).is_certain(condition):
        return f"need not call {entry_point!r}, or discards what it returns"
    if not _depends_on_call(condition, entry_point):
        return f"has a part that is true or false whatever {entry_point!r} returns"
    if _compares_with_itself(condition, entry_point):
        return f"compares what {entry_point!r} returns with itself"
    return ""


# -- a call takes place ----------------------------------------------------------------------------


class _CertainCalls:
    """Finds the parts of a condition that always call the entry point and use what it returns."""

    def __init__(self, condition: ast.expr, entry_point: str, bindings: Mapping[str, str]) -> None:
        self._entry_point = entry_point
        self._lengths = Lengths(condition, entry_point, bindings)

    def is_certain(self, node: ast.expr) -> bool:
        """Whether every evaluation of `node` calls the entry point."""
        return _VISITORS.get(type(node), _CertainCalls._any_part)(self, node)

    def _any(self, nodes: Iterator[ast.expr] | Sequence[ast.expr]) -> bool:
        return any(map(self.is_certain, nodes))

    def _any_part(self, node: ast.expr) -> bool:
        return self._any([child for child in ast.iter_child_nodes(node) if isinstance(child, ast.expr)])

    def _and_or(self, node: ast.BoolOp) -> bool:
        return self.is_certain(node.values[0])

    def _choice(self, node: ast.IfExp) -> bool:
        return self.is_certain(node.test) or (self.is_certain(node.body) and self.is_certain(node.orelse))

    def _comparison(self, node: ast.Compare) -> bool:
        return self._any((node.left, node.comparators[0]))

    def _operation(self, node: ast.BinOp) -> bool:
        is_zero = isinstance(node.op, ast.Mult) and (_is_zero(node.left) or _is_zero(node.right))
        return not is_zero and self._any((node.left, node.right))

    def _item(self, node: ast.Subscript) -> bool:
        items = node.value.elts if isinstance(node.value, ast.List | ast.Tuple) else []
        position = whole_number(node.slice)
        if position is None or not items or any(isinstance(item, ast.Starred) for item in items):
            return self._any((node.value, node.slice))
        if not -len(items) <= position < len(items):
            return False
        return self.is_certain(items[position]) or self._is_changed_argument(items[position], items[:position])

    def _is_changed_argument(self, item: ast.expr, before: Sequence[ast.expr]) -> bool:
        """Whether an item is an argument of an earlier item, which may have changed it, as in `(f(xs), xs)[1]`."""
        if not isinstance(item, ast.Name):
            return False
        calls = [call for call in before if is_call_of(call, self._entry_point)]
        return any(isinstance(part, ast.Name) and part.id == item.id for call in calls for part in ast.walk(call))

    def _lambda(self, node: ast.Lambda) -> bool:
        return self._any(_defaults(node.args))

    def _call(self, node: ast.Call) -> bool:
        if is_call_of(node, self._entry_point) or raised_call(node, self._entry_point) is not None:
            return True
        match node.func:
            case ast.Lambda() as function:
                return self._call_of_lambda(function, node)
            case ast.Name(id="len"):
                displays = (ast.List, ast.Tuple)
                return self._any([argument for argument in node.args if not isinstance(argument, displays)])
        runs = self._consumes_arguments(node.func)
        return self.is_certain(node.func) or any(self._argument(value, runs=runs) for value in arguments_in(node))

    def _argument(self, node: ast.expr, *, runs: bool) -> bool:
        match node:
            case ast.GeneratorExp() if runs:
                return self._iteration(node, runs=True)
            case ast.Call(func=ast.Name(id="map"), args=[ast.Lambda(body=body), *others]) if (
                runs and self._lengths.is_built_in("map") and all(map(self._lengths.has_items, others))
            ):
                return self._any((body, *others))
        return self.is_certain(node)

    def _call_of_lambda(self, function: ast.Lambda, node: ast.Call) -> bool:
        used = {name.id for name in ast.walk(function.body) if isinstance(name, ast.Name)}
        names = [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]
        given = [
            value
            for name, value in itertools.zip_longest(names, node.args)
            if value is not None and (name is None or name in used)
        ]
        given += [keyword.value for keyword in node.keywords if keyword.arg is None or keyword.arg in used]
        return self._any((function.body, *given))

    def _consumes_arguments(self, function: ast.expr) -> bool:
        match function:
            case ast.Name(id=name):
                return name in TAKE_ITEMS and self._lengths.is_built_in(name)
            case ast.Attribute(attr="join", value=ast.Constant()):
                return True
        return False

    def _comprehension(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp) -> bool:
        return self._iteration(node, runs=not isinstance(node, ast.GeneratorExp))

    def _iteration(self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, *, runs: bool) -> bool:
        for generator in node.generators:
            if self.is_certain(generator.iter):
                return True
            if not runs or not self._lengths.has_items(generator.iter):
                return False
            if generator.ifs:
                return self.is_certain(generator.ifs[0])
        return self._any((node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,))


_VISITORS: dict[type[ast.expr], Callable[[_CertainCalls, Any], bool]] = {
    ast.BinOp: _CertainCalls._operation,
    ast.BoolOp: _CertainCalls._and_or,
    ast.Call: _CertainCalls._call,
    ast.Compare: _CertainCalls._comparison,
    ast.IfExp: _CertainCalls._choice,
    ast.Lambda: _CertainCalls._lambda,
    ast.Subscript: _CertainCalls._item,
    **dict.fromkeys(COMPREHENSIONS, _CertainCalls._comprehension),
}


def _defaults(arguments: ast.arguments) -> list[ast.expr]:
    return [*arguments.defaults, *(default for default in arguments.kw_defaults if default is not None)]


def _is_zero(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and not node.value


# -- the result decides ----------------------------------------------------------------------------


def _depends_on_call(node: ast.expr, entry_point: str) -> bool:
    """Whether each part that can decide the truth of `node` alone depends on a call."""
    parts = _deciding_parts(node)
    if parts is None:
        return not isinstance(node, ast.Lambda | ast.GeneratorExp) and makes_call(node, entry_point)
    return bool(parts) and all(_depends_on_call(part, entry_point) for part in parts)


def _deciding_parts(node: ast.expr) -> Sequence[ast.expr] | None:
    """Return the parts that can decide alone whether `node` is true.

    Returns:
        Empty if its truth is constant, None if `node` has no such parts.
    """
    parts: Sequence[ast.expr] | None = None
    match node:
        case ast.BoolOp(values=values):
            parts = values
        case ast.UnaryOp(op=ast.Not(), operand=operand) | ast.Starred(value=operand):
            parts = (operand,)
        case ast.IfExp(body=body, orelse=other):
            parts = (body, other)
        case ast.Compare(left=left, comparators=[right]) if _is_truth_value(left) or _is_truth_value(right):
            parts = [side for side in (left, right) if not _is_truth_value(side)]
        case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
            parts = items if all(isinstance(item, ast.Starred) for item in items) else ()
        case ast.Dict(keys=keys, values=values):
            parts = () if any(keys) else values
        case ast.Call(func=ast.Name(id="bool"), args=[inner], keywords=[]):
            parts = (inner,)
        case ast.Call(func=ast.Name(id="all" | "any"), args=[ast.List(elts=items) | ast.Tuple(elts=items)]):
            parts = items
    return parts


def _is_truth_value(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, bool)


# -- nothing is compared with itself ---------------------------------------------------------------


def _compares_with_itself(condition: ast.expr, entry_point: str) -> bool:
    return len(calls_of(condition, entry_point)) > 1 and any(
        any(_same(one, other) for other in others) and makes_call(one, entry_point)
        for node in nodes_in(condition)
        for one, others in _compared(node)
    )


def _compared(node: ast.AST) -> Iterator[tuple[ast.expr, Sequence[ast.expr]]]:
    match node:
        case ast.Compare(left=left, ops=ops, comparators=comparators):
            for first, op, second in zip((left, *comparators), ops, comparators, strict=False):
                yield first, _members(second) if isinstance(op, ast.In | ast.NotIn) else (second,)
        case ast.BinOp(left=left, op=op, right=right) if isinstance(op, _CANCELLING_OPERATORS):
            yield left, (right,)


def _members(node: ast.expr) -> Sequence[ast.expr]:
    return node.elts if isinstance(node, ast.List | ast.Tuple | ast.Set) else ()


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, ast.AST):
        return one is other or all(_same(getattr(one, name, None), getattr(other, name, None)) for name in one._fields)
    return bool(one == other)
