"""The strict reading of a tester's reply: from Python text to test cases, with a reason for every dropped piece.

These statements are read, in the order of the reply:

- `assert E == P` or `assert P == E` where exactly one side calls the entry point: expression E, prediction P.
  `E is None`, `E is True` and `E is False` count as `==`, since values cross processes as plain data. Equalities that
  are wrapped or negated twice count too (`claims`).
- any other assert whose condition calls the entry point: expression `bool(condition)`, prediction `True`.
- `name = value`, also chained, annotated, and pairwise for displays (`a, b = 1, 2`): later asserts get the expression
  in place of the name. Reading executes nothing. If a dropped statement may have changed a name's value
  (`x.append(1)`), an assert that needs the name is dropped too.
- imports of pure modules; a case carries the imports that it needs. An import of the entry point itself has no effect.
- asserts in functions without parameters and in methods whose only parameter is `self` or `cls`, as if they stood at
  the top level. A function sees the names of the module, not those of its class.

An assert that may hold whatever the entry point returns is dropped (`dependence`).

A call of the entry point is a call by its name: `f(1)`, not `solution.f(1)`, `Solution().f(1)` or `map(f, xs)`.
Asserts under `if`, `for`, `while`, `with` and `try`, in async or decorated functions, and in functions with parameters
are not read (NOT_AN_ASSERT), because their meaning depends on running the file. The same holds for unittest's assert
methods.

If the entry point works in place (`CallForms.in_place`), a statement that calls it is read, too: later asserts get the
argument as it is after the call (`in_place`).
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from types import EllipsisType

from codea1_env.facts.call_forms import PLAIN_CALLS, CallForms
from codea1_env.facts.entry_points import read_entry_point
from codea1_env.facts.submissions import RejectionReason, TestCase
from codea1_env.python_text import MAX_DEPTH, TextBudget, UnreadableError, write
from codea1_env.rules.reading.allowed_names import is_importable, may_be_imported_from
from codea1_env.rules.reading.claims import is_built_in, plain_claim, sides_of_equality
from codea1_env.rules.reading.dependence import vacuity_reason
from codea1_env.rules.reading.direct_calls import calls_of, direct_calls_in, is_direct
from codea1_env.rules.reading.function_calls import is_closed_call
from codea1_env.rules.reading.in_place import apply_calls, is_call_statement
from codea1_env.rules.reading.inlining import inline_names
from codea1_env.rules.reading.plain import encoded_prediction, plain_call, read_plain_case
from codea1_env.rules.reading.rejections import Rejections
from codea1_env.rules.reading.scopes import INSTANCE, Imported, Inlined, Scope, Unusable
from codea1_env.rules.reading.statements import DEFINITIONS, MAX_NESTING, Broken, Partial, Piece, Statement


@dataclass(slots=True)
class SuiteReader:
    """Collects cases and rejections from statements, in their order."""

    entry_point: str
    max_cases: int | None = None
    budget: TextBudget = field(default_factory=TextBudget)
    """Of the reply. Nodes of cases with inlined names are taken from it, so that a short reply cannot become a huge
    suite."""
    prose_is_broken: bool = True
    """Whether text that is neither Python nor an assert is a SYNTAX_ERROR (in a block) or prose."""
    forms: CallForms = PLAIN_CALLS
    """What tests of the problem may do beside plain calls."""
    cases: list[TestCase] = field(default_factory=list)
    rejections: Rejections = field(default_factory=Rejections)
    scope: Scope = field(init=False)
    defined_name: str = field(init=False)
    """The function or the class that the program must define."""

    def __post_init__(self) -> None:
        self.scope = Scope(self.entry_point, functions=self.forms.functions, budget=self.budget)
        self.defined_name = read_entry_point(self.entry_point).name

    def read(self, pieces: Iterable[Piece]) -> None:
        """Add the cases of `pieces`; the names that they bind stay bound for the next call."""
        self._body(pieces, self.scope, self.scope, 0)

    def reject(self, reason: RejectionReason, source: str, line: int, detail: str) -> None:
        """Add one dropped piece."""
        self.rejections.add(reason, source, line, detail)

    # -- statements --

    def _body(self, pieces: Iterable[Piece], scope: Scope, for_functions: Scope, nesting: int) -> None:
        for piece in pieces:
            if isinstance(piece, Broken):
                self._broken(piece, scope)
            elif isinstance(piece, Partial):
                self._definition(piece.head, piece.body, scope, for_functions, nesting)
            elif isinstance(piece.node, DEFINITIONS):
                body = tuple(Statement(node, piece.source) for node in piece.node.body)
                self._definition(piece, body, scope, for_functions, nesting)
            elif not _is_no_op(piece.node):
                self._simple(piece, scope)

    def _simple(self, statement: Statement, scope: Scope) -> None:
        in_place = self.forms.in_place
        if not (in_place and is_call_statement(statement.node, self.entry_point)):
            self._one(statement, scope)
        if in_place:
            apply_calls(statement.node, scope, _first_line(statement.text))

    def _one(self, statement: Statement, scope: Scope) -> None:
        match statement.node:
            case ast.Assert(test=condition):
                self._assert(statement, condition, scope)
            case ast.Assign(targets=targets, value=value):
                self._assign(statement, targets, value, scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self._assign(statement, [target], value, scope)
            case ast.Import(names=names):
                for alias in names:
                    self._import(statement, alias, None, scope)
            case ast.ImportFrom(module=module, names=names, level=level):
                for alias in names:
                    self._import(statement, alias, "." * level + (module or ""), scope)
            case _:
                self._drop(statement, scope, _unread_detail(statement.node))

    def _definition(
        self, head: Statement, body: tuple[Piece, ...], scope: Scope, for_functions: Scope, nesting: int
    ) -> None:
        node = head.node
        assert isinstance(node, DEFINITIONS)
        if node.name != self.defined_name:
            detail = f"{node.name!r} is a function or class of the tester, which is not run"
            scope.bind(node.name, Unusable(RejectionReason.FORBIDDEN_NAME, detail))
        skip_reason = self._skip_reason(node, body, nesting)
        if skip_reason:
            self.reject(RejectionReason.NOT_AN_ASSERT, head.text, head.line, skip_reason)
        elif isinstance(node, ast.ClassDef):
            self._body(body, for_functions.child(), for_functions, nesting + 1)
        else:
            inner = for_functions.child()
            self._body(body, inner, inner, nesting + 1)

    def _skip_reason(
        self, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef, body: tuple[Piece, ...], nesting: int
    ) -> str:
        """Return why the asserts of a definition are not read; empty if they are."""
        if node.name == self.defined_name:
            return "defines the entry point, which only the program may define"
        if not holds_assert(body):
            return "a definition that holds no assert"
        if nesting >= MAX_NESTING:
            return "nested too deeply"
        if isinstance(node, ast.AsyncFunctionDef) or node.decorator_list:
            return "an async or decorated definition"
        if isinstance(node, ast.FunctionDef) and _parameters(node) - {"self", "cls"}:
            return "a function with parameters"
        return ""

    def _assert(self, statement: Statement, condition: ast.expr, scope: Scope) -> None:
        try:
            case = self._case(condition, scope, statement.line)
        except UnreadableError as error:
            self.reject(error.reason, statement.text, statement.line, error.detail)
            return
        if self.max_cases is not None and len(self.cases) >= self.max_cases:
            detail = f"only the first {self.max_cases} cases count"
            self.reject(RejectionReason.TOO_MANY, statement.text, statement.line, detail)
            return
        self.cases.append(case)

    def _assign(self, statement: Statement, targets: list[ast.expr], value: ast.expr, scope: Scope) -> None:
        pairs = [pair for target in targets for pair in _pairs(target, value)]
        if any(name is None for name, _ in pairs):
            self._drop(statement, scope, "assigns to something other than single names")
            return
        if any(name == self.defined_name for name, _ in pairs):
            self._drop(statement, scope, f"assigns to {self.defined_name!r}, which only the program may define")
            return
        values = {id(node): _value(node, scope) for _, node in pairs}
        for name, node in pairs:
            if name is not None:
                scope.bind(name, values[id(node)])

    def _import(self, statement: Statement, alias: ast.alias, module: str | None, scope: Scope) -> None:
        """Bind the name of `import alias` or `from module import alias`."""
        name = alias.asname or (alias.name if module else alias.name.partition(".")[0])
        if module == "__future__" or (module is not None and alias.name == name == self.defined_name):
            return  # the program defines the entry point, so importing it has no effect
        allowed = may_be_imported_from(module, alias.name) if module is not None else is_importable(alias.name)
        if allowed and name != self.defined_name and not name.startswith("__"):
            node = ast.ImportFrom(module, [alias], 0) if module else ast.Import([alias])
            full_name = f"{module}.{alias.name}" if module else alias.name if alias.asname else name
            scope.bind(name, Imported(ast.unparse(node), full_name))
            return
        detail = f"tests may not import {module + '.' if module else ''}{alias.name}"
        self.reject(RejectionReason.NOT_AN_ASSERT, statement.text, statement.line, detail)
        if name != self.defined_name:
            scope.bind(name, Unusable(RejectionReason.FORBIDDEN_NAME, detail))

    def _broken(self, piece: Broken, scope: Scope) -> None:
        for name in piece.names & scope.names.keys():
            scope.invalidate(name, rebound=True, by=_first_line(piece.text))
        if piece.is_assert or self.prose_is_broken:
            self.reject(piece.fault.reason, piece.text, piece.line, piece.fault.detail)
        else:
            self.reject(RejectionReason.NOT_AN_ASSERT, piece.text, piece.line, "not Python")

    def _drop(self, statement: Statement, scope: Scope, detail: str) -> None:
        text = statement.text
        for node in ast.walk(statement.node):
            if isinstance(node, ast.Name):
                scope.invalidate(node.id, rebound=not isinstance(node.ctx, ast.Load), by=_first_line(text))
        self.reject(RejectionReason.NOT_AN_ASSERT, text, statement.line, detail)

    # -- asserts --

    def _case(self, condition: ast.expr, scope: Scope, line: int) -> TestCase:
        sides = sides_of_equality(condition)
        plain = None if sides is None else read_plain_case(*sides, self.entry_point, line)
        if plain is not None:
            return plain
        inlined = inline_names(condition, scope)
        try:
            return self._general_case(inlined, line)
        except RecursionError:  # as in `inline_names`
            raise UnreadableError(RejectionReason.SYNTAX_ERROR, "nested too deeply") from None

    def _general_case(self, inlined: Inlined, line: int) -> TestCase:
        if not inlined.calls_entry_point:
            detail = f"never calls {self.entry_point!r} by its name"
            raise UnreadableError(RejectionReason.NO_ENTRY_POINT_CALL, detail)
        self.budget.take_nodes(inlined.size)
        claim = plain_claim(inlined.node, inlined.bindings)
        vacuous_because = vacuity_reason(claim, self.entry_point, inlined.bindings, in_place=self.forms.in_place)
        if vacuous_because:
            raise UnreadableError(RejectionReason.NO_ENTRY_POINT_CALL, vacuous_because)
        return self._test_case(inlined, *(self._sides(claim) or (_call_bool(claim, inlined), ast.Constant(True))), line)

    def _sides(self, claim: ast.expr) -> tuple[ast.expr, ast.expr] | None:
        """Return the side that calls the entry point and the other one; None if both sides call it."""
        left, right = sides_of_equality(claim) or (claim, claim)
        left_calls, right_calls = calls_of(left, self.entry_point), calls_of(right, self.entry_point)
        if left_calls and right_calls:
            return None
        return (left, right) if left_calls else (right, left)

    def _test_case(self, inlined: Inlined, expression: ast.expr, prediction: ast.expr, line: int) -> TestCase:
        text, predicted_text = _text(expression, inlined), _text(prediction, inlined)
        direct = is_direct(expression, self.entry_point) or self._is_closed(expression, inlined)
        return TestCase(
            expression=text,
            prediction=predicted_text,
            imports=inlined.imports,
            direct=direct,
            line=line,
            predicted=encoded_prediction(prediction, predicted_text),
            calls=plain_call(expression, text) if direct else direct_calls_in(expression, self.entry_point),
        )

    def _is_closed(self, expression: ast.expr, inlined: Inlined) -> bool:
        return self.forms.functions and is_closed_call(expression, self.entry_point, inlined.imports)


def holds_assert(pieces: Iterable[Piece]) -> bool:
    """Whether an assert, broken or not, stands anywhere in `pieces`."""
    return any(
        (isinstance(piece, Broken) and piece.is_assert)
        or (isinstance(piece, Partial) and holds_assert(piece.body))
        or (isinstance(piece, Statement) and any(isinstance(node, ast.Assert) for node in ast.walk(piece.node)))
        for piece in pieces
    )


def _is_no_op(node: ast.stmt) -> bool:
    """Whether `node` is `pass`, `...` or a docstring."""
    match node:
        case ast.Pass() | ast.Expr(value=ast.Constant(value=str() | EllipsisType())):
            return True
    return False


def _unread_detail(node: ast.stmt) -> str:
    if isinstance(node, ast.Expr):
        return "neither an assert nor an assignment"
    if any(isinstance(child, ast.stmt) for child in ast.iter_child_nodes(node)):
        return "statements under if, for, while, with, try or match are not read"
    return "neither an assert, an assignment to names nor an import"


def _parameters(node: ast.FunctionDef) -> set[str]:
    found = node.args
    named = [*found.posonlyargs, *found.args, *found.kwonlyargs, found.vararg, found.kwarg]
    return {argument.arg for argument in named if argument is not None}


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str | None, ast.expr]]:
    """Yield each name with its value; None as the name where only running the file could tell."""
    displays = (ast.Tuple, ast.List)
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, displays) and isinstance(value, displays) and len(target.elts) == len(value.elts):
        for inner, part in zip(target.elts, value.elts, strict=True):
            yield from _pairs(inner, part) if not isinstance(part, ast.Starred) else [(None, value)]
    else:
        yield None, value


def _value(node: ast.expr, scope: Scope) -> Inlined | Unusable:
    if _is_instance(node, scope.entry_point):
        return INSTANCE
    try:
        return inline_names(node, scope)
    except UnreadableError as error:
        return Unusable(error.reason, error.detail)


def _is_instance(node: ast.expr, entry_point: str) -> bool:
    """Whether `node` makes an instance of the class whose method is the entry point."""
    match node:
        case ast.Call(func=ast.Name(id=called), args=[], keywords=[]):
            name, method = read_entry_point(entry_point)
            return called == name and bool(method)
    return False


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
