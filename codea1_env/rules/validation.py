"""Validate a suite against the solution's values: keep the cases that it confirms, reject the others with a reason.

Source: release reward.py:491-583, with four differences. Each case has exactly one slot. Predictions are evaluated
apart from calls. Values are plain data. Two runs of the solution must agree.

The answers in the examples of the problem's statement are read, too (`stated_answers`), so that tests that copy them
are recognised.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import NamedTuple

from codea1_env import values
from codea1_env.facts.answers import Comparison, OutputForm, as_printed
from codea1_env.facts.call_forms import PLAIN_CALLS, CallForms
from codea1_env.facts.submissions import COUNTED_AS_INVALID, Rejection, RejectionReason, Suite, TestCase
from codea1_env.facts.verdicts import (
    TOO_MANY,
    CaseReport,
    EntryPointCall,
    Outcome,
    OutcomeKind,
    ValidCase,
    ValidSuite,
    Verdict,
)
from codea1_env.python_text import remembered_up_to
from codea1_env.rules.canonical_calls import (
    CanonicalCalls,
    calls_of,
    may_see_arguments,
    passed_arguments,
    with_arguments,
)
from codea1_env.rules.reading.direct_calls import calls_in
from codea1_env.rules.reading.frameworks import RAISES
from codea1_env.rules.reading.in_place import called_in_place
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading, Validation


@remembered_up_to(4096)
def stated_answers(
    examples: tuple[str, ...],
    entry_point: str,
    canonical: CanonicalCalls | None = None,
    output: OutputForm | None = None,
    forms: CallForms = PLAIN_CALLS,
) -> Mapping[str, bytes | None]:
    """Return the calls that the examples make, each with its encoded answer.

    Args:
        examples: asserts, as in `Problem.examples`; those that are not tests are skipped.
        entry_point: the function under test.
        canonical: the form of the calls; None: as the examples write them.
        output: what counts in an output, for programs on standard input.
        forms: what tests of the problem may do besides plain calls.

    Returns:
        The answer is None where an example does not state the value of its call.
    """
    cases = [
        case
        for example in examples
        for case in read_suite(
            example, Reading.STRICT, entry_point=entry_point, tests_per_suite=None, output=output, forms=forms
        ).cases
    ]
    answers: dict[str, bytes | None] = {}
    for case in sorted(cases, key=lambda case: case.direct):  # direct cases last: they state the call's value
        if case.direct or not forms.in_place:
            calls = calls_of(case, canonical) or calls_in(case.expression, entry_point)
        else:
            in_place = replace(case, calls=called_in_place(case.expression, entry_point))
            calls = calls_of(in_place, canonical)
            calls += tuple(map(with_arguments, calls))
        answer = case.predicted if case.direct or calls == (case.expression,) else None
        answers.update([(passed_arguments(call, canonical), answer) for call in calls])
    return answers


def is_stated(case: TestCase, calls: Sequence[str], value: bytes, rules: SuiteRules) -> bool:
    """Whether the statement answers a case: its call with this value or, if it is not direct, all of its calls.

    A case that writes `2.0` for 2, or a tuple for a list, is answered too.

    Args:
        case: a case of the strict reading.
        calls: its calls, in the same form as those of the examples.
        value: the solution's value, encoded.
        rules: with the answers that the examples state.
    """
    stated = rules.stated
    if case.direct:  # what a call passes takes longer to see than whether an example has this value
        same = partial(values.equal, value, rel_tol=_REL_TOL, nan_equal=True)
        stated = {passed: answer for passed, answer in stated.items() if answer is None or same(answer)}
    return bool(calls and stated) and stated.keys() >= {passed_arguments(call, rules.canonical) for call in calls}


_REL_TOL = 1e-6  # statements round

_UNDECIDED_BECAUSE = {
    RejectionReason.FLAKY: "the solution gives another value when it runs the same calls as the candidate",
    RejectionReason.UNKNOWABLE: "the judge cannot know whether this candidate passes it",
}


class ChangeEvidence(NamedTuple):
    """The values of a case under changed answers of the solution; an evaluation that raises counts as neither."""

    n_true: int = 0
    """How often it had the same value as with the solution's answers."""
    n_false: int = 0
    """How often it had another value."""
    is_known: bool = True
    """False where the sandbox failed."""
    sees_arguments: bool = True
    """Whether it may have another value when its arguments are changed and the answers are not."""

    @property
    def is_vacuous(self) -> bool:
        """Whether no change that was tried makes the case false."""
        return self.is_known and self.n_true > 0 and self.n_false == 0


