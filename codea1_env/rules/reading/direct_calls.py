"""Direct calls: expressions that are safe in the process of the program under test.

A direct call is one call of the entry point whose arguments are all literals.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TypeGuard

from codea1_env.facts.entry_points import EntryPoint, read_entry_point
from codea1_env.python_text import UnreadableError, parse, write

_FOLDED_OPERATORS: dict[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}
_LARGE = 1 << 64
_LEAVES = (ast.Constant, ast.Name, ast.expr_context)


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
    return _all_literal([*node.args, *(keyword.value for keyword in node.keywords)])


def has_plain_keywords(node: ast.Call) -> bool:
    """Whether the keywords of a call are distinct names, without **mapping; a repeated name does not compile."""
    keywords = [keyword.arg for keyword in node.keywords]
    return None not in keywords and len(set(keywords)) == len(keywords)


def is_call_of(node: ast.AST, entry_point: str) -> TypeGuard[ast.Call]:
    """Whether `node` calls `entry_point` by its name; a method on a new instance of its class."""
    if not isinstance(node, ast.Call):
        return False
    if isinstance(node.func, ast.Name):
        return node.func.id == entry_point
    return names_method(node.func, entry_point)


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
    nodes = [node]
    for each in nodes:  # breadth first; most nodes are leaves
        nodes += [child for child in ast.iter_child_nodes(each) if not isinstance(child, _LEAVES)]
    calls = (each for each in nodes if isinstance(each, ast.Call))
    found = (call if is_call_of(call, entry_point) else raised_call(call, entry_point) for call in calls)
    return [call for call in found if call is not None]


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
            number = _whole_number(node)
            return node if number is None else _number_node(number)
    return node


def _whole_number(node: ast.expr) -> int | None:
    match node:
        case ast.Constant(value=int() as number) if type(number) is int:
            return number
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            inner = _whole_number(operand)
            return None if inner is None else -inner
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _FOLDED_OPERATORS:
            one, other = _whole_number(left), _whole_number(right)
            if one is None or other is None or max(abs(one), abs(other)) > _LARGE:
                return None
            return _FOLDED_OPERATORS[type(op)](one, other)
    return None


def _number_node(number: int) -> ast.expr:
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
