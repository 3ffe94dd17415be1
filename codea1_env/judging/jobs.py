"""What is run, and on which terms: a case as the call that evaluates it, and calls as the job of a program.

An entry-point call with literal arguments runs in the program's process, any other expression in a harness.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

from codea1_env.facts.answers import Comparison
from codea1_env.facts.submissions import TestCase
from codea1_env.problems.problem import Problem
from codea1_env.python_text import remembered_up_to
from codea1_env.rules.reading.direct_calls import is_direct_call
from codea1_env.rules.reading.function_calls import with_source_calls
from codea1_env.sandbox.interface import Call, Harness, Job, Limits, Place, Sandbox


@dataclass(frozen=True, slots=True)
class Terms:
    """The terms on which programs are judged."""

    sandbox: Sandbox
    """Where they run, and the checkers of problems."""
    limits: Limits
    """What a program, or a checker about one answer, may use."""
    comparison: Comparison
    """How the ruleset compares values."""


def call_of(expression: str, imports: tuple[str, ...], *, direct: bool) -> Call:
    """Return the call that evaluates an expression with its imports; a direct one needs none."""
    return Call(expression) if direct else Call(expression, imports, Place.HARNESS)


def call_of_case(case: TestCase) -> Call:
    """Return the call that evaluates a case."""
    return call_of(case.expression, case.imports, direct=case.direct)


def call_of_prediction(case: TestCase, max_bytes: int) -> Call | None:
    """Return the call that evaluates a case's prediction; None if there is none, or its value is known already.

    A literal runs in the program's process, since it is harmless. The sandbox also evaluates a known value that is
    longer than `max_bytes`, because the sandbox reports its length.
    """
    if case.prediction is None or (case.predicted is not None and len(case.predicted) <= max_bytes):
        return None
    return call_of(case.prediction, case.imports, direct=_is_literal(case.prediction))


@remembered_up_to(1024)
def _is_literal(source: str) -> bool:
    return is_direct_call(f"f({source})", "f")


def program_job(
    problem: Problem, program: str, calls: Iterable[Call], limits: Limits, harness: Harness | None = None
) -> Job:
    """Return the job that makes a program answer all calls.

    Without a harness the calls are tests of an agent. The imports of the statement hold for the program and for these
    tests, which may use them without an import of their own.
    """
    calls = tuple(calls)
    texts = [_prepare_call(call, problem.entry_point)[1] for call in calls] if problem.calls.functions else ()
    harness = replace(harness or Harness(problem.imports, is_trusted=False), source_calls=frozenset(chain(*texts)))
    entry_point, sent = problem.entry_point, sent_calls(problem, calls)
    return Job(program, entry_point, sent, problem.imports, harness, limits, problem.script, problem_id=problem.id)


def sent_calls(problem: Problem, calls: tuple[Call, ...]) -> tuple[Call, ...]:
    """Return calls as they are sent; those of most problems are sent as they are."""
    return tuple(_prepare_call(call, problem.entry_point)[0] for call in calls) if problem.calls.functions else calls


def _prepare_call(call: Call, entry_point: str) -> tuple[Call, tuple[str, ...]]:
    """Return a call as it is sent, and the texts that its harness may send (`Harness.source_calls`)."""
    if call.place is Place.PROGRAM or call.arguments:
        return call, ()
    sent = with_source_calls(call.expression, call.imports, entry_point)
    return call._replace(expression=sent.text), sent.source_calls
