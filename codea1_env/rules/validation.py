"""A suite and the solution's values in, the cases that count out, the others with their reason.

Source: method.md 1.3 and 1.4 (release reward.py:491-583), with its defects D6, D9, D11, D12 gone: one slot per case,
predictions judged apart from calls, values as plain data, and two runs of the solution that must agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import NamedTuple

from codea1_env import values
from codea1_env.facts.outcomes import TOO_MANY, EntryPointCall, Outcome, OutcomeKind
from codea1_env.facts.submissions import COUNTED_AS_INVALID, Rejection, RejectionReason, Suite, TestCase
from codea1_env.facts.verdicts import ValidCase, ValidSuite
from codea1_env.rules.canonical_calls import CanonicalCalls, calls_of, may_see_arguments
from codea1_env.rules.ruleset import Comparison, Validation
from codea1_env.rules.stated_examples import is_stated

_WHY_DOUBTED = {
    RejectionReason.FLAKY: "the solution gives something else when it runs as the candidate did",
    RejectionReason.UNKNOWABLE: "what it says about this candidate cannot be known",
}


class UnderChanges(NamedTuple):
    """What became of a case when the solution's answers were changed; what raises counts as neither."""

    n_true: int = 0
    """How often it still had the solution's value."""
    n_false: int = 0
    """How often it had another one."""
    is_known: bool = True
    """False where the sandbox has failed."""
    sees_arguments: bool = True
    """Whether it may have had another value when its arguments were changed and the answers were not."""

    @property
    def is_vacuous(self) -> bool:
        """Whether nothing that the entry point may answer makes the case false, as far as was tried."""
        return self.is_known and self.n_true > 0 and self.n_false == 0


class SolutionEvidence(NamedTuple):
    """What the solution did with one case."""

    first: Outcome
    second: Outcome
    """From another process that ran the calls in reverse order."""
    prediction: Outcome | None = None
    """The tester's own value, evaluated without the solution; None where the case has none, or carries it itself
    (`TestCase.predicted`)."""
    entry_point_calls: tuple[EntryPointCall, ...] = ()
    """The calls of the entry point in the first run, in order; none of a direct call."""
    under_changes: UnderChanges = UnderChanges()
    """Nothing where that was not looked for, or nothing can be changed."""

    @property
    def internal_error(self) -> bool:
        """True iff any part of it is our failure."""
        ours = OutcomeKind.INTERNAL_ERROR
        is_predictions = self.prediction is not None and self.prediction.kind is ours
        return self.first.kind is ours or self.second.kind is ours or is_predictions


def values_equal(expected: bytes, actual: bytes, comparison: Comparison, *, mutual: bool = False) -> bool:
    """Whether an encoded value is the expected one: a tolerance applies where that holds a float or complex number.

    Args:
        expected: the solution's value.
        actual: of what is judged.
        comparison: tolerance, nan and types.
        mutual: neither is expected, see `values_agree`.
    """
    if expected == actual and comparison.nan_equal:  # most are
        return True
    return values.equal(
        expected,
        actual,
        rel_tol=comparison.rel_tol,
        abs_tol=comparison.abs_tol,
        nan_equal=comparison.nan_equal,
        strict_types=comparison.strict_types,
        mutual=mutual,
    )


def values_agree(one: bytes, other: bytes, comparison: Comparison) -> bool:
    """Whether two encoded values of which neither is expected are equal: a tolerance needs floats in both."""
    return values_equal(one, other, comparison, mutual=True)