class SolutionEvidence(NamedTuple):
    """The outcomes of one case on the solution."""

    first: Outcome
    second: Outcome
    """From another process that ran the calls in reverse order."""
    prediction: Outcome | None = None
    """The tester's prediction, evaluated without the solution; None where the case has none, or where its value is
    already known (`TestCase.predicted`)."""
    entry_point_calls: tuple[EntryPointCall, ...] = ()
    """The calls of the entry point in the first run, in order; () for a direct case."""
    change_evidence: ChangeEvidence = ChangeEvidence()
    """Empty where it was not evaluated, or where nothing can be changed."""

    @property
    def internal_error(self) -> bool:
        """True iff any of the outcomes is our own failure."""
        ours = OutcomeKind.INTERNAL_ERROR
        is_predictions = self.prediction is not None and self.prediction.kind is ours
        return self.first.kind is ours or self.second.kind is ours or is_predictions


@dataclass(frozen=True, slots=True)
class SuiteRules:
    """What decides which cases of a problem's suites are valid."""

    validation: Validation
    """The consequence of a wrong prediction."""
    comparison: Comparison
    """When a prediction counts as right."""
    keeps_unpassable: bool = False
    """Whether to keep a case whose value is not equal to itself under `comparison` (nan), so that no program can pass
    it; the release keeps such cases."""
    canonical: CanonicalCalls | None = None
    """The canonical form in which calls are compared (`Ruleset.drop_rewritten`); None: compare their texts, where all
    arguments are literals."""
    stated: Mapping[str, bytes | None] = field(default_factory=dict)
    """The answers in the problem's examples (`stated_answers`), in the same form."""
    output: OutputForm | None = None
    """What counts in a predicted output, for programs on standard input."""
    in_place: bool = False
    """Whether the entry point changes its arguments. Then a direct case whose value is None is VACUOUS: a right program
    may also return its argument."""


def validate(suite: Suite, evidence: Sequence[SolutionEvidence], rules: SuiteRules) -> ValidSuite:
    """Return the cases of `suite` that the solution confirms.

    A case is a DUPLICATE if other cases of the suite make all of its calls, whatever it does with their results. Of
    several such cases, a direct one is kept first, then, with `canonical`, an equality. The calls of a case that also
    tests how they change their arguments are different calls.

    Args:
        suite: as read from the reply.
        evidence: one per `suite.cases`, same order.
        rules: how the suite's problem is judged.

    Raises:
        ValueError: the lengths of `evidence` and `suite.cases` differ.
    """
    if len(evidence) != len(suite.cases):
        raise ValueError(f"expected evidence for {len(suite.cases)} cases, got it for {len(evidence)}")
    reasons = [_reason_against(*pair, in_place=rules.in_place) for pair in zip(suite.cases, evidence, strict=True)]
    # Most cases have two equal values, and then neither run is our own failure.
    others = [item for item, reason in zip(evidence, reasons, strict=True) if reason or item.prediction]
    if any(item.internal_error for item in others):
        return ValidSuite((), suite.rejections, 0, suite.nonprintable_share, internal_error=True)
    kept: list[ValidCase] = []
    rejections = list(suite.rejections)
    if not (rules.keeps_unpassable or rules.comparison.nan_equal):
        all_values = [item.first.value or b"" for item in evidence]
        reasons = [
            reason or (None if rules.comparison.equal(value, value) else RejectionReason.UNPASSABLE)
            for value, reason in zip(all_values, reasons, strict=True)
        ]
    calls_of_cases = [_calls(case, item, rules.canonical) for case, item in zip(suite.cases, evidence, strict=True)]
    equalities_first = rules.canonical is not None
    for position in list(_duplicates(suite.cases, calls_of_cases, evidence, reasons, equalities_first)):
        reasons[position] = RejectionReason.DUPLICATE
    for case, item, calls, reason in zip(suite.cases, evidence, calls_of_cases, reasons, strict=True):
        if reason is not None:
            is_result = reason is RejectionReason.VACUOUS and case.direct
            rejections.append(_rejection(case, reason, _NO_RESULT if is_result else _detail(item)))
            continue
        valid = _confirm(case, item, rules)
        if valid.prediction_right is False:
            detail = f"the solution gives {values.describe(valid.expected)}"
            rejections.append(_rejection(case, RejectionReason.WRONG_PREDICTION, detail))
        # The solution's value does not say which tolerance or exception is right.
        is_final = _expects_exception(case) or "pytest" in "\n".join(case.imports)
        drops_wrong = rules.validation is Validation.DROP_WRONG or is_final
        if valid.prediction_right is not False or not drops_wrong:
            is_example = bool(rules.stated) and is_stated(case, calls, valid.expected, rules)
            kept.append(replace(valid, is_example=True) if is_example else valid)
    n_invalid = suite.n_more_invalid + sum(rejection.reason in COUNTED_AS_INVALID for rejection in rejections)
    return ValidSuite(tuple(kept), tuple(rejections), n_invalid, suite.nonprintable_share)


