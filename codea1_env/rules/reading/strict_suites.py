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
  parameters that is called is read at its first call. Of two tests of one name in a block the later one is read: each
  block is a file, and Python would run no other.
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
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from operator import attrgetter

from codea1_env.facts.submissions import COUNTED_AS_INVALID, RejectionReason, TestCase
from codea1_env.python_text import UnreadableError
from codea1_env.rules.reading.allowed_names import SAFE_BUILTINS, may_be_imported_from
from codea1_env.rules.reading.cases import read_case, read_raising_case
from codea1_env.rules.reading.direct_calls import (
    calls_of,
    is_call_of,
)
from codea1_env.rules.reading.effects import (
    Effects,
    effects_of,
)
from codea1_env.rules.reading.frameworks import (
    Raising,
    condition_of,
    ends_test,
    may_end_test,
    raising_call,
    raising_try,
    raising_with,
    reporting_try,
    without_true,
)
from codea1_env.rules.reading.functions import FunctionReader
from codea1_env.rules.reading.imports import NamedImport, call_members, imports_of, program_modules
from codea1_env.rules.reading.in_place import apply_calls
from codea1_env.rules.reading.scopes import (
    ENTRY_POINT,
    INSTANCE,
    AliasGroup,
    Helper,
    Imported,
    Inlined,
    OfFramework,
    PartlyUsable,
    Scope,
    Unread,
    Unusable,
    not_read,
    unknown,
)
from codea1_env.rules.reading.statements import (
    DEFINITIONS,
    MAX_NESTING,
    Broken,
    Partial,
    Piece,
    Statement,
    arguments_in,
    definition_of,
    is_no_op,
    nodes_in,
    parsed,
    root_of,
)
from codea1_env.rules.reading.suite_records import first_line
from codea1_env.rules.reading.tables import NO_TABLE, Row, bind_row, names_of_table

