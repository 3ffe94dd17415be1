"""Converts the test text of datasets into golden tests.

A snippet of `assert f(..) == literal` lines becomes value cases. A snippet that defines `check(candidate)` is already a
harness. Anything else (test functions, classes, loops) is moved into the body of a function `check(candidate)`, which
binds the entry point's name to the candidate and calls the tests.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from codea1_env.errors import BrokenInput
from codea1_env.facts.entry_points import read_entry_point
from codea1_env.problems.problem import GoldenCase, GoldenHarness, GoldenTest, Problem
from codea1_env.problems.python_source import (
    before_function,
    calls_of,
    functions_of,
    imports_of,
    join_sources,
    literal,
    parse,
    unparse,
)
from codea1_env.python_text import free_names

_SOLUTION_MODULE = "solution"
"""KodCode's tests contain `from solution import f`."""

_BUILTINS = frozenset(dir(builtins))


def read_snippet(
    snippet: str, entry_point: str, what: str = "the test", *, functions: bool = False
) -> tuple[GoldenTest, ...]:
    """Return the golden tests of one snippet: several cases, or one harness.

    With `functions`, asserts with lambdas become cases, too (`CallForms.functions`).

    Raises:
        BrokenInput: it is not Python, tests nothing, or needs fixtures of pytest; the message calls it `what`.
    """
    tree = parse(snippet, what)
    if any(isinstance(node, ast.FunctionDef) and node.name == "check" and node.args.args for node in tree.body):
        return (GoldenHarness(snippet),)
    body = [node for node in tree.body if not _is_left_out(node, entry_point)]
    tests = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom)]
    cases = [_case(snippet, node, entry_point, functions=functions) for node in tests]
    golden = tuple(case for case in cases if case is not None)
    if golden and len(golden) == len(cases):
        return golden
    return (GoldenHarness(_check_function(tree, body, entry_point, what)),)


def read_test(
    test: str, statement: str, entry_point: str, what: str = "column 'test'", *, functions: bool = False
) -> tuple[GoldenTest, ...]:
    """Return the golden tests of one snippet; see `read_snippet`.

    A harness is extended by the statement's imports and helper functions.

    Raises:
        BrokenInput: as `read_snippet`.
    """
    golden = read_snippet(test, entry_point, what, functions=functions)
    before = before_function(statement, entry_point)
    return tuple(
        GoldenHarness(join_sources(before, one.source)) if before and isinstance(one, GoldenHarness) else one
        for one in golden
    )


def with_known_imports(problem: Problem) -> Problem:
    """Return a problem whose golden tests import what they use of what the problem imports.

    Data sets run tests in the namespace of the program, where the imports of the row, of the statement and of the
    solution are known.
    """
    texts = (problem.imports, problem.statement, problem.solution)
    known = {
        alias.asname or alias.name.partition(".")[0]: unparse(type(node)(**{**vars(node), "names": [alias]}))
        for node in parse("\n".join(map(imports_of, texts)), "the imports").body
        if isinstance(node, ast.Import | ast.ImportFrom) and getattr(node, "module", "") != "__future__"
        for alias in node.names
    }
    golden = tuple(_importing(test, known) for test in problem.golden)
    return problem if golden == problem.golden else replace(problem, golden=golden)


def _importing(test: GoldenTest, known: Mapping[str, str]) -> GoldenTest:
    if isinstance(test, GoldenHarness):
        lines = _imports_for(test.source, known)
        return GoldenHarness(join_sources(*lines, test.source)) if lines else test
    lines = _imports_for("\n".join((*test.imports, test.expression, test.expected)), known)
    return replace(test, imports=(*test.imports, *lines)) if lines else test


def _imports_for(source: str, known: Mapping[str, str]) -> list[str]:
    used = free_names(source) & known.keys() if any(name in source for name in known) else set()
    return [known[name] for name in sorted(used)]


def solution_names(tree: ast.Module) -> list[str]:
    """Return the names that a test imports from the solution's module."""
    return [alias.name for alias in _solution_aliases(tree)]


def tested_function(solution: ast.Module, tests: Iterable[ast.Module]) -> str:
    """Return the top-level function of a solution that its tests import or call most.

    Raises:
        BrokenInput: the solution defines no function.
    """
    functions = functions_of(solution)
    if not functions:
        raise BrokenInput("the solution defines no top-level function")
    votes = dict.fromkeys(functions, 0)
    for test in tests:
        for name in [*solution_names(test), *calls_of(test).elements()]:
            if name in votes:
                votes[name] += 1
    # Of equal counts the last function, which usually uses the others.
    return max(reversed(votes), key=votes.__getitem__)


