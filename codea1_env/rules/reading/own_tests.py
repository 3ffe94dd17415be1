"""The tests that a coder writes behind its program: asserts, prints and calls that only exercise the definitions.

They are often wrong, and a wrong one would keep a right program from loading. A module-level statement is such a test
if what the definitions compute cannot depend on it: it binds no name that is read elsewhere, and no function that it
names changes anything that outlives the call. There are two exceptions. What a call of the entry point changes, any
test of the program changes, too: so asserts and prints may call it. And a block under `__name__ == "__main__"` does
not run. Whatever is not known to be harmless stays: registrations, tables that are filled, settings of modules.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from codea1_env.facts.entry_points import read_entry_point
from codea1_env.python_text import TextBudget, UnreadableError, names_used
from codea1_env.rules.reading.allowed_names import SAFE_BUILTINS, may_be_imported_from
from codea1_env.rules.reading.statements import DEFINITIONS

_BUILTINS = SAFE_BUILTINS | {"getattr", "hasattr", "hash", "id", "input", "object", "print", "super", "type"}
_STAYS = (*DEFINITIONS, ast.Import, ast.ImportFrom)
_READING_METHODS = frozenset(
    (*dir(str), *dir(bytes), *dir(tuple), *dir(frozenset), "copy", "get", "items", "keys", "values")
)
_TEST_TOOLS = """
    doctest.testmod pprint.pprint pytest.main time.perf_counter time.time unittest.TestLoader unittest.TestSuite
    unittest.TextTestRunner unittest.makeSuite unittest.main
