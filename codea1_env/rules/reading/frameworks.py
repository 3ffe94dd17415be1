"""What tests claim in other words: wrapped conditions, and test frameworks' assert methods, tables and exceptions.

Two values are equal, or an expression is true: `bool(x == y)`, `(x == y) is True`, `not x != y`, `(x != y) == False`
and `x in [y]` all claim `x == y`. The ruleset's tolerance applies only where the judge compares values. So each of
these forms must reach the judge as an equality. Otherwise a correct program could fail for the rounding of a float.

Everything here looks at syntax alone. A form that is not known gives None, and its reader says why it drops it.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from operator import is_

from codea1_env.python_text import parse
from codea1_env.rules.reading.direct_calls import is_literal, whole_number
from codea1_env.rules.reading.statements import nodes_in, placed, rebuilt

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


RAISES = "raises"
"""`raises(Class, f, *arguments)`: whether a call raises an exception of a class; a name that every harness has."""

_NOT_READ = frozenset({"Exception", "ExceptionGroup", "MemoryError", "RecursionError"})  # no group crosses processes
READ_EXCEPTIONS = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type)
    and issubclass(value, Exception)
    and not issubclass(value, Warning)
    and name not in _NOT_READ
)
"""Exceptions that a test may expect: those that are built in, except the ones that any fault may raise."""

_NOT_RUN = frozenset({"skip", "skipif", "skipIf", "skipUnless", "xfail", "expectedFailure", "usefixtures"})
_ENDS = frozenset({"exit", "fail", "quit", "skip", "skipTest", "xfail"})
_OPTIONS_OF_TABLE = frozenset({"ids", "scope"})
_HARMLESS_DECORATORS = frozenset({"staticmethod", "classmethod"})


# -- assert methods --------------------------------------------------------------------------------


def condition_of(node: ast.expr, numpy_assert: str = "") -> ast.expr | None:
    """Return the condition that a call of an assert method claims, e.g. `self.assertIn(1, f(2))`.

    Args:
        node: the call.
        numpy_assert: the function of `numpy.testing` that it calls; empty if it calls none.
    """
    match node:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="self" | "cls"), attr=name), args=args, keywords=keywords):
            given = {keyword.arg: keyword.value for keyword in keywords if keyword.arg != "msg"}
        case ast.Call() if numpy_assert:
            return _numpy_condition(node, numpy_assert)
        case _:
            return None
    needed = 1 if name in _OF_ONE else 2
    if len(args) < needed or any(isinstance(argument, ast.Starred) for argument in args):
        return None
    if name == "assertAlmostEqual":
        return _almost_equal(node, args, given)
    claim = _OF_ONE.get(name) or _OF_TWO.get(name)
    return placed(claim(*args[:needed]), node) if claim is not None and not given else None


def _compared(op: type[ast.cmpop], left: ast.expr, right: ast.expr) -> ast.expr:
    return ast.Compare(left, [op()], [right])


def _with_same_items(one: ast.expr, other: ast.expr) -> ast.expr:
    return ast.Call(_written_by_us(_COUNTED_ALIKE), [_called("list", one), _called("list", other)], [])


@lru_cache(maxsize=64)
def _written_by_us(text: str) -> ast.expr:
    (statement,) = parse(text).body
    assert isinstance(statement, ast.Expr)
    for part in ast.walk(statement):
        vars(part).pop("lineno", None)  # nobody wrote it
    return statement.value


_EQUAL = "assertEqual assertEquals assertDictEqual assertListEqual assertMultiLineEqual assertSetEqual assertTupleEqual"
_COMPARISONS: dict[str, type[ast.cmpop]] = {
    **dict.fromkeys(_EQUAL.split(), ast.Eq),
    "assertNotEqual": ast.NotEq,
    "assertIs": ast.Is,
    "assertIsNot": ast.IsNot,
    "assertIn": ast.In,
    "assertNotIn": ast.NotIn,
    "assertGreater": ast.Gt,
    "assertGreaterEqual": ast.GtE,
    "assertLess": ast.Lt,
    "assertLessEqual": ast.LtE,
}
_OF_ONE: dict[str, Callable[..., ast.expr]] = {
    "assertTrue": lambda one: one,
    "assertFalse": lambda one: ast.UnaryOp(ast.Not(), one),
    "assertIsNone": lambda one: ast.Compare(one, [ast.Is()], [ast.Constant(None)]),
    "assertIsNotNone": lambda one: ast.Compare(one, [ast.IsNot()], [ast.Constant(None)]),
}
_MOST_PLACES = 300  # of a difference, so that it is a float
_COUNTED_ALIKE = "lambda a, b: len(a) == len(b) and all(a.count(x) == b.count(x) for x in a)"
_OF_TWO: dict[str, Callable[..., ast.expr]] = {
    **{name: partial(_compared, op) for name, op in _COMPARISONS.items()},
    "assertIsInstance": lambda one, kind: _called("isinstance", one, kind),
    "assertNotIsInstance": lambda one, kind: ast.UnaryOp(ast.Not(), _called("isinstance", one, kind)),
    "assertSequenceEqual": lambda a, b: ast.Compare(_called("list", a), [ast.Eq()], [_called("list", b)]),
    "assertCountEqual": _with_same_items,
}


def _called(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _almost_equal(node: ast.Call, args: Sequence[ast.expr], given: dict[str | None, ast.expr]) -> ast.expr | None:
    """Return `first == pytest.approx(second, abs=...)`: unittest rounds the difference, or compares it with `delta`."""
    places = args[2] if len(args) > 2 else given.pop("places", ast.Constant(7))
    delta = given.pop("delta", None)
    if (
        delta is None
        and isinstance(places, ast.Constant)
        and type(places.value) is int
        and 0 <= places.value <= _MOST_PLACES
    ):
        delta = ast.Constant(float(f"0.5e-{places.value}"))
    if delta is None or given:  # None also where **options are given
        return None
    tolerances = [ast.keyword("rel", ast.Constant(0.0)), ast.keyword("abs", delta)]
    approx = ast.Attribute(ast.Name("pytest", ast.Load()), "approx", ast.Load())
    return placed(ast.Compare(args[0], [ast.Eq()], [ast.Call(approx, [args[1]], tolerances)]), node)


_ALIKE = "numpy.all({} | (a != a) & (b != b))"  # nan equals nan in numpy's asserts
_CLOSE = "numpy.allclose(a, b, 0.0, 1.5 * 10.0 ** -decimal, True)"
_SCALE = "10.0 ** (numpy.floor(numpy.log10((abs(a) + abs(b)) / 2)) + 1 - significant)"
_NUMPY: dict[str, tuple[str, dict[str, float]]] = {
    "assert_allclose": ("numpy.allclose(a, b, rtol, atol, equal_nan)", {"rtol": 1e-7, "atol": 0, "equal_nan": True}),
    "assert_almost_equal": (_CLOSE, {"decimal": 7}),
    "assert_approx_equal": (_ALIKE.format(f"(a == b) | (abs(a - b) < {_SCALE})"), {"significant": 7}),
    "assert_array_almost_equal": (_CLOSE, {"decimal": 6}),
    "assert_array_equal": (_ALIKE.format("(a == b)"), {}),
    "assert_array_less": (_ALIKE.format("(a < b)"), {}),
}
"""What functions of `numpy.testing` claim of two arrays, and their options in order, with the defaults."""
_NUMPY_EXACT = ("assert_equal", "assert_string_equal")


def _numpy_condition(node: ast.Call, name: str) -> ast.expr | None:
    """Return what a function of `numpy.testing` claims, in the words of numpy, for which `numpy` must be bound."""
    named = {keyword.arg: keyword.value for keyword in node.keywords if keyword.arg not in ("err_msg", "verbose")}
    first = [named.pop(key) for keys in (("actual", "x"), ("desired", "y")) for key in keys if key in named]
    values = [*node.args[: 2 - len(first)], *first]
    extra = node.args[len(values) - len(first) :]
    if len(values) < 2 or any(isinstance(value, ast.Starred) for value in node.args):
        return None
    if name in _NUMPY_EXACT and not any(map(_is_array, values)):
        return None if extra or named else placed(_compared(ast.Eq, *values), node)
    claim, options = _NUMPY.get("assert_array_equal" if name in _NUMPY_EXACT else name, ("", {}))
    given: dict[str | None, ast.expr] = {key: ast.Constant(default) for key, default in options.items()}
    given.update([*named.items(), *zip(options, extra, strict=False)])
    if not claim or given.keys() != options.keys() or len(extra) > len(options):
        return None
    shapes = "(a.shape == b.shape or () in (a.shape, b.shape))"
    function = _written_by_us(f"lambda {', '.join(('a', 'b', *options))}: {shapes} and bool({claim})")
    arrays = [ast.Call(_written_by_us("numpy.asarray"), [value], []) for value in values]
    return placed(ast.Call(function, [*arrays, *given.values()], []), node)


def _is_array(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "array"


# -- decorators ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Table:
    """The rows of one decorator, each of which is a test."""

    names: tuple[str, ...] | None
    """The parameters that a row gives; None: all of them, in order."""
    rows: ast.expr
    spreads: bool = True
    """Whether a row of one parameter is a tuple that holds its argument."""


@dataclass(frozen=True, slots=True)
class Decorations:
    """What the decorators of a function say."""

    tables: tuple[Table, ...] = ()
    is_fixture: bool = False
    unread: str = ""
    """Why the function is not read; empty if it is."""


def decorations(decorators: Sequence[ast.expr]) -> Decorations:
    """Return what the decorators of a function say."""
    tables: list[Table] = []
    is_fixture = False
    for decorator in decorators:
        match decorator:
            case ast.Call(func=ast.Attribute(attr="parametrize"), args=[names, rows, *more], keywords=keywords):
                if more or any(keyword.arg not in _OPTIONS_OF_TABLE for keyword in keywords):
                    return Decorations(unread="a table whose rows are given to fixtures")
                table = _parametrized(names, rows)
            case ast.Call(func=ast.Attribute(attr="expand", value=ast.Name()), args=[rows, *_]):
                table = Table(None, rows)
            case _:
                name = _last_name(decorator)
                if name in _NOT_RUN:
                    return Decorations(unread=f"a test that {name!r} keeps from running")
                is_mark = "mark" in _names_of(decorator)
                is_fixture = is_fixture or name == "fixture"
                if not (is_mark or name == "fixture" or name in _HARMLESS_DECORATORS):
                    return Decorations(unread="a decorated definition")
                continue
        if table is None:
            return Decorations(unread="a table whose columns are not literal")
        tables.append(table)
    return Decorations(tuple(tables), is_fixture)


def _parametrized(names: ast.expr, rows: ast.expr) -> Table | None:
    match names:
        case ast.Constant(value=str() as text):
            return Table(tuple(name.strip() for name in text.split(",") if name.strip()), rows, "," in text)
        case ast.List(elts=items) | ast.Tuple(elts=items):
            found = [item.value for item in items if isinstance(item, ast.Constant) and isinstance(item.value, str)]
            return Table(tuple(found), rows) if len(found) == len(items) else None
    return None


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""


def _names_of(node: ast.expr) -> set[str]:
    node = node.func if isinstance(node, ast.Call) else node
    parts = (part for part in ast.walk(node) if isinstance(part, ast.Attribute | ast.Name))
    return {part.attr if isinstance(part, ast.Attribute) else part.id for part in parts}


# -- tables ----------------------------------------------------------------------------------------


def row_of_param(node: ast.expr) -> ast.expr | None:
    """Return the row of `pytest.param(...)`; None if a mark may keep it from running; other nodes as they are."""
    match node:
        case ast.Call(func=ast.Attribute(attr="param") | ast.Name(id="param"), args=args, keywords=keywords):
            if any(keyword.arg != "id" for keyword in keywords):
                return None
            return args[0] if len(args) == 1 else ast.Tuple(args, ast.Load())
    return node


def folded(node: ast.expr) -> ast.expr:
    """Return an expression in which items of literal rows replace the places where a test takes them.

    `f(*(1, 2))` becomes `f(1, 2)`, and `(1, 2)[0]` becomes `1`.
    """
    return _Folding().visit(node)  # type: ignore[no-any-return]


class _Folding(ast.NodeTransformer):
    def generic_visit(self, node: ast.AST) -> ast.AST:
        """Rebuild a node if a child changes: nodes are shared between rows."""
        made = rebuilt(node, self.visit)
        return made if made is node else placed(made, node)

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        found = self.generic_visit(node)
        match found:
            case ast.Subscript(value=table, slice=key) if is_literal(table):
                return _item(table, key) or found
        return found

    def visit_Call(self, node: ast.Call) -> ast.AST:
        found = self.generic_visit(node)
        assert isinstance(found, ast.Call)
        args = [each for argument in found.args for each in unpacked(argument)]
        keywords = [each for keyword in found.keywords for each in _unpacked_keyword(keyword)]
        if _are_same(args, found.args) and _are_same(keywords, found.keywords):
            return found
        return placed(ast.Call(found.func, args, keywords), node)


def _are_same(some: Sequence[object], others: Sequence[object]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _item(table: ast.expr, key: ast.expr) -> ast.expr | None:
    match table:
        case ast.List(elts=items) | ast.Tuple(elts=items):
            number = whole_number(key)
            return items[number] if number is not None and -len(items) <= number < len(items) else None
        case ast.Dict(keys=keys, values=items) if isinstance(key, ast.Constant):
            found = [
                item
                for each, item in zip(keys, items, strict=True)
                if isinstance(each, ast.Constant) and each.value == key.value
            ]
            return found[-1] if found else None
    return None


def unpacked(argument: ast.expr) -> Sequence[ast.expr]:
    """Return the arguments that `*(1, 2)` unpacks to; any other argument is returned unchanged."""
    match argument:
        case ast.Starred(value=ast.List(elts=items) | ast.Tuple(elts=items) as row) if is_literal(row):
            return items
    return (argument,)


def _unpacked_keyword(keyword: ast.keyword) -> Sequence[ast.keyword]:
    match keyword:
        case ast.keyword(arg=None, value=ast.Dict(keys=keys, values=items) as row) if is_literal(row):
            names = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
            if len(names) == len(items) and all(map(str.isidentifier, names)):
                return [ast.keyword(name, item) for name, item in zip(names, items, strict=True)]
    return (keyword,)


# -- exceptions ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Raising:
    """The claim that a call raises an exception."""

    classes: ast.expr
    """A class, or a tuple of classes."""
    call: ast.expr
    before: Sequence[ast.stmt] = ()
    """Statements that come before the call."""
    caught_as: str = ""
    """The name of what was caught; may be empty."""
    unread: str = ""
    """Why the claim is not read; empty if it is."""


_MESSAGE = "the message of an exception is not tested"


def raising_call(node: ast.expr) -> Raising | None:
    """Return the claim of `pytest.raises(Class, f, ...)` or `self.assertRaises(Class, f, ...)`."""
    if not isinstance(node, ast.Call) or not _is_raises(node.func):
        return None
    if len(node.args) < 2:
        return Raising(ast.Constant(None), node, unread="a context of an exception that nothing enters")
    classes, function, *arguments = node.args
    call = placed(ast.Call(function, arguments, node.keywords), node)
    match function:
        case ast.Lambda(body=body) if not (arguments or node.keywords):
            return Raising(classes, body)
    return Raising(classes, call)


def without_true(condition: ast.expr) -> ast.expr:
    """Return a call that a condition compares with True; other conditions as they are."""
    match condition:
        case ast.Compare(comparators=[ast.Constant(value=True)], ops=[ast.Eq() | ast.Is()], left=ast.Call() as call):
            return call
    return condition


def raising_with(node: ast.With) -> Raising | None:
    """Return the claim of `with pytest.raises(Class): f(...)` and of `with self.assertRaises(Class): f(...)`."""
    match node.items:
        case [
            ast.withitem(context_expr=ast.Call(func=function, args=[classes], keywords=keywords), optional_vars=name)
        ]:
            if not _is_raises(function):
                return None
            unread = _MESSAGE if any(keyword.arg != "msg" for keyword in keywords) else ""
            return _claim(classes, node.body, name.id if isinstance(name, ast.Name) else "", unread)
        case [ast.withitem(context_expr=ast.Call(func=ast.Attribute(attr="assertRaisesRegex")))]:
            return Raising(ast.Constant(None), ast.Constant(None), unread=_MESSAGE)
    return None


def raising_try(node: ast.Try) -> Raising | None:
    """Return the claim of `try: f(...); assert False` with `except Class: pass`, and of the same with `else`."""
    body = node.body
    if body and _fails(body[-1]):
        body = body[:-1]
    elif not (node.orelse and all(map(_fails, node.orelse))):
        return None
    handlers = [handler for handler in node.handlers if not all(map(_fails, handler.body))]
    if node.finalbody or not handlers or not all(_only_accepts(handler.body) for handler in handlers):
        return None
    found = [handler.type for handler in handlers if handler.type is not None]
    classes = [part for each in found for part in (each.elts if isinstance(each, ast.Tuple) else [each])]
    if len(found) < len(handlers) or any(_last_name(each) == "AssertionError" for each in classes):
        return None  # it would catch the failure of the test, too
    return _claim(classes[0] if len(classes) == 1 else ast.Tuple(classes, ast.Load()), body)


def reporting_try(node: ast.Try) -> Sequence[ast.stmt]:
    """Return what a `try` runs whose handlers only report that a test has failed; nothing for others.

    What runs `finally` must not hide the failure, as a `return` there or the end of the process would.
    """
    if not _only_accepts(node.finalbody) or any(isinstance(last, ast.Return) for last in node.finalbody):
        return []
    reports = all(handler.body and (_fails(handler.body[-1]) or _prints(handler)) for handler in node.handlers)
    return [*node.body, *node.orelse, *node.finalbody] if reports else []


def _prints(handler: ast.ExceptHandler) -> bool:
    """Whether a handler of failures prints them and does nothing else."""
    catches = handler.type is None or _last_name(handler.type) in ("AssertionError", "BaseException", "Exception")
    return catches and _only_accepts(handler.body) and not isinstance(handler.body[0], ast.Pass)


def _claim(classes: ast.expr, body: Sequence[ast.stmt], caught_as: str = "", unread: str = "") -> Raising:
    *before, last = body or [ast.Pass()]
    match last:
        case ast.Expr(value=ast.Call() as call) | ast.Assign(targets=[ast.Name()], value=ast.Call() as call):
            pass
        case _:
            return Raising(classes, ast.Constant(None), (), caught_as, "more than one call under an exception")
    if not all(isinstance(each, ast.Assign | ast.AnnAssign) and not _calls(each) for each in before):
        unread = unread or "more than one call under an exception"
    return Raising(classes, call, before, caught_as, unread)


def _calls(node: ast.AST) -> bool:
    return any(isinstance(part, ast.Call) for part in ast.walk(node))


def _is_raises(function: ast.expr) -> bool:
    match function:
        case ast.Attribute(value=ast.Name(), attr="raises" | "assertRaises" | "assert_raises"):
            return True
        case ast.Attribute(value=ast.Attribute(attr="testing"), attr="assert_raises"):
            return True
        case ast.Name(id="raises" | "assert_raises"):
            return True
    return False


def _fails(node: ast.stmt) -> bool:
    """Whether a statement fails a test whenever it runs."""
    match node:
        case ast.Assert(test=ast.Constant(value=False)) | ast.Raise(exc=None):
            return True
        case ast.Raise(exc=ast.expr() as raised):
            return _last_name(raised) == "AssertionError"
        case ast.Expr(value=ast.Call(func=ast.Attribute(attr="fail") | ast.Name(id="fail"))):
            return True
    return False


def ends_test(node: ast.stmt) -> bool:
    """Whether nothing that follows a statement in a function can run."""
    match node:
        case ast.Return() | ast.Raise():
            return True
        case ast.Expr(value=ast.Call(func=ast.Attribute(ast.Name("pytest" | "self" | "sys"), name) | ast.Name(name))):
            return name in _ENDS
    return _fails(node)


def may_end_test(node: ast.stmt) -> bool:
    """Whether a statement holds a `return`, or a call that skips the rest."""
    return not isinstance(node, ast.Assert) and any(
        isinstance(part, ast.Return)
        or (isinstance(part, ast.Call) and _last_name(part.func) in ("skip", "skipTest", "xfail"))
        for part in nodes_in(node)
    )


def _only_accepts(body: Sequence[ast.stmt]) -> bool:
    for node in body:
        match node:
            case ast.Pass() | ast.Expr(value=ast.Constant()) | ast.Assert(test=ast.Constant(value=True)) | ast.Return():
                continue
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"))):
                continue
        return False
    return True


def class_names(node: ast.expr) -> list[str]:
    """Return the names of the exceptions in a class or a tuple of classes; empty unless all may be read."""
    items = node.elts if isinstance(node, ast.Tuple) else [node]
    names = [item.id for item in items if isinstance(item, ast.Name) and item.id in READ_EXCEPTIONS]
    return names if len(names) == len(items) else []
