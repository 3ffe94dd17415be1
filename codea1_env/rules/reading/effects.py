"""What code may change: the names that a piece of a test file may bind, and those whose values it may change.

Reading executes nothing. So whatever is not read, be it dropped or refused, may have changed what later tests use, and
a test is only read with values that nothing can have changed. What a piece may do is found through every function and
class that it may call. The answer is coarse, and errs on one side: code that may change something may change whatever
it names, and a call of something unknown may run all functions of the file but its tests.
"""

from __future__ import annotations

import ast
import builtins
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from codea1_env.facts.entry_points import read_entry_point
from codea1_env.python_text import TextBudget, UnreadableError
from codea1_env.rules.reading.allowed_names import MODULES, SAFE_BUILTINS
from codea1_env.rules.reading.scopes import (
    ENTRY_POINT,
    INSTANCE,
    RECEIVERS,
    Imported,
    Inlined,
    OfFramework,
    Scope,
)
from codea1_env.rules.reading.statements import (
    COMPREHENSIONS,
    DEFINITIONS,
    Piece,
    arguments_in,
    children_of,
    nodes_in,
    parsed,
    root_of,
)

_METHODS = """
    add append appendleft byteswap cache_clear clear clear_flags clear_traps close difference_update discard extend
    extendleft fill insert intersection_update itemset move_to_end partition pop popitem popleft put remove resize
    reverse rotate send setdefault setfield setflags sort subtract symmetric_difference_update throw update
"""
_FUNCTIONS = "delattr heapify heappop heappush heappushpop heapreplace insort insort_left insort_right next setattr"
CHANGING_FUNCTIONS = frozenset(_FUNCTIONS.split())
"""Functions that change an argument."""
CHANGING_METHODS = frozenset(_METHODS.split())
"""Methods that change their object, of all types that a test may make."""
_CHANGING = CHANGING_METHODS | CHANGING_FUNCTIONS
CHANGED_ARGUMENT = "out"
"""The keyword of the functions of numpy for an array that they change."""

_SETTERS = frozenset({"__delattr__", "__setattr__", "delattr", "setattr"})
_WAYS_TO_NAMES = """
    __builtins__ __closure__ __code__ __defaults__ __dict__ __globals__ __import__ __main__ _getframe builtins
    cell_contents eval exec f_globals f_locals globals importlib locals modules runpy setprofile settrace vars
"""
_ANYTHING = "globals"
_REACH_EVERYTHING = frozenset(_WAYS_TO_NAMES.split())
_OF_FRAMEWORKS = frozenset({"approx", "fail", "param", "raises", "skip", "skipTest", "skipif", "subTest", "xfail"})
_PURE_METHODS = frozenset(
    {name for kind in (str, bytes, tuple, frozenset, float) for name in dir(kind) if not name.startswith("__")}.union(
        *MODULES.values(), ("elements", "get", "items", "keys", "most_common", "values")
    )
    - _CHANGING
)
_OTHER_BUILTINS = (
    "__name__ classmethod exit hasattr hash id input object open print property quit staticmethod super type"
)
_PURE_BUILTINS = SAFE_BUILTINS.difference(_CHANGING).union(_OTHER_BUILTINS.split())
_BUILTINS = frozenset(dir(builtins))
_LEAVES = frozenset({ast.Constant, ast.Load, ast.Store, ast.Del, ast.Pass})
_FUNCTION_NODES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(slots=True)
class Effects:
    """What a piece of code does by itself, or with all code that it may run."""

    names: set[str] = field(default_factory=set)
    """Names around it that it uses; attributes of the object of a test are written `self.x`."""
    called: set[str] = field(default_factory=set)
    """Those of them that it calls."""
    methods: set[str] = field(default_factory=set)
    """Methods that it calls of other objects."""
    bound: set[str] = field(default_factory=set)
    """Names that it binds or deletes where it stands."""
    stored: set[str] = field(default_factory=set)
    """Names that it assigns to, and parameters, those of the functions within it included."""
    defined: set[str] = field(default_factory=set)
    """Functions and classes that it defines there."""
    declared: set[str] = field(default_factory=set)
    """Names that it declares to be those of other functions."""
    outside: set[str] = field(default_factory=set)
    """Names, and attributes of classes, that it binds for other functions."""
    attributes: set[str] = field(default_factory=set)
    """Attributes of the object of a test that it binds."""
    altered: set[str] = field(default_factory=set)
    """Names of which it binds or changes an attribute, or a part of one."""
    changes: bool = False
    """Whether it may change the values of the names that it uses."""
    calls_unknown: bool = False
    """Whether it calls something that no name says."""
    n_tests: int = 0
    """How many tests it may state: asserts, assert methods, and what expects an exception."""
    held: list[ast.AST] = field(default_factory=list)
    """The functions, classes and generators within it."""

    def add(self, part: Effects) -> None:
        """Add what a part of it does."""
        self.names |= part.names
        self.called |= part.called
        self.methods |= part.methods
        self.bound |= part.bound
        self.stored |= part.stored
        self.defined |= part.defined
        self.outside |= part.outside
        self.attributes |= part.attributes
        self.altered |= part.altered
        self.changes |= part.changes
        self.calls_unknown |= part.calls_unknown
        self.n_tests += part.n_tests
        self.held += part.held

    def hide(self, parameters: Iterable[str] = ()) -> None:
        """Leave out what only the function knows of which this is the body."""
        self.stored.update(parameters)
        own = self.bound.union(parameters)
        self.calls_unknown |= not own.isdisjoint(self.called)
        self.names -= own | self.defined
        self.called -= own | self.defined
        self.altered -= own | self.defined
        self.bound, self.defined = set(), set()