def validate(
    suite: Suite,
    evidence: Sequence[SolutionEvidence],
    *,
    validation: Validation,
    comparison: Comparison,
    keeps_unpassable: bool = False,
    canonical: CanonicalCalls | None = None,
    stated: Mapping[str, bytes | None] = MappingProxyType({}),
) -> ValidSuite:
    """Return the cases of `suite` that the solution confirms.

    A case that makes only calls which others of the suite make is a DUPLICATE, whatever it does with their results;
    of several such cases, plain calls count first, then, with `canonical`, equalities. A case that asks what becomes
    of its arguments, too, makes calls of its own.

    Args:
        suite: as read from the reply.
        evidence: one per `suite.cases`, same order.
        validation: what a wrong prediction means.
        comparison: when a prediction counts as right.
        keeps_unpassable: whether a case counts whose value is not equal to itself under `comparison` (nan), so that no
            program can pass it; the release has such cases (D10).
        canonical: how calls are written so that equal ones are known however a case writes them
            (`Ruleset.drop_rewritten`); None: by their text, as far as their arguments are literals.
        stated: what the problem's examples say (`rules.stated_examples.stated_answers`), written in the same way.

    Raises:
        ValueError: lengths differ.
    """
    if len(evidence) != len(suite.cases):
        raise ValueError(f"{len(suite.cases)} cases, but evidence for {len(evidence)}")
    reasons = [*map(_reason_against, evidence)]
    # Two equal values are no failure of ours, and most are that.
    others = [item for item, reason in zip(evidence, reasons, strict=True) if reason or item.prediction]
    if any(item.internal_error for item in others):
        return ValidSuite((), suite.rejections, 0, suite.nonprintable_share, internal_error=True)
    kept: list[ValidCase] = []
    rejections = list(suite.rejections)
    if not (keeps_unpassable or comparison.nan_equal):
        reasons = [reason or _unpassable(item, comparison) for item, reason in zip(evidence, reasons, strict=True)]
    asked = [_calls(case, item, canonical) for case, item in zip(suite.cases, evidence, strict=True)]
    for position in [*_repeated(suite.cases, asked, evidence, reasons, equalities_first=canonical is not None)]:
        reasons[position] = RejectionReason.DUPLICATE
    for case, item, calls, reason in zip(suite.cases, evidence, asked, reasons, strict=True):
        if reason is not None:
            rejections.append(_rejection(case, reason, _detail(item)))
            continue
        valid = _confirmed(case, item, validation, comparison)
        if valid.prediction_right is False:
            rejections.append(_wrong_prediction(case, valid))
        if valid.prediction_right is not False or validation is not Validation.DROP_WRONG:
            is_example = bool(stated) and is_stated(case, calls, valid.expected, stated)
            kept.append(replace(valid, is_example=True) if is_example else valid)
    n_invalid = suite.n_more_invalid + sum(rejection.reason in COUNTED_AS_INVALID for rejection in rejections)
    return ValidSuite(tuple(kept), tuple(rejections), n_invalid, suite.nonprintable_share)


def _calls(case: TestCase, item: SolutionEvidence, canonical: CanonicalCalls | None) -> tuple[str, ...]:
    if case.direct:
        is_canonical = not case.calls and "=" not in case.expression  # most are written so
        if is_canonical and not (canonical and case.expression.endswith(canonical.endings)):
            return (case.expression,)
        return calls_of(case, canonical)
    record = item.entry_point_calls
    # Where all arguments are literals, no name leads to them.
    sees_arguments = (
        canonical is not None
        and not case.calls
        and item.under_changes.sees_arguments
        and may_see_arguments(case.expression, record)
    )
    return calls_of(case, canonical, record, sees_arguments=sees_arguments)


def _repeated(
    cases: Sequence[TestCase],
    asked: Sequence[tuple[str, ...]],
    evidence: Sequence[SolutionEvidence],
    reasons: Sequence[RejectionReason | None],
    *,
    equalities_first: bool,
) -> Iterator[int]:
    """Yield the positions of confirmed cases that ask nothing new, where those that say most come first."""

    def rank(position: int) -> int:
        return int(equalities_first and cases[position].prediction == "True")

    called = set[str]()
    others = []
    for position, reason in enumerate(reasons):
        if reason is not None:
            continue
        if not cases[position].direct:
            others.append(position)
        elif (call := asked[position][0]) in called:
            yield position
        else:
            called.add(call)
    texts = set[tuple[str, tuple[str, ...], bytes | None]]()
    for position in sorted(others, key=rank):
        case, calls = cases[position], asked[position]
        text = case.expression, case.imports, evidence[position].first.value
        if called.issuperset(calls) if calls else text in texts:
            yield position
        called.update(calls)
        texts.add(text)


