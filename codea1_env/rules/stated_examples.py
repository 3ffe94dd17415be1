"""What the examples of a problem's statement say, so that a test which asks only that is known for a copy."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache

from codea1_env import values
from codea1_env.rules.canonical_calls import CanonicalCalls, calls_of
from codea1_env.rules.reading.python_text import UnreadableError, parse
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading
from codea1_env.submissions import TestCase


@lru_cache(maxsize=4096)
def stated_answers(
    examples: tuple[str, ...], entry_point: str, canonical: CanonicalCalls | None = None
) -> Mapping[str, bytes | None]:
    """Return the calls that the examples make, as a case writes them, each with its encoded answer.

    Args:
        examples: asserts, as in `Problem.examples`; one that is no test is left out.
        entry_point: the problem's.
        canonical: how calls are written; None: as the examples do.

    Returns:
        The answer is None where an example says something else of a call than what it equals.
    """
    cases = [
        case
        for example in examples
        for case in read_suite(example, Reading.STRICT, entry_point=entry_point, tests_per_suite=None).cases
    ]
    found: dict[str, bytes | None] = {}
    for case in sorted(cases, key=lambda case: case.direct):  # what a call equals says most
        calls = map(_without_types, calls_of(case, canonical))
        found.update(dict.fromkeys(calls, case.predicted if case.direct else None))
    return found


def is_stated(case: TestCase, calls: Sequence[str], value: bytes, stated: Mapping[str, bytes | None]) -> bool:
    """Whether the statement gives all that a case asks: its call with this value, or each of its calls.

    Args:
        case: of the strict reading.
        calls: what it calls, written canonically as the examples are. Who writes `2.0` for 2, or a tuple for a list,
            copies, too.
        value: the solution's, encoded.
        stated: see `stated_answers`.
    """
    if not case.direct:
        return bool(calls) and stated.keys() >= set(map(_without_types, calls))
    call = _without_types(calls[0])
    if call not in stated:
        return False
    answer = stated[call]
    return answer is None or values.equal(value, answer, rel_tol=_CLOSE, nan_equal=True)


_CLOSE = 1e-6  # statements round
_OF_OTHER_TYPES = re.compile(r"[.j{]|True|False|\(.*\(")  # a number, a set or, within the call's, a tuple
_MAX_PARSED = 4096  # characters; examples are short


def _without_types(call: str) -> str:
    """Return a call with numbers as integers where they are that, and with lists for tuples and sets."""
    return _in_one_type(call) if len(call) <= _MAX_PARSED and _OF_OTHER_TYPES.search(call) else call


@lru_cache(maxsize=4096)
def _in_one_type(call: str) -> str:
    try:
        module = parse(call)
    except UnreadableError:
        return call
    return ast.unparse(_InOneType().visit(module))


class _InOneType(ast.NodeTransformer):
    def visit_Constant(self, node: ast.Constant) -> ast.expr:
        value = node.value
        if isinstance(value, bool | float | complex) and abs(value) < 1 << 53 and value == int(complex(value).real):
            return ast.Constant(int(complex(value).real))
        return node

    def visit_Tuple(self, node: ast.Tuple) -> ast.expr:
        return ast.List([self.visit(each) for each in node.elts], ast.Load())

    def visit_Set(self, node: ast.Set) -> ast.expr:
        return ast.List([self.visit(each) for each in node.elts], ast.Load())
