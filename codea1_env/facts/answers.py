"""Answers: when one equals another, which others are right, their form as outputs, and what comparing them may cost."""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from codea1_env import values
from codea1_env.declared import NotNegative, require_declared
from codea1_env.errors import UnknownName, UserError
from codea1_env.facts.submissions import TestCase
from codea1_env.facts.verdicts import Outcome, OutcomeKind

CHECK = "check"
"""Name of the function that a checker defines."""

_SPACE = re.compile(r"(\s+)")
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_LONGEST_NUMBER = 64


class AnswerOrder(StrEnum):
    """Whether the order of an answer's items matters."""

    FIXED = "fixed"
    """It does."""
    UNORDERED = "unordered"
    """The items of a list or tuple may have any order; each occurs as often as in the solution's answer."""
    UNORDERED_ROWS = "unordered_rows"
    """So may the items of each list or tuple in it."""


class OutputForm(StrEnum):
    """What counts in the output of a program."""

    WORDS = "words"
    """The words, in order. White space between them and line breaks do not count."""
    EXACT = "exact"
    """Every character, except that line breaks at the end do not count, and `\\r\\n` is `\\n`."""


def in_form(output: bytes, form: OutputForm) -> str:
    """Return an output as the text that is compared: the words joined by single spaces, or the lines as they are.

    Raises:
        UnicodeDecodeError: it is not UTF-8.
    """
    if form is OutputForm.WORDS:
        return b" ".join(output.split()).decode()
    return output.decode().replace("\r\n", "\n").rstrip("\n")


@dataclass(frozen=True, slots=True)
class Comparison:
    """When two encoded values count as equal. The defaults are Python's `==` on plain data."""

    rel_tol: NotNegative = 0.0
    """See `abs_tol`."""
    abs_tol: NotNegative = 0.0
    """A number matches an expected float (or complex) within max(abs_tol, rel_tol * larger magnitude). An expected
    integer needs equality; if neither value is the expected one, both must be floats."""
    nan_equal: bool = False
    """Whether nan equals nan."""
    strict_types: bool = False
    """Whether 1, 1.0 and True differ from each other (Python says that they do not)."""

    def __post_init__(self) -> None:
        require_declared(self, "rules: comparison.")

    def equal(self, expected: bytes, actual: bytes, *, mutual: bool = False) -> bool:
        """Return whether an encoded value equals the expected one.

        Args:
            expected: the solution's value.
            actual: the value that is judged.
            mutual: neither is the expected one; then a tolerance needs floats in both.
        """
        if expected == actual and self.nan_equal:  # most values
            return True
        return values.equal(
            expected,
            actual,
            rel_tol=self.rel_tol,
            abs_tol=self.abs_tol,
            nan_equal=self.nan_equal,
            strict_types=self.strict_types,
            mutual=mutual,
        )


@dataclass(frozen=True, slots=True)
class AnswerRules:
    """The right answers of one problem. By default only an answer that equals the solution's is right.

    Raises:
        UserError: the order is unknown, the tolerance is outside [0, 1), or a checker is given together with
            another rule.
    """

    order: str = AnswerOrder.FIXED
    """An `AnswerOrder`."""
    tolerance: float = 0.0
    """Numbers within it of an expected float, Decimal or Fraction are right, relative or absolute. For floats, at least
    the tolerance of the ruleset applies.

    Below 1: of two numbers of one sign, each is within the relative distance 1 of the other."""
    checker: str = ""
    """Source of a program that defines `check(arguments, expected, answer)` and returns whether the answer is right.

    `arguments` is the tuple of the arguments in the order of the solution's parameters, `expected` the solution's
    answer. It runs in a process of its own, and only for an answer that does not equal the solution's."""

    def __post_init__(self) -> None:
        if self.order not in list(AnswerOrder):
            raise UnknownName.of("order of answers", str(self.order), map(str, AnswerOrder))
        if type(self.tolerance) not in (int, float) or not 0 <= self.tolerance < 1:
            raise UserError(f"the tolerance of answers must be a number in [0, 1), got {self.tolerance!r}")
        if self.checker and (self.order != AnswerOrder.FIXED or self.tolerance):
            raise UserError("answers can have a checker or an order and tolerance, not both: a checker decides alone")

    @property
    def accepts_others(self) -> bool:
        """Whether answers that do not equal the solution's can be right."""
        return bool(self.checker or self.tolerance) or self.order != AnswerOrder.FIXED

    @property
    def unordered_levels(self) -> int:
        """How many outer levels of lists and tuples are compared without order: 0, 1 or 2."""
        return list(AnswerOrder).index(AnswerOrder(self.order))


