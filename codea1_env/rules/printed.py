"""Predicted outputs in the form in which a problem compares outputs (`facts.outputs`)."""

from __future__ import annotations

import ast
from dataclasses import replace

from codea1_env import values
from codea1_env.facts.outputs import OutputForm, in_form
from codea1_env.facts.submissions import TestCase


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
