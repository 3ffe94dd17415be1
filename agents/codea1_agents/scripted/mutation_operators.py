"""Small faults that programmers make, as edits of one syntax node. Pure: edits return new nodes."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum, StrEnum, auto
from typing import Any

_Function = ast.FunctionDef | ast.AsyncFunctionDef


class Operator(StrEnum):
    """The kind of a mutant's fault, which says how subtle it is."""

    subtlety: int
    """From 1 (typically fails on most inputs) to 4 (typically on rare ones only); the scale of `WrongProgram`."""

    def __new__(cls, value: str, subtlety: int) -> Operator:
        """Make a member of its value and its subtlety."""
        member = str.__new__(cls, value)
        member._value_, member.subtlety = value, subtlety
        return member

    BOUNDARY = "boundary", 4
    """A comparison off at its boundary: `<` in place of `<=`."""
    COMPARISON = "comparison", 1
    """A different comparison: `>` in place of `<`."""
    ARITHMETIC = "arithmetic", 1
    """Another arithmetic operator."""
    OPERANDS = "operands", 2
    """Operands of a subtraction, division or power exchanged."""
    CONSTANT = "constant", 3
    """A number off by one."""
    TEXT = "text", 3
    """A string constant without its last character."""
    BOOLEAN = "boolean", 2
    """`and` in place of `or`, `True` in place of `False`."""
    NEGATION = "negation", 1
    """A condition negated, or a `not` left out."""
    GUARD = "guard", 4
    """A guard clause left out."""
    STATEMENT = "statement", 2
    """Another statement left out."""
    SLICE = "slice", 3
    """A slice that starts or ends one element off."""
    RANGE = "range", 3
    """A `range` that starts or ends one off."""
    RETURN = "return", 1
    """A result one too large, or without its last element."""
    LOOP = "loop", 3
    """`break` in place of `continue`."""
    ARGUMENTS = "arguments", 2
    """The first two arguments of a call exchanged."""
    DEFAULT = "default", 4
    """Another default value."""
    EXTREME = "extreme", 2
    """`min` in place of `max`, `any` in place of `all`."""
    CALL = "call", 3
    """A similar function or none: `floor` in place of `ceil`, `x` in place of `abs(x)`."""
    METHOD = "method", 4
    """A similar method: `lower` in place of `upper`, `lstrip` in place of `strip`."""


@dataclass(frozen=True, slots=True)
class Site:
    """The surroundings of a node, as far as the operators need them."""

    function: _Function | None = None
    """The innermost function around it."""
    field: str = ""
    """The parent's field that contains the node."""
    in_while: bool = False
    """Whether the node is in a `while` loop; edits that often make it endless are skipped, since they cost seconds."""


@dataclass(frozen=True, slots=True)
class Edit:
    """A replacement of one node."""

    operator: Operator
    node: ast.AST | None
    """The new node; None: the statement is left out."""


