"""The rows of tables, and what names stand for in each of them.

A table is a display, or what `enumerate`, `zip`, `range` and the like make of displays, written where it is used or
assigned to a name. Nothing is executed: a row is an expression, and its parts are bound to the names of a loop's target
or to parameters. A part that may not be used makes only the asserts of its own row unreadable.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from codea1_env.facts.entry_points import read_entry_point
from codea1_env.facts.submissions import RejectionReason
from codea1_env.python_text import UnreadableError
from codea1_env.rules.reading.direct_calls import calls_of, number_node, refers_to, whole_number
from codea1_env.rules.reading.frameworks import row_of_param
from codea1_env.rules.reading.inlining import inline_names
from codea1_env.rules.reading.scopes import (
    ENTRY_POINT,
    INSTANCE,
    AliasGroup,
    Helper,
    Imported,
    Inlined,
    PartlyUsable,
    Scope,
    Unusable,
    not_read,
    unknown,
)

Value = Inlined | Imported | Unusable
_Make = Callable[[ast.expr], Value]

_SAME_ITEMS = frozenset({"iter", "list", "tuple"})
_OPTIONS = {"enumerate": ("start",), "zip": ("strict",)}
_STEPS_OF_ROW = 4
NO_TABLE = "loops are read over literal tables only"


@dataclass(frozen=True, slots=True)
class Row:
    """One row: an expression, or several rows side by side."""

    node: ast.expr | None
    make: _Make
    """Returns the value of the expression, or of a part of it."""
    parts: tuple[Row, ...] = ()

    def value(self) -> Value:
        """Return what a name that gets the whole row stands for."""
        return self.make(self.node) if self.node is not None else _side_by_side([part.value() for part in self.parts])


def value_of(node: ast.expr, scope: Scope) -> Value:
    """Return what a name stands for to which `node` is assigned."""
    known = _reference(node, scope)
    if known is not None:
        return known
    try:
        return inline_names(node, scope)
    except UnreadableError as error:
        if isinstance(node, ast.List | ast.Tuple | ast.Dict):
            return PartlyUsable(error.reason, error.detail, node, scope.child(scope.receiver))
        is_function = isinstance(node, ast.Lambda | ast.GeneratorExp)  # it may be used when more names are known
        return Unusable(RejectionReason.NOT_AN_ASSERT if is_function else error.reason, error.detail)


def _reference(node: ast.expr, scope: Scope) -> Value | None:
    """Return what a node refers to if that is not an expression: the entry point, an instance, a helper; else None."""
    name, method = read_entry_point(scope.entry_point)
    if scope.shadow is not None:
        name = ""
    match node:
        case ast.Call(func=ast.Name(id=called), args=[], keywords=[]) if called == name and method:
            return INSTANCE
        case ast.Call(func=ast.Name(id="staticmethod"), args=[function], keywords=[]):
            return _reference(function, scope)
        case ast.Attribute(value=thing, attr=attribute) if method and attribute == method:
            if scope.look_up(scope.place_of(thing)) is INSTANCE:
                return ENTRY_POINT
    if name and refers_to(node, scope.entry_point):
        return ENTRY_POINT
    known = scope.look_up(scope.place_of(node))
    return known if known is INSTANCE or known is ENTRY_POINT or isinstance(known, Helper) else None


def value_maker(scope: Scope) -> _Make:
    """Return `value_of` in one scope."""
    return lambda node: value_of(node, scope)


def part_of(value: Inlined, node: ast.expr, scope: Scope, *, fresh: bool = False) -> Value:
    """Return a part of an inlined expression as an expression of its own.

    Args:
        value: the whole.
        node: the part.
        scope: whose budget pays.
        fresh: whether the part shares nothing that may be changed with the other parts.
    """
    size, names = 0, set()
    pending: list[ast.AST] = [node]
    try:
        while pending:
            part = pending.pop()
            scope.budget.take_steps(1)
            size += isinstance(part, ast.expr)
            if isinstance(part, ast.Name):
                names.add(part.id)
            pending.extend(ast.iter_child_nodes(part))
    except UnreadableError as error:
        return Unusable(error.reason, error.detail)
    aliases = AliasGroup() if fresh else value.aliases
    return replace(
        value,
        node=node,
        calls_entry_point=value.calls_entry_point and bool(calls_of(node, scope.entry_point)),
        bindings={name: statement for name, statement in value.bindings.items() if name in names},
        size=size,
        n_inlined=0,
        aliases=None if isinstance(node, ast.Constant) else aliases,
    )


def bind_row(target: ast.expr, row: Row, scope: Scope) -> None:
    """Bind the names of a loop's target to the parts of a row."""
    match target:
        case ast.Name(id=name):
            scope.bind(name, row.value())
        case ast.Tuple(elts=targets) | ast.List(elts=targets):
            parts = _parts(row, scope)
            if parts is None or len(parts) != len(targets):
                detail = "a row of a table has other parts than the names it is given to"
                for part in ast.walk(target):
                    if isinstance(part, ast.Name):
                        scope.bind(part.id, unknown(detail))
                return
            for each, given in zip(targets, parts, strict=True):
                bind_row(each, given, scope)