def replayed_case(case: ValidCase, item: SolutionEvidence, comparison: Comparison) -> CaseReport | None:
    """Return why a replayed case says nothing about a program now; None if the present solution confirms it.

    Args:
        case: from a Mistake Book, which may be older than the solution.
        item: the outcomes of its expression on the solution.
        comparison: when the two values count as equal.

    Returns:
        A report that is DENIED, UNDECIDED (a limit ended one of the runs only) or INTERNAL_ERROR.
    """
    value, reason = item.first.value, _reason_against(case.case, item, in_place=False)
    if reason is None and value == case.expected:  # most cases
        return None
    ours = [run for run in (item.first, item.second) if run.kind is OutcomeKind.INTERNAL_ERROR]
    if ours:
        return CaseReport(case, Verdict.INTERNAL_ERROR, ours[0].summary)
    ended = {item.first.kind, item.second.kind}
    if OutcomeKind.NOT_RUN in ended or (len(ended) > 1 and ended & _LIMITS):
        return CaseReport(case, Verdict.UNDECIDED)
    if reason is not None or value is None:
        return CaseReport(case, Verdict.DENIED, _detail(item) or "the solution gives another value in each run")
    if values.equal(case.expected, value, nan_equal=True) or comparison.equal(case.expected, value):
        return None
    return CaseReport(case, Verdict.DENIED, f"the solution gives {values.describe(value)}")


def _calls(case: TestCase, item: SolutionEvidence, canonical: CanonicalCalls | None) -> tuple[str, ...]:
    if case.direct:
        is_canonical = not case.calls and "=" not in case.expression  # most cases
        if is_canonical and not (canonical and case.expression.endswith(canonical.default_endings)):
            return (case.expression,)
        return calls_of(case, canonical)
    record = item.entry_point_calls
    # If all arguments are literals, no name refers to them.
    sees_arguments = (
        canonical is not None
        and not case.calls
        and item.change_evidence.sees_arguments
        and may_see_arguments(case.expression, record)
    )
    return calls_of(case, canonical, record, sees_arguments=sees_arguments)


def _duplicates(
    cases: Sequence[TestCase],
    calls_of_cases: Sequence[tuple[str, ...]],
    evidence: Sequence[SolutionEvidence],
    reasons: Sequence[RejectionReason | None],
    equalities_first: bool,
) -> Iterator[int]:
    """Yield the positions of confirmed cases whose calls others make; direct cases and equalities are kept first."""
    called = set[str]()
    others = []
    for position, reason in enumerate(reasons):
        if reason is not None:
            continue
        if not cases[position].direct:
            others.append(position)
        elif (call := calls_of_cases[position][0]) in called:
            yield position
        else:
            called.add(call)
    texts = set[tuple[str, tuple[str, ...], bytes | None]]()
    for position in sorted(others, key=lambda it: equalities_first and cases[it].prediction == "True"):
        case, calls = cases[position], calls_of_cases[position]
        text = case.expression, case.imports, evidence[position].first.value
        if called.issuperset(calls) if calls else text in texts:
            yield position
        called.update(calls)
        texts.add(text)


def without_undecided(suite: ValidSuite, undecided: Sequence[tuple[ValidCase, RejectionReason]]) -> ValidSuite:
    """Return `suite` without the undecided cases, each rejected with its reason: FLAKY or UNKNOWABLE."""
    lost = [case for case, _ in undecided]
    kept = tuple(case for case in suite.cases if case not in lost)
    rejections = [_rejection(case.case, reason, _UNDECIDED_BECAUSE[reason]) for case, reason in undecided]
    # A corrected case counts as invalid already.
    n_more = sum(case.prediction_right is not False and reason in COUNTED_AS_INVALID for case, reason in undecided)
    return replace(suite, cases=kept, rejections=(*suite.rejections, *rejections), n_invalid=suite.n_invalid + n_more)


