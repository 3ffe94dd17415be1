"""The tests that a coder writes behind its program: asserts, prints and calls that only exercise the definitions.

They are often wrong, and a wrong one would keep a right program from loading. A module-level statement is such a test
if what the definitions compute cannot depend on it: it binds no name that is read elsewhere, and no function that it
names changes anything that outlives the call. There are two exceptions. What a call of the entry point changes, any
test of the program changes, too: so asserts and prints may call it. And a block under `__name__ == "__main__"` does
not run. Whatever is not known to be harmless stays: registrations, tables that are filled, settings of modules.

Models that write tests of their own often write them until their tokens are used up, so that the last one is cut; and
some tests are no Python. Such an end of a program is left out by its lines, since it has no tree.
"""

from __future__ import annotations

import ast
import builtins
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from codea1_env.facts.entry_points import read_entry_point
from codea1_env.python_text import TextBudget, UnreadableError, names_used
from codea1_env.rules.reading.allowed_names import SAFE_BUILTINS, may_be_imported_from
from codea1_env.rules.reading.effects import heads_of
from codea1_env.rules.reading.imports import imports_of
from codea1_env.rules.reading.statements import DEFINITIONS, root_of

_BUILTINS = SAFE_BUILTINS | {"getattr", "hasattr", "hash", "id", "input", "object", "print", "super", "type"}
_STAYS = (*DEFINITIONS, ast.Import, ast.ImportFrom)
_TEST_TOOLS = """
    doctest.testmod pprint.pprint pytest.main pytest.raises time.perf_counter time.time unittest.TestLoader
    unittest.TestSuite unittest.TextTestRunner unittest.makeSuite unittest.main
"""
_RUNS_TESTS = frozenset(_TEST_TOOLS.split())
_CACHES = frozenset({"cache", "lru_cache", "cached_property"})
_MUTABLE = (ast.Call, ast.Dict, ast.DictComp, ast.List, ast.ListComp, ast.Set, ast.SetComp)
_IMMUTABLE = (ast.Constant, ast.Tuple, ast.UnaryOp, ast.unaryop, ast.expr_context)

_STARTS_TEST = r"""
    (?: assert | for | try | while | with | class[ ]+Test\w* | def[ ]+test\w* | if[ ]+__name__ )\b
    | (?: print | {name} | {name}\(\)\.\w+ )[ ]*\(
"""
_GOES_ON = (" ", "\t", "#", ")", "]", "}", "elif", "else", "except", "finally")


