"""Names of a test file become the expressions that they stand for.

A `Scope` knows what each name means at one point of a file; `fill` puts the meanings into an expression, refuses what a
test may not mention, and says what the result needs and whether it calls the entry point. Binding is respected: what a
lambda or a comprehension binds stays, and a substitution that such a name would capture is refused. Filling shares
subtrees, so its cost does not grow with the size of what a name stands for; `Filled.inlined` counts it for whoever
writes the result out.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from codea1_env.facts.submissions import RejectionReason
from codea1_env.rules.reading.allowed_names import (
    COMPARED_ONLY,
    MODULES,
    SAFE_BUILTINS,
    holds_fields,
    may_be_attribute,
    may_be_imported_from,
)
from codea1_env.rules.reading.python_text import MAX_DEPTH, UnreadableError
from codea1_env.rules.reading.scopes import Filled, Imported, Scope, Sharing, Unusable

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_SHOWING = frozenset({"isinstance", "issubclass", "repr", "str"})
_TEMPLATE_METHODS = frozenset({"format", "format_map"})
_MAX_SIZE = 1 << 62  # sizes double with every line of a hostile reply; no need for long numbers


def fill(node: ast.expr, scope: Scope) -> Filled:
    """Return `node` with every name of `scope` replaced by what it stands for.

    Raises:
        UnreadableError: FORBIDDEN_NAME for a name, attribute or binding that a test may not use, or one that is not
            defined; SYNTAX_ERROR for await and yield, and for a tree that is too deep.
    """
    filler = _Filler(scope)
    filler.hand([node])
    try:
        filled = filler.visit(node, frozenset(), 1)
    except RecursionError:  # MAX_DEPTH leaves room, unless the caller's own stack is nearly full
        raise UnreadableError(RejectionReason.SYNTAX_ERROR, "nested too deeply") from None
    return Filled(
        filled,
        filler.calls_entry_point,
        filler.meanings,
        min(filler.size, _MAX_SIZE),
        min(filler.inlined, _MAX_SIZE),
        filler.depth,
        filler.formatted,
        None if isinstance(filled, ast.Constant) else filler.sharing,
    )


def _forbidden(detail: str) -> UnreadableError:
    return UnreadableError(RejectionReason.FORBIDDEN_NAME, detail)


class _Filler:
    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.calls_entry_point = False
        self.formatted = False
        self.meanings: dict[str, str] = {}
        self.size = self.inlined = self.depth = 0
        self.sharing = Sharing()
        self._handed: set[int] = set()

    def hand(self, nodes: Iterable[ast.expr]) -> None:
        """Let these be functions or generators: they go to a call or a loop, which is done with them at once.

        Elsewhere, say in a set, their addresses could decide an order, and so a test, by luck.
        """
        for node in nodes:
            self._handed.add(id(node.value if isinstance(node, ast.Starred) else node))

    def _check_handed(self, node: ast.expr, what: ast.expr) -> None:
        if isinstance(what, ast.Lambda | ast.GeneratorExp) and id(node) not in self._handed:
            raise _forbidden("functions and generators may only be handed to calls and loops")

    def visit(self, node: ast.expr, bound: frozenset[str], level: int) -> ast.expr:
        self._reach(level)
        self.size += 1
        return _VISITORS.get(type(node), _Filler._other)(self, node, bound, level)

    def _reach(self, level: int) -> None:
        if level > MAX_DEPTH:
            raise UnreadableError(RejectionReason.SYNTAX_ERROR, "nested too deeply")
        self.depth = max(self.depth, level)

    def _other(self, node: ast.expr, bound: frozenset[str], level: int) -> ast.expr:
        match node:
            case ast.NamedExpr():
                raise _forbidden("':=' may not be used")
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                raise UnreadableError(RejectionReason.SYNTAX_ERROR, "'await' and 'yield' only stand in functions")
            case ast.JoinedStr():
                self.formatted = True
            case ast.Starred():
                self.hand([node])
            case ast.Constant(kind=str()):  # u'' equals ''
                return ast.Constant(node.value)
            case ast.UnaryOp(op=ast.UAdd(), operand=ast.Constant(value=int() | float() | complex() as value)):
                return ast.Constant(+value)  # so that f(+1) is no other case than f(1)
        return self._rebuilt(node, bound, level)

    def _call(self, node: ast.Call, bound: frozenset[str], level: int) -> ast.expr:
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name not in _SHOWING:
            self.hand((node.func, *node.args, *(keyword.value for keyword in node.keywords)))
        if name == self.scope.entry_point:
            self.calls_entry_point = True
            keywords = [ast.keyword(k.arg, self.visit(k.value, bound, level + 1)) for k in node.keywords]
            return ast.Call(node.func, self._sequence(node.args, bound, level), keywords)
        if name in _SHOWING and not node.keywords and self._is_builtin(name, bound):
            shown = [self._shown(argument, bound, level + 1) for argument in node.args]
            return ast.Call(self.visit(node.func, bound, level + 1), shown, [])
        return self._rebuilt(node, bound, level)

    def _compare(self, node: ast.Compare, bound: frozenset[str], level: int) -> ast.expr:
        first, *others = (self._shown(operand, bound, level + 1) for operand in (node.left, *node.comparators))
        return ast.Compare(first, node.ops, others)

    def _name(self, node: ast.Name, bound: frozenset[str], level: int) -> ast.expr:
        name = node.id
        if name in bound:
            return node
        if name == self.scope.entry_point:
            raise _forbidden(f"{name!r} may be called, not used in another way")
        value = self.scope.look_up(name)
        if isinstance(value, Filled):
            return self._insert(node, value, bound, level)
        if isinstance(value, Unusable):
            raise UnreadableError(value.reason, value.detail)
        if isinstance(value, Imported):
            self._check_use(value.full_name)
        if value is None and name not in SAFE_BUILTINS:
            raise _forbidden(f"{name!r} " + ("may not be used" if hasattr(builtins, name) else "is not defined"))
        self._mean(name, value.statement if value is not None else "")
        return node

    def _insert(self, node: ast.Name, value: Filled, bound: frozenset[str], level: int) -> ast.expr:
        name = node.id
        self._check_handed(node, value.node)
        if not bound.isdisjoint(value.meanings):
            raise _forbidden(f"what {name!r} stands for would change its meaning here")
        self._reach(level + value.depth - 1)
        self.size += value.size - 1
        self.inlined += value.size
        self.calls_entry_point |= value.calls_entry_point
        self.formatted |= value.formatted
        for free, statement in value.meanings.items():
            self._mean(free, statement)
        if value.sharing is not None:
            self.sharing.join(value.sharing)
        return value.node

    def _attribute(self, node: ast.Attribute, bound: frozenset[str], level: int) -> ast.expr:
        module = self._module(node.value, bound)
        if module:
            self._check_use(f"{module}.{node.attr}")
            if not may_be_imported_from(module, node.attr):
                raise _forbidden(f"tests may not use '{module}.{node.attr}'")
            return ast.Attribute(self._module_base(node.value, level + 1), node.attr, node.ctx)
        if not may_be_attribute(node.attr):
            raise _forbidden(f"the attribute {node.attr!r} may not be used")
        value = self.visit(node.value, bound, level + 1)
        if node.attr in _TEMPLATE_METHODS and not _is_plain_template(value):
            raise _forbidden(f"{node.attr!r} may only be used on a text without attributes or items in its fields")
        return ast.Attribute(value, node.attr, node.ctx)

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
            raise _forbidden(f"{full_name!r} is a module, which is only good for what is in it")
        if full_name in COMPARED_ONLY:
            raise _forbidden(f"{full_name!r} may only be compared, and be asked about by 'isinstance'")

    def _module_base(self, node: ast.expr, level: int) -> ast.expr:
        self._reach(level)
        self.size += 1
        if isinstance(node, ast.Attribute):
            self._module_base(node.value, level + 1)
        elif isinstance(node, ast.Name):
            value = self.scope.look_up(node.id)
            self._mean(node.id, value.statement if isinstance(value, Imported) else "")
        return node

    def _shown(self, node: ast.expr, bound: frozenset[str], level: int) -> ast.expr:
        """Fill what is compared or turned into text and goes no farther: there, a class cannot be called."""
        if isinstance(node, ast.Tuple | ast.List | ast.Set):
            self._reach(level)
            self.size += 1
            items = [self._shown(item, bound, level + 1) for item in node.elts]
            return ast.Set(items) if isinstance(node, ast.Set) else type(node)(items, node.ctx)
        match node:
            case ast.Call(func=ast.Name(id="type"), args=[thing], keywords=[]) if not isinstance(
                thing, ast.Starred
            ) and self._is_builtin("type", bound):
                self._reach(level + 1)
                self.size += 2
                self._mean("type", "")
                return ast.Call(node.func, [self.visit(thing, bound, level + 1)], [])
            case ast.Name() | ast.Attribute() if self._full_name(node, bound) in COMPARED_ONLY:
                return self._module_base(node, level)
        return self.visit(node, bound, level)

    def _is_builtin(self, name: str, bound: frozenset[str]) -> bool:
        return name not in bound and self.scope.look_up(name) is None

    def _mean(self, name: str, statement: str) -> None:
        if self.meanings.setdefault(name, statement) != statement:
            raise _forbidden(f"{name!r} means two things here")

    def _lambda(self, node: ast.Lambda, bound: frozenset[str], level: int) -> ast.expr:
        self._check_handed(node, node)
        old = node.args
        inner = bound | self._checked(
            argument.arg
            for argument in (*old.posonlyargs, *old.args, old.vararg, *old.kwonlyargs, old.kwarg)
            if argument is not None
        )
        arguments = ast.arguments(
            posonlyargs=old.posonlyargs,
            args=old.args,
            vararg=old.vararg,
            kwonlyargs=old.kwonlyargs,
            kw_defaults=[d and self.visit(d, bound, level + 1) for d in old.kw_defaults],
            kwarg=old.kwarg,
            defaults=self._sequence(old.defaults, bound, level),
        )
        return ast.Lambda(arguments, self.visit(node.body, inner, level + 1))

    def _comprehension(
        self, node: ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp, bound: frozenset[str], level: int
    ) -> ast.expr:
        self._check_handed(node, node)
        self.hand(generator.iter for generator in node.generators)
        targets = (name for generator in node.generators for name in _stored(generator.target))
        inner = bound | self._checked(targets)
        generators = [
            ast.comprehension(
                self.visit(generator.target, inner, level + 1),
                # Only the first iterable is evaluated outside.
                self.visit(generator.iter, inner if position else bound, level + 1),
                self._sequence(generator.ifs, inner, level),
                generator.is_async,
            )
            for position, generator in enumerate(node.generators)
        ]
        if any(generator.is_async for generator in generators):
            raise UnreadableError(RejectionReason.SYNTAX_ERROR, "'async' only stands in functions")
        if isinstance(node, ast.DictComp):
            return ast.DictComp(
                self.visit(node.key, inner, level + 1), self.visit(node.value, inner, level + 1), generators
            )
        return type(node)(self.visit(node.elt, inner, level + 1), generators)

    def _checked(self, names: Iterator[str]) -> frozenset[str]:
        bound = frozenset(names)
        for name in sorted(bound):
            if name == self.scope.entry_point or name.startswith("__"):
                raise _forbidden(f"{name!r} may not be bound")
        return bound

    def _sequence(self, nodes: list[ast.expr], bound: frozenset[str], level: int) -> list[ast.expr]:
        return [self.visit(node, bound, level + 1) for node in nodes]

    def _rebuilt(self, node: ast.expr, bound: frozenset[str], level: int) -> ast.expr:
        """Fill the children; the node itself is copied only if one of them changes."""
        changed: dict[str, object] = {}
        for name, old in ast.iter_fields(node):
            new = self._field(old, bound, level)
            if new is not old:
                changed[name] = new
        if not changed:
            return node
        return type(node)(**{**dict(ast.iter_fields(node)), **changed})

    def _field(self, old: object, bound: frozenset[str], level: int) -> object:
        if isinstance(old, ast.expr):
            return self.visit(old, bound, level + 1)
        if isinstance(old, ast.keyword):
            value = self.visit(old.value, bound, level + 1)
            return old if value is old.value else ast.keyword(old.arg, value)
        if isinstance(old, list):
            new = [self._field(item, bound, level) for item in old]
            return old if all(a is b for a, b in zip(old, new, strict=True)) else new
        return old


_VISITORS: dict[type[ast.expr], Callable[[_Filler, Any, frozenset[str], int], ast.expr]] = {
    ast.Attribute: _Filler._attribute,
    ast.Call: _Filler._call,
    ast.Compare: _Filler._compare,
    ast.Lambda: _Filler._lambda,
    ast.Name: _Filler._name,
    **dict.fromkeys(_COMPREHENSIONS, _Filler._comprehension),
}


def _is_plain_template(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and not holds_fields(node.value)


def _stored(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Attribute | ast.Subscript) and isinstance(node.ctx, ast.Store):
            raise _forbidden("a loop may only bind names, not attributes or items")  # of a module, say
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