_NONE, _FALSE = values.encode(None), values.encode(False)
_ADDRESS_START, _ADDRESS = b" at 0x", re.compile(rb" at 0x[0-9a-fA-F]{6,}")
_LIMITS = frozenset({OutcomeKind.TIME_LIMIT, OutcomeKind.MEMORY_LIMIT})
_NO_RESULT = "the function changes its argument and returns nothing: assert what the argument is after the call"
_REASONS = {
    OutcomeKind.VALUE: None,
    OutcomeKind.OPAQUE: RejectionReason.OPAQUE_VALUE,
    OutcomeKind.OUTPUT_LIMIT: RejectionReason.OPAQUE_VALUE,
    OutcomeKind.TIME_LIMIT: RejectionReason.SOLUTION_TIME_LIMIT,
    OutcomeKind.NOT_RUN: RejectionReason.SOLUTION_TIME_LIMIT,
}


def _reason_against(case: TestCase, item: SolutionEvidence, *, in_place: bool) -> RejectionReason | None:
    record = item.entry_point_calls
    if in_place and case.direct and item.first.value == _NONE:
        return _disagreement(case, item) or RejectionReason.VACUOUS
    if not record:
        value = item.first.value
        is_plain = value is not None and value == item.second.value and _ADDRESS_START not in value
        return None if is_plain else _disagreement(case, item)
    if record[-1] is TOO_MANY:
        return RejectionReason.TOO_MANY_CALLS
    if any(each is not None and each.kind is OutcomeKind.OPAQUE and each.items is None for _, each in record):
        return RejectionReason.OPAQUE_VALUE  # the test got a placeholder instead of the result
    is_vacuous = item.change_evidence.is_vacuous and not (_expects_exception(case) and item.first.value == _FALSE)
    return _disagreement(case, item) or (RejectionReason.VACUOUS if is_vacuous else None)


def _disagreement(case: TestCase, item: SolutionEvidence) -> RejectionReason | None:
    """Return why two runs of the solution give no common value; None if both give the same.

    A value with an address that the case does not state is FLAKY, since it is another one in the next process.
    """
    value = item.first.value
    if value is not None and value == item.second.value:  # most cases
        is_address = _ADDRESS_START in value and _ADDRESS.search(value) and " at 0x" not in case.expression
        return RejectionReason.FLAKY if is_address else None
    first, second = (_REASONS.get(run.kind, RejectionReason.SOLUTION_ERROR) for run in (item.first, item.second))
    if first or second:
        return first or second
    # Different bytes can be equal values: a dict in another order. Floats must agree to the last bit here.
    same = values.equal(item.first.value or b"", item.second.value or b"", nan_equal=True)
    return None if same else RejectionReason.FLAKY


def _confirm(case: TestCase, item: SolutionEvidence, rules: SuiteRules) -> ValidCase:
    expected = item.first.value
    assert expected is not None  # _reason_against rejects all else
    predicted = case.predicted if item.prediction is None else item.prediction.value
    if rules.validation is Validation.CALL_ONLY or (item.prediction is None and predicted is None):
        return ValidCase(case, expected, None)
    if predicted is not None and case.direct:
        predicted = as_printed(predicted, rules.output)
    # A prediction that raises or is not plain data is wrong; in the release it shifts the slots of later cases.
    right = predicted is not None and rules.comparison.equal(expected, predicted)
    return ValidCase(case, expected, right)


def _expects_exception(case: TestCase) -> bool:
    return case.expression.startswith(f"{RAISES}(")


def _rejection(case: TestCase, reason: RejectionReason, detail: str) -> Rejection:
    return Rejection(reason, case.to_assert()[:200], case.line, detail, case.written)


def _detail(item: SolutionEvidence) -> str:
    if item.change_evidence.is_vacuous:
        return f"holds under each of {item.change_evidence.n_true} changes of the solution's answers"
    for outcome in (item.first, item.second):
        if outcome.kind in (OutcomeKind.OPAQUE, OutcomeKind.OUTPUT_LIMIT):
            return f"cannot be sent between processes: {outcome.message}"[:300]
        if outcome.error_type:
            return f"on the solution: {outcome.error_type}: {outcome.message}"[:300]
        if outcome.kind is OutcomeKind.TIME_LIMIT:
            return f"the solution took {outcome.message}"[:300]
        if outcome.kind is OutcomeKind.NOT_RUN:
            return "the solution was not run: too many earlier calls hung or killed it"
    return ""