"""
_RUNS_TESTS = frozenset(_TEST_TOOLS.split())
_CHANGERS = "heapify heappop heappush heappushpop heapreplace insort insort_left insort_right next"
_CHANGE_ARGUMENTS = frozenset(_CHANGERS.split())
_MOST_STEPS = 3  # from a shared object over names to the name of a part of it
_CACHES = frozenset({"cache", "lru_cache", "cached_property"})
_MUTABLE = (ast.Call, ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp)


def find_own_tests(program: str, tree: ast.Module, entry_point: str, budget: TextBudget) -> list[ast.stmt]:
    """Return the module-level statements of a program that only exercise what it defines.

    Args:
        program: Python.
        tree: of the program, which defines the entry point.
        entry_point: the function or method that is tested.
        budget: pays for the search; beyond it, nothing is a test.
    """
    if all(isinstance(node, (*_STAYS, ast.Assign, ast.AnnAssign)) for node in tree.body):  # most programs
        return []
    try:
        budget.take_steps(8 * sum(1 for _ in ast.walk(tree)))
        search = _Search(tree, read_entry_point(entry_point).name, names_used(program), budget)
        return [node for node in reversed(tree.body) if search.is_test(node)]
    except UnreadableError:
        return []


def without_statements(text: str, nodes: Iterable[ast.stmt]) -> str:
    """Return a program without the lines of statements."""
    lines: list[str | None] = [*text.split("\n")]
    for node in nodes:
        lines[node.lineno - 1 : node.end_lineno] = [None] * ((node.end_lineno or node.lineno) - node.lineno + 1)
    return "\n".join(line for line in lines if line is not None)


@dataclass(slots=True)
class _Search:
    tree: ast.Module
    entry: str
    used: dict[str, set[str]]
    """The names of the module that each function and class of it uses."""
    budget: TextBudget
    own: dict[str, ast.stmt] = field(default_factory=dict)
    """The functions and classes of the program."""
    data: dict[str, list[ast.expr]] = field(default_factory=dict)
    """What is assigned to the other names of the module."""
    imported: dict[str, str] = field(default_factory=dict)
    called: set[str] = field(default_factory=set)
    """The functions that a call of the entry point may reach."""
    read: set[str] = field(default_factory=set)
    """The names that these read, or something else that stays."""
    _kept_lines: set[int] = field(default_factory=set)
    _harmless: dict[str, bool] = field(default_factory=dict)

    def __post_init__(self) -> None:
        node: ast.AST
        for node in self.tree.body:
            value = node.value if isinstance(node, ast.Assign | ast.AnnAssign) else None
            names = list(_stored(node))
            renames = isinstance(value, ast.Lambda) or (isinstance(value, ast.Name) and value.id in self.own)
            if (isinstance(node, DEFINITIONS) and node.name in self.used) or (renames and len(names) == 1):
                self.own[names[0]] = node
                self.used[names[0]] = self.used[names[0]] if value is None else _loaded(value)
            else:
                for name in names:
                    self.data.setdefault(name, []).append(value or ast.Call(ast.Name("", ast.Load()), [], []))
        for node in ast.walk(self.tree):
            if isinstance(node, ast.Import | ast.ImportFrom):
                module = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
                for alias in node.names:
                    name = alias.name if alias.asname or module else alias.name.partition(".")[0]
                    self.imported[alias.asname or name] = module + name
        self._reach({self.entry})
        self.called = self.read & self.own.keys()
        for node in self.tree.body:
            if isinstance(node, _STAYS) or node in self.own.values():
                self._keep(node, _run_at_once(node))

    def _reach(self, names: set[str]) -> None:
        while names := names - self.read:
            self.read |= names
            names = {each for name in names & self.own.keys() for each in self.used[name]}

    def _keep(self, node: ast.stmt, run: Iterable[ast.AST]) -> None:
        self._kept_lines |= {node.lineno, node.end_lineno or node.lineno}
        self._reach({name for part in run for name in _loaded(part)})
        self._harmless.clear()

    def is_test(self, node: ast.stmt) -> bool:
        """Whether a statement only exercises definitions; asked from the last to the first one."""
        if isinstance(node, _STAYS) or node in self.own.values():
            return False
        is_alone = not self._kept_lines & {node.lineno, node.end_lineno}
        found = is_alone and (_is_main_block(node) or self._exercises(node, is_top=True))
        if not found:
            self._keep(node, [node])
        return found

    def _exercises(self, node: ast.stmt, *, is_top: bool = False) -> bool:
        match node:
            case ast.Assert():
                return self._is_harmless_here(node, tested=True)
            case ast.Expr(value=value):
                says_something = any(isinstance(part, ast.Call | ast.Compare) for part in ast.walk(value))
                return (says_something or not is_top) and self._is_harmless_here(value, tested=_is_print(value))
            case ast.Assign() | ast.AnnAssign() | ast.AugAssign():
                of_a_test = not is_top or not _loaded(node).isdisjoint({*self.own, "input"})
                return of_a_test and self._is_harmless_here(node, tested=False)
            case ast.For() | ast.If() | ast.Try() | ast.With():
                inner = [
                    part
                    for child in ast.iter_child_nodes(node)
                    for part in (child.body if isinstance(child, ast.ExceptHandler) else [child])
                ]
                return all(
                    self._exercises(part) if isinstance(part, ast.stmt) else self._is_harmless_here(part, tested=True)
                    for part in inner
                )
        return not is_top and isinstance(node, ast.Pass | ast.Break | ast.Continue | ast.Raise)

    def _is_harmless_here(self, node: ast.AST, *, tested: bool) -> bool:
        bound = set(_stored(node))
        is_harmless = bound.isdisjoint(self.read) and _is_harmless(node, bound, self)
        return is_harmless and self._may_be_called(_loaded(node), tested)

    def _may_be_called(self, names: set[str], tested: bool) -> bool:
        """Whether calls of functions change nothing that outlives them, or only what tests of the program change."""
        pending, seen = [(name, tested) for name in names & self.own.keys()], set()
        while pending:
            name, tested = call = pending.pop()
            if call in seen or (tested and name in self.called):
                continue
            seen.add(call)
            node = self.own[name]
            if name not in self._harmless:
                self._harmless[name] = not _keeps_state(node) and _is_harmless(node, _bound(node), self)
            if not self._harmless[name]:
                return False
            tests = name not in self.called and any(isinstance(p, ast.Assert) or _is_print(p) for p in ast.walk(node))
            pending += [(each, tested or tests) for each in self.used[name] & self.own.keys()]
        return True

    def is_shared(self, name: str) -> bool:
        """Whether a name of the module may stand for something changeable that what stays reads."""
        pending, seen = {name}, set[str]()
        while pending:
            seen |= pending
            changeable = {each for each in pending if not all(map(_is_constant, self.data.get(each, ())))}
            if not changeable.isdisjoint(self.read):
                return True
            pending = {part for each in changeable for value in self.data[each] for part in _loaded(value)} - seen
        return False

    def is_instance(self, name: str) -> bool:
        """Whether a name that nothing else reads stands for an object of a class of the program."""
        values = self.data.get(name, [])
        return name not in self.read and all(
            isinstance(value, ast.Call) and isinstance(value.func, ast.Name) and value.func.id in self.own
            for value in values
        )


def _is_harmless(node: ast.AST, bound: set[str], search: _Search) -> bool:
    """Whether running a tree changes nothing but what its own names stand for; the functions it names are not seen."""
    search.budget.take_steps(8 * sum(1 for _ in ast.walk(node)))
    bound = bound - search.imported.keys()
    shared = _shared(node, bound, search)
    for part in ast.walk(node):
        match part:
            case ast.Global() | ast.Delete(targets=[ast.Name()]):
                return False
            case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                if _root_name(part) not in bound - shared:
                    return False
            case ast.AugAssign(target=ast.Name(id=name)) if name in shared:
                return False
            case ast.Call(func=function, args=args, keywords=keywords):
                given = [*args, *(keyword.value for keyword in keywords)]
                is_given = any(_root_name(each) in shared for each in given)
                if not _may_call(function, bound - shared, is_given, search):
                    return False
    return True


def _shared(node: ast.AST, bound: set[str], search: _Search) -> set[str]:
    """Return the names in a tree that may stand for what other parts of the program read, or for a part of that."""
    shared = {name for name in _loaded(node) - bound if search.is_shared(name)}
    for _ in range(_MOST_STEPS if shared else 0):
        for part in ast.walk(node):
            if any(_loaded(value) & shared for value in _values(part)):
                shared |= set(_stored(part)) & bound
    return shared


def _may_call(function: ast.expr, own: set[str], is_given: bool, search: _Search) -> bool:
    """Whether a call changes nothing that is shared; `is_given`: whether it gets something that is."""
    name, root = _full_name(function, search), _root_name(function)
    module, _, last = name.rpartition(".")
    is_plain = isinstance(function, ast.Name)
    if is_given and (last in _CHANGE_ARGUMENTS or name in search.own or (is_plain and root in own)):
        return False
    if root in search.own:
        return is_plain or isinstance(search.own[root], ast.ClassDef)
    if root in search.imported:
        return name in _RUNS_TESTS or may_be_imported_from(module, last) or module == "numpy.testing"
    if root in search.data and root not in own:
        return not is_plain and (last in _READING_METHODS or search.is_instance(root))
    if root or last in _READING_METHODS:
        return root in own or root in _BUILTINS or not root
    return not isinstance(search.own.get(_maker(function)), ast.FunctionDef)


def _maker(function: ast.expr) -> str:
    """Return the function whose result a method is called on; empty if it is something else."""
    node = _root(function)
    return _root_name(node.func) if isinstance(node, ast.Call) else ""


def _full_name(node: ast.expr, search: _Search) -> str:
    match node:
        case ast.Name(id=name):
            return search.imported.get(name, name)
        case ast.Attribute(value=value, attr=name):
            return f"{_full_name(value, search)}.{name}"
    return ""


def _root_name(node: ast.AST) -> str:
    root = _root(node)
    return root.id if isinstance(root, ast.Name) else ""


def _root(node: ast.AST) -> ast.AST:
    while isinstance(node, ast.Attribute | ast.Subscript | ast.Starred):
        node = node.value
    return node


def _values(part: ast.AST) -> list[ast.expr]:
    """Return what a node binds names to."""
    if isinstance(part, ast.Assign | ast.AnnAssign | ast.NamedExpr):
        return [part.value] if part.value else []
    if isinstance(part, ast.For | ast.AsyncFor | ast.comprehension):
        return [part.iter]
    return [part.context_expr] if isinstance(part, ast.withitem) else []


def _stored(node: ast.AST) -> Iterator[str]:
    """Yield the names that a tree binds, without those that functions and classes within it bind for themselves."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load):
            yield part.id
        elif isinstance(part, ast.ExceptHandler) and part.name:
            yield part.name
        if isinstance(part, DEFINITIONS):
            yield part.name
        else:
            pending += ast.iter_child_nodes(part)