def effects_of(parts: Iterable[ast.AST]) -> Effects:
    """Return what nodes do by themselves."""
    found, pending = Effects(), list(parts)
    while pending:
        node = pending.pop()
        kind = type(node)
        if kind not in _LEAVES:
            visit = _VISITORS.get(kind)
            pending += children_of(node) if visit is None else visit(found, node)
    found.outside |= (found.bound | found.defined) & found.declared
    found.bound -= found.declared
    found.defined -= found.declared
    return found


def _name(found: Effects, node: ast.Name) -> Iterable[ast.AST]:
    found.names.add(node.id)
    found.changes |= node.id in CHANGING_FUNCTIONS
    if not isinstance(node.ctx, ast.Load):
        found.bound.add(node.id)
        found.stored.add(node.id)
    return ()


def _attribute(found: Effects, node: ast.Attribute) -> Iterable[ast.AST]:
    thing, name, is_load = node.value, node.attr, isinstance(node.ctx, ast.Load)
    receiver = thing.id if isinstance(thing, ast.Name) and thing.id in RECEIVERS else ""
    if name in _REACH_EVERYTHING:
        found.names.add(name)
    if receiver and not _is_of_framework(name):
        found.names.add(f"{receiver}.{name}")
    found.changes |= name in _CHANGING or not (is_load or receiver)
    if not is_load or (name in _CHANGING and isinstance(thing, ast.Attribute)):
        found.altered.add(root_of(thing))
    if not is_load:
        found.attributes.add(name)
        found.outside |= set() if receiver == "self" else places_of(name)
    return (thing,)


def _call(found: Effects, node: ast.Call) -> Iterable[ast.AST]:
    name = ""
    match node.func:
        case ast.Name(id="eval") if len(node.args) == 1 and _is_repr(node.args[0]):
            return node.args[0].args  # type: ignore[attr-defined, no-any-return]
        case ast.Name(id=name):
            found.called.add(name)
            found.n_tests += name == "raises" or name.startswith("assert_")
        case ast.Attribute(attr=name) if _is_of_framework(name):
            found.n_tests += name == "raises" or name.startswith("assert")
        case ast.Attribute(value=ast.Name(id=thing), attr=name) if thing in RECEIVERS:
            found.called.add(f"{thing}.{name}")
        case ast.Attribute(attr=name):
            found.methods.add(name)
        case function:
            found.calls_unknown |= not isinstance(function, ast.Lambda)
    if name in _SETTERS:
        given = [each.value for each in node.args[:2] if isinstance(each, ast.Constant) and isinstance(each.value, str)]
        found.names |= set() if given else {_ANYTHING}
        found.attributes.update(given)
        found.outside.update(*map(places_of, given))
        found.altered.update(map(root_of, node.args[:1]))
        found.changes = True
    found.changes |= any(keyword.arg == CHANGED_ARGUMENT for keyword in node.keywords)
    return (node.func, *arguments_in(node))


