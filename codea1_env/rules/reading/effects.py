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
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

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
from codea1_env.rules.reading.statements import Partial, Piece, Statement

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

_WAYS_TO_NAMES = """
    __builtins__ __closure__ __code__ __defaults__ __dict__ __globals__ __import__ __main__ _getframe builtins
    cell_contents eval exec f_globals f_locals globals importlib locals modules runpy setprofile settrace vars
"""
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
    defined: set[str] = field(default_factory=set)
    """Functions and classes that it defines there."""
    outside: set[str] = field(default_factory=set)
    """Names, and attributes of classes, that it binds for other functions."""
    attributes: set[str] = field(default_factory=set)
    """Attributes of the object of a test that it binds."""
    changes: bool = False
    """Whether it may change the values of the names that it uses."""
    calls_unknown: bool = False
    """Whether it calls something that no name says."""

    def include(self, inner: Effects, hidden: Iterable[str] = ()) -> None:
        """Add what a function does within which names are hidden."""
        own = inner.bound.union(hidden)
        self.names |= inner.names - own - inner.defined
        self.called |= inner.called - own - inner.defined
        self.methods |= inner.methods
        self.outside |= inner.outside
        self.attributes |= inner.attributes
        self.changes |= inner.changes
        self.calls_unknown |= inner.calls_unknown or not own.isdisjoint(inner.called)


def effects_of(parts: Iterable[ast.AST]) -> Effects:  # noqa: C901, PLR0912, PLR0915  -- a case for each node
    """Return what nodes do by themselves."""
    found, declared, pending = Effects(), set[str](), list(parts)
    while pending:
        node = pending.pop()
        match node:
            case ast.Constant():
                continue
            case ast.Name(id=name, ctx=context):
                found.names.add(name)
                found.changes |= name in CHANGING_FUNCTIONS
                if not isinstance(context, ast.Load):
                    found.bound.add(name)
                continue
            case ast.Attribute(value=thing, attr=name, ctx=context):
                _attribute(found, thing, name, isinstance(context, ast.Load))
            case ast.Call(func=ast.Name(id="eval"), args=[ast.Call(func=ast.Name(id="repr"), args=shown)]):
                pending += shown
                continue
            case ast.Call(func=function, keywords=keywords):
                found.changes |= any(keyword.arg == CHANGED_ARGUMENT for keyword in keywords)
                _call(found, function)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                body = node.body if isinstance(node.body, list) else [node.body]
                found.include(effects_of(body), (argument.arg for argument in arguments_of(node.args)))
                found.defined |= set() if isinstance(node, ast.Lambda) else {node.name}
                pending += heads_of(node)
                continue
            case ast.ClassDef():
                inner = effects_of(node.body)
                inner.bound, inner.defined = set(), set()  # methods do not see them
                found.include(inner)
                found.defined.add(node.name)
                pending += heads_of(node)
                continue
            case ast.ListComp(generators=made) | ast.SetComp(generators=made) | ast.GeneratorExp(generators=made):
                pending += _comprehension(found, node, made)
                continue
            case ast.DictComp(generators=made):
                pending += _comprehension(found, node, made)
                continue
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                declared.update(names)
            case ast.alias(name=name, asname=asname):
                found.bound.add(asname or name.partition(".")[0])
            case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.AugAssign() | ast.AsyncFor() | ast.AsyncWith():
                found.changes = True
            case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
                found.bound.add(name)
            case ast.MatchStar(name=str() as name) | ast.MatchMapping(rest=str() as name):
                found.bound.add(name)
        pending += ast.iter_child_nodes(node)
    found.outside |= (found.bound | found.defined) & declared
    found.bound -= declared
    found.defined -= declared
    return found


def _attribute(found: Effects, thing: ast.expr, name: str, is_load: bool) -> None:
    receiver = thing.id if isinstance(thing, ast.Name) and thing.id in RECEIVERS else ""
    if name in _REACH_EVERYTHING:
        found.names.add(name)
    if receiver and not _is_of_framework(name):
        found.names.add(f"{receiver}.{name}")
    found.changes |= name in _CHANGING or not (is_load or receiver)
    if not is_load:
        found.attributes.add(name)
        found.outside |= set() if receiver == "self" else places_of(name)


def _call(found: Effects, function: ast.expr) -> None:
    match function:
        case ast.Name(id=name):
            found.called.add(name)
        case ast.Attribute(attr=name) if _is_of_framework(name):
            return
        case ast.Attribute(value=ast.Name(id=thing), attr=name) if thing in RECEIVERS:
            found.called.add(f"{thing}.{name}")
        case ast.Attribute(attr=name):
            found.methods.add(name)
        case _:
            found.calls_unknown |= not isinstance(function, ast.Lambda)