def _bound(node: ast.AST) -> set[str]:
    """Return all names that are bound within a definition, by those within it, too."""
    inner = [part for part in ast.walk(node) if part is not node]
    names = {part.arg for part in inner if isinstance(part, ast.arg)}
    names |= {part.id for part in inner if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Load)}
    return names | {part.name for part in inner if isinstance(part, (*DEFINITIONS, ast.ExceptHandler)) and part.name}


def _loaded(node: ast.AST) -> set[str]:
    return {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)}


def _run_at_once(node: ast.stmt) -> list[ast.AST]:
    """Return the parts of a definition that run where it stands."""
    parts: list[ast.AST] = [*getattr(node, "decorator_list", ()), *getattr(node, "bases", ())]
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [*parts, *node.args.defaults, *(each for each in node.args.kw_defaults if each)]
    body = node.body if isinstance(node, ast.ClassDef) else []
    return [
        *parts,
        *(run for each in body for run in (_run_at_once(each) if isinstance(each, DEFINITIONS) else [each])),
    ]


def _keeps_state(node: ast.stmt) -> bool:
    """Whether a definition holds something that lasts between calls: a cache, a mutable default or member."""
    parts = [part.value if isinstance(part, ast.Assign) else part for part in _run_at_once(node)]
    last = {part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "") for part in parts}
    return any(isinstance(part, _MUTABLE) for part in parts) or bool(last & _CACHES)


def _is_constant(node: ast.expr) -> bool:
    return all(
        isinstance(part, ast.Constant | ast.Tuple | ast.UnaryOp | ast.unaryop | ast.expr_context)
        for part in ast.walk(node)
    )


def _is_print(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


def _is_main_block(node: ast.stmt) -> bool:
    match node:
        case ast.If(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]), orelse=[]):
            pair = {getattr(left, "id", getattr(left, "value", "")), getattr(right, "id", getattr(right, "value", ""))}
            return pair == {"__name__", "__main__"}
    return False