_OTHER_COMPARISONS: dict[type[ast.cmpop], tuple[tuple[Operator, type[ast.cmpop]], ...]] = {
    ast.Lt: ((Operator.BOUNDARY, ast.LtE), (Operator.COMPARISON, ast.Gt)),
    ast.LtE: ((Operator.BOUNDARY, ast.Lt), (Operator.COMPARISON, ast.GtE)),
    ast.Gt: ((Operator.BOUNDARY, ast.GtE), (Operator.COMPARISON, ast.Lt)),
    ast.GtE: ((Operator.BOUNDARY, ast.Gt), (Operator.COMPARISON, ast.LtE)),
    ast.Eq: ((Operator.COMPARISON, ast.NotEq),),
    ast.NotEq: ((Operator.COMPARISON, ast.Eq),),
    ast.In: ((Operator.COMPARISON, ast.NotIn),),
    ast.NotIn: ((Operator.COMPARISON, ast.In),),
    ast.Is: ((Operator.COMPARISON, ast.IsNot),),
    ast.IsNot: ((Operator.COMPARISON, ast.Is),),
}
_OTHER_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.FloorDiv,
    ast.FloorDiv: ast.Div,
    ast.Mod: ast.FloorDiv,
    ast.Pow: ast.Mult,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitOr,
}
_ORDERED_ARITHMETIC = (ast.Sub, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow)
_EXTREMES = {"min": "max", "max": "min", "any": "all", "all": "any"}
_FUNCTIONS = {"floor": "ceil", "ceil": "floor", "round": "int", "set": "list", "sorted": "list", "reversed": "list"}
_UNWRAPPED = ("abs", "sorted", "set", "reversed", "round", "list", "str", "int")
_ALIKE = (
    ("lower", "upper"),
    ("title", "capitalize"),
    ("strip", "lstrip"),
    ("startswith", "endswith"),
    ("isalpha", "isalnum"),
    ("isupper", "islower"),
    ("find", "rfind"),
    ("union", "intersection"),
    ("keys", "values"),
    ("floor", "ceil"),
)
_ONE_WAY = {"swapcase": "lower", "rstrip": "strip", "isdigit": "isalnum", "index": "rindex", "append": "extend"}
_METHODS = dict(_ALIKE) | {other: one for one, other in _ALIKE} | _ONE_WAY


def edits_of(node: ast.AST, site: Site) -> Iterator[Edit]:
    """Yield every edit that applies to the node itself (not to its children)."""
    rule = _RULES.get(type(node))
    return rule(node, site) if rule is not None else iter(())


def _compare(node: ast.Compare, site: Site) -> Iterator[Edit]:
    for position, operator in enumerate(node.ops):
        for fault, other in _OTHER_COMPARISONS[type(operator)]:
            ops = [*node.ops[:position], other(), *node.ops[position + 1 :]]
            yield Edit(fault, ast.Compare(node.left, ops, node.comparators))


def _binary(node: ast.BinOp, site: Site) -> Iterator[Edit]:
    other = _OTHER_ARITHMETIC.get(type(node.op))
    formats_text = isinstance(node.left, ast.Constant) and isinstance(node.left.value, str)
    if other is not None and not formats_text:
        yield Edit(Operator.ARITHMETIC, ast.BinOp(node.left, other(), node.right))
    if isinstance(node.op, _ORDERED_ARITHMETIC) and not formats_text and ast.dump(node.left) != ast.dump(node.right):
        yield Edit(Operator.OPERANDS, ast.BinOp(node.right, node.op, node.left))


def _augmented_assignment(node: ast.AugAssign, site: Site) -> Iterator[Edit]:
    if site.in_while:
        return
    other = _OTHER_ARITHMETIC.get(type(node.op))
    if other is not None:
        yield Edit(Operator.ARITHMETIC, ast.AugAssign(node.target, other(), node.value))
    yield Edit(Operator.STATEMENT, None)


def _constant(node: ast.Constant, site: Site) -> Iterator[Edit]:
    value = node.value
    is_default = site.field in ("defaults", "kw_defaults")
    if isinstance(value, bool):
        yield Edit(Operator.DEFAULT if is_default else Operator.BOOLEAN, ast.Constant(not value))
    elif isinstance(value, int | float):
        for step in (1, -1):
            if not (site.in_while and value + step == 0):  # a step of 0 never ends
                yield Edit(Operator.DEFAULT if is_default else Operator.CONSTANT, ast.Constant(value + step))
    elif isinstance(value, str) and len(value) > 1:
        yield Edit(Operator.DEFAULT if is_default else Operator.TEXT, ast.Constant(value[:-1]))