_BINDING = (ast.For, ast.With, ast.Delete)
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
class SuiteReader(FunctionReader):
    """Collects cases and rejections from statements, in their order."""

    _called: set[str] = field(default_factory=set)
    """Those of them whose entry point is called."""
    _before: _Before | None = None

    def read(self, pieces: Iterable[Piece]) -> None:
        """Add the cases of `pieces`; the names that they bind stay bound for the next call."""
        pieces = list(pieces)
        self.modules |= program_modules(pieces)
        if self.modules:
            self._called |= call_members([*parsed(pieces)], self.defined_name, self.modules)
        self.code.add(pieces)
        self._n_texts += 1
        self._body(pieces, self.scope, 0)

    def finish(self) -> None:
        """Read the functions, and `check(candidate)` though nothing has called it; drop others that nothing calls."""
        self._read_late()
        self.cases.sort(key=attrgetter("line"))  # functions have been read after what follows them
        self._read_uncalled(self.scope)

    # -- statements --

    def _body(self, pieces: Iterable[Piece], scope: Scope, nesting: int) -> None:
        before = None if self.forms.in_place else _Before(scope.child(scope.receiver))
        ended_by = ""
        for piece in pieces:
            self._before = before
            if ended_by:
                self.reject(piece, f"never runs: it comes after {ended_by!r}")
            elif isinstance(piece, Broken):
                self._broken(piece, scope)
                before = None
            elif isinstance(piece, Partial) or isinstance(piece.node, DEFINITIONS):
                self._definition(definition_of(piece), scope, nesting)
            elif not is_no_op(piece.node) and not self._compound(piece, scope, nesting):
                self._simple(piece, scope)
                if self._n_rows and may_end_test(piece.node):  # for which of the rows?
                    ended_by = first_line(piece)
            if isinstance(piece, Statement):
                if before is not None:
                    before.add(piece)
                if nesting and not ended_by and ends_test(piece.node):  # a file in pieces may hold a stray `return`
                    ended_by = first_line(piece)

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
                    self._apply(entered, scope, statement)
                    body = context.body
            case ast.Try() as attempt:
                raising = raising_try(attempt)
                body = reporting_try(attempt) if raising is None else ()
            case ast.If(orelse=[], test=ast.Compare(left=ast.Name(id="__name__"))) as main if nesting < MAX_NESTING:
                # Nothing knows whether it runs: where the file is a script, and before the functions are read.
                inner = scope.child(scope.receiver)
                scope.unbind(effects_of(main.body).bound, "if __name__ == ...", AliasGroup())
                self._whole(statement.source.statements(main.body), inner, nesting + 1)
                return True
        if raising is not None:
            self._raising(statement, raising, scope)
        elif body and nesting < MAX_NESTING:
            self._body(statement.source.statements(body), scope, nesting + 1)
        is_read = raising is not None or (bool(body) and nesting < MAX_NESTING)
        if is_read and isinstance(statement.node, ast.Try):
            handlers = statement.node.handlers
            self._apply(handlers if raising is not None else [], scope, statement)
            if raising is None and not all(ends_test(handler.body[-1]) for handler in handlers):
                bound = effects_of([statement.node]).bound - {self.defined_name}  # or not, if something has failed
                scope.unbind(bound, first_line(statement), AliasGroup())
        return is_read

    def _simple(self, statement: Statement, scope: Scope) -> None:
        node = statement.node
        is_call = isinstance(node, ast.Expr) and is_call_of(node.value, self.entry_point)
        if isinstance(node, ast.Expr) and is_call:
            given = arguments_in(node.value)
            if not self.forms.in_place and not any(isinstance(part, ast.Name) for part in nodes_in(*given)):
                self.reject(statement, _UNUSED)
            self._apply(given, scope, statement)
        else:
            self._one(statement, scope)
        if self.forms.in_place or is_call:
            apply_calls(node, scope, first_line(statement))

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
                self._apply([annotation], scope, statement)
                self._assign(statement, [target], value, scope)
            case ast.Import() | ast.ImportFrom() as node:
                for named in imports_of(node):
                    self._import(statement, named, scope)
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
                self.reject(statement, error.detail, error.reason)
            return error.reason is not RejectionReason.NOT_AN_ASSERT
        if self._may_change(loop.body, names_of_table(loop.iter), scope):
            return False
        may_run = isinstance(loop.iter, ast.Name | ast.Attribute) or statement.source.may_run(loop.iter)
        shared = self._apply([loop.iter], scope, statement) if may_run else AliasGroup()
        body = statement.source.statements(loop.body)
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
            scope.forget(in_table, first_line(statement))
        return True

    def _may_change(self, body: Sequence[ast.stmt], table: set[str], scope: Scope) -> bool:
        """Whether a body may change the rows that are left of the table over which it loops."""
        reached = self.code.reached(effects_of(body), scope, self.budget) if table else Effects()
        has_state = any(getattr(scope.look_up(name), "has_state", False) for name in table)
        return reached is None or ((reached.changes or has_state) and not table.isdisjoint(reached.names))

    # -- asserts --

    def _assert(self, statement: Statement, condition: ast.expr, scope: Scope) -> None:
        self._add(statement, scope, lambda: self._case_or_case_after_calls(condition, scope, statement))

    def _raising(self, statement: Statement, raising: Raising, scope: Scope) -> None:
        if raising.caught_as:
            scope.bind(raising.caught_as, unknown("what an exception holds is not tested"))

        def read() -> TestCase:
            if raising.unread or not self.exceptions:
                raise not_read(raising.unread if self.exceptions else _NO_EXCEPTIONS)
            for node in raising.before:
                self._one(Statement(node, statement.source), scope)
            return read_raising_case(raising, scope, statement, self.places, in_row=self._n_rows > 0)

        self._add(statement, scope, read)

    def _assign(self, statement: Statement, targets: list[ast.expr], value: ast.expr, scope: Scope) -> None:
        pairs = [pair for target in targets for pair in _pairs(target, value, scope)]
        if any(name is None for name, _ in pairs):
            self._drop(statement, scope, "assigns to something other than single names")
            return
        if any(name == self.defined_name for name, _ in pairs):
            self._drop(statement, scope, f"assigns to {self.defined_name!r}, which only the program may define")
            return
        values = {id(node): self._value(node, scope, statement) for _, node in pairs}
        for name, node in pairs:
            if name is not None:
                scope.bind(name, values[id(node)])

    def _import(self, statement: Statement, named: NamedImport, scope: Scope) -> None:
        name, member = named.name, named.alias.name
        is_own = named.module is not None and member == name == self.defined_name
        if named.module == "__future__" or is_own or name in self._called:
            return  # the program defines the entry point, so importing it has no effect
        value, is_other = named.value, name != self.defined_name
        if member == self.entry_point and name.isidentifier() and not (is_other and isinstance(value, Imported)):
            scope.bind(name, ENTRY_POINT)
            return
        if member == "*":  # the names of the file, and built-in ones that the module is known to have
            hidden = [each for each in SAFE_BUILTINS if may_be_imported_from(named.module or "", each)]
            scope.unbind({*scope.names, *hidden} - {self.defined_name}, first_line(statement), AliasGroup())
        if not isinstance(value, OfFramework) and not (is_other and isinstance(value, Imported)):
            self.reject(statement, f"tests may not import {named.imported}")
        if is_other:
            scope.bind(name, value)

    def _broken(self, piece: Broken, scope: Scope) -> None:
        names = piece.names & scope.names.keys()
        self._record(Effects(names, names, bound=names, changes=True), scope, first_line(piece))
        is_attempt = piece.is_assert or self.prose_is_broken
        self.reject(piece, *((piece.fault.detail, piece.fault.reason) if is_attempt else ("not Python",)))

    def _drop(self, statement: Statement, scope: Scope, detail: str) -> None:
        self._apply([statement.node], scope, statement)
        if isinstance(statement.node, _BINDING) and self.defined_name in effects_of([statement.node]).bound:
            scope.unbind([self.defined_name], first_line(statement), AliasGroup())
        self.reject(statement, detail)

    def _case_or_case_after_calls(self, condition: ast.expr, scope: Scope, statement: Statement) -> TestCase:
        try:
            return read_case(condition, scope, statement, self.places, in_row=self._n_rows > 0)
        except UnreadableError as error:
            after = None if calls_of(condition, self.entry_point) else self._case_after_calls(condition, statement)
            is_invalid = error.reason in COUNTED_AS_INVALID
            if after is None and is_invalid and self._is_about_an_argument(condition):
                raise not_read(_AFTER_A_CALL) from None
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
                    apply_calls(piece.node, before.scope, first_line(piece))
                elif isinstance(piece.node, DEFINITIONS):
                    before.scope.unbind({piece.node.name} - {self.defined_name}, first_line(piece), AliasGroup())
                else:
                    reader._simple(piece, before.scope)
            except RecursionError:  # nested too deeply; nothing is known of its names
                reader._drop(piece, before.scope, "nested too deeply")
        values = [before.scope.look_up(name) for name in names]
        if not any(isinstance(value, Inlined) and value.calls_entry_point for value in values):
            return None
        try:
            return read_case(condition, before.scope, statement, self.places, in_row=False)
        except RecursionError:
            return None
        except UnreadableError as error:
            if error.reason is RejectionReason.TOO_LONG:
                raise
            raise not_read(_AFTER_A_CALL) from error

    def _is_about_an_argument(self, condition: ast.expr) -> bool:
        """Whether a condition without a call of the function looks at something that an earlier call has got."""
        given = self._before.given if self._before is not None else ()
        return bool(given) and any(_reference(part) in given for part in nodes_in(condition))


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


def _unread_detail(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr):
        return "neither an assert nor an assignment"
    if isinstance(node, ast.For):
        return NO_TABLE
    if any(isinstance(child, ast.stmt) for child in ast.iter_child_nodes(node)):
        return "statements under if, while, with, try or match are not read"
    return "neither an assert, an assignment to names nor an import"


def _pairs(target: ast.expr, value: ast.expr, scope: Scope) -> Iterator[tuple[str | None, ast.expr]]:
    """Yield each name with its value; None as the name where only running the file could tell."""
    displays = (ast.Tuple, ast.List)
    if isinstance(target, displays) and isinstance(value, displays) and len(target.elts) == len(value.elts):
        for inner, part in zip(target.elts, value.elts, strict=True):
            yield from _pairs(inner, part, scope) if not isinstance(part, ast.Starred) else [(None, value)]
    else:
        yield scope.place_of(target) or None, value