def before_broken_test(text: str, entry_point: str, fault_line: int) -> str | None:
    """Return what stands before the test at the end of a text that makes it no Python; None if there is none.

    A test begins in a line without a margin as asserts, prints, calls of the entry point, loops and the like do. Only
    such tests may follow; they go with it.

    Args:
        text: no Python.
        entry_point: the function or method that is tested.
        fault_line: where Python found the fault, from 1.
    """
    starts_test = re.compile(_STARTS_TEST.format(name=re.escape(read_entry_point(entry_point).name)), re.VERBOSE)
    lines = text.split("\n")
    for number, line in reversed([*enumerate(lines)]):
        if starts_test.match(line):
            if number < fault_line:
                return "\n".join(lines[:number])
        elif line and not line.startswith(_GOES_ON):
            break
    return None


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
        tests = [node for node in reversed(tree.body) if search.is_test(node)]
        return [] if any(map(search.shares_a_line, tests)) else tests
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
            renames = renames or (value is not None and names == [self.entry])
            if (isinstance(node, DEFINITIONS) and node.name in self.used) or (renames and len(names) == 1):
                self.own[names[0]] = node
                self.used[names[0]] = self.used[names[0]] if value is None else _loaded(value)
            else:
                for name in names:
                    self.data.setdefault(name, []).append(value or ast.Call(ast.Name("", ast.Load()), [], []))
        for node in ast.walk(self.tree):
            self.imported.update({named.name: named.full_name for named in imports_of(node)})
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

    def shares_a_line(self, node: ast.stmt) -> bool:
        """Whether a statement stands on a line with one that stays."""
        return not self._kept_lines.isdisjoint({node.lineno, node.end_lineno})

    def is_test(self, node: ast.stmt) -> bool:
        """Whether a statement only exercises definitions; asked from the last to the first one."""
        if isinstance(node, _STAYS) or node in self.own.values():
            return False
        try:
            found = not self.shares_a_line(node) and (_is_main_block(node) or self._exercises(node, is_top=True))
        except RecursionError:  # Python 3.13 parses longer chains of `elif` than can be followed
            found = False
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
        names = _loaded(node)
        is_unread = self.read.isdisjoint(_stored(node))
        return is_unread and self._is_harmless_tree(node, names) and self._may_be_called(names, tested)

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
                self._harmless[name] = not _keeps_state(node) and self._is_harmless_tree(node, self.used[name])
            if not self._harmless[name]:
                return False
            tests = name not in self.called and any(isinstance(p, ast.Assert) or _is_print(p) for p in ast.walk(node))
            pending += [(each, tested or tests) for each in self.used[name] & self.own.keys()]
        return True

    def _is_shared(self, name: str) -> bool:
        """Whether a name of the module may stand for something changeable that what stays reads."""
        pending, seen = {name}, set[str]()
        while pending:
            seen |= pending
            changeable = {each for each in pending if not all(map(_is_constant, self.data.get(each, ())))}
            if not changeable.isdisjoint(self.read):
                return True
            pending = {part for each in changeable for value in self.data[each] for part in _loaded(value)} - seen
        return False

    def _is_harmless_tree(self, node: ast.AST, names: set[str]) -> bool:
        """Whether running a tree, which uses names of the module, changes nothing but what is its own."""
        self.budget.take_steps(4 * sum(1 for _ in ast.walk(node)))
        if any(map(self._is_shared, names)):
            return False
        for part in ast.walk(node):
            match part:
                case ast.Global(names=changed) if not self.read.isdisjoint(changed):
                    return False
                case ast.Delete(targets=[ast.Name()]):
                    return False
                case ast.Attribute(ctx=ast.Store() | ast.Del()) | ast.Subscript(ctx=ast.Store() | ast.Del()):
                    if root_of(part) in {"", *self.own, *self.imported}:
                        return False
                case ast.Call(func=function) if not self._may_call(function):
                    return False
        return True

    def _may_call(self, function: ast.expr) -> bool:
        """Whether a call can change nothing but its arguments."""
        root, is_plain = root_of(function), isinstance(function, ast.Name)
        if root in self.own:
            return is_plain or isinstance(self.own[root], ast.ClassDef)
        if root in self.imported:
            name = self.imported[root] + ast.unparse(function).removeprefix(root)
            module, _, member = name.rpartition(".")
            return name in _RUNS_TESTS or may_be_imported_from(module, member) or module == "numpy.testing"
        if root in self.data:
            return not is_plain
        return not hasattr(builtins, root) or root in _BUILTINS  # else it is the tree's own


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


def _loaded(node: ast.AST) -> set[str]:
    """Return the names that must have values for a tree to run."""
    names = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and not isinstance(part.ctx, ast.Store)}
    grown = [part.target for part in ast.walk(node) if isinstance(part, ast.AugAssign)]
    return names | {target.id for target in grown if isinstance(target, ast.Name)}


def _run_at_once(node: ast.stmt) -> list[ast.AST]:
    """Return the parts of a definition that run where it stands."""
    if isinstance(node, ast.Assign | ast.AnnAssign):  # of the entry point
        return [node] if isinstance(node.value, ast.Call) else []
    body = node.body if isinstance(node, ast.ClassDef) else []
    inner = (run for each in body for run in (_run_at_once(each) if isinstance(each, DEFINITIONS) else [each]))
    return [*heads_of(node), *inner]


def _keeps_state(node: ast.stmt) -> bool:
    """Whether a definition holds something that lasts between calls: a cache, a mutable default or member."""
    parts = [part.value if isinstance(part, ast.Assign) else part for part in _run_at_once(node)]
    last = {part.attr if isinstance(part, ast.Attribute) else getattr(part, "id", "") for part in parts}
    return any(isinstance(part, _MUTABLE) for part in parts) or bool(last & _CACHES)


def _is_constant(node: ast.expr) -> bool:
    return all(isinstance(part, _IMMUTABLE) for part in ast.walk(node))


def _is_print(node: ast.AST) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print"


def _is_main_block(node: ast.stmt) -> bool:
    match node:
        case ast.If(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right]), orelse=[]):
            pair = {getattr(left, "id", getattr(left, "value", "")), getattr(right, "id", getattr(right, "value", ""))}
            return pair == {"__name__", "__main__"}
    return False
