"""A suite and the solution's values in, the cases that count out, the others with their reason.

Source: method.md 1.3 and 1.4 (release reward.py:491-583), with its defects D6, D9, D11, D12 gone: one slot per case,
predictions judged apart from calls, values as plain data, and two runs of the solution that must agree.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from codea1_env import values
from codea1_env.outcomes import Outcome, OutcomeKind
from codea1_env.rules.ruleset import Comparison, Validation
from codea1_env.submissions import Rejection, RejectionReason, Suite, TestCase
from codea1_env.verdicts import ValidCase, ValidSuite

__all__ = ["COUNTED_AS_INVALID", "SolutionEvidence", "validate", "values_equal"]

COUNTED_AS_INVALID = frozenset(
    {
        RejectionReason.SYNTAX_ERROR,
        RejectionReason.NO_ENTRY_POINT_CALL,
        RejectionReason.FORBIDDEN_NAME,
        RejectionReason.DUPLICATE,
        RejectionReason.WRONG_PREDICTION,
        RejectionReason.SOLUTION_ERROR,
        RejectionReason.SOLUTION_TIME_LIMIT,
        RejectionReason.FLAKY,
        RejectionReason.OPAQUE_VALUE,
    }
)
"""Rejections that are failed attempts at a test. Prose, unread forms and surplus cases are reported but not counted,
as in the release, whose reading never gives NO_ENTRY_POINT_CALL or FORBIDDEN_NAME."""


@dataclass(frozen=True, slots=True)
class SolutionEvidence:
    """What the solution did with one case."""

    first: Outcome
    second: Outcome
    """From another process that ran the calls in reverse order."""
    prediction: Outcome | None
    """The tester's own value, evaluated without the solution; None where the case has none."""

    @property
    def internal_error(self) -> bool:
        """True iff any part of it is our failure."""
        kinds = [self.first.kind, self.second.kind]
        if self.prediction is not None:
            kinds.append(self.prediction.kind)
        return OutcomeKind.INTERNAL_ERROR in kinds


def values_equal(a: bytes, b: bytes, comparison: Comparison) -> bool:
    """Whether two encoded values are equal under `comparison`."""
    return values.equal(
        a,
        b,
        rel_tol=comparison.rel_tol,
        abs_tol=comparison.abs_tol,
        nan_equal=comparison.nan_equal,
        strict_types=comparison.strict_types,
    )


def validate(
    suite: Suite, evidence: Sequence[SolutionEvidence], *, validation: Validation, comparison: Comparison
) -> ValidSuite:
    """Return the cases of `suite` that the solution confirms.

    Args:
        suite: as read from the reply.
        evidence: one per `suite.cases`, same order.
        validation: what a wrong prediction means.
        comparison: when a prediction counts as right.

    Raises:
        ValueError: lengths differ.
    """
    if len(evidence) != len(suite.cases):
        raise ValueError(f"{len(suite.cases)} cases, but evidence for {len(evidence)}")
    if any(item.internal_error for item in evidence):
        return ValidSuite((), suite.rejections, 0, suite.nonprintable_share, internal_error=True)
    kept: list[ValidCase] = []
    rejections = list(suite.rejections)
    seen: set[tuple[str, tuple[str, ...], bytes]] = set()
    for case, item in zip(suite.cases, evidence, strict=True):
        reason = _reason_against(item)
        key = (case.expression, case.imports, item.first.value or b"")
        if reason is None and key in seen:
            reason = RejectionReason.DUPLICATE
        if reason is not None:
            rejections.append(_rejection(case, reason, _detail(item)))
            continue
        seen.add(key)
        valid = _confirmed(case, item, validation, comparison)
        if valid.prediction_right is False:
            rejections.append(_wrong_prediction(case, valid))
        if valid.prediction_right is not False or validation is not Validation.DROP_WRONG:
            kept.append(valid)
    n_invalid = sum(rejection.reason in COUNTED_AS_INVALID for rejection in rejections)
    return ValidSuite(tuple(kept), tuple(rejections), n_invalid, suite.nonprintable_share)


def _reason_against(item: SolutionEvidence) -> RejectionReason | None:
    for outcome in (item.first, item.second):
        if outcome.kind is OutcomeKind.OPAQUE:
            return RejectionReason.OPAQUE_VALUE
        if outcome.kind in (OutcomeKind.TIME_LIMIT, OutcomeKind.NOT_RUN):
            return RejectionReason.SOLUTION_TIME_LIMIT
        if outcome.kind is not OutcomeKind.VALUE:
            return RejectionReason.SOLUTION_ERROR
    if item.first.value == item.second.value:
        return None
    # Not bytes-equal can still be equal: a dict in another order. Floats must agree to the last bit here.
    same = values.equal(item.first.value or b"", item.second.value or b"", nan_equal=True)
    return None if same else RejectionReason.FLAKY


def _confirmed(case: TestCase, item: SolutionEvidence, validation: Validation, comparison: Comparison) -> ValidCase:
    expected = item.first.value
    assert expected is not None  # _reason_against has let VALUE only
    if validation is Validation.CALL_ONLY or item.prediction is None:
        return ValidCase(case, expected, None)
    predicted = item.prediction.value
    # A prediction that raises or is not plain data is wrong; it never costs another case its slot (D6).
    right = predicted is not None and values_equal(predicted, expected, comparison)
    return ValidCase(case, expected, right)


def _wrong_prediction(case: TestCase, valid: ValidCase) -> Rejection:
    found = values.describe(valid.expected)
    return _rejection(case, RejectionReason.WRONG_PREDICTION, f"the solution gives {found}")


def _rejection(case: TestCase, reason: RejectionReason, detail: str) -> Rejection:
    return Rejection(reason, case.to_assert()[:200], case.line, detail)


def _detail(item: SolutionEvidence) -> str:
    for outcome in (item.first, item.second):
        if outcome.error_type:
            return f"on the solution: {outcome.error_type}: {outcome.message}"[:300]
    return ""