def without_doubted(suite: ValidSuite, doubted: Sequence[tuple[ValidCase, RejectionReason]]) -> ValidSuite:
    """Return `suite` without cases that say nothing, each with its reason: FLAKY or UNKNOWABLE."""
    lost = [case for case, _ in doubted]
    kept = tuple(case for case in suite.cases if case not in lost)
    rejections = [_rejection(case.case, reason, _WHY_DOUBTED[reason]) for case, reason in doubted]
    # A corrected case counts as invalid already.
    n_more = sum(case.prediction_right is not False and reason in COUNTED_AS_INVALID for case, reason in doubted)
    return replace(suite, cases=kept, rejections=(*suite.rejections, *rejections), n_invalid=suite.n_invalid + n_more)


def _unpassable(item: SolutionEvidence, comparison: Comparison) -> RejectionReason | None:
    value = item.first.value or b""
    return None if values_equal(value, value, comparison) else RejectionReason.UNPASSABLE


_REASONS = {
    OutcomeKind.VALUE: None,
    OutcomeKind.OPAQUE: RejectionReason.OPAQUE_VALUE,
    OutcomeKind.OUTPUT_LIMIT: RejectionReason.OPAQUE_VALUE,
    OutcomeKind.TIME_LIMIT: RejectionReason.SOLUTION_TIME_LIMIT,
    OutcomeKind.NOT_RUN: RejectionReason.SOLUTION_TIME_LIMIT,
}


def _reason_against(item: SolutionEvidence) -> RejectionReason | None:
    record = item.entry_point_calls
    if not record:
        value = item.first.value
        return None if value is not None and value == item.second.value else _disagreement(item)
    if record[-1] is TOO_MANY:
        return RejectionReason.TOO_MANY_CALLS
    if any(call.answer is not None and _is_unsent(call.answer) for call in record):
        return RejectionReason.OPAQUE_VALUE  # the test has seen something made up in its place
    return _disagreement(item) or (RejectionReason.VACUOUS if item.under_changes.is_vacuous else None)


def _disagreement(item: SolutionEvidence) -> RejectionReason | None:
    """Return why two runs of the solution give no value; None if both give the same."""
    if item.first.value is not None and item.first.value == item.second.value:  # most do
        return None
    first, second = (_REASONS.get(run.kind, RejectionReason.SOLUTION_ERROR) for run in (item.first, item.second))
    if first or second:
        return first or second
    # Not bytes-equal can still be equal: a dict in another order. Floats must agree to the last bit here.
    same = values.equal(item.first.value or b"", item.second.value or b"", nan_equal=True)
    return None if same else RejectionReason.FLAKY


def _is_unsent(answer: Outcome) -> bool:
    """Whether a test has got neither the result of a call nor its items."""
    return answer.kind is OutcomeKind.OPAQUE and answer.items is None


def _confirmed(case: TestCase, item: SolutionEvidence, validation: Validation, comparison: Comparison) -> ValidCase:
    expected = item.first.value
    assert expected is not None  # _reason_against has let VALUE only
    predicted = case.predicted if item.prediction is None else item.prediction.value
    if validation is Validation.CALL_ONLY or (item.prediction is None and predicted is None):
        return ValidCase(case, expected, None)
    # A prediction that raises or is not plain data is wrong; it never costs another case its slot (D6).
    right = predicted is not None and values_equal(expected, predicted, comparison)
    return ValidCase(case, expected, right)


def _wrong_prediction(case: TestCase, valid: ValidCase) -> Rejection:
    found = values.describe(valid.expected)
    return _rejection(case, RejectionReason.WRONG_PREDICTION, f"the solution gives {found}")


def _rejection(case: TestCase, reason: RejectionReason, detail: str) -> Rejection:
    return Rejection(reason, case.to_assert()[:200], case.line, detail)


def _detail(item: SolutionEvidence) -> str:
    if item.under_changes.is_vacuous:
        return f"holds under each of {item.under_changes.n_true} changes of what the solution returns"
    for outcome in (item.first, item.second):
        if outcome.kind in (OutcomeKind.OPAQUE, OutcomeKind.OUTPUT_LIMIT):
            return f"cannot be carried between processes: {outcome.message}"[:300]
        if outcome.error_type:
            return f"on the solution: {outcome.error_type}: {outcome.message}"[:300]
        if outcome.kind is OutcomeKind.TIME_LIMIT:
            return f"the solution took {outcome.message}"[:300]
        if outcome.kind is OutcomeKind.NOT_RUN:
            return "the solution was not asked: too many calls before this one hung or killed it"
    return ""
