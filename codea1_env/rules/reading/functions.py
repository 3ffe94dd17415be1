"""Read the functions, classes and fixtures of a test file: at their calls, or after the statements around them."""

from __future__ import annotations

import ast
import itertools
import math
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter

from codea1_env.python_text import UnreadableError
from codea1_env.rules.reading.effects import (
    defaults_of,
    effects_of,
    heads_of,
    parameters_of,
    receiver_of,
)
from codea1_env.rules.reading.frameworks import (
    Decorations,
    Table,
    decorations,
    unpacked,
)
from codea1_env.rules.reading.scopes import (
    ENTRY_POINT,
    NOT_READ,
    RECEIVERS,
    AliasGroup,
    Helper,
    Inlined,
    Scope,
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
    parsed,
)
from codea1_env.rules.reading.suite_records import SuiteRecord, first_line
from codea1_env.rules.reading.tables import Row, Value, bind_row

_SETUPS = ("setUpClass", "setup_class", "setUp", "setup_method", "setup")
_AROUND_TESTS = ("setup", "teardown")
_SETUPS_FIRST, _TESTS, _LAST = range(3)  # in which order functions are read after the statements around them
_DECLARES = re.compile(r"\b(?:global|nonlocal)\b")
_WITH_PARAMETERS = "a function with parameters that nothing gives"


@dataclass(frozen=True, slots=True)
class _Late:
    """A definition that is read after the statements around it."""

    order: int
    place: tuple[int, int, str]
    """The text, the scope and the name."""
    head: Statement
    read: Callable[[], None]


