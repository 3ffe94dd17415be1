"""The strict reading of a tester's reply: from Python text to test cases, with a reason for every dropped piece.

These statements are read, in the order of the reply:

- `assert E == P` or `assert P == E` where exactly one side calls the entry point: expression E, prediction P.
  `E is None`, `E is True` and `E is False` count as `==`, since values cross processes as plain data. Equalities that
  are wrapped or negated twice count too (`frameworks`).
- any other assert whose condition calls the entry point: expression `bool(condition)`, prediction `True`.
- `name = value`, even if chained, annotated, or pairwise for displays (`a, b = 1, 2`): later asserts get the expression
  in place of the name. Reading executes nothing. If something that is not read may have changed a name's value
  (`x.append(1)`), an assert that needs the name is dropped too (`effects`).
- imports of pure modules; a case carries the imports that it needs. An import of the entry point itself has no effect.
- asserts in functions and in methods, after all statements around them: a function sees the names of the module as they
  are then, not those of its class. What `setUp` and its like assign to `self` is known in each test. A function without
  parameters that is called is read at its first call.
- functions with tables (`parametrize`) and loops over literal tables: once for each row (`tables`).
- calls of functions that the file defines, with their arguments in place of the parameters; `check(candidate)` is read
  even if nothing calls it. Parameters that are fixtures stand for what the fixture returns.
- assert methods of unittest and functions of `numpy.testing` (`frameworks`). `pytest.approx` is a property of the call.
- what a `try` runs whose handlers only report a failure.
- what expects an exception: `raises(Class, f, ...)` with the prediction True, in the forms of pytest and of unittest
  and as `try` and `except`. Only built-in classes that not every fault raises.
- an assert without a call, about an argument of an earlier call: the argument as it is after the call (`in_place`).

An assert that may hold whatever the entry point returns is dropped (`dependence`). What is not read is dropped with a
reason that does not count as an invalid test.

A call of the entry point is a call by its name, or by a name that stands for it: `f(1)`, not `map(f, xs)`. A module
that is neither Python's nor a tool's is the program: `solution.f(1)` is `f(1)`. Asserts under `if` and `while` and in
async functions are not read (NOT_AN_ASSERT), because their meaning depends on running the file.

If the entry point works in place (`CallForms.in_place`), a statement that calls it is read, too: later asserts get the
argument as it is after the call (`in_place`).
"""

from __future__ import annotations

import ast
import itertools
import math
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from operator import attrgetter, itemgetter
from types import EllipsisType
from typing import TypeVar

from codea1_env.facts.call_forms import PLAIN_CALLS, CallForms
from codea1_env.facts.entry_points import read_entry_point
from codea1_env.facts.submissions import COUNTED_AS_INVALID, RejectionReason, Rejections, TestCase
from codea1_env.python_text import MAX_DEPTH, TextBudget, UnreadableError, parse, write
from codea1_env.rules.reading.allowed_names import DRAWN, SAFE_BUILTINS, is_importable, may_be_imported_from
from codea1_env.rules.reading.dependence import vacuity_reason
from codea1_env.rules.reading.direct_calls import (
    calls_of,
    direct_calls_in,
    encoded_prediction,
    is_call_of,
    is_direct,
    plain_call,
    raised_call,
    read_plain_case,
)
from codea1_env.rules.reading.effects import Code, Effects, arguments_of, defaults_of, effects_of, heads_of, places_of
from codea1_env.rules.reading.frameworks import (
    RAISES,
    Decorations,
    Raising,
    Table,
    class_names,
    condition_of,
    decorations,
    ends_test,
    folded,
    is_built_in,
    may_end_test,
    plain_claim,
    raising_call,
    raising_try,
    raising_with,
    reporting_try,
    sides_of_equality,
    unpacked,
    without_true,
)
from codea1_env.rules.reading.function_calls import is_closed_call
from codea1_env.rules.reading.in_place import apply_calls
from codea1_env.rules.reading.inlining import inline_names
from codea1_env.rules.reading.scopes import (
    ENTRY_POINT,
    INSTANCE,
    RECEIVERS,
    AliasGroup,
    Helper,
    Imported,
    Inlined,
    OfFramework,
    PartlyUsable,
    Scope,
    Unread,
    Unusable,
)
from codea1_env.rules.reading.statements import (
    DEFINITIONS,
    MAX_NESTING,
    Broken,
    Partial,
    Piece,
    Places,
    Statement,
    nodes_in,
    parsed,
    root_of,
    with_operands_before,
)
from codea1_env.rules.reading.tables import NO_TABLE, Row, Tables, Value, bind_row, names_of_table, value_of

_RowT = TypeVar("_RowT")

_OTHER_MODULES = sys.stdlib_module_names | {"hypothesis", "numpy", "pandas", "parameterized", "pytest", "scipy"}
_SETUPS = ("setUpClass", "setup_class", "setUp", "setup_method", "setup")
_FRAMEWORKS = ("pytest", "unittest", "parameterized", "numpy.testing")
_BINDING = (ast.For, ast.With, ast.Delete)
_AROUND_TESTS = ("setup", "teardown")
_SETUPS_FIRST, _TESTS, _LAST = range(3)  # in which order functions are read after the statements around them
_STEPS_OF_ROW, _STEPS_OF_NODE = 40, 8  # what reading a body once more costs before anything is written
_DECLARES = re.compile(r"\b(?:global|nonlocal)\b")
_MAY_RUN = re.compile(r"[\w)\]\"'](?<!\bparam)\s*\(|:=")  # a call in a text, or a binding; literals may hold it, too
_WITH_PARAMETERS = "a function with parameters that nothing gives"
_UNUSED = "a call whose result is not used"
_AFTER_A_CALL = "depends on what a call does to its argument"
_NO_EXCEPTIONS = "exceptions are not tests under these rules"


@dataclass(slots=True)
class _Before:
    """What comes before an assert in its body, to be read again should it test what a call does to its argument."""

    scope: Scope
    """As the body begins; then as after the first `n_read` pieces, if calls change their arguments."""
    pieces: list[Statement] = field(default_factory=list)
    n_until_assigned: int = 0
    """The number of pieces up to the last assignment."""
    n_read: int = 0
    given: set[str] = field(default_factory=set)
    """The arguments of the calls in all pieces, as text."""

    def add(self, piece: Statement) -> None:
        self.pieces.append(piece)
        value = getattr(piece.node, "value", None)
        self.given |= {*map(_reference, value.args)} - {""} if isinstance(value, ast.Call) else set()
        if isinstance(piece.node, ast.Assign | ast.AnnAssign):
            self.n_until_assigned = len(self.pieces)