def _slice(node: ast.Slice, site: Site) -> Iterator[Edit]:
    if node.step is not None:  # `x[::-1]` with a bound is not a likely fault
        return
    if not isinstance(node.lower, ast.Constant):
        yield Edit(Operator.SLICE, ast.Slice(_plus(node.lower, 1) or ast.Constant(1), node.upper, node.step))
    if node.upper is None:
        yield Edit(Operator.SLICE, ast.Slice(node.lower, ast.Constant(-1), node.step))
    elif not isinstance(node.upper, ast.Constant):
        for step in (1, -1):
            yield Edit(Operator.SLICE, ast.Slice(node.lower, _plus(node.upper, step), node.step))


def _call(node: ast.Call, site: Site) -> Iterator[Edit]:
    match node.func:
        case ast.Name(id="range"):
            yield from _range(node)
            return
        case ast.Name(id=name):
            if name in _EXTREMES:
                yield Edit(Operator.EXTREME, _with_function(node, ast.Name(_EXTREMES[name], ast.Load())))
            if name in _FUNCTIONS and not node.keywords:
                yield Edit(Operator.CALL, _with_function(node, ast.Name(_FUNCTIONS[name], ast.Load())))
            if name in _UNWRAPPED and len(node.args) == 1 and not isinstance(node.args[0], ast.Starred):
                yield Edit(Operator.CALL, node.args[0])
        case ast.Attribute(value=owner, attr=attribute):
            if attribute in _METHODS:
                yield Edit(Operator.METHOD, _with_function(node, ast.Attribute(owner, _METHODS[attribute], ast.Load())))
            if attribute == "pop" and not node.args:
                yield Edit(Operator.METHOD, ast.Call(node.func, [ast.Constant(0)], []))
    yield from _exchange_arguments(node)


def _exchange_arguments(node: ast.Call) -> Iterator[Edit]:
    plain = not any(isinstance(argument, ast.Starred) for argument in node.args)
    if len(node.args) >= 2 and plain and ast.dump(node.args[0]) != ast.dump(node.args[1]):
        first, second, *rest = node.args
        commutes = isinstance(node.func, ast.Name) and node.func.id in ("min", "max", "gcd", "isinstance")
        if not commutes:
            yield Edit(Operator.ARGUMENTS, ast.Call(node.func, [second, first, *rest], node.keywords))


def _range(node: ast.Call) -> Iterator[Edit]:
    for position, argument in enumerate(node.args[:2]):
        if isinstance(argument, ast.Constant | ast.Starred):
            continue  # constants have their own operator
        for step in (-1, 1):
            moved = [*node.args[:position], _plus(argument, step) or argument, *node.args[position + 1 :]]
            yield Edit(Operator.RANGE, ast.Call(node.func, moved, node.keywords))
    if len(node.args) == 1:
        yield Edit(Operator.RANGE, ast.Call(node.func, [ast.Constant(1), *node.args], node.keywords))


def _if(node: ast.If, site: Site) -> Iterator[Edit]:
    if not _is_not(node.test):  # the `not` itself has its own edit
        yield Edit(Operator.NEGATION, ast.If(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse))
    if not node.orelse:
        leaves = isinstance(node.body[-1], ast.Return | ast.Raise | ast.Continue | ast.Break)
        yield Edit(Operator.GUARD if leaves else Operator.STATEMENT, None)


def _conditional(node: ast.IfExp, site: Site) -> Iterator[Edit]:
    if not _is_not(node.test):
        yield Edit(Operator.NEGATION, ast.IfExp(ast.UnaryOp(ast.Not(), node.test), node.body, node.orelse))


def _boolean(node: ast.BoolOp, site: Site) -> Iterator[Edit]:
    other = ast.Or() if isinstance(node.op, ast.And) else ast.And()
    yield Edit(Operator.BOOLEAN, ast.BoolOp(other, node.values))


def _unary(node: ast.UnaryOp, site: Site) -> Iterator[Edit]:
    if isinstance(node.op, ast.Not):
        yield Edit(Operator.NEGATION, node.operand)


