"""Names of a test file become the expressions that they stand for.

A `Scope` knows what each name means at one point of a file; `fill` puts the meanings into an expression and says what
the result needs and whether it calls the entry point. Binding is respected: what a lambda or a comprehension binds
stays, and a substitution that such a name would capture is refused. Filling shares subtrees, so its cost does not
grow with the size of what a name stands for; `Filled.inlined` counts it for whoever writes the result out.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from codea1_env.rules.reading.allowed_names import SAFE_BUILTINS, may_be_imported_from
from codea1_env.rules.reading.python_text import MAX_DEPTH, UnreadableError
from codea1_env.submissions import RejectionReason

__all__ = ["Filled", "Imported", "Scope", "Unusable", "fill"]

_COMPREHENSIONS = (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)
_MAX_SIZE = 1 << 62  # sizes double with every line of a hostile reply; no need for long numbers


class _Sharing:
    """One group of names whose values may share mutable parts (union-find)."""

    __slots__ = ("_parent", "_spoilt_by")

    def __init__(self) -> None:
        self._parent: _Sharing | None = None
        self._spoilt_by = ""

    def _root(self) -> _Sharing:
        node = self
        while node._parent is not None:
            if node._parent._parent is not None:
                node._parent = node._parent._parent
            node = node._parent
        return node

    def join(self, other: _Sharing) -> None:
        """Make one group of two."""
        mine, theirs = self._root(), other._root()
        if mine is not theirs:
            mine._spoilt_by = mine._spoilt_by or theirs._spoilt_by
            theirs._parent = mine

    @property
    def spoilt_by(self) -> str:
        """Which dropped statement may have changed the values; empty if none."""
        return self._root()._spoilt_by

    def spoil(self, by: str) -> None:
        """Mark every value of the group as unknown from here on."""
        self._root()._spoilt_by = by


@dataclass(frozen=True, slots=True)
class Filled:
    """An expression without names of the file."""

    node: ast.expr
    calls_entry_point: bool
    meanings: Mapping[str, str]
    """Free name to the import statement that binds it; empty text for a built-in."""
    size: int
    """Nodes, shared ones counted each time."""
    inlined: int
    """How many of those stand for names."""
    depth: int
    formatted: bool
    """Whether an f-string is in it."""
    sharing: _Sharing | None = None
    """None for a constant, which nothing can change."""

    @property
    def imports(self) -> tuple[str, ...]:
        """Import statements that the expression needs, sorted."""
        return tuple(sorted({statement for statement in self.meanings.values() if statement}))


@dataclass(frozen=True, slots=True)
class Imported:
    """A name that an import statement binds."""

    statement: str


@dataclass(frozen=True, slots=True)
class Unusable:
    """A name whose value is not known, and why."""

    reason: RejectionReason
    detail: str


@dataclass(slots=True)
class Scope:
    """What the names of a file mean at one point of it."""

    entry_point: str
    names: dict[str, Filled | Imported | Unusable] = field(default_factory=dict)

    def child(self) -> Scope:
        """Return a scope that begins with the names of this one and does not change it."""
        return Scope(self.entry_point, dict(self.names))

    def bind(self, name: str, value: Filled | Imported | Unusable) -> None:
        """Let `name` mean `value` from here on."""
        self.names[name] = value

    def spoil(self, name: str, *, rebound: bool, by: str) -> None:
        """Note that a dropped statement mentions `name` and may have changed or (`rebound`) replaced its value."""
        value = self.names.get(name)
        if isinstance(value, Filled) and value.sharing is not None:
            value.sharing.spoil(by)
        if rebound:
            detail = f"{name!r} depends on a statement that was dropped: {by}"
            self.names[name] = Unusable(RejectionReason.FORBIDDEN_NAME, detail)

    def look_up(self, name: str) -> Filled | Imported | Unusable | None:
        """Return what `name` means; None if the file does not say."""
        value = self.names.get(name)
        if isinstance(value, Filled) and value.sharing is not None and value.sharing.spoilt_by:
            detail = f"{name!r} may have been changed by a statement that was dropped: {value.sharing.spoilt_by}"
            return Unusable(RejectionReason.FORBIDDEN_NAME, detail)
        return value


def fill(node: ast.expr, scope: Scope) -> Filled:
    """Return `node` with every name of `scope` replaced by what it stands for.

    Raises:
        UnreadableError: FORBIDDEN_NAME for a name, attribute or binding that a test may not use, or one that is not
            defined; SYNTAX_ERROR for await and yield, and for a tree that is too deep.
    """
    filler = _Filler(scope)
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
        self.sharing = _Sharing()

    def visit(self, node: ast.expr, bound: frozenset[str], level: int) -> ast.expr:
        self._reach(level)
        self.size += 1
        match node:
            case ast.Name():
                return self._name(node, bound, level)
            case ast.Constant(kind=str()):  # u'' equals ''
                return ast.Constant(node.value)
            case ast.Call(func=ast.Name(id=name)) if name == self.scope.entry_point:
                self.calls_entry_point = True
                arguments = self._sequence(node.args, bound, level)
                keywords = [ast.keyword(k.arg, self.visit(k.value, bound, level + 1)) for k in node.keywords]
                return ast.Call(node.func, arguments, keywords)
            case ast.Lambda():
                return self._lambda(node, bound, level)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                return self._comprehension(node, bound, level)
        self._refuse(node)
        return self._rebuilt(node, bound, level)

    def _reach(self, level: int) -> None:
        if level > MAX_DEPTH:
            raise UnreadableError(RejectionReason.SYNTAX_ERROR, "nested too deeply")
        self.depth = max(self.depth, level)

    def _refuse(self, node: ast.expr) -> None:
        match node:
            case ast.Attribute(attr=name) if not may_be_imported_from(name):
                raise _forbidden(f"the attribute {name!r} may not be used")
            case ast.NamedExpr():
                raise _forbidden("':=' may not be used")
            case ast.Await() | ast.Yield() | ast.YieldFrom():
                raise UnreadableError(RejectionReason.SYNTAX_ERROR, "'await' and 'yield' only stand in functions")
            case ast.JoinedStr():
                self.formatted = True

    def _name(self, node: ast.Name, bound: frozenset[str], level: int) -> ast.expr:
        name = node.id
        if name in bound:
            return node
        if name == self.scope.entry_point:
            raise _forbidden(f"{name!r} may be called, not used in another way")
        value = self.scope.look_up(name)
        if isinstance(value, Filled):
            return self._insert(name, value, bound, level)
        if isinstance(value, Unusable):
            raise UnreadableError(value.reason, value.detail)
        if value is None and name not in SAFE_BUILTINS:
            raise _forbidden(f"{name!r} " + ("may not be used" if hasattr(builtins, name) else "is not defined"))
        self._mean(name, value.statement if value is not None else "")
        return node

    def _insert(self, name: str, value: Filled, bound: frozenset[str], level: int) -> ast.expr:
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

    def _mean(self, name: str, statement: str) -> None:
        if self.meanings.setdefault(name, statement) != statement:
            raise _forbidden(f"{name!r} means two things here")

    def _lambda(self, node: ast.Lambda, bound: frozenset[str], level: int) -> ast.expr:
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


def _stored(target: ast.expr) -> Iterator[str]:
    return (node.id for node in ast.walk(target) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store))
