"""Measures which lines and branches of a trusted solution tests reach, inside the sandbox.

The solution is instrumented: it gets a call before every statement, and a call around every condition and every
iterable of a `for`. So the measure does not depend on the Python version, and costs less than tracing. A last call of
the entry point with a reserved argument returns what was reached. This suits trusted programs only: any other program
could forge the report.

Definitions, after coverage.py (whose figures UnLeakedTestBench reports): a line is one on which a statement or a
decorator starts, except docstrings, `global`, `nonlocal` and `from __future__`. Lines that loading reaches count as
reached. A branch is one way out of an `if`, a `while` or a `for`, or the way into a `case`; a constant condition has no
branches. Unlike coverage.py, the lines of `except` and `case` themselves do not count. Neither counts conditional
expressions as branches.
"""

from __future__ import annotations

import ast
import json
from dataclasses import dataclass

from codea1_agents.scripted.mutation import is_documented
from codea1_env import values
from codea1_env.facts.entry_points import definition, read_entry_point
from codea1_env.facts.verdicts import Outcome, OutcomeKind

_REPORT_ARGUMENT = "codea1: what was reached?"
_LINE, _BRANCH, _ITEMS = "__codea1_line__", "__codea1_branch__", "__codea1_items__"

_PROGRAM = """
def _make():
    import json

    lines, branches = set(), set()

    def line(number):
        lines.add(number)

    def branch(number, value):
        value = bool(value)
        branches.add(2 * number + value)
        return value

    def items(number, iterable):
        for item in iterable:
            branches.add(2 * number + 1)
            yield item
        branches.add(2 * number)

    def report():
        return json.dumps([sorted(lines), sorted(branches)])

    return {{"__name__": {module!r}, {line!r}: line, {branch!r}: branch, {items!r}: items}}, report


def _run():
    exec(compile({preamble!r}, "<imports>", "exec"), _space)
    exec(compile({source!r}, "<solution>", "exec"), _space)


def _is_report(arguments):
    return len(arguments) == 1 and type(arguments[0]) is str and arguments[0] == {word!r}


_space, _report = _make()
"""
_DEFINED = """
_run()


{defined}
"""
_ANSWER = "    return _report() if _is_report(arguments) else {target}(*arguments, **named)"
_SCRIPT = """
import io
import sys


def {name}(*texts, **named):
    texts = [*texts, *named.values()]
    if _is_report(texts):
        return _report()
    {receives}
    sys.stdout = io.TextIOWrapper(io.BytesIO())
    _space["exit"] = _space["quit"] = sys.exit
    try:
        _run()
    except SystemExit:
        pass
"""


@dataclass(frozen=True, slots=True)
class Coverage:
    """Sets of lines and branches, by number."""

    lines: frozenset[int] = frozenset()
    branches: frozenset[int] = frozenset()

    def __or__(self, other: Coverage) -> Coverage:
        return Coverage(self.lines | other.lines, self.branches | other.branches)


@dataclass(frozen=True, slots=True)
class Instrumented:
    """A solution that records what it executes."""

    program: str
    report_call: str
    """The call that returns what was reached in this process so far; `read_coverage` reads its outcome."""
    all: Coverage
    """All lines and branches of the solution."""


def instrumented(source: str, entry_point: str, preamble: str = "", *, receives: str = "") -> Instrumented:
    """Return the instrumented solution. It behaves as before, but its source differs and calls are one level deeper.

    Args:
        source: the trusted program.
        entry_point: its function or method.
        preamble: import statements that run before it.
        receives: see `Programs`. If given, the instrumented program runs again for each call, within one process, and
            returns nothing.

    Raises:
        SyntaxError: the program is not Python.
    """
    tree = ast.parse(source)
    instrumenter = _Instrumenter()
    instrumenter.body(tree)
    name, method = read_entry_point(entry_point)
    answer = _ANSWER.format(target=f"_space[{name!r}]().{method}" if method else f"_space[{name!r}]")
    program = (_PROGRAM + (_SCRIPT if receives else _DEFINED)).format(
        line=_LINE,
        branch=_BRANCH,
        items=_ITEMS,
        preamble=preamble,
        source=ast.unparse(ast.fix_missing_locations(tree)),
        module="__main__" if receives else "program",
        name=name,
        defined=definition(entry_point, "*arguments, **named", answer),
        word=_REPORT_ARGUMENT,
        receives=receives,
    )
    return Instrumented(
        program,
        f"{entry_point}({_REPORT_ARGUMENT!r})",
        Coverage(frozenset(instrumenter.lines), frozenset(instrumenter.branches)),
    )


def read_coverage(outcome: Outcome) -> Coverage | None:
    """Return what was reached, from the outcome of `Instrumented.report_call`; None if the call gave no value."""
    if outcome.kind is not OutcomeKind.VALUE or outcome.value is None:
        return None
    written = values.to_source(outcome.value)
    if written is None:
        return None
    lines, branches = json.loads(ast.literal_eval(written.expression))
    return Coverage(frozenset(lines), frozenset(branches))


class _Instrumenter:
    """Instruments a tree in place."""

    def __init__(self) -> None:
        self.lines: set[int] = set()
        self.branches: set[int] = set()
        self._n_places = 0

    def body(self, node: ast.AST) -> None:
        """Instrument the statements below a node."""
        for field, held in ast.iter_fields(node):
            if isinstance(held, list) and held and isinstance(held[0], ast.stmt):
                documented = field == "body" and is_documented(node)
                setattr(node, field, self._statements(held, documented))
            elif isinstance(held, list):
                for item in held:
                    if isinstance(item, ast.excepthandler):
                        self.body(item)
                    elif isinstance(item, ast.match_case):
                        self._case(item)

    def _statements(self, statements: list[ast.stmt], documented: bool) -> list[ast.stmt]:
        written: list[ast.stmt] = []
        for position, statement in enumerate(statements):
            if not (documented and position == 0) and not _is_declaration(statement):
                lines = [each.lineno for each in (*getattr(statement, "decorator_list", ()), statement)]
                self.lines.update(lines)
                written += [ast.Expr(_call(_LINE, ast.Constant(line))) for line in lines]
            self._conditions(statement)
            self.body(statement)
            written.append(statement)
        return written

    def _conditions(self, statement: ast.stmt) -> None:
        match statement:
            case ast.If(test=test) | ast.While(test=test) if not isinstance(test, ast.Constant):
                statement.test = _call(_BRANCH, self._new_place(both=True), test)
            case ast.For(iter=iterable):
                statement.iter = _call(_ITEMS, self._new_place(both=True), iterable)

    def _case(self, case: ast.match_case) -> None:
        place = self._new_place(both=False)
        self.body(case)
        case.body.insert(0, ast.Expr(_call(_BRANCH, place, ast.Constant(True))))

    def _new_place(self, *, both: bool) -> ast.Constant:
        number = self._n_places
        self._n_places += 1
        self.branches |= {2 * number, 2 * number + 1} if both else {2 * number + 1}
        return ast.Constant(number)


def _call(name: str, *arguments: ast.expr) -> ast.Call:
    return ast.Call(ast.Name(name, ast.Load()), list(arguments), [])


def _is_declaration(statement: ast.stmt) -> bool:
    match statement:
        case ast.Global() | ast.Nonlocal():
            return True
        case ast.ImportFrom(module="__future__"):
            return True
    return False