@dataclass(slots=True)
class SuiteReader:
    """Collects cases and rejections from statements, in their order."""

    entry_point: str
    max_cases: int | None = None
    budget: TextBudget = field(default_factory=TextBudget)
    """What the reply may still spend. Inlined names are charged to it, so that a short reply cannot become a huge
    suite."""
    prose_is_broken: bool = True
    """Whether text that is neither Python nor an assert is a SYNTAX_ERROR (in a block) or prose."""
    forms: CallForms = PLAIN_CALLS
    """What tests of the problem may do besides plain calls."""
    exceptions: bool = True
    """Whether a test may expect an exception."""
    imports: str = ""
    """Import statements of the problem, whose names tests may use as if they had imported them."""
    places: Places | None = None
    """Where what is read stands in the reply; None if it comes from none."""
    cases: list[TestCase] = field(default_factory=list)
    rejections: Rejections = field(default_factory=Rejections)
    scope: Scope = field(init=False)
    defined_name: str = field(init=False)
    """The function or the class that the program must define."""
    code: Code = field(init=False)
    """All functions that are read; what they may change."""
    _late: list[tuple[int, Callable[[], None]]] = field(default_factory=list)
    """What is read after the statements of the module or of a function, with its place in their order."""
    _read: set[int] = field(default_factory=set)
    """The functions that have been read without arguments."""
    _uncalled: dict[int, Helper] = field(default_factory=dict)
    _modules: set[str] = field(default_factory=set)
    """The names of modules that can only be the program's."""
    _called: set[str] = field(default_factory=set)
    """Those of them whose entry point is called."""
    _shared: dict[int, Value] = field(default_factory=dict)
    """The values of fixtures that several tests share."""
    _before: _Before | None = None
    _n_rows: int = 0
    """How many bodies are being read for a row each."""

    def __post_init__(self) -> None:
        self.defined_name = read_entry_point(self.entry_point).name
        known = _known_names(self.imports) if self.imports else {}
        self.scope = Scope(self.entry_point, {**known}, self.forms.functions, self.budget)
        self.scope.names.pop(self.defined_name, None)
        self.code = Code(self.entry_point, in_place=self.forms.in_place)

    def read(self, pieces: Iterable[Piece]) -> None:
        """Add the cases of `pieces`; the names that they bind stay bound for the next call."""
        pieces = list(pieces)
        self._modules |= {name for node in _nested(pieces) for name in _modules_of(node)}
        if self._modules:
            self._call_members(nodes_in(*parsed(pieces)))
        self.code.add(pieces)
        self._body(pieces, self.scope, 0)

    def finish(self) -> None:
        """Read the functions, and `check(candidate)` though nothing has called it; drop others that nothing calls."""
        self._read_late()
        self.cases.sort(key=attrgetter("line"))  # functions have been read after what follows them
        for helper in list(self._uncalled.values()):
            names = _parameters(helper.head.node)
            if len(names) == 1 and (_name_of(helper.head.node) == "check" or names == ["candidate"]):
                self._run(helper, {names[0]: ENTRY_POINT}, self.scope, 0)
            else:
                self.reject(
                    RejectionReason.NOT_AN_ASSERT,
                    helper.head.text,
                    helper.head.line,
                    _WITH_PARAMETERS,
                )
        self._uncalled.clear()

    def reject(self, reason: RejectionReason, source: str, line: int, detail: str, n: int = 1) -> None:
        """Add `n` equal dropped pieces."""
        is_attempt = self.places is not None and line and reason in COUNTED_AS_INVALID
        written = self.places.lines(line, 1 + source.strip().count("\n")) if self.places and is_attempt else None
        self.rejections.add(reason, source, line, detail, n, written)

    def _call_members(self, nodes: Sequence[ast.AST]) -> None:
        """Replace `module.f` by `f` in a tree, for modules that are the program's and names that are nothing else."""
        stored = {node.id for node in nodes if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load)}
        modules = self._modules - stored - {node.arg for node in nodes if isinstance(node, ast.arg)}

        def plain(part: ast.AST) -> ast.AST:
            root = root_of(part)
            if not (isinstance(part, ast.Attribute) and part.attr == self.defined_name and root in modules):
                return part
            self._called.add(root)
            return ast.copy_location(ast.Name(part.attr, part.ctx), part)

        for node in nodes:
            vars(node).pop("effects", None)  # as they were before
            for name, held in ast.iter_fields(node):
                if isinstance(held, list):
                    held[:] = map(plain, held)
                elif isinstance(held, ast.Attribute):
                    setattr(node, name, plain(held))

    # -- statements --

    def _whole(self, pieces: Iterable[Piece], scope: Scope, nesting: int) -> None:
        """Read the body of a function: its statements, then the functions in it that nothing has called."""
        around, self._late = self._late, []
        self._body(pieces, scope, nesting)
        self._read_late()
        self._late = around

    def _read_late(self) -> None:
        for _, read in sorted(self._late, key=itemgetter(0)):
            read()
        self._late.clear()

    def _apply(self, parts: Iterable[ast.AST], scope: Scope, text: str, *, binds: bool = True) -> AliasGroup:
        """Record what nodes that are not read may do; return the group of all values that they may share parts with."""
        return self._record(effects_of(parts), scope, text, binds=binds)

    def _record(self, effects: Effects, scope: Scope, text: str, *, binds: bool = True) -> AliasGroup:
        by = _first_line(text)
        effects.bound.discard(self.defined_name)  # perhaps another definition: only the program's is run
        reached = self.code.reached(effects, scope, self.budget)
        if reached is None:
            scope.unsettled.all_by = by
            return AliasGroup()
        names, outside = reached.names, reached.outside - {self.defined_name}
        if not names.isdisjoint(RECEIVERS):
            names |= {name for name in scope.names if "." in name}
        scope.unsettled.names.update(dict.fromkeys(outside, by))
        shared = scope.invalidate(names, by, only_state=not reached.changes)
        places = set[str]().union(*map(places_of, reached.attributes))
        scope.unbind((reached.bound if binds else set()) | places, by, shared)
        return shared

    def _value(self, node: ast.expr, scope: Scope, text: str) -> Value:
        """Return what a name stands for to which a node is assigned; what is not read may share parts with others."""
        value = value_of(node, scope)
        if isinstance(value, Unusable) and not (value is ENTRY_POINT or value is INSTANCE or isinstance(value, Helper)):
            shared = self._apply([node], scope, text)
            if not isinstance(value, PartlyUsable):
                return Unread(value.reason, value.detail, shared)
            value.aliases.merge(shared)
        return value

    def _body(self, pieces: Iterable[Piece], scope: Scope, nesting: int) -> None:
        before = None if self.forms.in_place else _Before(scope.child(scope.receiver))
        ended_by = ""
        for piece in pieces:
            self._before = before
            if ended_by:
                place = piece.head if isinstance(piece, Partial) else piece
                detail = f"never runs: it comes after {ended_by!r}"
                self.reject(RejectionReason.NOT_AN_ASSERT, place.text, place.line, detail)
            elif isinstance(piece, Broken):
                self._broken(piece, scope)
                before = None
            elif isinstance(piece, Partial) or isinstance(piece.node, DEFINITIONS):
                self._definition(_definition(piece), scope, nesting)
            elif not _is_no_op(piece.node) and not self._compound(piece, scope, nesting):
                self._simple(piece, scope)
                if self._n_rows and may_end_test(piece.node):  # for which of the rows?
                    ended_by = _first_line(piece.text)
            if isinstance(piece, Statement):
                if before is not None:
                    before.add(piece)
                if nesting and not ended_by and ends_test(piece.node):  # a file in pieces may hold a stray `return`
                    ended_by = _first_line(piece.text)

    def _compound(  # noqa: C901  -- one case for each form
        self, statement: Statement, scope: Scope, nesting: int
    ) -> bool:
        """Read a statement that holds others, or calls a helper; return False where that is not possible."""
        raising: Raising | None = None
        body: Sequence[ast.stmt] = ()
        match statement.node:
            case ast.Expr(value=ast.Call() as call):
                helper = scope.look_up(scope.place_of(call.func))
                if isinstance(helper, Helper) and not helper.is_fixture and nesting < MAX_NESTING:
                    return self._call(statement, helper, call, scope, nesting)
            case ast.For(orelse=[]) as loop if nesting < MAX_NESTING and self._holds_test([statement], scope):
                return self._loop(statement, loop, scope, nesting)
            case ast.With() as context:
                raising = raising_with(context)
                entered = [item.context_expr for item in context.items]
                if all(map(_is_subtest, entered)):
                    self._apply(entered, scope, statement.text)
                    body = context.body
            case ast.Try() as attempt:
                raising = raising_try(attempt)
                body = reporting_try(attempt) if raising is None else ()
            case ast.If(orelse=[], test=ast.Compare(left=ast.Name(id="__name__"))) as main if nesting < MAX_NESTING:
                # Nothing knows whether it runs: where the file is a script, and before the functions are read.
                inner = scope.child(scope.receiver)
                scope.unbind(effects_of(main.body).bound, "if __name__ == ...", AliasGroup())
                self._whole(_statements(main.body, statement), inner, nesting + 1)
                return True
        if raising is not None:
            self._raising(statement, raising, scope)
        elif body and nesting < MAX_NESTING:
            self._body(_statements(body, statement), scope, nesting + 1)
        is_read = raising is not None or (bool(body) and nesting < MAX_NESTING)
        if is_read and isinstance(statement.node, ast.Try):
            handlers = statement.node.handlers
            self._apply(handlers if raising is not None else [], scope, statement.text)
            if raising is None and not all(ends_test(handler.body[-1]) for handler in handlers):
                bound = effects_of([statement.node]).bound - {self.defined_name}  # or not, if something has failed
                scope.unbind(bound, _first_line(statement.text), AliasGroup())
        return is_read

    def _simple(self, statement: Statement, scope: Scope) -> None:
        node = statement.node
        is_call = isinstance(node, ast.Expr) and is_call_of(node.value, self.entry_point)
        if isinstance(node, ast.Expr) and is_call:
            given = _given(node.value)
            if not self.forms.in_place and not any(isinstance(part, ast.Name) for part in nodes_in(*given)):
                self.reject(RejectionReason.NOT_AN_ASSERT, statement.text, statement.line, _UNUSED)
            self._apply(given, scope, statement.text)
        else:
            self._one(statement, scope)
        if self.forms.in_place or is_call:
            apply_calls(node, scope, _first_line(statement.text))

    def _one(self, statement: Statement, scope: Scope) -> None:
        match statement.node:
            case ast.Assert(test=condition):
                raising = raising_call(without_true(condition))
                if raising is None:
                    self._assert(statement, condition, scope)
                else:
                    self._raising(statement, raising, scope)
            case ast.Assign(targets=targets, value=value):
                self._assign(statement, targets, value, scope)
            case ast.AnnAssign(target=target, annotation=annotation, value=ast.expr() as value):
                self._apply([annotation], scope, statement.text)
                self._assign(statement, [target], value, scope)
            case ast.Import(names=names):
                for alias in names:
                    self._import(statement, alias, None, scope)
            case ast.ImportFrom(module=module, names=names, level=level):
                for alias in names:
                    self._import(statement, alias, "." * level + (module or ""), scope)
            case ast.Expr(value=call):
                self._expression(statement, call, scope)
            case _:
                self._drop(statement, scope, _unread_detail(statement.node))

    def _expression(self, statement: Statement, node: ast.expr, scope: Scope) -> None:
        numpy_assert = _numpy_assert(node, scope)
        claimed, raising = condition_of(node, numpy_assert), raising_call(node)
        if claimed is not None:
            uses_approx = isinstance(claimed, ast.Compare) and isinstance(claimed.comparators[0], ast.Call)
            tools = "numpy" if numpy_assert else "pytest" if uses_approx else ""
            self._assert(statement, claimed, _with_import(tools, scope) if tools else scope)
        elif raising is not None:
            self._raising(statement, raising, scope)
        elif numpy_assert:
            self._drop(statement, scope, f"numpy.testing.{numpy_assert} is not read with these arguments")
        else:
            self._drop(statement, scope, _unread_detail(statement.node))

    # -- functions, loops and tables --

    def _definition(self, definition: Partial, scope: Scope, nesting: int) -> None:
        head, node = definition.head, definition.head.node
        assert isinstance(node, DEFINITIONS)
        marks = decorations(node.decorator_list) if node.decorator_list else Decorations()
        is_function = isinstance(node, ast.FunctionDef) and node.name != self.defined_name
        skip_reason = "" if is_function else self._skip_reason(definition, scope.for_functions, nesting) or marks.unread
        run = heads_of(node)
        if marks.unread:  # a decorator may call what it gets
            run.append(node)
        else:
            given = itertools.chain(*map(_given, node.decorator_list))
            run[: len(node.decorator_list)] = [part for part in given if _MAY_RUN.search(head.source.text(part))]
        if isinstance(node, ast.ClassDef) and skip_reason:
            run += parsed(definition.body)
        if node.name != self.defined_name:
            if run:
                self._apply(run, scope, head.text, binds=False)
            detail = f"{node.name!r} is a function or class of the tester, which is not run"
            scope.bind(node.name, Unusable(RejectionReason.NOT_AN_ASSERT, detail))
        if _DECLARES.search(head.text):
            outside = effects_of(parsed(definition.body)).outside - {self.defined_name}
            scope.unsettled.names.update(dict.fromkeys(outside, _first_line(head.text)))
        if is_function:
            self._function(definition, marks, scope, nesting)
        elif skip_reason:
            self.reject(RejectionReason.NOT_AN_ASSERT, head.text, head.line, skip_reason)
        else:
            self._class(definition, scope.for_functions, nesting)

    def _skip_reason(self, definition: Partial, scope: Scope, nesting: int) -> str:
        """Return why the asserts of a definition are not read; empty if they are."""
        if _name_of(definition.head.node) == self.defined_name:
            return "defines the entry point, which only the program may define"
        if not self._holds_test(definition.body, scope):
            return "a definition without an assert"
        if nesting >= MAX_NESTING:
            return "nested too deeply"
        return "an async definition" if isinstance(definition.head.node, ast.AsyncFunctionDef) else ""

    def _class(self, definition: Partial, scope: Scope, nesting: int) -> None:
        """Read the body of a class, and later its methods: first those that prepare each test, then the tests."""
        inner, methods = replace(scope.child(), is_class=True), list[Partial]()
        for piece in definition.body:
            head = piece.head if isinstance(piece, Partial) else piece
            if isinstance(head, Statement) and isinstance(head.node, ast.FunctionDef):
                methods.append(_definition(piece))
                continue
            self._body([piece], inner, nesting + 1)
            for name in effects_of(parsed([piece])).bound & inner.names.keys():
                value = inner.names[name]
                is_method = isinstance(value, Inlined) and isinstance(value.node, ast.Lambda)
                unread = Unusable(
                    RejectionReason.NOT_AN_ASSERT, f"{name!r} is a method of the tester, which is not run"
                )
                _bind_members(inner, name, unread if is_method else value)
        names = [_name_of(method.head.node) for method in methods]
        bases = getattr(definition.head.node, "bases", ())

        def read() -> None:
            for_methods = scope.child()
            for_methods.names.update(_members_of(inner))
            inner.around = for_methods
            self._apply(bases, for_methods, definition.head.text)  # their methods run, too
            ends = [n for n, name in enumerate(names) if "teardownclass" in _plain_name(name)]
            for n, name in enumerate(names):
                if n not in ends and _is_around_tests(name):
                    self._run_unread(methods[n], for_methods)
            for name in _SETUPS:
                for method in (methods[n] for n, each in enumerate(names) if each == name):
                    self._set_up(method, for_methods, nesting)
            others = [
                (name.startswith("test"), name if bases else "", n)  # as unittest runs methods
                for n, name in enumerate(names)
                if name not in _SETUPS
            ]
            self._whole([methods[n] for *_, n in sorted(others)], inner, nesting + 1)
            for n in ends:
                self._run_unread(methods[n], for_methods)

        self._late.append((_TESTS, read))

    def _run_unread(self, definition: Partial, scope: Scope) -> None:
        """Record what a function may do that runs, but is not read before what needs the names around it."""
        head = definition.head
        self._apply(parsed([definition]), scope, head.text, binds=False)

    def _set_up(self, method: Partial, for_methods: Scope, nesting: int) -> None:
        """Read a method that prepares each test: what it assigns to `self` is a name of the other methods."""
        names = _parameters(method.head.node)
        inner = for_methods.child(names[0] if names else "")
        self._whole(method.body, inner, nesting + 1)
        for place, value in inner.names.items():
            receiver, _, name = place.partition(".")
            if name and receiver == inner.receiver:
                _bind_members(for_methods, name, value)

    def _function(  # noqa: C901  -- its parts share what is known where the function is defined
        self, definition: Partial, marks: Decorations, scope: Scope, nesting: int
    ) -> None:
        head, node, for_functions = definition.head, definition.head.node, scope.for_functions
        assert isinstance(node, ast.FunctionDef)
        names = _parameters(node)
        receiver = names[0] if names[:1] and names[0] in RECEIVERS else ""
        optional = {each.arg: self._value(value, scope, head.text) for each, value in defaults_of(node.args)}
        detail = f"{node.name!r} is a function of the tester"
        helper = Helper(RejectionReason.NOT_AN_ASSERT, detail, definition, for_functions, optional, marks.is_fixture)
        run_unread = partial(self._run_unread, definition, for_functions)
        if marks.is_fixture:
            for_functions.bind(node.name, helper)
            if any("autouse" in ast.dump(decorator) for decorator in node.decorator_list):
                self._late.append((_SETUPS_FIRST, run_unread))
            return
        is_test = node.name.startswith("test")
        if not receiver and _is_around_tests(node.name):
            self._late.append((_SETUPS_FIRST, run_unread))
        given = [name for table in marks.tables for name in table.names or names]
        missing = [name for name in names if name != receiver and name not in given and name not in optional]
        takes_fixtures = all(_is_fixture(for_functions.look_up(name)) for name in missing)
        is_helper = not (takes_fixtures or marks.tables) and (not is_test or missing == ["candidate"])
        unread = self._skip_reason(definition, for_functions, nesting) or marks.unread
        if not unread and (is_helper or not (missing or marks.tables)):
            if scope.is_class:
                _bind_members(for_functions, node.name, helper)
            else:
                scope.bind(node.name, helper)
        if is_helper:
            if unread:
                self.reject(RejectionReason.NOT_AN_ASSERT, head.text, head.line, unread)
            else:
                self._uncalled[id(head)] = helper
            return
        try:
            tables = [[(each, row) for row in self._rows(each.rows, scope)] for each in reversed(marks.tables)]
        except UnreadableError as error:
            self.reject(error.reason, head.text, head.line, error.detail)
            return
        columns = [name for name in names if name != receiver]
        as_defined = None if is_test else dict(for_functions.names)

        def read(rows: Sequence[tuple[Table, Row]]) -> None:
            inner = for_functions.child(receiver or for_functions.receiver)
            if as_defined is not None:  # it may have been called at any time
                changed = [name for name, value in inner.names.items() if as_defined.get(name) is not value]
                inner.unbind(changed, "what follows a function", AliasGroup())
            inner.names.update(optional)
            for name in missing:
                inner.bind(name, self._fixture_value(for_functions.look_up(name), for_functions, nesting))
            for table, row in rows:
                is_whole = len(table.names or columns) == 1 and not (table.spreads and _is_display(row.node))
                targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in table.names or columns]
                bind_row(targets[0] if is_whole else ast.Tuple(targets, ast.Store()), row, inner)
            self._whole(definition.body, inner, nesting + 1)

        when = _TESTS if is_test else _LAST
        self._late.append((when, partial(self._read_function, helper, marks, nesting, tuple(missing), tables, read)))

    def _read_function(
        self,
        helper: Helper,
        marks: Decorations,
        nesting: int,
        missing: tuple[str, ...],
        rows: Sequence[Sequence[tuple[Table, Row]]],
        read: Callable[[Sequence[tuple[Table, Row]]], None],
    ) -> None:
        """Read a function that nothing has called, for each of its rows."""
        definition, head, scope = helper.definition, helper.head, helper.scope
        node = head.node
        assert isinstance(node, ast.FunctionDef)
        if id(head) in self._read:
            return
        unread = self._skip_reason(definition, scope, nesting) or marks.unread
        if not all(_is_fixture(scope.look_up(name)) for name in missing):
            unread = unread or _WITH_PARAMETERS
        if unread:
            self.reject(RejectionReason.NOT_AN_ASSERT, head.text, head.line, unread)
            if node.name.startswith("test"):
                self._run_unread(definition, scope)
        elif marks.tables:
            self._each(definition, scope, itertools.product(*rows), math.prod(map(len, rows)), read)
        else:
            read(())

    def _loop(self, statement: Statement, loop: ast.For, scope: Scope, nesting: int) -> bool:
        leaves = any(isinstance(part, ast.Break | ast.Continue | ast.Return) for part in nodes_in(loop))
        if leaves or any(
            isinstance(part, ast.Attribute | ast.Subscript | ast.Starred) for part in nodes_in(loop.target)
        ):
            return False
        try:
            rows = self._rows(loop.iter, scope)
        except UnreadableError as error:
            if error.reason is not RejectionReason.NOT_AN_ASSERT:
                self.reject(error.reason, statement.text, statement.line, error.detail)
            return error.reason is not RejectionReason.NOT_AN_ASSERT
        if self._may_change(loop.body, names_of_table(loop.iter), scope):
            return False
        may_run = isinstance(loop.iter, ast.Name | ast.Attribute) or _MAY_RUN.search(statement.source.text(loop.iter))
        shared = self._apply([loop.iter], scope, statement.text) if may_run else AliasGroup()
        body = _statements(loop.body, statement)
        names = [part.id for part in ast.walk(loop.target) if isinstance(part, ast.Name)]

        def read(row: Row) -> None:
            bind_row(loop.target, row, scope)
            for name in names:
                value = scope.names.get(name)
                if isinstance(value, PartlyUsable):
                    value.aliases.merge(shared)
                elif type(value) is Unusable and value not in (ENTRY_POINT, INSTANCE):
                    scope.bind(name, Unread(value.reason, value.detail, shared))
            self._body(body, scope, nesting + 1)

        self._each(Partial(statement, body), scope, rows, len(rows), read)
        if self.forms.in_place and rows:
            in_table = [part.id for part in ast.walk(loop.iter) if isinstance(part, ast.Name)]
            scope.forget(in_table, _first_line(statement.text))
        return True

    def _may_change(self, body: Sequence[ast.stmt], table: set[str], scope: Scope) -> bool:
        """Whether a body may change the rows that are left of the table over which it loops."""
        reached = self.code.reached(effects_of(body), scope, self.budget) if table else Effects()
        has_state = any(getattr(scope.look_up(name), "has_state", False) for name in table)
        return reached is None or ((reached.changes or has_state) and not table.isdisjoint(reached.names))

    def _each(
        self, repeated: Partial, scope: Scope, rows: Iterable[_RowT], n_rows: int, read: Callable[[_RowT], None]
    ) -> None:
        """Read a body once for each row, as far as the suite may grow and the budget lasts."""
        head, statements = repeated.head, [piece.node for piece in repeated.body if isinstance(piece, Statement)]
        size = 1 + len(nodes_in(*statements)) + len(scope.names) // _STEPS_OF_NODE
        for number, row in enumerate(rows):
            n_left = n_rows - number
            if self.max_cases is not None and len(self.cases) >= self.max_cases:
                n_tests = max(1, effects_of(statements).n_tests)
                self.reject(RejectionReason.TOO_MANY, head.text, head.line, self._surplus, n_left * n_tests)
                return
            try:
                self.budget.take_steps(_STEPS_OF_ROW + _STEPS_OF_NODE * size)
            except UnreadableError as error:
                self.reject(error.reason, head.text, head.line, f"{n_left:,} rows of a table: {error.detail}", n_left)
                return
            self._n_rows += 1
            read(row)
            self._n_rows -= 1

    def _rows(self, node: ast.expr, scope: Scope) -> list[Row]:
        """Return the rows of a table with the values that names have now, whatever is bound before a row is read."""
        try:
            return list(Tables(scope.child(scope.receiver), fresh=self.forms.in_place).rows(node))
        except RecursionError:
            raise UnreadableError(RejectionReason.NOT_AN_ASSERT, NO_TABLE) from None

    def _call(self, statement: Statement, helper: Helper, call: ast.Call, scope: Scope, nesting: int) -> bool:
        """Read the body of a helper with the arguments of a call; return False if they do not fit its parameters."""
        node = helper.head.node
        assert isinstance(node, ast.FunctionDef)
        by_position = [each.arg for each in (*node.args.posonlyargs, *node.args.args) if each.arg not in RECEIVERS]
        args = [each for argument in call.args for each in unpacked(argument)]
        keywords = {keyword.arg: keyword.value for keyword in call.keywords}
        given = dict(zip(by_position, args, strict=False))
        if len(args) > len(by_position) or None in keywords or any(isinstance(each, ast.Starred) for each in args):
            return False
        names = set(_parameters(node)).difference(RECEIVERS)
        if not given.keys().isdisjoint(keywords):
            return False
        given.update({name: value for name, value in keywords.items() if name is not None})
        if {*given, *helper.defaults} != names or node.args.vararg or node.args.kwarg:
            return False
        if not given and id(helper.head) in self._read:  # its tests have been read
            self._apply([call], scope, statement.text)
            return True
        self._read |= set() if given else {id(helper.head)}
        self._uncalled.pop(id(helper.head), None)
        values = {
            **helper.defaults,
            **{name: self._value(value, scope, statement.text) for name, value in given.items()},
        }
        self._each(helper.definition, scope, [values], 1, lambda each: self._run(helper, each, scope, nesting))
        return True

    def _run(self, helper: Helper, arguments: Mapping[str, Value], scope: Scope, nesting: int) -> None:
        names = _parameters(helper.head.node)
        inner = helper.scope.child(names[0] if names[:1] and names[0] in RECEIVERS else helper.scope.receiver)
        if inner.receiver:
            inner.names.update(_members_of(scope))
        for name, value in arguments.items():
            inner.bind(name, value)
        self._whole(helper.definition.body, inner, nesting + 1)
        if inner.receiver:
            scope.names.update(_members_of(inner))

    def _fixture_value(self, fixture: object, scope: Scope, nesting: int) -> Value:
        """Return what a fixture returns or yields; it must do nothing but assign names before that."""
        assert isinstance(fixture, Helper)
        assert isinstance(fixture.head.node, ast.FunctionDef)
        if not any("scope" in ast.dump(decorator) for decorator in fixture.head.node.decorator_list):
            return self._made_by(fixture, scope, nesting)
        if id(fixture.head) not in self._shared:
            self._shared[id(fixture.head)] = self._made_by(fixture, scope, nesting)
        return self._shared[id(fixture.head)]

    def _made_by(self, fixture: Helper, scope: Scope, nesting: int) -> Value:
        head, body = fixture.definition.head, fixture.definition.body
        *before, last = body or (head,)
        inner = scope.child()
        detail = f"{_name_of(head.node)!r} is a fixture that does more than to return a value"
        node = last.node if isinstance(last, Statement) else None
        match node:
            case ast.Return(value=ast.expr() as value) | ast.Expr(value=ast.Yield(value=ast.expr() as value)):
                is_plain = not _parameters(head.node) and nesting < MAX_NESTING
            case _:
                is_plain = False
        simple = (ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom)
        if not is_plain or not all(
            isinstance(each, Statement) and (isinstance(each.node, simple) or _is_no_op(each.node)) for each in before
        ):
            self._run_unread(fixture.definition, scope)
            return Unusable(RejectionReason.NOT_AN_ASSERT, detail)
        self._whole(before, inner, MAX_NESTING)
        return self._value(value, inner, head.text)

    def _holds_test(self, pieces: Iterable[Piece], scope: Scope) -> bool:
        """Whether `pieces` hold a test, or a call of a helper that does."""
        pieces = tuple(pieces)
        effects = effects_of(piece.node for piece in pieces if isinstance(piece, Statement))
        called = effects.called | {f"self.{name}" for name in effects.methods}
        return holds_assert(pieces) or any(isinstance(scope.look_up(name), Helper) for name in called)

    # -- asserts --

    @property
    def _surplus(self) -> str:
        return f"only the first {self.max_cases} cases count"

    def _assert(self, statement: Statement, condition: ast.expr, scope: Scope) -> None:
        self._add(statement, scope, lambda: self._case_or_case_after_calls(condition, scope, statement))

    def _raising(self, statement: Statement, raising: Raising, scope: Scope) -> None:
        if raising.caught_as:
            detail = "what an exception holds is not tested"
            scope.bind(raising.caught_as, Unusable(RejectionReason.NOT_AN_ASSERT, detail))
        self._add(statement, scope, lambda: self._raising_case(raising, statement, scope))

    def _add(self, statement: Statement, scope: Scope, read: Callable[[], TestCase]) -> None:
        """Add the case that a statement states, or reject it."""
        try:
            case = read()
        except UnreadableError as error:
            self.reject(error.reason, statement.text, statement.line, error.detail)
            self._apply([statement.node], scope, statement.text)
            return
        if self.max_cases is not None and len(self.cases) >= self.max_cases:
            self.reject(RejectionReason.TOO_MANY, statement.text, statement.line, self._surplus)
        else:
            self.cases.append(case)

    def _assign(self, statement: Statement, targets: list[ast.expr], value: ast.expr, scope: Scope) -> None:
        pairs = [pair for target in targets for pair in _pairs(target, value, scope)]
        if any(name is None for name, _ in pairs):
            self._drop(statement, scope, "assigns to something other than single names")
            return
        if any(name == self.defined_name for name, _ in pairs):
            self._drop(statement, scope, f"assigns to {self.defined_name!r}, which only the program may define")
            return
        values = {id(node): self._value(node, scope, statement.text) for _, node in pairs}
        for name, node in pairs:
            if name is not None:
                scope.bind(name, values[id(node)])

    def _import(self, statement: Statement, alias: ast.alias, module: str | None, scope: Scope) -> None:
        """Bind the name of `import alias` or `from module import alias`."""
        name = alias.asname or (alias.name if module else alias.name.partition(".")[0])
        is_own = module is not None and alias.name == name == self.defined_name
        if module == "__future__" or is_own or name in self._called:
            return  # the program defines the entry point, so importing it has no effect
        allowed = _allowed(alias, module)
        if allowed is not None and name != self.defined_name:
            scope.bind(name, allowed)
            return
        if alias.name == self.entry_point and name.isidentifier():
            scope.bind(name, ENTRY_POINT)
            return
        if alias.name == "*":  # the names of the file, and built-in ones that the module is known to have
            hidden = [each for each in SAFE_BUILTINS if may_be_imported_from(module or "", each)]
            scope.unbind({*scope.names, *hidden} - {self.defined_name}, _first_line(statement.text), AliasGroup())
        detail = f"tests may not import {module + '.' if module else ''}{alias.name}"
        full_name = f"{module}.{alias.name}" if module else alias.name
        is_framework = full_name.startswith(_FRAMEWORKS)
        if not is_framework:
            self.reject(RejectionReason.NOT_AN_ASSERT, statement.text, statement.line, detail)
        if name != self.defined_name:
            full_name = full_name if module or alias.asname else name
            is_drawn = full_name.startswith(("random", "numpy.random"))
            unusable = (RejectionReason.NOT_AN_ASSERT, DRAWN) if is_drawn else (RejectionReason.FORBIDDEN_NAME, detail)
            scope.bind(name, OfFramework(*unusable, full_name) if is_framework else Unusable(*unusable))

    def _broken(self, piece: Broken, scope: Scope) -> None:
        names = piece.names & scope.names.keys()
        self._record(Effects(names, names, bound=names, changes=True), scope, _first_line(piece.text))
        if piece.is_assert or self.prose_is_broken:
            self.reject(piece.fault.reason, piece.text, piece.line, piece.fault.detail)
        else:
            self.reject(RejectionReason.NOT_AN_ASSERT, piece.text, piece.line, "not Python")

    def _drop(self, statement: Statement, scope: Scope, detail: str) -> None:
        self._apply([statement.node], scope, statement.text)
        if isinstance(statement.node, _BINDING) and self.defined_name in effects_of([statement.node]).bound:
            scope.unbind([self.defined_name], _first_line(statement.text), AliasGroup())
        self.reject(RejectionReason.NOT_AN_ASSERT, statement.text, statement.line, detail)

    def _case(self, condition: ast.expr, scope: Scope, statement: Statement) -> TestCase:
        sides = sides_of_equality(condition)
        if sides is not None and scope.shadow is None:
            plain = read_plain_case(*sides, self.entry_point, statement.node, self.places)
            if plain is not None:
                return plain
        inlined = inline_names(condition, scope)
        try:
            return self._general_case(inlined, statement, (condition,))
        except RecursionError:  # as in `inline_names`
            raise UnreadableError(RejectionReason.SYNTAX_ERROR, "nested too deeply") from None

    def _general_case(self, inlined: Inlined, statement: Statement, said: Sequence[ast.expr]) -> TestCase:
        """Return the case of a condition; `said` is the condition before its names were inlined, or its parts."""
        if not inlined.calls_entry_point:
            detail = f"never calls {self.entry_point!r} by its name"
            raise UnreadableError(RejectionReason.NO_ENTRY_POINT_CALL, detail)
        self.budget.take_nodes(inlined.size)
        claim = plain_claim(
            folded(inlined.node) if self._n_rows and inlined.n_inlined else inlined.node, inlined.bindings
        )
        vacuous_because = vacuity_reason(claim, self.entry_point, inlined.bindings)
        if vacuous_because:
            raise UnreadableError(RejectionReason.NO_ENTRY_POINT_CALL, vacuous_because)
        is_raised = raised_call(claim, self.entry_point) is not None
        sides = None if is_raised else self._sides(claim, inlined)
        if sides is None:
            expression: ast.expr = claim if is_raised else _call_bool(claim, inlined)
            prediction: ast.expr = ast.Constant(True)
            parts: Sequence[Sequence[ast.expr]] = ((*said, inlined.node), ())
        else:
            expression, prediction = sides
            parts = with_operands_before(claim, sides)
        text, predicted_text = _text(expression, inlined), _text(prediction, inlined)
        direct = is_direct(expression, self.entry_point) or (
            self.forms.functions and is_closed_call(expression, self.entry_point, inlined.imports)
        )
        return TestCase(
            expression=text,
            prediction=predicted_text,
            imports=inlined.imports,
            direct=direct,
            line=statement.line,
            predicted=encoded_prediction(prediction, predicted_text),
            calls=plain_call(expression, text) if direct else direct_calls_in(expression, self.entry_point),
            written=None if self.places is None else self.places.gathered(statement.node, *parts),
        )

    def _raising_case(self, raising: Raising, statement: Statement, scope: Scope) -> TestCase:
        if not self.exceptions:
            raise UnreadableError(RejectionReason.NOT_AN_ASSERT, _NO_EXCEPTIONS)
        if raising.unread:
            raise UnreadableError(RejectionReason.NOT_AN_ASSERT, raising.unread)
        for node in raising.before:
            self._one(Statement(node, statement.source), scope)
        classes, called = inline_names(raising.classes, scope), inline_names(raising.call, scope)
        call, names = called.node, class_names(classes.node)
        bindings = {**called.bindings, **classes.bindings}
        if not names or any(map(bindings.get, (*names, RAISES))) or self.entry_point == RAISES:
            raise UnreadableError(RejectionReason.NOT_AN_ASSERT, "only some built-in exceptions are tested")
        if not is_call_of(call, self.entry_point) or len(calls_of(call, self.entry_point)) > 1:
            detail = f"expects an exception of something other than one call of {self.entry_point!r}"
            raise UnreadableError(RejectionReason.NOT_AN_ASSERT, detail)
        claim = ast.Call(ast.Name(RAISES, ast.Load()), [classes.node, call.func, *call.args], call.keywords)
        size, depth = called.size + classes.size + 1, max(called.depth, classes.depth + 1)
        stated = [part for part in ast.iter_child_nodes(statement.node) if isinstance(part, ast.expr)]
        inlined = replace(called, node=claim, bindings=bindings, size=size, depth=depth)
        return self._general_case(inlined, statement, stated[:1] or (raising.classes, raising.call))

    def _case_or_case_after_calls(self, condition: ast.expr, scope: Scope, statement: Statement) -> TestCase:
        try:
            return self._case(condition, scope, statement)
        except UnreadableError as error:
            after = None if calls_of(condition, self.entry_point) else self._case_after_calls(condition, statement)
            is_invalid = error.reason in COUNTED_AS_INVALID
            if after is None and is_invalid and self._is_about_an_argument(condition):
                raise UnreadableError(RejectionReason.NOT_AN_ASSERT, _AFTER_A_CALL) from None
            if after is None:
                raise
            return after

    def _case_after_calls(self, condition: ast.expr, statement: Statement) -> TestCase | None:
        """Return the case of an assert about an argument of an earlier call; None if it is about something else."""
        before = self._before
        names = {part.id for part in nodes_in(condition) if isinstance(part, ast.Name)}
        if before is None or not before.pieces or not any(_is_mutable(before, name) for name in names):
            return None
        forms = replace(self.forms, in_place=True)
        reader = SuiteReader(self.entry_point, budget=self.budget, forms=forms, places=self.places)
        reader.code = self.code
        while before.n_read < len(before.pieces):
            piece = before.pieces[before.n_read]
            before.n_read += 1
            try:
                if isinstance(piece.node, ast.Assert):
                    apply_calls(piece.node, before.scope, _first_line(piece.text))
                elif isinstance(piece.node, DEFINITIONS):
                    before.scope.unbind({piece.node.name} - {self.defined_name}, _first_line(piece.text), AliasGroup())
                else:
                    reader._simple(piece, before.scope)
            except RecursionError:  # nested too deeply; nothing is known of its names
                reader._drop(piece, before.scope, "nested too deeply")
        values = [before.scope.look_up(name) for name in names]
        if not any(isinstance(value, Inlined) and value.calls_entry_point for value in values):
            return None
        try:
            return reader._case(condition, before.scope, statement)
        except RecursionError:
            return None
        except UnreadableError as error:
            if error.reason is RejectionReason.TOO_LONG:
                raise
            raise UnreadableError(RejectionReason.NOT_AN_ASSERT, _AFTER_A_CALL) from error

    def _is_about_an_argument(self, condition: ast.expr) -> bool:
        """Whether a condition without a call of the function looks at something that an earlier call has got."""
        given = self._before.given if self._before is not None else ()
        return bool(given) and any(_reference(part) in given for part in nodes_in(condition))

    def _sides(self, claim: ast.expr, inlined: Inlined) -> tuple[ast.expr, ast.expr] | None:
        """Return the side that calls the entry point and the other one; None if both sides call it."""
        if any("pytest" in statement for statement in inlined.bindings.values()):
            return None  # a tolerance is not a value
        left, right = sides_of_equality(claim) or (claim, claim)
        left_calls, right_calls = calls_of(left, self.entry_point), calls_of(right, self.entry_point)
        if left_calls and right_calls:
            return None
        return (left, right) if left_calls else (right, left)