def names_of_table(node: ast.expr) -> set[str]:
    """Return the names whose values an expression iterates over, as it loops; not those of the items of displays."""
    match node:
        case ast.Name(id=name):
            return {name}
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return {f"{name}.{attribute}", name}
        case ast.Call(func=function, args=arguments):
            iterated = [function.value] if isinstance(function, ast.Attribute) else []
            return set[str]().union(*map(names_of_table, [*iterated, *arguments]))
    return set()


@dataclass(frozen=True, slots=True)
class Tables:
    """Finds the rows of tables."""

    scope: Scope
    fresh: bool = False
    """Whether calls change their arguments, so that rows must not share what may be changed."""

    def rows(self, node: ast.expr) -> Iterator[Row]:
        """Yield the rows of a table.

        Raises:
            UnreadableError: NOT_AN_ASSERT if `node` is not a literal table; TOO_LONG beyond the budget of the reply.
        """
        return self._rows(node, value_maker(self.scope), in_file=True)

    def _rows(self, node: ast.expr, make: _Make, *, in_file: bool) -> Iterator[Row]:
        self.scope.budget.take_steps(1)
        match node:
            case ast.List(elts=items) | ast.Tuple(elts=items) | ast.Set(elts=items):
                for item, _ in _entries(items, items) if isinstance(node, ast.Set) else zip(items, items, strict=True):
                    if isinstance(item, ast.Starred):
                        yield from self._rows(item.value, make, in_file=in_file)
                    else:
                        row = row_of_param(item)
                        yield self._row(item, _unread) if row is None else self._row(row, make)
            case ast.Name() | ast.Attribute() if in_file and self.scope.place_of(node):
                yield from self._of_name(self.scope.look_up(self.scope.place_of(node)))
            case ast.BinOp(left=left, op=ast.Add(), right=right):
                yield from self._rows(left, make, in_file=in_file)
                yield from self._rows(right, make, in_file=in_file)
            case ast.Call(func=ast.Name(id=name)) if self.scope.look_up(name) is None:
                yield from self._called(name, node, make, in_file=in_file)
            case ast.Call(func=ast.Attribute(value=table, attr=name), args=[], keywords=[]):
                yield from self._view(name, table, make, in_file=in_file)
            case ast.ListComp(generators=[generator]) | ast.GeneratorExp(generators=[generator]) if (
                in_file and not generator.ifs
            ):
                yield from self._comprehended(node.elt, generator)
            case _:
                yield from (self._row(item, make) for item in _items(node))

    def _comprehended(self, item: ast.expr, generator: ast.comprehension) -> Iterator[Row]:
        for row in self.rows(generator.iter):
            inner = self.scope.child(self.scope.receiver)
            bind_row(generator.target, row, inner)
            yield self._row(item, value_maker(inner))

    def _row(self, node: ast.expr, make: _Make) -> Row:
        self.scope.budget.take_steps(_STEPS_OF_ROW)
        return Row(node, make)

    def _of_name(self, value: object) -> Iterator[Row]:
        if isinstance(value, PartlyUsable):
            return Tables(value.scope, self.fresh).rows(value.node)
        if not isinstance(value, Inlined):
            if isinstance(value, Unusable):
                raise not_read(value.detail)
            raise not_read(NO_TABLE)
        is_fresh = self.fresh or value.has_state
        return self._rows(value.node, lambda part: part_of(value, part, self.scope, fresh=is_fresh), in_file=False)

    def _called(self, name: str, node: ast.Call, make: _Make, *, in_file: bool) -> Iterator[Row]:
        args = [*node.args, *(keyword.value for keyword in node.keywords if keyword.arg == "start")]
        is_known = all(keyword.arg in _OPTIONS.get(name, ()) for keyword in node.keywords)
        if not is_known or not args or any(isinstance(argument, ast.Starred) for argument in args):
            raise not_read(NO_TABLE)
        numbers = [number for argument in args if (number := whole_number(argument)) is not None]
        if name == "range" and len(numbers) == len(args) <= 3:
            for number in range(*numbers) if numbers[2:] != [0] else ():
                yield self._row(number_node(number), make)
        elif name == "enumerate" and len(args) == 1 + len(numbers) <= 2:
            for number, row in enumerate(self._rows(args[0], make, in_file=in_file), *numbers):
                yield Row(None, make, (Row(ast.Constant(number), make), row))
        elif name == "zip":
            found = [self._rows(table, make, in_file=in_file) for table in node.args]
            yield from (Row(None, make, rows) for rows in zip(*found, strict=False))
        elif name == "reversed" and len(args) == 1:
            yield from reversed(list(self._rows(args[0], make, in_file=in_file)))
        elif name in _SAME_ITEMS and len(args) == 1:
            yield from self._rows(args[0], make, in_file=in_file)
        else:
            raise not_read(NO_TABLE)

    def _view(self, name: str, table: ast.expr, make: _Make, *, in_file: bool) -> Iterator[Row]:
        value = self.scope.look_up(self.scope.place_of(table)) if in_file and self.scope.place_of(table) else None
        if isinstance(value, PartlyUsable):
            yield from Tables(value.scope, self.fresh)._view(name, value.node, value_maker(value.scope), in_file=True)
            return
        if isinstance(value, Inlined):
            table, make = value.node, lambda part: part_of(value, part, self.scope, fresh=self.fresh)
        if not isinstance(table, ast.Dict) or name not in ("items", "keys", "values"):
            raise not_read(NO_TABLE)
        keys = [key for key in table.keys if key is not None]
        if len(keys) < len(table.keys):
            raise not_read(NO_TABLE)
        for key, item in _entries(keys, table.values):
            pair = (self._row(key, make), self._row(item, make))
            yield Row(None, make, pair) if name == "items" else pair[name == "values"]


