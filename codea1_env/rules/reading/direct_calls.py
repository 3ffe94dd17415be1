"""Which expressions are safe to evaluate beside the program under test: one call, literal arguments, nothing else."""

from __future__ import annotations

import ast

from codea1_env.rules.reading.python_text import UnreadableError, parse

__all__ = ["is_direct", "is_direct_call"]


def is_direct_call(expression: str, entry_point: str) -> bool:
    """Whether `expression` is exactly one call of `entry_point` by name whose arguments are all literals.

    Literals are constants, numbers with a sign, complex numbers written as a sum, and displays of lists, tuples, sets
    and dicts of literals. Starred arguments, f-strings, comprehensions and names are none. Any text is accepted.
    """
    try:
        body = parse(expression).body
    except UnreadableError:
        return False
    return len(body) == 1 and isinstance(body[0], ast.Expr) and is_direct(body[0].value, entry_point)


def is_direct(node: ast.expr, entry_point: str) -> bool:
    """`is_direct_call` for a tree."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == entry_point):
        return False
    keywords = [keyword.arg for keyword in node.keywords]
    if None in keywords or len(set(keywords)) < len(keywords):  # **mapping; a repeated name does not compile
        return False
    return _all_literal([*node.args, *(keyword.value for keyword in node.keywords)])


def _all_literal(nodes: list[ast.expr]) -> bool:
    waiting: list[ast.expr | None] = list(nodes)
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.List | ast.Tuple | ast.Set):
            waiting.extend(node.elts)
        elif isinstance(node, ast.Dict):
            waiting.extend(node.keys)  # None stands for **mapping
            waiting.extend(node.values)
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
