"""The form in which calls are sent to the sandbox: closed calls with functions are sent as text."""

from __future__ import annotations

from codea1_env.problems.problem import Problem
from codea1_env.rules.reading.function_calls import source_calls, with_source_calls
from codea1_env.sandbox.interface import Call, Place


def sent_calls(problem: Problem, calls: tuple[Call, ...]) -> tuple[Call, ...]:
    """Return calls as they are sent; those of most problems are sent as they are."""
    return tuple(_sent(call, problem.entry_point) for call in calls) if problem.calls.functions else calls


def sent_texts(problem: Problem, calls: tuple[Call, ...]) -> frozenset[str]:
    """Return the texts that the harness of these calls may send (`Harness.source_calls`)."""
    in_harness = [call for call in calls if problem.calls.functions and _is_text(call)]
    texts = (source_calls(call.expression, call.imports, problem.entry_point) for call in in_harness)
    return frozenset[str]().union(*texts)


def _is_text(call: Call) -> bool:
    return call.place is Place.HARNESS and not call.arguments


def _sent(call: Call, entry_point: str) -> Call:
    if not _is_text(call):
        return call
    return call._replace(expression=with_source_calls(call.expression, call.imports, entry_point))
