"""Predicted outputs in the form in which a problem compares outputs (`facts.outputs`)."""

from __future__ import annotations

import ast
import math
import re
from dataclasses import replace

from codea1_env import values
from codea1_env.facts.answers import OutputForm, in_form
from codea1_env.facts.submissions import TestCase

_SPACE = re.compile(r"(\s+)")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_LONGEST_NUMBER = 64


def nearly_equal_texts(expected: bytes, actual: bytes, tolerance: float) -> bool:
    """Whether two encoded texts differ in nothing but numbers, and those by no more than the tolerance.

    A number may differ from the expected one by `tolerance`, absolute or relative to the expected one, unless both are
    written as whole numbers. The white space between words must be the same.
    """
    if not (expected.startswith(b'"') and actual.startswith(b'"')):
        return False
    wanted, found = (_SPACE.split(str(values.decode(text))) for text in (expected, actual))
    return len(wanted) == len(found) and all(
        one == other or _near(one, other, tolerance) for one, other in zip(wanted, found, strict=True)
    )


def _near(wanted: str, found: str, tolerance: float) -> bool:
    words = (wanted, found)
    if not all(len(word) <= _LONGEST_NUMBER and _NUMBER.fullmatch(word) for word in words):
        return False
    if all(word.lstrip("+-").isdecimal() for word in words):
        return int(wanted) == int(found)
    expected, given = map(float, words)
    return math.isfinite(expected) and abs(given - expected) <= max(tolerance, tolerance * abs(expected))


def as_printed(value: bytes, form: OutputForm | None) -> bytes:
    """Return an encoded text in a form; any other value, and every value without a form, unchanged."""
    if form is None or not value.startswith(b'"'):
        return value
    source = values.to_source(value)
    try:
        text = in_form(ast.literal_eval(source.expression).encode(), form) if source is not None else None
    except UnicodeEncodeError:  # half of a surrogate pair, which no output contains
        return value
    return value if text is None else values.encode(text, max_bytes=2 * len(value) + 2)


def case_as_printed(case: TestCase, form: OutputForm | None) -> TestCase:
    """Return a case whose predicted output has a form, if it is a literal and the case compares the output itself."""
    if form is None or not case.direct or case.predicted is None:
        return case
    predicted = as_printed(case.predicted, form)
    source = values.to_source(predicted) if predicted != case.predicted else None
    return case if source is None else replace(case, predicted=predicted, prediction=source.expression)