@lru_cache(maxsize=4096)
def _known_names(imports: str) -> Mapping[str, Imported]:
    """Return what import statements bind that tests may use."""
    try:
        body = parse(imports).body
    except UnreadableError:
        return {}
    aliases = [
        (alias, node.module if isinstance(node, ast.ImportFrom) else None)
        for node in body
        if isinstance(node, ast.Import | ast.ImportFrom)
        for alias in node.names
    ]
    found = {alias.asname or alias.name.partition(".")[0]: _allowed(alias, module) for alias, module in aliases}
    return {name: allowed for name, allowed in found.items() if allowed is not None}


def _allowed(alias: ast.alias, module: str | None) -> Imported | None:
    """Return what `import alias` or `from module import alias` binds; None unless tests may use it."""
    name = alias.asname or (alias.name if module else alias.name.partition(".")[0])
    allowed = may_be_imported_from(module, alias.name) if module is not None else is_importable(alias.name)
    if not allowed or name.startswith("__"):
        return None
    node = ast.ImportFrom(module, [alias], 0) if module else ast.Import([alias])
    return Imported(ast.unparse(node), f"{module}.{alias.name}" if module else alias.name if alias.asname else name)


def holds_assert(pieces: Iterable[Piece]) -> bool:
    """Whether something that states a test, broken or not, stands anywhere in `pieces`."""
    return any(
        (isinstance(piece, Broken) and piece.is_assert)
        or (isinstance(piece, Partial) and holds_assert(piece.body))
        or (
            isinstance(piece, Statement)
            and (isinstance(piece.node, ast.Assert) or effects_of([piece.node]).n_tests > 0)
        )
        for piece in pieces
    )