def _case(snippet: str, node: ast.stmt, entry_point: str, *, functions: bool) -> GoldenCase | None:
    match node:
        case ast.Assert(test=ast.Compare(left=left, ops=[ast.Eq()], comparators=[right])):
            names = {part.id for part in ast.walk(left) if isinstance(part, ast.Name)}
            if functions:
                names -= {part.arg for part in ast.walk(left) if isinstance(part, ast.arg)}
            if (
                calls_of(left)[entry_point]
                and literal(right)
                and names <= {read_entry_point(entry_point).name} | _BUILTINS
            ):
                expression, expected = (ast.get_source_segment(snippet, part) or "" for part in (left, right))
                return GoldenCase(_one_line(expression), _one_line(expected))
    return None


def _one_line(source: str) -> str:
    # An expression of several lines needs the parentheses that were around it.
    return source if "\n" not in source else unparse(parse(f"({source})", "a test").body[0])


def _solution_aliases(tree: ast.Module) -> list[ast.alias]:
    imports = (node for node in tree.body if isinstance(node, ast.ImportFrom) and node.module == _SOLUTION_MODULE)
    return [alias for node in imports for alias in node.names]


def _is_left_out(node: ast.stmt, entry_point: str) -> bool:
    """Return whether a statement imports the solution, copies it, or runs only in a script."""
    match node:
        case ast.ImportFrom(module=module):
            return module == _SOLUTION_MODULE
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return name == read_entry_point(entry_point).name  # a test with its own copy would test that copy
        case ast.If(test=ast.Compare(left=ast.Name(id="__name__"))):
            return True
    return False


def _check_function(tree: ast.Module, body: Sequence[ast.stmt], entry_point: str, what: str) -> str:
    imports = [node for node in body if isinstance(node, ast.Import | ast.ImportFrom)]
    rest = [node for node in body if not isinstance(node, ast.Import | ast.ImportFrom)]
    if compared := next(
        (node for node in rest if isinstance(node, ast.Expr) and isinstance(node.value, ast.Compare)), None
    ):
        raise BrokenInput(f"{what} compares and does not assert: expected 'assert {unparse(compared)}'")
    calls = list(_test_calls(rest, what))
    if not calls and not any(_does_something(node) for node in rest):
        raise BrokenInput(f"{what} tests nothing")
    defined, method = read_entry_point(entry_point)
    names = {alias.asname or alias.name for alias in _solution_aliases(tree) if alias.name == defined}
    value = f"type({defined!r}, (), {{{method!r}: staticmethod(candidate)}})" if method else "candidate"
    binding = parse("\n".join(f"{name} = {value}" for name in sorted(names | {defined})), what).body
    check = parse("def check(candidate): pass", what).body[0]
    assert isinstance(check, ast.FunctionDef)
    check.body = [*binding, *rest, *parse("\n".join(calls), what).body]
    return unparse(ast.Module([*imports, check], []))


def _does_something(node: ast.stmt) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    return any(isinstance(part, ast.Assert | ast.Call | ast.Raise) for part in ast.walk(node))


def _test_calls(body: Sequence[ast.stmt], what: str) -> Iterator[str]:
    for node in body:
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test"):
            _refuse_arguments(node, 0, what)
            yield f"{node.name}()"
        elif isinstance(node, ast.ClassDef) and (node.name.startswith("Test") or _is_unittest(node)):
            yield from _method_calls(node, what)


def _is_unittest(node: ast.ClassDef) -> bool:
    return any("TestCase" in unparse(base) for base in node.bases)


def _method_calls(node: ast.ClassDef, what: str) -> Iterator[str]:
    methods = {part.name: part for part in node.body if isinstance(part, ast.FunctionDef)}
    for name, method in methods.items():
        if not name.startswith("test"):
            continue
        _refuse_arguments(method, 1, what)
        if _is_unittest(node):
            yield f"{node.name}({name!r}).debug()"
        else:
            yield f"_tests = {node.name}()"
            if "setup_method" in methods:
                yield f"_tests.setup_method({'None' if len(methods['setup_method'].args.args) > 1 else ''})"
            yield f"_tests.{name}()"


def _refuse_arguments(function: ast.FunctionDef, n_given: int, what: str) -> None:
    arguments = function.args
    required = len(arguments.posonlyargs) + len(arguments.args) - len(arguments.defaults) - n_given
    if required > 0 or any(default is None for default in arguments.kw_defaults):
        raise BrokenInput(f"{what}: {function.name} needs arguments, which only pytest could give")