EQUAL_ANSWERS = AnswerRules()
"""Only answers that equal the solution's are right."""


def nearly_equal_texts(expected: bytes, actual: bytes, tolerance: float) -> bool:
    """Whether two encoded texts differ in nothing but numbers, and those by no more than the tolerance.

    A number may differ from the expected one by `tolerance`, absolute or relative to the expected one, unless both are
    written as whole numbers. The white space between words must be the same.
    """
    if not (expected.startswith(b'"') and actual.startswith(b'"')):
        return False
    right_words, actual_words = (_SPACE.split(str(values.decode(text))) for text in (expected, actual))
    return len(right_words) == len(actual_words) and all(
        one == other or _near(one, other, tolerance) for one, other in zip(right_words, actual_words, strict=True)
    )


def _near(right: str, actual: str, tolerance: float) -> bool:
    words = (right, actual)
    if not all(len(word) <= _LONGEST_NUMBER and _NUMBER.fullmatch(word) for word in words):
        return False
    if all(word.lstrip("+-").isdecimal() for word in words):
        return int(right) == int(actual)
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


_BUDGET_BYTES = 1 << 20  # of a candidate's values: comparing that many takes 0.5 to 1.5 seconds
_PLAUSIBLE_LENGTHS = 2
_ITEM_BYTES = 24  # the longest text of a float
_SHORT_BYTES = 256
_SPENT = Outcome(
    OutcomeKind.OUTPUT_LIMIT,
    message=f"all answers together are {_BUDGET_BYTES:,} bytes longer than {_PLAUSIBLE_LENGTHS} times the right ones",
)


class ValueBudget:
    """What all values of one candidate, over all its runs, may still cost to compare; one beyond it has failed.

    Each value has its own bounds (`values.MAX_NODES`), but a candidate may answer hundreds of calls. A value whose
    length is plausible costs nothing: up to twice the expected length, plus 24 bytes per item, since a float within the
    tolerance may be written with up to 24 characters (`0.30000000000000004` for `0.3`).
    """

    def __init__(self) -> None:
        self._n_left = _BUDGET_BYTES

    def take(self, outcome: Outcome, expected: Outcome) -> Outcome:
        """Return a program's outcome, or an OUTPUT_LIMIT if the budget does not suffice to compare it."""
        n_bytes = _length(outcome)
        if n_bytes > _SHORT_BYTES and outcome.value != expected.value:
            self._n_left -= max(0, n_bytes - _PLAUSIBLE_LENGTHS * _length(expected) - _ITEM_BYTES * _n_items(expected))
            return outcome if self._n_left >= 0 else _SPENT
        return outcome

    def take_values(self, outcomes: Sequence[Outcome], expected: Iterable[bytes]) -> Sequence[Outcome]:
        """Return a program's outcomes of several calls, each as `take` returns it.

        Args:
            outcomes: one per call.
            expected: the encoded right values.
        """
        if max(map(_length, outcomes), default=0) <= _SHORT_BYTES:  # most outcomes
            return outcomes
        right = (Outcome(OutcomeKind.VALUE, value) for value in expected)
        return [*map(self.take, outcomes, right)]


def _n_items(outcome: Outcome) -> int:
    """Return the approximate number of leaves in the values of an outcome."""
    return sum(part.count(b",") + 1 for part in (outcome.value, outcome.items, outcome.arguments) if part)


def _length(outcome: Outcome) -> int:
    return len(outcome.value or b"") + len(outcome.items or b"") + len(outcome.arguments or b"")