def _statements(nodes: Iterable[ast.stmt], parent: Statement) -> tuple[Piece, ...]:
    return tuple(Statement(node, parent.source) for node in nodes)


def _nested(pieces: Iterable[Piece]) -> Iterator[ast.AST]:
    """Yield the statements that were parsed and those within them, without visiting expressions."""
    pending: list[ast.AST] = [*parsed(pieces)]
    while pending:
        node = pending.pop()
        yield node
        pending += getattr(node, "body", ()) if isinstance(node, ast.stmt) else ()


def _modules_of(node: ast.AST) -> Iterator[str]:
    """Yield the names that a node gives to modules which are neither Python's nor those of tools: to the program's."""
    match node:
        case ast.Import(names=names):
            for alias in names:
                if alias.name.partition(".")[0] not in _OTHER_MODULES:
                    yield alias.asname or alias.name.partition(".")[0]
        case ast.ImportFrom(module=module, names=names) if (module or "").partition(".")[0] not in _OTHER_MODULES:
            yield from (alias.asname or alias.name for alias in names)


def _definition(piece: Piece) -> Partial:
    if isinstance(piece, Partial):
        return piece
    assert isinstance(piece, Statement)
    assert isinstance(piece.node, DEFINITIONS)
    return Partial(piece, _statements(piece.node.body, piece))