def _is_repr(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "repr"


def _is_of_framework(name: str) -> bool:
    return name.startswith("assert") or name in _OF_FRAMEWORKS


def _test(found: Effects, node: ast.Assert | ast.Try) -> Iterable[ast.AST]:
    found.n_tests += 1
    return children_of(node)


def _change(found: Effects, node: ast.AST) -> Iterable[ast.AST]:
    if not isinstance(getattr(node, "ctx", None), ast.Load):
        found.changes = True
        found.altered |= {root_of(node)} if isinstance(getattr(node, "value", None), ast.Attribute) else set()
    return children_of(node)


def _binding(found: Effects, node: ast.ExceptHandler | ast.MatchAs | ast.MatchStar | ast.MatchMapping) -> list[ast.AST]:
    name = node.rest if isinstance(node, ast.MatchMapping) else node.name
    if name:
        found.bound.add(name)
        found.stored.add(name)
    return children_of(node)


def _alias(found: Effects, node: ast.alias) -> Iterable[ast.AST]:
    found.bound.add(node.asname or node.name.partition(".")[0])
    return ()


def _declaration(found: Effects, node: ast.Global | ast.Nonlocal) -> Iterable[ast.AST]:
    found.declared.update(node.names)
    return ()


def _held(found: Effects, node: Any) -> Iterable[ast.AST]:
    """Add what a function, a class or a comprehension does; its node remembers it, since it is asked for often."""
    known: Effects | None = getattr(node, "effects", None)
    if known is None:
        try:
            known = node.effects = _within(node)
        except RecursionError:  # lambdas nest without brackets
            known = node.effects = Effects({_ANYTHING})
    found.add(known)
    if not isinstance(node, ast.ListComp | ast.SetComp | ast.DictComp):
        found.held.append(node)
    return ()


def _within(node: Any) -> Effects:
    parts = heads_of(node)
    if isinstance(node, COMPREHENSIONS):
        first, *others = node.generators
        items = (node.key, node.value) if isinstance(node, ast.DictComp) else (node.elt,)
        inner = effects_of([first.target, *first.ifs, *others, *items])
        inner.hide()
        parts = [first.iter]  # Python evaluates it around the comprehension
    elif isinstance(node, ast.ClassDef):
        inner = effects_of(node.body)
        inner.bound, inner.defined = set(), set()  # methods do not see them
    else:
        inner = effects_of(node.body if isinstance(node.body, list) else [node.body])
        inner.hide(parameters_of(node))
    found = effects_of(parts)
    found.add(inner)
    if isinstance(node, COMPREHENSIONS):
        assigned = {part.target.id for part in nodes_in(node) if isinstance(part, ast.NamedExpr)}
        found.bound |= assigned
        found.names |= assigned
    elif not isinstance(node, ast.Lambda):
        found.defined.add(node.name)
    return found


_VISITORS: dict[type, Callable[[Effects, Any], Iterable[ast.AST]]] = {
    ast.Name: _name,
    ast.Attribute: _attribute,
    ast.Call: _call,
    ast.alias: _alias,
    **dict.fromkeys((ast.Assert, ast.Try), _test),
    **dict.fromkeys((ast.Global, ast.Nonlocal), _declaration),
    **dict.fromkeys((ast.Subscript, ast.AugAssign, ast.AsyncFor, ast.AsyncWith), _change),
    **dict.fromkeys((ast.ExceptHandler, ast.MatchAs, ast.MatchStar, ast.MatchMapping), _binding),
    **dict.fromkeys((*DEFINITIONS, ast.Lambda, *COMPREHENSIONS), _held),
}


def places_of(attribute: str) -> set[str]:
    """Return the names of an attribute of the object of a test."""
    return {f"{receiver}.{attribute}" for receiver in RECEIVERS}


def arguments_of(given: ast.arguments) -> list[ast.arg]:
    """Return all parameters of a function."""
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [argument for argument in named if argument is not None]


def parameters_of(node: Any) -> list[str]:
    """Return the names of all parameters of the node of a function."""
    return [argument.arg for argument in arguments_of(node.args)]


def receiver_of(node: Any) -> str:
    """Return the name of the object of a test's method; empty for other functions."""
    first = parameters_of(node)[:1]
    return first[0] if first and first[0] in RECEIVERS else ""


def defaults_of(given: ast.arguments) -> list[tuple[ast.arg, ast.expr]]:
    """Return the parameters of a function that have defaults, each with its default."""
    positional = [*given.posonlyargs, *given.args]
    optional = [*positional[len(positional) - len(given.defaults) :], *given.kwonlyargs]
    pairs = zip(optional, [*given.defaults, *given.kw_defaults], strict=True)
    return [(argument, default) for argument, default in pairs if default is not None]


def heads_of(node: ast.AST) -> list[ast.AST]:
    """Return the parts of a definition that run where it stands, but for the body of a class."""
    parts: list[ast.AST | None] = [*getattr(node, "decorator_list", ())]
    if isinstance(node, ast.ClassDef):
        parts += [*node.bases, *node.keywords]
    elif isinstance(node, _FUNCTION_NODES):
        parts += [*node.args.defaults, *node.args.kw_defaults, getattr(node, "returns", None)]
        parts += [argument.annotation for argument in arguments_of(node.args)]
    return [part for part in parts if part is not None]


class Code:
    """The functions and classes of one reply: what they may change."""

    def __init__(self, entry_point: str, *, in_place: bool) -> None:
        self._program, method = read_entry_point(entry_point)
        self._in_place = in_place
        self._pure_methods = _PURE_METHODS if in_place else _PURE_METHODS | {method}
        self._pieces: list[Piece] = []
        self._definitions: dict[str, list[Effects]] = defaultdict(list)
        """What functions and classes do by themselves; those of a class are `.x`, too."""
        self._stored: set[str] = set()
        self._all = Effects()
        """What all functions do but tests."""

    def add(self, pieces: Iterable[Piece]) -> None:
        """Add a part of the reply, before it is read."""
        self._pieces += pieces

    def reached(self, start: Effects, scope: Scope, budget: TextBudget) -> Effects | None:
        """Return what code does with all that it may run while names have the values of `scope`; None: anything."""
        found = Effects(bound=start.bound | start.defined)
        pending, seen, runs_all, scopes = [start], set[str](), False, list(scope.chain())
        try:
            while pending:
                part = pending.pop()
                new = part.names - seen
                budget.take_steps(1 + len(new))
                found.names |= new
                found.outside |= part.outside
                found.attributes |= part.attributes
                found.altered |= part.altered
                found.changes |= part.changes or part.calls_unknown or not part.methods <= self._pure_methods
                is_unknown = part.calls_unknown
                if not _REACH_EVERYTHING.isdisjoint(part.names):
                    return None
                for name in new:
                    seen.add(name)
                    if self._is_known(name, scopes, found):
                        continue
                    found.calls_unknown = True
                    definitions = self._find().get(name[name.find(".") :] if "." in name else name, [])
                    pending += definitions
                    if not definitions or name in self._stored:
                        found.changes |= name in part.called
                        is_unknown |= name in self._stored or "." in name or name in RECEIVERS
                if is_unknown and not runs_all:
                    self._find()
                    pending.append(self._all)
                    runs_all = True
        except UnreadableError:
            return None
        return found

    def _is_known(self, name: str, scopes: Sequence[Scope], found: Effects) -> bool:
        """Whether a name stands for nothing that the file defines; notes what its use changes."""
        is_known, unsettled = False, scopes[0].unsettled
        is_settled = not unsettled.all_by and name not in unsettled.names
        for scope in scopes:
            value = None if is_settled and name not in scope.names else scope.look_up(name)
            if isinstance(value, Imported):
                found.changes |= value.full_name.rpartition(".")[2] in CHANGING_FUNCTIONS
            elif value is ENTRY_POINT or value is INSTANCE:
                found.changes |= self._in_place
            elif value is not None and not isinstance(value, Inlined | OfFramework):
                return False
            is_known |= value is not None
        if not is_known and name == self._program:
            found.changes |= self._in_place
        elif not is_known:
            found.changes |= name in _BUILTINS and name not in _PURE_BUILTINS
        return is_known or name == self._program or name in _BUILTINS

    def _find(self) -> Mapping[str, list[Effects]]:
        """Return the definitions, with those of the pieces that nobody has asked for so far."""
        if not self._pieces:
            return self._definitions
        new = effects_of(parsed(self._pieces))
        self._pieces.clear()
        self._stored |= new.stored
        for node in new.held:
            name, effects = getattr(node, "name", ""), effects_of([node])
            if name:
                self._definitions[name].append(effects)
                self._definitions[f".{name}"].append(effects)
            if not (name.lower().startswith("test") or isinstance(node, ast.ClassDef)):
                self._all.add(effects)
        return self._definitions
