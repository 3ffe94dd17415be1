"""The form in which calls are sent to the sandbox: closed calls with functions are sent as text."""

from __future__ import annotations

from dataclasses import dataclass

from codea1_env.problems.problem import Problem
from codea1_env.rules.reading.function_calls import source_calls, with_source_calls
from codea1_env.sandbox.interface import Call, Place


@dataclass(frozen=True, slots=True)
class SentCalls:
    """The calls of one job."""

    calls: tuple[Call, ...]
    sources: frozenset[str] = frozenset()
    """The texts that its harness may send (`Harness.source_calls`)."""

    @classmethod
    def of(cls, problem: Problem, calls: tuple[Call, ...]) -> SentCalls:
        """Return calls as they are sent; those of most problems are sent as they are."""
        if not problem.calls.functions:
            return cls(calls)
        name = problem.entry_point
        in_harness = [call for call in calls if call.place is Place.HARNESS and not call.arguments]
        texts = (text for call in in_harness for text in source_calls(call.expression, call.imports, name))
        return cls(tuple(_sent(call, name) for call in calls), frozenset(texts))


def _sent(call: Call, entry_point: str) -> Call:
    if call.place is not Place.HARNESS or call.arguments:
        return call
    return call._replace(expression=with_source_calls(call.expression, call.imports, entry_point))
