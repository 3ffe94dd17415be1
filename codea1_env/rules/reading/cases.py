"""Make test cases of conditions: which side is the expression, which one the prediction, and why some are none."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import replace

from codea1_env.facts.submissions import RejectionReason, TestCase
from codea1_env.python_text import MAX_DEPTH, UnreadableError, write
from codea1_env.rules.reading.dependence import vacuity_reason
from codea1_env.rules.reading.direct_calls import (
    calls_of,
    direct_calls_in,
    encoded_prediction,
    is_call_of,
    is_direct,
    makes_call,
    plain_call,
    raised_call,
    read_plain_case,
)
from codea1_env.rules.reading.frameworks import (
    RAISES,
    Raising,
    class_names,
    folded,
    is_built_in,
    plain_claim,
    sides_of_equality,
)
from codea1_env.rules.reading.function_calls import is_closed_call
from codea1_env.rules.reading.inlining import inline_names
from codea1_env.rules.reading.scopes import Inlined, Scope, not_read
from codea1_env.rules.reading.statements import Places, Statement, with_operands_before


def read_case(
    condition: ast.expr, scope: Scope, statement: Statement, places: Places | None, *, in_row: bool
) -> TestCase:
    """Return the case of a condition.

    Args:
        condition: as it is written.
        scope: the values of its names.
        statement: that states it.
        places: as in `SuiteReader`.
        in_row: whether a body is being read for the row of a table, whose items are then put where they are taken.

    Raises:
        UnreadableError: it is no test, or may not be used; says why.
    """
    sides = sides_of_equality(condition)
    if sides is not None and scope.shadow is None:
        plain = read_plain_case(*sides, scope.entry_point, statement.node, places)
        if plain is not None:
            return plain
    inlined = inline_names(condition, scope)
    try:
        return _case(inlined, scope, statement, places, (condition,), in_row=in_row)
    except RecursionError:  # as in `inline_names`
        raise UnreadableError(RejectionReason.SYNTAX_ERROR, "nested too deeply") from None


def read_raising_case(
    raising: Raising, scope: Scope, statement: Statement, places: Places | None, *, in_row: bool
) -> TestCase:
    """Return the case of the claim that a call raises an exception; as `read_case`."""
    classes, called = inline_names(raising.classes, scope), inline_names(raising.call, scope)
    call, names, entry_point = called.node, class_names(classes.node), scope.entry_point
    bindings = {**called.bindings, **classes.bindings}
    if not names or any(map(bindings.get, (*names, RAISES))) or entry_point == RAISES:
        raise not_read("only some built-in exceptions are tested")
    if not is_call_of(call, entry_point) or len(calls_of(call, entry_point)) > 1:
        raise not_read(f"expects an exception of something other than one call of {entry_point!r}")
    claim = ast.Call(ast.Name(RAISES, ast.Load()), [classes.node, call.func, *call.args], call.keywords)
    size, depth = called.size + classes.size + 1, max(called.depth, classes.depth + 1)
    stated = [part for part in ast.iter_child_nodes(statement.node) if isinstance(part, ast.expr)]
    inlined = replace(called, node=claim, bindings=bindings, size=size, depth=depth)
    said = stated[:1] or (raising.classes, raising.call)
    return _case(inlined, scope, statement, places, said, in_row=in_row)


def _case(
    inlined: Inlined,
    scope: Scope,
    statement: Statement,
    places: Places | None,
    said: Sequence[ast.expr],
    *,
    in_row: bool,
) -> TestCase:
    """Return the case of a condition; `said` is the condition before its names were inlined, or its parts."""
    entry_point = scope.entry_point
    if not inlined.calls_entry_point:
        raise UnreadableError(RejectionReason.NO_ENTRY_POINT_CALL, f"never calls {entry_point!r} by its name")
    scope.budget.take_nodes(inlined.size)
    condition = folded(inlined.node) if in_row and inlined.n_inlined else inlined.node
    claim = plain_claim(condition, inlined.bindings)
    vacuous_because = vacuity_reason(claim, entry_point, inlined.bindings)
    if vacuous_because:
        raise UnreadableError(RejectionReason.NO_ENTRY_POINT_CALL, vacuous_because)
    is_raised = raised_call(claim, entry_point) is not None
    sides = None if is_raised else _sides(claim, inlined, entry_point)
    parts = ((*said, inlined.node), ()) if sides is None else with_operands_before(claim, sides)
    expression, prediction = sides or (claim if is_raised else _call_bool(claim, inlined), ast.Constant(True))
    text, predicted_text = (
        write(node, shared=inlined.n_inlined > 0, formatted=inlined.formatted) for node in (expression, prediction)
    )
    is_closed = scope.functions and is_closed_call(expression, entry_point, inlined.imports)
    direct = is_direct(expression, entry_point) or is_closed
    return TestCase(
        expression=text,
        prediction=predicted_text,
        imports=inlined.imports,
        direct=direct,
        line=statement.line,
        predicted=encoded_prediction(prediction, predicted_text),
        calls=plain_call(expression, text) if direct else direct_calls_in(expression, entry_point),
        written=None if places is None else places.gathered(statement.node, *parts),
    )


def _sides(claim: ast.expr, inlined: Inlined, entry_point: str) -> tuple[ast.expr, ast.expr] | None:
    """Return the side that calls the entry point and the other one; None if both sides call it."""
    if any("pytest" in statement for statement in inlined.bindings.values()):
        return None  # a tolerance is not a value
    left, right = sides_of_equality(claim) or (claim, claim)
    if not makes_call(left, entry_point):
        return right, left
    return None if makes_call(right, entry_point) else (left, right)


def _call_bool(claim: ast.expr, inlined: Inlined) -> ast.expr:
    if inlined.depth >= MAX_DEPTH:
        raise UnreadableError(RejectionReason.SYNTAX_ERROR, "nested too deeply")
    if not is_built_in("bool", inlined.bindings):
        raise UnreadableError(RejectionReason.FORBIDDEN_NAME, "'bool' means something else here")
    return ast.Call(ast.Name("bool", ast.Load()), [claim], [])