def _bind_members(scope: Scope, name: str, value: Value) -> None:
    for receiver in RECEIVERS:
        scope.bind(f"{receiver}.{name}", value)


def _name_of(node: ast.stmt) -> str:
    return node.name if isinstance(node, DEFINITIONS) else ""


def _given(node: ast.expr) -> list[ast.expr]:
    """Return the arguments of a call; none of other nodes."""
    return [*node.args, *(keyword.value for keyword in node.keywords)] if isinstance(node, ast.Call) else []


def _members_of(scope: Scope) -> dict[str, Value]:
    """Return the attributes of the object of a test."""
    return {name: value for name, value in scope.names.items() if "." in name}


def _is_fixture(value: object) -> bool:
    return isinstance(value, Helper) and value.is_fixture


def _plain_name(function: str) -> str:
    return function.lower().replace("_", "")


def _is_around_tests(function: str) -> bool:
    """Whether a function of this name runs before or after tests, which do not call it, and is not read first."""
    return function not in _SETUPS and _plain_name(function).startswith(_AROUND_TESTS)


def _is_subtest(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "subTest"


def _is_mutable(before: _Before, name: str) -> bool:
    """Whether a name of the body may stand for something that a call has changed."""
    value = before.scope.names.get(name)
    return (isinstance(value, Inlined) and value.aliases is not None) or before.n_until_assigned > before.n_read


def _with_import(module: str, scope: Scope) -> Scope:
    inner = scope.child(scope.receiver)
    inner.bind(module, Imported(f"import {module}", module))
    return inner


def _numpy_assert(node: ast.expr, scope: Scope) -> str:
    """Return the function of `numpy.testing` that a node calls; empty if it calls none."""
    full_name = _full_name(node.func, scope) if isinstance(node, ast.Call) else ""
    module, _, name = full_name.rpartition(".")
    return name if module == "numpy.testing" else ""


def _full_name(node: ast.expr, scope: Scope) -> str:
    """Return the dotted name of the import that a node denotes; empty if it denotes none."""
    root = root_of(node)
    value = scope.look_up(root)
    return value.full_name + ast.unparse(node).removeprefix(root) if isinstance(value, Imported | OfFramework) else ""


def _reference(node: ast.AST) -> str:
    """Return the text of a name or of an attribute of a name; empty for other nodes."""
    match node:
        case ast.Name(id=name):
            return name
        case ast.Attribute(value=ast.Name(id=name), attr=attribute):
            return f"{name}.{attribute}"
    return ""


def _is_display(node: ast.expr | None) -> bool:
    return isinstance(node, ast.List | ast.Tuple)


def _is_no_op(node: ast.stmt) -> bool:
    """Whether `node` is `pass`, `...` or a docstring."""
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant(value=str() | EllipsisType())):
            return True
    return False


