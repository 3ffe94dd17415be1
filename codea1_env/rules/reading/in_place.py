"""Calls that change their arguments: the names of a test file after such a call.

Reading executes nothing. So after `f(xs)`, the name `xs` stands for an expression that makes the call and then gives
the argument: `(lambda xs: (f(xs), xs)[1])(VALUE)`, where VALUE is what the name stood for before. Later calls nest.
Each use of the name evaluates the expression anew, with new arguments.

Other names that may hold the same object become unusable. A copy stays usable if it shares no mutable part with the
argument: a sorted or sliced list of numbers does not change with the original, nor does a deep copy.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import replace

from codea1_env.python_text import MAX_DEPTH, UnreadableError, parse, write
from codea1_env.rules.reading.direct_calls import calls_of, is_call_of, is_direct
from codea1_env.rules.reading.inlining import inline_names
from codea1_env.rules.reading.scopes import AliasGroup, Inlined, Scope, Unusable
from codea1_env.rules.reading.statements import COMPREHENSIONS, arguments_in, children_of, nodes_in

_MAY_BE_SKIPPED = (ast.Lambda, ast.IfExp, ast.BoolOp, *COMPREHENSIONS)
_COLLECTIONS = (ast.List, ast.Tuple, ast.Set, ast.Dict, *COMPREHENSIONS)


def apply_calls(statement: ast.stmt, scope: Scope, text: str) -> None:
    """Give the names that a statement passes to the entry point their values after its calls.

    Args:
        statement: an expression, an assignment or an assert that has been read.
        scope: changed in place.
        text: the statement's source, for messages.
    """
    certain = set(map(id, _certain_calls(statement, scope.entry_point)))
    for call in calls_of(statement, scope.entry_point):
        if id(call) in certain:
            _apply(call, scope, text)
        else:
            scope.forget([name for name in _names_in(call) if name in scope.names], text)


def called_in_place(expression: str, entry_point: str) -> tuple[str, ...]:
    """Return the calls with literal arguments whose arguments an expression reads afterwards; () if it makes others."""
    try:
        tree = parse(expression)
    except UnreadableError:
        return ()
    found = [call for node in ast.walk(tree) if (call := _call_within(node)) is not None]
    if len(found) < len(calls_of(tree, entry_point)) or not all(is_direct(call, entry_point) for call in found):
        return ()
    return tuple(sorted({write(call, shared=True) for call in found}))


def _call_within(node: ast.AST) -> ast.expr | None:
    """Return the call of `(lambda xs: (f(xs), xs)[1])(VALUE)` with the value as its argument; None for other trees."""
    match node:
        case ast.Call(
            func=ast.Lambda(
                args=ast.arguments(args=[ast.arg(name)]), body=ast.Subscript(value=ast.Tuple(elts=[call, _]))
            ),
            args=[value],
        ):
            found: ast.expr = _Replacing(name, value).visit(copy.deepcopy(call))
            return found
    return None


class _Replacing(ast.NodeTransformer):
    def __init__(self, name: str, value: ast.expr) -> None:
        self._name = name
        self._value = value

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return self._value if node.id == self._name else node


def _certain_calls(node: ast.AST, entry_point: str) -> Iterator[ast.Call]:
    """Yield the calls that take place whenever a statement runs, without those in the arguments of other calls."""
    remaining = [node]  # no recursion, as a tree may be deep
    while remaining:
        for child in children_of(remaining.pop()):
            if is_call_of(child, entry_point):
                yield child
            elif not isinstance(child, _MAY_BE_SKIPPED):
                remaining.append(child)


def _apply(call: ast.Call, scope: Scope, text: str) -> None:
    names = [name for name in _names_in(call) if _is_mutable(scope.names.get(name))]
    try:
        scope.budget.take_steps(len(names) * len(scope.names))
    except UnreadableError as error:
        for name in names:
            scope.bind(name, Unusable(error.reason, error.detail))
        return
    after = {name: _value_after(call, name, scope) for name in names}
    for name in names:
        _separate(name, scope, text)
    for name, value in after.items():
        scope.bind(name, value)


def _names_in(call: ast.Call) -> list[str]:
    return sorted({node.id for node in nodes_in(*arguments_in(call)) if isinstance(node, ast.Name)})


def _is_mutable(value: object) -> bool:
    return isinstance(value, Inlined) and value.aliases is not None


def _value_after(call: ast.Call, name: str, scope: Scope) -> Inlined | Unusable:
    argument = ast.Name(name, ast.Load())
    parameters = ast.arguments([], [ast.arg(name)], None, [], [], None, [])
    pair = ast.Tuple([call, argument], ast.Load())
    function = ast.Lambda(parameters, ast.Subscript(pair, ast.Constant(1), ast.Load()))
    try:
        found = inline_names(ast.Call(function, [argument], []), scope)
    except UnreadableError as error:
        return Unusable(error.reason, error.detail)
    return replace(found, aliases=AliasGroup())


def _separate(name: str, scope: Scope, text: str) -> None:
    """Make the names unusable that may hold the same object as `name`, and keep the others."""
    value = scope.names[name]
    if not isinstance(value, Inlined) or value.aliases is None or value.aliases.invalidated_by:
        return
    depth = _depth(value.node)
    copied = [*ast.iter_child_nodes(value.node)] if _copied_levels(value.node) >= depth else []
    sources = {id(part) for child in copied for part in (child, *ast.iter_child_nodes(child))}
    for other, theirs in list(scope.names.items()):
        if isinstance(theirs, Inlined) and theirs.aliases is not None and theirs.aliases.is_merged_with(value.aliases):
            is_result = is_call_of(theirs.node, scope.entry_point)
            is_copy = _copied_levels(theirs.node) >= depth or id(theirs.node) in sources
            if is_result or (is_copy and theirs.node is not value.node):
                scope.bind(other, replace(theirs, aliases=AliasGroup()))
    value.aliases.invalidate(text)


def _copied_levels(node: ast.expr) -> int:
    """Return how many levels of containers of an expression are new objects, which nothing else shares."""
    match node:
        case ast.Call(func=ast.Attribute(attr="deepcopy" | "loads") | ast.Name("deepcopy" | "loads")):
            return MAX_DEPTH
        case ast.Call(func=ast.Name()) | ast.Call(func=ast.Attribute(attr="copy" | "count" | "index")):
            return 1
        case ast.Subscript(slice=ast.Slice()) | ast.BinOp():
            return 1
        case ast.List(elts=items) | ast.Tuple(elts=items):
            return int(all(isinstance(item, ast.Starred | ast.Constant) for item in items))
        case ast.DictComp(value=item) | ast.ListComp(elt=item):
            return 1 + _copied_levels(item)
    return int(isinstance(node, COMPREHENSIONS))


def _depth(node: ast.AST) -> int:
    """Return how deeply an expression nests collections, outside of functions.

    The node remembers it: replacements of names share subtrees, so their paths double with every line.
    """
    if isinstance(node, ast.Lambda):
        return 0
    known: int | None = getattr(node, "nested_collections", None)
    if known is None:
        deepest = max(map(_depth, ast.iter_child_nodes(node)), default=0)
        known = node.nested_collections = deepest + isinstance(node, _COLLECTIONS)  # type: ignore[attr-defined]
    return known
