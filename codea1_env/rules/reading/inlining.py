"""Inline the names of a test file: each name becomes the expression that was assigned to it.

A `Scope` maps each name to its value at one point of a file. `inline_names` replaces the names of an expression,
rejects names that a test may not use, and returns the imports that the result needs and whether it calls the entry
point. Names that a lambda or a comprehension binds stay as they are, and a replacement that such a name would capture
is rejected. An expression that changes what a name stands for is read once, and the name has no value afterwards; what
it would change more than once is rejected. Replacements share subtrees, so the cost does not grow with the size of the
values; `Inlined.n_inlined` counts their nodes for the code that writes the result as text.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from codea1_env.facts.entry_points import read_entry_point
from codea1_env.facts.submissions import RejectionReason
from codea1_env.python_text import MAX_DEPTH, UnreadableError
from codea1_env.rules.reading.allowed_names import (
    COMPARED_ONLY,
    DRAWN,
    MODULES,
    SAFE_BUILTINS,
    holds_fields,
    may_be_attribute,
    may_be_imported_from,
)
from codea1_env.rules.reading.direct_calls import entry_point_node, names_method
from codea1_env.rules.reading.effects import CHANGED_ARGUMENT, CHANGING_FUNCTIONS, CHANGING_METHODS, parameters_of
from codea1_env.rules.reading.frameworks import has_one_object
from codea1_env.rules.reading.lengths import TAKE_ITEMS
from codea1_env.rules.reading.scopes import (
    ENTRY_POINT,
    INSTANCE,
    AliasGroup,
    Imported,
    Inlined,
    Scope,
    Unusable,
    not_read,
)
from codea1_env.rules.reading.statements import COMPREHENSIONS, arguments_in, placed, rebuilt, root_of

_T = TypeVar("_T")

_INSPECTORS = frozenset({"isinstance", "issubclass", "repr", "str"})
_TEMPLATE_METHODS = frozenset({"format", "format_map"})
_OF_IDENTITY = frozenset({"operator.is_", "operator.is_not"})
_LAZY = (
    frozenset({"defaultdict", "enumerate", "filter", "finditer", "iter", "map", "reversed", "zip"})
    | MODULES["itertools"]
)
_OTHER_CONSUMERS = "Counter OrderedDict array bool deque float fsum int join len mean prod reduce repr str"
_CONSUMERS = TAKE_ITEMS.union(_OTHER_CONSUMERS.split())
_MAX_SIZE = 1 << 62  # sizes double with every line of a hostile reply; no need for long numbers


def inline_names(node: ast.expr, scope: Scope) -> Inlined:
    """Return `node` with every name of `scope` replaced by its value.

    Raises:
        UnreadableError: FORBIDDEN_NAME for a name, attribute or binding that a test may not use, or for an undefined
            name; TOO_LONG beyond the budget of the reply; SYNTAX_ERROR for await and yield, and for a tree that is too
            deep.
    """
    inliner = _Inliner(scope)
    inliner.allow_callables([node])
    try:
        inlined_node = inliner.visit(node, frozenset(), 1)
    except RecursionError:  # MAX_DEPTH prevents it unless the caller's own stack is nearly full
        raise UnreadableError(RejectionReason.SYNTAX_ERROR, "nested too deeply") from None
    if inliner.changes and inliner.is_reused:
        raise not_read("changes a value that it uses more than once")
    if inliner.changes:
        inliner.aliases.invalidate("an expression that changes it")
        inliner.aliases = AliasGroup()
    for name in inliner.captured:
        scope.unsettled.captured.setdefault(name, AliasGroup()).merge(inliner.aliases)
    return Inlined(
        inlined_node,
        inliner.calls_entry_point,
        inliner.bindings,
        min(inliner.size, _MAX_SIZE),
        min(inliner.n_inlined, _MAX_SIZE),
        inliner.depth,
        inliner.formatted,
        None if isinstance(inlined_node, ast.Constant) else inliner.aliases,
        inliner.has_state,
        inliner.is_reused,
    )


def _identity() -> UnreadableError:
    detail = "whether two objects are one cannot be tested, since programs work on copies"
    return UnreadableError(RejectionReason.NOT_AN_ASSERT, detail)


def _forbidden(detail: str) -> UnreadableError:
    return UnreadableError(RejectionReason.FORBIDDEN_NAME, detail)


class _Inliner:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.calls_entry_point = False
        self.formatted = False
        self.bindings: dict[str, str] = {}
        self.size = self.n_inlined = self.depth = 0
        self.aliases = AliasGroup()
        self.changes = self.has_state = self.is_reused = False
        self.captured: set[str] = set()
        """Names that functions in the result look up when they are called."""
        self._n_around = self._n_kept = self._n_consumers = 0  # functions and loops; functions that last; calls
        self._callables: set[int] = set()

    def allow_callables(self, nodes: Iterable[ast.expr]) -> None:
        """Allow functions and generators at these nodes: a call or a loop consumes them at once.

        Elsewhere, for example in a set, their addresses could decide an order and therefore the result of a test.
        """
        for node in nodes:
            self._callables.add(id(node.value if isinstance(node, ast.Starred) else node))

    def _allow_held_callables(self, nodes: Iterable[ast.expr]) -> None:
        """Allow functions in lists, tuples and dicts, which keep their order."""
        for node in nodes:
            held = node.values if isinstance(node, ast.Dict) else getattr(node, "elts", [])
            if not isinstance(node, ast.Set):
                self.allow_callables(held)
                self._allow_held_callables(held)

    def _check_callable(self, node: ast.expr, what: ast.expr) -> None:
        if isinstance(what, ast.Lambda | ast.GeneratorExp) and id(node) not in self._callables:
            raise _forbidden("functions and generators may only be passed to calls and loops")

    def visit(self, node: ast.expr, bound: frozenset[str], level: int) -> ast.expr:
        self._check_depth(level)
        self.size += 1
        self.scope.budget.take_steps(1)
        made = _VISITORS.get(type(node), _Inliner._other)(self, node, bound, level)
        # What stands for a name was written elsewhere.
        return made if made is node or isinstance(node, ast.Name | ast.Attribute) else placed(made, node)

    def _check_depth(self, level: int) -> None:
        if level > MAX_DEPTH:
            raise UnreadableError(RejectionReason.SYNTAX_ERROR, "nested too deeply")
        self.depth = max(self.depth, level)

    def _other(self, node: ast.expr, bound: frozenset[str], level: int) -> ast.expr:
        match node:
            case ast.NamedExpr():
                raise _forbidden("':=' may not be used")
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                raise UnreadableError(RejectionReason.SYNTAX_ERROR, "'await' and 'yield' are only allowed in functions")
            case ast.JoinedStr():
                self.formatted = True
            case ast.Starred():
                self.allow_callables([node])
            case ast.UnaryOp(op=ast.UAdd(), operand=ast.Constant(value=int() | float() | complex() as value)):
                return ast.Constant(+value)  # so that f(+1) is the same case as f(1)
        return self._rebuilt(node, bound, level)

    def _constant(self, node: ast.Constant, bound: frozenset[str], level: int) -> ast.expr:
        return node if node.kind is None else ast.Constant(node.value)  # u'' equals ''

    def _call(self, node: ast.Call, bound: frozenset[str], level: int) -> ast.expr:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in _INSPECTORS:
            self.allow_callables((node.func, *arguments_in(node)))
        entry_point = node.func if name == self.scope.entry_point else self._entry_point(node.func, bound)
        if entry_point is not None:
            if entry_point is node.func:
                self._check_shadow()
            self.calls_entry_point = True
            if self.scope.functions:
                self._allow_held_callables(arguments_in(node))
            self._n_consumers += 1
            keywords = [ast.keyword(k.arg, self.visit(k.value, bound, level + 1)) for k in node.keywords]
            args = self._sequence(node.args, bound, level)
            self._n_consumers -= 1
            return ast.Call(entry_point, args, keywords)
        if name in _INSPECTORS and not node.keywords and self._is_builtin(name, bound):
            shown = [self._inspected(argument, bound, level + 1) for argument in node.args]
            return ast.Call(self.visit(node.func, bound, level + 1), shown, [])
        is_consumer = getattr(node.func, "attr", name) in _CONSUMERS
        self._n_consumers += is_consumer
        made = self._rebuilt(node, bound, level)
        self._n_consumers -= is_consumer
        return made

    def _check_shadow(self) -> None:
        shadow = self.scope.shadow
        if isinstance(shadow, Unusable):
            raise shadow.error
        if shadow is not None:
            detail = f"{self.scope.entry_point!r} is a variable of the test here, so the program is not called"
            raise UnreadableError(RejectionReason.NO_ENTRY_POINT_CALL, detail)

    def _entry_point(self, function: ast.expr, bound: frozenset[str]) -> ast.expr | None:
        """Return the entry point if a function is another name of it, or its method of an instance; None otherwise."""
        if self._value_at(function, bound) is ENTRY_POINT:
            return entry_point_node(self.scope.entry_point)
        match function:
            case ast.Attribute(value=thing, attr=method) if self._value_at(thing, bound) is INSTANCE:
                found = entry_point_node(self.scope.entry_point)
                return found if isinstance(found, ast.Attribute) and found.attr == method else None
        return function if names_method(function, self.scope.entry_point) else None

    def _value_at(self, node: ast.expr, bound: frozenset[str]) -> object:
        """Return the value of a name, or of an attribute that has one; None for other nodes."""
        place = self.scope.place_of(node)
        return self.scope.look_up(place) if place and place.partition(".")[0] not in bound else None

    def _compare(self, node: ast.Compare, bound: frozenset[str], level: int) -> ast.expr:
        match node.left:
            case ast.Call(func=ast.Name(id="id")) if self._is_builtin("id", bound):
                raise _identity()
        first, *others = (self._inspected(operand, bound, level + 1) for operand in (node.left, *node.comparators))
        for op, *pair in zip(node.ops, (first, *others), others, strict=False):
            if isinstance(op, ast.Is | ast.IsNot) and not any(has_one_object(each, self.bindings) for each in pair):
                raise _identity()
        return ast.Compare(first, node.ops, others)

    def _name(self, node: ast.Name, bound: frozenset[str], level: int) -> ast.expr:
        name = node.id
        if name in bound:
            return node
        if name == self.scope.entry_point:
            raise _forbidden(f"{name!r} may only be called")
        value = self.scope.look_up(name)
        if isinstance(value, Inlined):
            return self._insert(node, value, bound, level)
        if isinstance(value, Unusable):
            raise value.error
        if value is None and name == self.scope.receiver:
            raise not_read("uses what reading does not know of the test's object")
        if isinstance(value, Imported):
            self._check_use(value.full_name)
        self._note_use(name if value is None else value.full_name, name)
        if value is None and name == read_entry_point(self.scope.entry_point).name:
            raise _forbidden(f"{name!r} may only be used in {self.scope.entry_point}(...)")
        if value is None and name not in SAFE_BUILTINS:
            raise _forbidden(f"{name!r} " + ("may not be used" if hasattr(builtins, name) else "is not defined"))
        self._bind_free_name(name, value.statement if value is not None else "")
        return node

    def _insert(self, node: ast.expr, value: Inlined, bound: frozenset[str], level: int) -> ast.expr:
        name = self.scope.place_of(node)
        self._check_callable(node, value.node)
        if not bound.isdisjoint(value.bindings):
            raise _forbidden(f"the value of {name!r} would change its meaning here")
        self._check_depth(level + value.depth - 1)
        self.size += value.size - 1
        self.n_inlined += value.size
        self.calls_entry_point |= value.calls_entry_point
        self.formatted |= value.formatted
        for free, statement in value.bindings.items():
            self._bind_free_name(free, statement)
        self.changes |= value.has_state
        self.has_state |= value.has_state and not self._n_consumers
        if self._n_kept:
            self.captured.add(name)
        if value.aliases is not None:
            is_again = self._n_around > 0 or self.aliases.is_merged_with(value.aliases)
            self.is_reused |= is_again or value.is_reused
            self.aliases.merge(value.aliases)
        return value.node

    def _note_use(self, full_name: str, name: str = "") -> None:
        """Note what a built-in or imported function does; `name` is what a function looks up when it is called."""
        member = full_name.rpartition(".")[2]
        self._note_change(member in CHANGING_FUNCTIONS)
        self.has_state |= member in _LAZY and not self._n_consumers
        if name and self._n_kept:
            self.captured.add(name)

    def _note_change(self, changes: bool) -> None:
        self.changes |= changes
        self.has_state |= changes and self._n_kept > 0

    def _attribute(self, node: ast.Attribute, bound: frozenset[str], level: int) -> ast.expr:
        value = self._value_at(node, bound)
        if isinstance(value, Inlined):
            return self._insert(node, value, bound, level)
        if isinstance(value, Unusable):
            raise value.error
        module = self._module(node.value, bound)
        if module:
            self._check_use(f"{module}.{node.attr}")
            self._note_use(node.attr)
            if not may_be_imported_from(module, node.attr):
                raise _forbidden(f"tests may not use '{module}.{node.attr}'")
            return placed(ast.Attribute(self._module_base(node.value, level + 1), node.attr, node.ctx), node)
        if self._full_name(node.value, bound) == "numpy.random":
            raise not_read(DRAWN)
        if not may_be_attribute(node.attr):
            if root_of(node) != self.scope.entry_point:
                self.visit(node.value, bound, level + 1)  # that a thing is not read excuses what is taken of it
            raise _forbidden(f"the attribute {node.attr!r} may not be used")
        self._note_change(node.attr in CHANGING_METHODS)
        thing = self.visit(node.value, bound, level + 1)
        if node.attr in _TEMPLATE_METHODS and not _is_plain_template(thing):
            raise _forbidden(f"{node.attr!r} needs a literal text whose fields name no attributes or items")
        return placed(ast.Attribute(thing, node.attr, node.ctx), node)

    def _module(self, node: ast.expr, bound: frozenset[str]) -> str:
        """Return the dotted name of the module that `node` denotes; empty if it denotes none."""
        full_name = self._full_name(node, bound)
        return full_name if full_name in MODULES else ""

    def _full_name(self, node: ast.expr, bound: frozenset[str]) -> str:
        """Return the dotted name of the import that `node` denotes; empty if it denotes none."""
        match node:
            case ast.Name(id=name) if name not in bound:
                value = self.scope.look_up(name)
                return value.full_name if isinstance(value, Imported) else ""
            case ast.Attribute(value=base, attr=name):
                return f"{self._module(base, bound)}.{name}"
        return ""

    def _check_use(self, full_name: str) -> None:
        if full_name in MODULES:
            raise _forbidden(f"{full_name!r} is a module, and tests may only use its members")
        if full_name in _OF_IDENTITY:
            raise _identity()
        if full_name in COMPARED_ONLY:
            raise _forbidden(f"{full_name!r} may only be compared or passed to 'isinstance'")

    def _module_base(self, node: ast.expr, level: int) -> ast.expr:
        self._check_depth(level)
        self.size += 1
        if isinstance(node, ast.Attribute):
            self._module_base(node.value, level + 1)
        elif isinstance(node, ast.Name):
            value = self.scope.look_up(node.id)
            self._bind_free_name(node.id, value.statement if isinstance(value, Imported) else "")
        return node

    def _inspected(self, node: ast.expr, bound: frozenset[str], level: int) -> ast.expr:
        """Visit an operand of a comparison or of an inspecting function: it may be a class, since nothing calls it."""
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            self._check_depth(level)
            self.size += 1
            items = [self._inspected(item, bound, level + 1) for item in node.elts]
            return placed(ast.Set(items) if isinstance(node, ast.Set) else type(node)(items, node.ctx), node)
        match node:
            case ast.Call(func=ast.Name(id="type"), args=[thing], keywords=[]) if not isinstance(
                thing, ast.Starred
            ) and self._is_builtin("type", bound):
                self._check_depth(level + 1)
                self.size += 2
                self._bind_free_name("type", "")
                return ast.Call(node.func, [self.visit(thing, bound, level + 1)], [])
            case ast.Name() | ast.Attribute() if self._full_name(node, bound) in COMPARED_ONLY:
                return self._module_base(node, level)
        return self.visit(node, bound, level)

    def _is_builtin(self, name: str, bound: frozenset[str]) -> bool:
        return name not in bound and self.scope.look_up(name) is None

    def _bind_free_name(self, name: str, statement: str) -> None:
        if self.bindings.setdefault(name, statement) != statement:
            raise _forbidden(f"{name!r} has two meanings here")

    def _lambda(self, node: ast.Lambda, bound: frozenset[str], level: int) -> ast.expr:
        self._check_callable(node, node)
        old = node.args
        inner = bound | self._checked(parameters_of(node))
        arguments = ast.arguments(
            posonlyargs=old.posonlyargs,
            args=old.args,
            vararg=old.vararg,
            kwonlyargs=old.kwonlyargs,
            kw_defaults=[d and self.visit(d, bound, level + 1) for d in old.kw_defaults],
            kwarg=old.kwarg,
            defaults=self._sequence(old.defaults, bound, level),
        )
        return ast.Lambda(arguments, self._inside(lambda: self.visit(node.body, inner, level + 1)))

    def _inside(self, visit: Callable[[], _T], *, is_loop: bool = False) -> _T:
        """Visit what a function or a loop evaluates as often as it runs; a function may last longer than its call."""
        is_kept = not (is_loop or self._n_consumers)
        self._n_around += 1
        self._n_kept += is_kept
        self.scope, around = self.scope.for_functions, self.scope
        made = visit()
        self.scope = around
        self._n_kept -= is_kept
        self._n_around -= 1
        return made

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, bound: frozenset[str], level: int
    ) -> ast.expr:
        self._check_callable(node, node)
        self.allow_callables(generator.iter for generator in node.generators)
        targets = (name for generator in node.generators for name in _stored(generator.target))
        inner = bound | self._checked(targets)
        is_generator = isinstance(node, ast.GeneratorExp)
        self.has_state |= is_generator and not self._n_consumers
        # Python evaluates only the first iterable in the enclosing scope, and once.
        self._n_consumers += not is_generator
        first = self.visit(node.generators[0].iter, bound, level + 1)
        self._n_consumers -= not is_generator
        return self._inside(lambda: self._items(node, first, inner, level), is_loop=not is_generator)

    def _items(
        self,
        node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp,
        first: ast.expr,
        inner: frozenset[str],
        level: int,
    ) -> ast.expr:
        generators = [
            ast.comprehension(
                self.visit(generator.target, inner, level + 1),
                self.visit(generator.iter, inner, level + 1) if position else first,
                self._sequence(generator.ifs, inner, level),
                generator.is_async,
            )
            for position, generator in enumerate(node.generators)
        ]
        if any(generator.is_async for generator in generators):
            raise UnreadableError(RejectionReason.SYNTAX_ERROR, "'async' is only allowed in functions")
        if isinstance(node, ast.DictComp):
            key, value = self._sequence([node.key, node.value], inner, level)
            return ast.DictComp(key, value, generators)
        return type(node)(self.visit(node.elt, inner, level + 1), generators)

    def _checked(self, names: Iterable[str]) -> frozenset[str]:
        bound = frozenset(names)
        for name in sorted(bound):
            if name == read_entry_point(self.scope.entry_point).name or name.startswith("__"):
                raise _forbidden(f"{name!r} may not be bound")
        return bound

    def _sequence(self, nodes: list[ast.expr], bound: frozenset[str], level: int) -> list[ast.expr]:
        return [self.visit(node, bound, level + 1) for node in nodes]

    def _rebuilt(self, node: ast.expr, bound: frozenset[str], level: int) -> ast.expr:
        """Visit the children."""

        def part(old: ast.AST) -> ast.AST:
            if isinstance(old, ast.expr):
                return self.visit(old, bound, level + 1)
            if isinstance(old, ast.keyword):
                self._note_change(old.arg == CHANGED_ARGUMENT)
                value = self.visit(old.value, bound, level + 1)
                return old if value is old.value else ast.keyword(old.arg, value)
            return old

        return rebuilt(node, part)


_VISITORS: dict[type[ast.expr], Callable[[_Inliner, Any, frozenset[str], int], ast.expr]] = {
    ast.Attribute: _Inliner._attribute,
    ast.Call: _Inliner._call,
    ast.Compare: _Inliner._compare,
    ast.Constant: _Inliner._constant,
    ast.Lambda: _Inliner._lambda,
    ast.Name: _Inliner._name,
    **dict.fromkeys(COMPREHENSIONS, _Inliner._comprehension),
}


def _is_plain_template(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and not holds_fields(node.value)


def _stored(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            raise _forbidden("a loop may only bind names, not attributes or items")  # for example of a module
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