def _unread_detail(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr):
        return "neither an assert nor an assignment"
    if isinstance(node, ast.For):
        return NO_TABLE
    if any(isinstance(child, ast.stmt) for child in ast.iter_child_nodes(node)):
        return "statements under if, while, with, try or match are not read"
    return "neither an assert, an assignment to names nor an import"


def _parameters(node: ast.stmt) -> list[str]:
    assert isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    return [argument.arg for argument in arguments_of(node.args)]


def _pairs(target: ast.expr, value: ast.expr, scope: Scope) -> Iterator[tuple[str | None, ast.expr]]:
    """Yield each name with its value; None as the name where only running the file could tell."""
    displays = (ast.Tuple, ast.List)
    if isinstance(target, displays) and isinstance(value, displays) and len(target.elts) == len(value.elts):
        for inner, part in zip(target.elts, value.elts, strict=True):
            yield from _pairs(inner, part, scope) if not isinstance(part, ast.Starred) else [(None, value)]
    else:
        yield scope.place_of(target) or None, value


def _call_bool(claim: ast.expr, inlined: Inlined) -> ast.expr:
    if inlined.depth >= MAX_DEPTH:
        raise UnreadableError(RejectionReason.SYNTAX_ERROR, "nested too deeply")
    if not is_built_in("bool", inlined.bindings):
        raise UnreadableError(RejectionReason.FORBIDDEN_NAME, "'bool' means something else here")
    return ast.Call(ast.Name("bool", ast.Load()), [claim], [])


def _text(node: ast.expr, inlined: Inlined) -> str:
    return write(node, shared=inlined.n_inlined > 0, formatted=inlined.formatted)


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0][:60]