def _is_of_framework(name: str) -> bool:
    return name.startswith("assert") or name in _OF_FRAMEWORKS


def _comprehension(found: Effects, node: ast.AST, generators: list[ast.comprehension]) -> list[ast.AST]:
    """Add what a comprehension does; return its first iterable, which Python evaluates around it."""
    first, *others = generators
    items = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
    inner = effects_of([first.target, *first.ifs, *others, *items])
    assigned = {part.target.id for part in ast.walk(node) if isinstance(part, ast.NamedExpr)}
    found.include(inner)
    found.bound |= assigned
    found.names |= assigned
    return [first.iter]


def places_of(attribute: str) -> set[str]:
    """Return the names of an attribute of the object of a test."""
    return {f"{receiver}.{attribute}" for receiver in RECEIVERS}


def arguments_of(given: ast.arguments) -> list[ast.arg]:
    """Return all parameters of a function."""
    named = [*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg]
    return [argument for argument in named if argument is not None]


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
        self._definitions: dict[str, list[Effects]] | None = None
        self._bound: set[str] = set()
        self._all = Effects()
        """What all functions do but tests."""

    def add(self, pieces: Iterable[Piece]) -> None:
        """Add a part of the reply, before it is read."""
        self._pieces += pieces
        self._definitions = None

    def reached(self, start: Effects, scope: Scope, budget: TextBudget) -> Effects | None:
        """Return what code does with all that it may run while names have the values of `scope`; None: anything."""
        found = Effects(bound=start.bound | start.defined)
        pending, seen, runs_all = [start], set[str](), False
        try:
            while pending:
                part = pending.pop()
                new = part.names - seen
                budget.take_steps(1 + len(new))
                found.names |= new
                found.outside |= part.outside
                found.attributes |= part.attributes
                found.changes |= part.changes or part.calls_unknown or not part.methods <= self._pure_methods
                is_unknown = part.calls_unknown
                if not _REACH_EVERYTHING.isdisjoint(part.names):
                    return None
                for name in new:
                    seen.add(name)
                    if self._is_known(name, scope, found):
                        continue
                    found.calls_unknown = True
                    definitions = self._find(budget).get(name[name.find(".") :] if "." in name else name, [])
                    pending += definitions
                    if not definitions or name in self._bound:
                        found.changes |= name in part.called
                        is_unknown |= name in self._bound or "." in name or name in RECEIVERS
                if is_unknown and not runs_all:
                    self._find(budget)
                    pending.append(self._all)
                    runs_all = True
        except UnreadableError:
            return None
        return found

    def _is_known(self, name: str, scope: Scope, found: Effects) -> bool:
        """Whether a name stands for nothing that the file defines; notes what its use changes."""
        around: Scope | None = scope
        is_known = False
        while around is not None:
            value = around.look_up(name)
            if isinstance(value, Imported):
                found.changes |= value.full_name.rpartition(".")[2] in CHANGING_FUNCTIONS
            elif value is ENTRY_POINT or value is INSTANCE:
                found.changes |= self._in_place
            elif value is not None and not isinstance(value, Inlined | OfFramework):
                return False
            is_known |= value is not None
            around = around.around
        if not is_known and name == self._program:
            found.changes |= self._in_place
        elif not is_known:
            found.changes |= hasattr(builtins, name) and name not in _PURE_BUILTINS
        return is_known or name == self._program or hasattr(builtins, name)

    def _find(self, budget: TextBudget) -> dict[str, list[Effects]]:
        """Return what the functions and classes of the reply do by themselves; those of a class are `.x`, too."""
        if self._definitions is not None:
            return self._definitions
        definitions = self._definitions = defaultdict[str, list[Effects]](list)
        self._all = Effects()
        for node in (part for tree in _trees(self._pieces) for part in ast.walk(tree)):
            budget.take_steps(1)
            match node:
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                    effects = effects_of([node])
                    budget.take_steps(len(effects.names))
                    definitions[name].append(effects)
                    definitions[f".{name}"].append(effects)
                    if not (name.lower().startswith("test") or isinstance(node, ast.ClassDef)):
                        self._all.include(effects)
                case ast.Lambda() | ast.GeneratorExp():
                    self._all.include(effects_of([node]))
                case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                    self._bound.add(name)
                case ast.ExceptHandler(name=str() as name) | ast.MatchAs(name=str() as name):
                    self._bound.add(name)
                case ast.MatchStar(name=str() as name) | ast.MatchMapping(rest=str() as name):
                    self._bound.add(name)
        return definitions


def _trees(pieces: Iterable[Piece]) -> Iterator[ast.AST]:
    for piece in pieces:
        if isinstance(piece, Partial):
            yield piece.head.node
            yield from _trees(piece.body)
        elif isinstance(piece, Statement):
            yield piece.node