@dataclass(slots=True)
class FunctionReader(SuiteRecord, ABC):
    """Reads definitions; `_body` reads what they hold."""

    _late: list[_Late] = field(default_factory=list)
    """What is read after the statements of the module or of a function."""
    _read: set[int] = field(default_factory=set)
    """The functions that have been read without arguments."""
    _n_texts: int = 0
    """How many texts have been read: blocks of a reply, each of which is a file."""
    _uncalled: dict[int, Helper] = field(default_factory=dict)
    _shared: dict[int, Value] = field(default_factory=dict)
    """The values of fixtures that several tests share."""

    @abstractmethod
    def _body(self, pieces: Iterable[Piece], scope: Scope, nesting: int) -> None:
        """Read statements one after the other."""

    def _whole(self, pieces: Iterable[Piece], scope: Scope, nesting: int) -> None:
        """Read the body of a function: its statements, then the functions in it that nothing has called."""
        around, self._late = self._late, []
        self._body(pieces, scope, nesting)
        self._read_late()
        self._late = around

    def _read_late(self) -> None:
        last = {(late.order, late.place): late for late in self._late}
        for late in sorted(self._late, key=attrgetter("order")):
            if last[late.order, late.place] is late:
                late.read()
            elif late.order != _SETUPS_FIRST and id(late.head) not in self._read:
                self.reject(late.head, "a later definition takes its name")
        self._late.clear()

    def _read_at(self, order: int, scope: Scope, head: Statement, read: Callable[[], None]) -> None:
        """Read a definition later, unless another one takes its name in the scope where both stand."""
        self._late.append(_Late(order, (self._n_texts, id(scope), _name_of(head.node)), head, read))

    def _read_uncalled(self, scope: Scope) -> None:
        """Read `check(candidate)` though nothing has called it; drop other functions that nothing calls."""
        for helper in [*self._uncalled.values()]:
            names = parameters_of(helper.head.node)
            if names == ["candidate"] or (len(names) == 1 and _name_of(helper.head.node) == "check"):
                self._run(helper, {names[0]: ENTRY_POINT}, scope, 0)
            else:
                self.reject(helper.head, _WITH_PARAMETERS)
        self._uncalled.clear()

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
            given = itertools.chain(*map(arguments_in, node.decorator_list))
            run[: len(node.decorator_list)] = [part for part in given if head.source.may_run(part)]
        if isinstance(node, ast.ClassDef) and skip_reason:
            run += parsed(definition.body)
        if node.name != self.defined_name:
            if run:
                self._apply(run, scope, head, binds=False)
            detail = f"{node.name!r} is a function or class of the tester, which is not run"
            scope.bind(node.name, unknown(detail))
        if _DECLARES.search(head.text):
            outside = effects_of(parsed(definition.body)).outside - {self.defined_name}
            scope.unsettled.names.update(dict.fromkeys(outside, first_line(head)))
        if is_function:
            self._function(definition, marks, scope, nesting)
        elif skip_reason:
            self.reject(head, skip_reason)
        else:
            self._class(definition, scope, nesting)

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
        place, scope = scope, scope.for_functions
        inner, methods = replace(scope.child(), is_class=True), list[Partial]()
        for piece in definition.body:
            head = piece.head if isinstance(piece, Partial) else piece
            if isinstance(head, Statement) and isinstance(head.node, ast.FunctionDef):
                methods.append(definition_of(piece))
                continue
            self._body([piece], inner, nesting + 1)
            for name in effects_of(parsed([piece])).bound & inner.names.keys():
                value = inner.names[name]
                is_method = isinstance(value, Inlined) and isinstance(value.node, ast.Lambda)
                unread = unknown(f"{name!r} is a method of the tester, which is not run")
                _bind_members(inner, name, unread if is_method else value)
        names = [_name_of(method.head.node) for method in methods]
        bases = getattr(definition.head.node, "bases", ())

        def read() -> None:
            for_methods = scope.child()
            for_methods.names.update(_members_of(inner))
            inner.around = for_methods
            self._apply(bases, for_methods, definition.head)  # their methods run, too
            ends = [n for n, name in enumerate(names) if "teardownclass" in _plain_name(name)]
            for n, name in enumerate(names):
                if n not in ends and _is_around_tests(name):
                    self._run_unread(methods[n], for_methods)
            for name in _SETUPS:
                for method in (methods[n] for n, each in enumerate(names) if each == name):
                    self._set_up(method, for_methods, nesting)
            others = [n for n, name in enumerate(names) if name not in _SETUPS]
            others.sort(key=lambda n: (names[n].startswith("test"), names[n] if bases else ""))  # as unittest does
            self._whole([methods[n] for n in others], inner, nesting + 1)
            for n in ends:
                self._run_unread(methods[n], for_methods)

        self._read_at(_TESTS, place, definition.head, read)

    def _run_unread(self, definition: Partial, scope: Scope) -> None:
        """Record what a function may do that runs, but is not read before what needs the names around it."""
        head = definition.head
        self._apply(parsed([definition]), scope, head, binds=False)

    def _set_up(self, method: Partial, for_methods: Scope, nesting: int) -> None:
        """Read a method that prepares each test: what it assigns to `self` is a name of the other methods."""
        names = parameters_of(method.head.node)
        inner = for_methods.child(names[0] if names else "")
        self._whole(method.body, inner, nesting + 1)
        for place, value in inner.names.items():
            receiver, _, name = place.partition(".")
            if name and receiver == inner.receiver:
                _bind_members(for_methods, name, value)

    def _function(self, definition: Partial, marks: Decorations, scope: Scope, nesting: int) -> None:
        """Bind a function, which is read where it is called, or later if it needs no arguments."""
        head, node, around = definition.head, definition.head.node, scope.for_functions
        assert isinstance(node, ast.FunctionDef)
        names, receiver, is_test = parameters_of(node), receiver_of(node), node.name.startswith("test")
        optional = {each.arg: self._value(value, scope, head) for each, value in defaults_of(node.args)}
        detail = f"{node.name!r} is a function of the tester"
        helper = Helper(NOT_READ, detail, definition, around, optional, marks.is_fixture)
        is_used_by_all = marks.is_fixture and any("autouse" in ast.dump(mark) for mark in node.decorator_list)
        if is_used_by_all or not (marks.is_fixture or receiver or not _is_around_tests(node.name)):
            self._read_at(_SETUPS_FIRST, scope, head, partial(self._run_unread, definition, around))
        if marks.is_fixture:
            around.bind(node.name, helper)
            return
        given = {receiver, *optional, *(name for table in marks.tables for name in table.names or names)}
        missing = [name for name in names if name not in given]
        takes_fixtures = all(_is_fixture(around.look_up(name)) for name in missing)
        is_helper = not (takes_fixtures or marks.tables) and (not is_test or missing == ["candidate"])
        unread = self._skip_reason(definition, around, nesting) or marks.unread
        if not unread and (is_helper or not (missing or marks.tables)):
            if scope.is_class:
                _bind_members(around, node.name, helper)
            else:
                scope.bind(node.name, helper)
        if not is_helper:
            self._read_later(helper, marks, missing, scope, nesting)
        elif unread:
            self.reject(head, unread)
        else:
            self._uncalled[id(head)] = helper

    def _read_later(
        self, helper: Helper, marks: Decorations, missing: Sequence[str], scope: Scope, nesting: int
    ) -> None:
        """Read a function for each of its rows, unless a call has read it; `missing` are parameters for fixtures."""
        definition, head, around, node = helper.definition, helper.head, helper.scope, helper.head.node
        is_test, receiver = _name_of(node).startswith("test"), receiver_of(node)
        columns = parameters_of(node)[bool(receiver) :]
        as_defined = None if is_test else dict(around.names)
        tables = self._rows_of_tables(marks.tables, scope, head)

        def read_rows(rows: Sequence[tuple[Table, Row]]) -> None:
            inner = self._around_body(helper, missing, as_defined, nesting)
            for table, row in rows:
                _bind_columns(table, row, columns, inner)
            self._whole(definition.body, inner, nesting + 1)

        def read() -> None:
            if id(head) in self._read:
                return
            unread = self._skip_reason(definition, around, nesting) or marks.unread
            if not all(_is_fixture(around.look_up(name)) for name in missing):
                unread = unread or _WITH_PARAMETERS
            if unread:
                self.reject(head, unread)
                if is_test:
                    self._run_test_unread(helper, missing, nesting)
            elif not tables:
                read_rows(())
            else:
                self._each(definition, around, itertools.product(*tables), math.prod(map(len, tables)), read_rows)

        if tables is not None:
            self._read_at(_TESTS if is_test else _LAST, scope, head, read)

    def _run_test_unread(self, helper: Helper, missing: Sequence[str], nesting: int) -> None:
        """Record what a test may do that is not read; a fixture of it may be another test's, too."""
        fixtures = [name for name in missing if _is_fixture(helper.scope.look_up(name))]
        effects = effects_of(parsed([helper.definition]))
        effects.names |= {*fixtures}
        inner = self._around_body(helper, fixtures, None, nesting)
        self._record(effects, inner, first_line(helper.head), binds=False)

    def _rows_of_tables(
        self, tables: Sequence[Table], scope: Scope, head: Statement
    ) -> Sequence[Sequence[tuple[Table, Row]]] | None:
        try:
            return [[(table, row) for row in self._rows(table.rows, scope)] for table in reversed(tables)]
        except UnreadableError as error:
            self.reject(head, error.detail, error.reason)
            return None

    def _around_body(
        self, helper: Helper, missing: Sequence[str], as_defined: Mapping[str, Value] | None, nesting: int
    ) -> Scope:
        """Return what the body of a function sees whose arguments are defaults and fixtures."""
        around = helper.scope
        inner = around.child(receiver_of(helper.head.node) or around.receiver)
        if as_defined is not None:  # it may have been called at any time
            changed = [name for name, value in inner.names.items() if as_defined.get(name) is not value]
            inner.unbind(changed, "what follows a function", AliasGroup())
        inner.names.update(helper.defaults)
        for name in missing:
            inner.bind(name, self._fixture_value(around.look_up(name), around, nesting))
        return inner

    def _call(self, statement: Statement, helper: Helper, call: ast.Call, scope: Scope, nesting: int) -> bool:
        """Read the body of a helper with the arguments of a call; return False if they do not fit its parameters."""
        node = helper.head.node
        assert isinstance(node, ast.FunctionDef)
        by_position = [each.arg for each in (*node.args.posonlyargs, *node.args.args) if each.arg not in RECEIVERS]
        args = [each for argument in call.args for each in unpacked(argument)]
        pairs: list[tuple[str | None, ast.expr]] = [
            *zip(by_position, args, strict=False),
            *((each.arg, each.value) for each in call.keywords),
        ]
        given = dict(pairs)
        fits = len(args) <= len(by_position) and len(given) == len(pairs)
        if not fits or any(isinstance(each, ast.Starred) for each in args) or node.args.vararg or node.args.kwarg:
            return False
        if {*given, *helper.defaults} != set(parameters_of(node)).difference(RECEIVERS):
            return False
        if not given and id(helper.head) in self._read:  # its tests have been read
            self._apply([call], scope, statement)
            return True
        self._read |= set() if given else {id(helper.head)}
        self._uncalled.pop(id(helper.head), None)
        values = {
            **helper.defaults,
            **{name: self._value(each, scope, statement) for name, each in given.items() if name},
        }
        self._each(helper.definition, scope, [values], 1, lambda each: self._run(helper, each, scope, nesting))
        return True

    def _run(self, helper: Helper, arguments: Mapping[str, Value], scope: Scope, nesting: int) -> None:
        inner = helper.scope.child(receiver_of(helper.head.node) or helper.scope.receiver)
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
        shared = self._shared.get(id(fixture.head))
        value = self._made_by(fixture, scope, nesting) if shared is None else shared
        if any("scope" in ast.dump(decorator) for decorator in fixture.head.node.decorator_list):
            self._shared[id(fixture.head)] = value
        return value

    def _made_by(self, fixture: Helper, scope: Scope, nesting: int) -> Value:
        head, body = fixture.definition.head, fixture.definition.body
        *before, last = body or (head,)
        inner, value = scope.child(), None
        match last.node if isinstance(last, Statement) and not parameters_of(head.node) else None:
            case ast.Return(value=made) | ast.Expr(value=ast.Yield(value=made)):
                value = made
        simple = (ast.Assign, ast.AnnAssign, ast.Import, ast.ImportFrom)
        if (
            value is None
            or nesting >= MAX_NESTING
            or not all(
                isinstance(each, Statement) and (isinstance(each.node, simple) or is_no_op(each.node))
                for each in before
            )
        ):
            self._run_unread(fixture.definition, scope)
            return unknown(f"{_name_of(head.node)!r} is a fixture that does more than to return a value")
        self._whole(before, inner, MAX_NESTING)
        return self._value(value, inner, head)

    def _holds_test(self, pieces: Iterable[Piece], scope: Scope) -> bool:
        """Whether `pieces` hold a test, or a call of a helper that does."""
        pieces = tuple(pieces)
        effects = effects_of(piece.node for piece in pieces if isinstance(piece, Statement))
        called = effects.called | {f"self.{name}" for name in effects.methods}
        return holds_assert(pieces) or any(isinstance(scope.look_up(name), Helper) for name in called)


def holds_assert(pieces: Iterable[Piece]) -> bool:
    """Whether something that states a test, broken or not, stands anywhere in `pieces`."""
    return any(
        (isinstance(piece, Broken) and piece.is_assert)
        or (isinstance(piece, Partial) and holds_assert(piece.body))
        or (isinstance(piece, Statement) and effects_of([piece.node]).n_tests > 0)
        for piece in pieces
    )


def _bind_members(scope: Scope, name: str, value: Value) -> None:
    for receiver in RECEIVERS:
        scope.bind(f"{receiver}.{name}", value)


def _name_of(node: ast.stmt) -> str:
    return node.name if isinstance(node, DEFINITIONS) else ""


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


def _bind_columns(table: Table, row: Row, columns: Sequence[str], scope: Scope) -> None:
    """Bind the parameters of a function to the parts of a row."""
    targets: list[ast.expr] = [ast.Name(name, ast.Store()) for name in table.names or columns]
    is_spread = table.spreads and isinstance(row.node, ast.List | ast.Tuple)
    bind_row(targets[0] if len(targets) == 1 and not is_spread else ast.Tuple(targets, ast.Store()), row, scope)
