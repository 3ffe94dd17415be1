"""What has been read of a suite so far: its cases and rejections, and what the values of its names depend on."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TypeVar

from codea1_env.facts.call_forms import PLAIN_CALLS, CallForms
from codea1_env.facts.entry_points import read_entry_point
from codea1_env.facts.submissions import COUNTED_AS_INVALID, RejectionReason, Rejections, TestCase
from codea1_env.python_text import TextBudget, UnreadableError
from codea1_env.rules.reading.effects import (
    Code,
    Effects,
    effects_of,
    places_of,
)
from codea1_env.rules.reading.imports import known_names
from codea1_env.rules.reading.scopes import (
    ENTRY_POINT,
    INSTANCE,
    NOT_READ,
    RECEIVERS,
    AliasGroup,
    Helper,
    PartlyUsable,
    Scope,
    Unread,
    Unusable,
    not_read,
)
from codea1_env.rules.reading.statements import (
    Broken,
    Partial,
    Piece,
    Places,
    Statement,
    nodes_in,
)
from codea1_env.rules.reading.tables import NO_TABLE, Row, Tables, Value, value_of

_RowT = TypeVar("_RowT")
_STEPS_OF_ROW, _STEPS_OF_NODE = 40, 8  # what reading a body once more costs before anything is written


@dataclass(slots=True)
class SuiteRecord:
    """Collects the cases and rejections of a suite, and what its code may change."""

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
    modules: set[str] = field(default_factory=set)
    """The names of modules that can only be the program's."""
    _n_rows: int = 0
    """How many bodies are being read for a row each."""

    def __post_init__(self) -> None:
        self.defined_name = read_entry_point(self.entry_point).name
        self.scope = Scope(self.entry_point, {**known_names(self.imports)}, self.forms.functions, self.budget)
        self.scope.names.pop(self.defined_name, None)
        self.code = Code(self.entry_point, in_place=self.forms.in_place)

    def reject(self, piece: Piece, detail: str, reason: RejectionReason = NOT_READ, n: int = 1) -> None:
        """Add `n` equal dropped pieces."""
        place = piece.head if isinstance(piece, Partial) else piece
        is_attempt = self.places is not None and reason in COUNTED_AS_INVALID
        n_lines = 1 + place.text.strip().count("\n")
        written = self.places.lines(place.line, n_lines) if self.places and is_attempt else None
        self.rejections.add(reason, place.text, place.line, detail, n, written)

    def _apply(self, parts: Iterable[ast.AST], scope: Scope, piece: Statement, *, binds: bool = True) -> AliasGroup:
        """Record what nodes that are not read may do; return the group of all values that they may share parts with."""
        return self._record(effects_of(parts), scope, first_line(piece), binds=binds)

    def _record(self, effects: Effects, scope: Scope, by: str, *, binds: bool = True) -> AliasGroup:
        effects.bound.discard(self.defined_name)  # perhaps another definition: only the program's is run
        reached = self.code.reached(effects, scope, self.budget)
        altered = (reached or effects).altered
        if not altered.isdisjoint({self.defined_name, *self.modules}):
            scope.unsettled.names[self.defined_name] = by  # the program is another one from now on
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

    def _value(self, node: ast.expr, scope: Scope, piece: Statement) -> Value:
        """Return what a name stands for to which a node is assigned; what is not read may share parts with others."""
        value = value_of(node, scope)
        if isinstance(value, Unusable) and not (value is ENTRY_POINT or value is INSTANCE or isinstance(value, Helper)):
            shared = self._apply([node], scope, piece)
            if not isinstance(value, PartlyUsable):
                return Unread(value.reason, value.detail, shared)
            value.aliases.merge(shared)
        return value

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
                self.reject(head, self._surplus, RejectionReason.TOO_MANY, n_left * n_tests)
                return
            try:
                self.budget.take_steps(_STEPS_OF_ROW + _STEPS_OF_NODE * size)
            except UnreadableError as error:
                self.reject(head, f"{n_left:,} rows of a table: {error.detail}", error.reason, n_left)
                return
            self._n_rows += 1
            read(row)
            self._n_rows -= 1

    def _rows(self, node: ast.expr, scope: Scope) -> list[Row]:
        """Return the rows of a table with the values that names have now, whatever is bound before a row is read."""
        try:
            return list(Tables(scope.child(scope.receiver), fresh=self.forms.in_place).rows(node))
        except RecursionError:
            raise not_read(NO_TABLE) from None

    @property
    def _surplus(self) -> str:
        return f"only the first {self.max_cases} cases count"

    def _add(self, statement: Statement, scope: Scope, read: Callable[[], TestCase]) -> None:
        """Add the case that a statement states, or reject it."""
        try:
            case = read()
        except UnreadableError as error:
            self.reject(statement, error.detail, error.reason)
            self._apply([statement.node], scope, statement)
            return
        if self.max_cases is not None and len(self.cases) >= self.max_cases:
            self.reject(statement, self._surplus, RejectionReason.TOO_MANY)
        else:
            self.cases.append(case)


def first_line(piece: Statement | Broken) -> str:
    """Return how messages name a piece."""
    return piece.text.strip().partition("\n")[0][:60]