def _unread(_: ast.expr) -> Value:
    return unknown("a row that a mark may keep from running")


def _entries(keys: Sequence[ast.expr], items: Sequence[ast.expr]) -> Iterator[tuple[ast.expr, ast.expr]]:
    """Yield the keys that a set or a dict keeps, each with its item: of equal keys the first, with the last item."""
    found: dict[object, tuple[ast.expr, ast.expr]] = {}
    for key, item in zip(keys, items, strict=True):
        same = ("", key.value) if isinstance(key, ast.Constant) else ast.dump(key)
        found[same] = (found[same][0] if same in found else key, item)
    yield from found.values()


def _items(table: ast.expr) -> Iterator[ast.expr]:
    match table:
        case ast.Dict(keys=keys):
            known = [key for key in keys if key is not None]
            yield from (key for key, _ in _entries(known, known))
        case ast.Constant(value=str() as text):
            yield from map(ast.Constant, text)
        case _:
            raise not_read(NO_TABLE)


def _parts(row: Row, scope: Scope) -> Sequence[Row] | None:
    if row.node is None:
        return row.parts
    node, make = row.node, row.make
    if isinstance(node, ast.Name):
        value = make(node)
        if not isinstance(value, Inlined):
            return None
        node, make = value.node, lambda part: part_of(value, part, scope)
    if isinstance(node, ast.List | ast.Tuple) and not any(isinstance(item, ast.Starred) for item in node.elts):
        return [Row(item, make) for item in node.elts]
    return None


def _side_by_side(values: Sequence[Value]) -> Value:
    found = [value for value in values if isinstance(value, Inlined)]
    if len(found) < len(values):
        return next(value for value in values if not isinstance(value, Inlined))
    bindings: dict[str, str] = {}
    for name, statement in itertools.chain.from_iterable(value.bindings.items() for value in found):
        if bindings.setdefault(name, statement) != statement:
            return Unusable(RejectionReason.FORBIDDEN_NAME, f"{name!r} has two meanings here")
    aliases = AliasGroup()
    for value in found:
        if value.aliases is not None:
            aliases.merge(value.aliases)
    return Inlined(
        ast.Tuple([value.node for value in found], ast.Load()),
        any(value.calls_entry_point for value in found),
        bindings,
        1 + sum(value.size for value in found),
        sum(value.n_inlined for value in found),
        1 + max(value.depth for value in found),
        any(value.formatted for value in found),
        aliases,
    )