def _expression(node: ast.Expr, site: Site) -> Iterator[Edit]:
    if isinstance(node.value, ast.Call) and not site.in_while:
        yield Edit(Operator.STATEMENT, None)


def _is_not(node: ast.expr) -> bool:
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


def _return(node: ast.Return, site: Site) -> Iterator[Edit]:
    value = node.value
    if value is None or isinstance(value, ast.Constant):  # constants have their own operator
        return
    shape = _shape(value, site.function)
    if shape is _Shape.NUMBER:
        yield Edit(Operator.RETURN, ast.Return(_plus(value, 1)))
    if shape is _Shape.SEQUENCE:
        for part in (ast.Slice(None, ast.Constant(-1), None), ast.Slice(None, None, ast.Constant(-1))):
            yield Edit(Operator.RETURN, ast.Return(ast.Subscript(value, part, ast.Load())))


class _Shape(Enum):
    NUMBER = auto()
    SEQUENCE = auto()
    OTHER = auto()


def _shape(value: ast.expr, function: _Function | None) -> _Shape:
    """Guess an expression's shape: from itself, else from the name's first assignment, else from the annotation."""
    shape = _own_shape(value)
    if shape is None and isinstance(value, ast.Name) and function is not None:
        first = (n.value for n in ast.walk(function) if isinstance(n, ast.Assign) and _assigns_only(n, value.id))
        assigned = next(first, None)
        shape = None if assigned is None else _own_shape(assigned)
    return shape or _annotated_shape(function)


def _own_shape(value: ast.expr) -> _Shape | None:
    match value:
        case ast.Constant(value=bool() | None) | ast.Compare():
            return _Shape.OTHER
        case ast.Constant(value=int() | float()) | ast.BinOp(op=ast.Sub() | ast.FloorDiv() | ast.Div() | ast.Pow()):
            return _Shape.NUMBER
        case ast.Call(func=ast.Name(id="len" | "sum" | "int" | "abs" | "round" | "float")):
            return _Shape.NUMBER
        case ast.Constant(value=str()) | ast.List() | ast.ListComp() | ast.JoinedStr():
            return _Shape.SEQUENCE
        case ast.Call(func=ast.Name(id="sorted" | "list" | "str") | ast.Attribute(attr="join" | "lower" | "upper")):
            return _Shape.SEQUENCE
        case _:
            return None


def _assigns_only(node: ast.Assign, name: str) -> bool:
    return len(node.targets) == 1 and isinstance(node.targets[0], ast.Name) and node.targets[0].id == name


def _annotated_shape(function: _Function | None) -> _Shape:
    if function is None or function.returns is None:
        return _Shape.OTHER
    text = ast.unparse(function.returns).removeprefix("typing.").lower()
    if text in ("int", "float"):
        return _Shape.NUMBER
    return _Shape.SEQUENCE if text.split("[")[0] in ("list", "str", "tuple") else _Shape.OTHER


def _plus(node: ast.expr | None, step: int) -> ast.expr | None:
    if node is None:
        return None
    return ast.BinOp(node, ast.Add() if step > 0 else ast.Sub(), ast.Constant(abs(step)))


def _with_function(node: ast.Call, function: ast.expr) -> ast.Call:
    return ast.Call(function, node.args, node.keywords)


_RULES: dict[type[ast.AST], Callable[[Any, Site], Iterator[Edit]]] = {
    ast.AugAssign: _augmented_assignment,
    ast.BinOp: _binary,
    ast.BoolOp: _boolean,
    ast.Break: lambda node, site: iter([Edit(Operator.LOOP, ast.Continue())]),
    ast.Call: _call,
    ast.Compare: _compare,
    ast.Constant: _constant,
    ast.Continue: lambda node, site: iter([Edit(Operator.LOOP, ast.Break())]),
    ast.Expr: _expression,
    ast.If: _if,
    ast.IfExp: _conditional,
    ast.Return: _return,
    ast.Slice: _slice,
    ast.UnaryOp: _unary,
}
