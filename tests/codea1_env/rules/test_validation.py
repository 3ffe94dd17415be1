"""One slot per case, faults counted as method.md 1.4 says, and the release's validation defects gone."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env import values
from codea1_env.facts.answers import Comparison
from codea1_env.facts.submissions import COUNTED_AS_INVALID, Rejection, RejectionReason, Suite, TestCase
from codea1_env.facts.verdicts import Outcome, OutcomeKind, ValidSuite
from codea1_env.rules.canonical_calls import CanonicalCalls, calls_of
from codea1_env.rules.replies import read_suite
from codea1_env.rules.ruleset import Reading, Validation
from codea1_env.rules.validation import SolutionEvidence, SuiteRules, is_stated, stated_answers, validate
from tests.support.replies import reasons


def value(of: object) -> Outcome:
    return Outcome(OutcomeKind.VALUE, values.encode(of))


ERROR = Outcome(OutcomeKind.ERROR, error_type="ZeroDivisionError", message="division by zero")
SLOW = Outcome(OutcomeKind.TIME_LIMIT)
OPAQUE = Outcome(OutcomeKind.OPAQUE)
OURS = Outcome(OutcomeKind.INTERNAL_ERROR)


def case(n: int = 1) -> TestCase:
    return TestCase(f"f({n})", "2", direct=True, line=n)


def seen(first: Outcome, second: Outcome | None = None, *, predicted: Outcome | None = None) -> SolutionEvidence:
    return SolutionEvidence(first, second or first, predicted or first)


def check(
    *evidence: SolutionEvidence,
    cases: list[TestCase] | None = None,
    how: Validation = Validation.FILL,
    **comparison: float,
) -> ValidSuite:
    suite = Suite(tuple(cases or [case(i) for i in range(1, len(evidence) + 1)]))
    return validate(suite, evidence, SuiteRules(how, Comparison(**comparison)))  # type: ignore[arg-type]


def test_a_wrong_prediction_is_filled_with_the_solutions_value_or_dropped_or_not_looked_at():
    valid = check(seen(value([1]), predicted=value([2])))
    assert [c.expected for c in valid.cases] == [values.encode([1])]
    assert valid.cases[0].prediction_right is False
    assert reasons(valid) == [RejectionReason.WRONG_PREDICTION]
    assert "[1]" in valid.rejections[0].detail
    assert valid.n_invalid == 1
    dropped = check(seen(value(1), predicted=value(2)), how=Validation.DROP_WRONG)
    assert (dropped.cases, dropped.n_invalid) == ((), 1)
    unseen = check(seen(value(1), predicted=value(2)), seen(value(3), predicted=ERROR), how=Validation.CALL_ONLY)
    assert ([c.prediction_right for c in unseen.cases], unseen.n_invalid) == ([None, None], 0)


@pytest.mark.parametrize(
    ("found", "predicted", "rel_tol", "right"),
    [
        *((3, 3.0000000000000004, 1e-9, False), (2.9999999999999996, 3, 1e-9, True), (10**18, 1e18, 1e-9, True)),
        *((10**18 + 1, 1e18, 1e-9, False), (0.3, 0.1 + 0.2, 0.0, False), (0.3, 0.1 + 0.2, 1e-9, True)),
    ],
)
def test_d15_a_prediction_is_near_enough_by_tolerance_where_the_solution_gives_a_float(
    found, predicted, rel_tol, right
):
    valid = check(seen(value(found), predicted=value(predicted)), rel_tol=rel_tol)
    assert valid.cases[0].prediction_right is right


@pytest.mark.parametrize(
    ("first", "second", "reason"),
    [
        (ERROR, ERROR, RejectionReason.SOLUTION_ERROR),
        (value(1), ERROR, RejectionReason.SOLUTION_ERROR),
        (Outcome(OutcomeKind.CRASHED), value(1), RejectionReason.SOLUTION_ERROR),
        (Outcome(OutcomeKind.EXITED), value(1), RejectionReason.SOLUTION_ERROR),
        (Outcome(OutcomeKind.OUTPUT_LIMIT), value(1), RejectionReason.OPAQUE_VALUE),
        (Outcome(OutcomeKind.MEMORY_LIMIT), value(1), RejectionReason.SOLUTION_ERROR),
        (SLOW, SLOW, RejectionReason.SOLUTION_TIME_LIMIT),
        (Outcome(OutcomeKind.NOT_RUN), value(1), RejectionReason.SOLUTION_TIME_LIMIT),
        (OPAQUE, OPAQUE, RejectionReason.OPAQUE_VALUE),
        (value(1), value(2), RejectionReason.FLAKY),
        (value(0.1), value(0.1 + 1e-16 * 3), RejectionReason.FLAKY),
    ],
)
def test_what_the_solution_does_not_confirm_is_rejected_with_its_reason(first, second, reason):
    valid = check(seen(first, second, predicted=value(1)), seen(value(7)))
    assert reasons(valid) == [reason]
    assert valid.n_invalid == (reason in COUNTED_AS_INVALID) == (reason is not RejectionReason.OPAQUE_VALUE)
    assert [c.case.expression for c in valid.cases] == ["f(2)"]


def test_d10_nan_and_reordered_dicts_are_not_flaky_and_a_predicted_nan_is_right_when_the_comparison_says_so():
    nan = value(float("nan"))
    assert len(check(seen(value({1: 2, 3: 4}), value({3: 4, 1: 2}))).cases) == 1
    assert check(seen(nan), nan_equal=True).cases[0].prediction_right is True
    assert check(seen(nan)).cases == ()  # under these rules nobody could pass it
    assert check(seen(nan)).rejections[0].reason is RejectionReason.UNPASSABLE
    suite = Suite((case(1),))
    kept = validate(suite, [seen(nan)], SuiteRules(Validation.FILL, Comparison(), keeps_unpassable=True))
    assert kept.cases[0].prediction_right is False


def test_duplicates_are_same_expression_and_same_value_within_the_suite():
    same = [case(1), case(1), case(2)]
    valid = check(seen(value(5)), seen(value(5)), seen(value(5)), cases=same)
    assert reasons(valid) == [RejectionReason.DUPLICATE]
    assert [c.case.expression for c in valid.cases] == ["f(1)", "f(2)"]


def property_of(expression: str, *calls: str) -> TestCase:
    return TestCase(expression, "True", calls=calls)


def kept(*cases: TestCase) -> list[str]:
    valid = check(*(seen(value(n)) for n in range(len(cases))), cases=list(cases))
    assert set(reasons(valid)) <= {RejectionReason.DUPLICATE}
    assert valid.n_invalid == len(cases) - len(valid.cases)
    return [each.case.expression for each in valid.cases]


def test_d24_a_case_that_asks_what_others_ask_is_a_duplicate_whatever_it_does_with_it():
    assert kept(property_of("f(1) + 5", "f(1)"), property_of("f(1) + 6", "f(1)")) == ["f(1) + 5"]
    assert kept(case(1), property_of("f(1) + 5", "f(1)")) == ["f(1)"]
    assert kept(case(1), case(2), property_of("f(1) + f(2)", "f(1)", "f(2)")) == ["f(1)", "f(2)"]
    assert kept(case(1), property_of("f(1) + f(3)", "f(1)", "f(3)")) == ["f(1)", "f(1) + f(3)"]
    # A plain call counts before others, and calls that are not literal are told apart by their text.
    assert kept(property_of("bool(f(1) > 0)", "f(1)"), case(1)) == ["f(1)"]
    assert len(kept(property_of("[f(i) for i in 'a']"), property_of("[f(i) for i in 'b']"))) == 2


def test_a_case_that_the_solution_rejects_makes_no_other_a_duplicate():
    valid = check(seen(ERROR), seen(value(1)), cases=[case(1), property_of("f(1) + 5", "f(1)")])
    assert reasons(valid) == [RejectionReason.SOLUTION_ERROR]


def test_d6_a_prediction_that_raises_costs_no_other_case_its_slot():
    valid = check(seen(value(1), predicted=ERROR), seen(value(2)), seen(value(3)))
    assert [values.describe(c.expected) for c in valid.cases] == ["1", "2", "3"]
    assert [c.prediction_right for c in valid.cases] == [False, True, True]


def test_our_own_failure_leaves_no_evidence_at_all():
    for evidence in (seen(OURS), seen(value(1), OURS), seen(value(1), predicted=OURS)):
        valid = check(seen(value(1)), evidence)
        assert valid.internal_error
        assert valid.cases == ()
        assert valid.n_invalid == 0


def test_reading_rejections_are_carried_over_and_counted_only_if_they_were_attempts():
    suite = Suite(
        (), (Rejection(RejectionReason.NOT_AN_ASSERT, "x"), Rejection(RejectionReason.FORBIDDEN_NAME, "y")), 0.25
    )
    valid = validate(suite, [], SuiteRules(Validation.FILL, Comparison()))
    assert (valid.n_invalid, len(valid.rejections), valid.nonprintable_share) == (1, 2, 0.25)


def test_evidence_for_another_number_of_cases_is_refused():
    with pytest.raises(ValueError, match="expected evidence for 2 cases, got it for 1"):
        validate(Suite((case(1), case(2))), [seen(value(1))], SuiteRules(Validation.FILL, Comparison()))


OUTCOMES = st.sampled_from([value(1), value(2), value([]), ERROR, SLOW, OPAQUE])


@given(
    st.lists(st.tuples(st.integers(1, 3), OUTCOMES, OUTCOMES, OUTCOMES), max_size=10), st.sampled_from(list(Validation))
)
def test_every_case_is_kept_or_rejected_exactly_once_and_kept_ones_are_unique(rows, how):
    cases = [case(n) for n, *_ in rows]
    valid = check(*(SolutionEvidence(a, b, p) for _, a, b, p in rows), cases=cases, how=how)
    corrected = sum(c.prediction_right is False for c in valid.cases)
    assert len(valid.cases) + len(valid.rejections) - corrected == len(rows)
    assert valid.n_invalid == sum(r.reason in COUNTED_AS_INVALID for r in valid.rejections)
    assert len({(c.case.expression, c.expected) for c in valid.cases}) == len(valid.cases)


def is_copy(call: str, value: object, examples: tuple[str, ...], canonical: CanonicalCalls) -> bool:
    (case,) = read_suite(f"assert {call} == {value}", Reading.STRICT, entry_point="f", tests_per_suite=None).cases
    stated = stated_answers(examples, "f", canonical)
    rules = SuiteRules(Validation.FILL, Comparison(), canonical=canonical, stated=stated)
    return is_stated(case, calls_of(case, canonical), values.encode(value), rules)


@pytest.mark.parametrize(
    ("call", "value", "copied"),
    [
        *(("f(2, 3)", 5, True), ("f(2.0, 3)", 5.0, True), ("f(y=3.0, x=2)", 5, True)),
        ("f((1, [2.0, 3]), [4])", 6, True),
        ("f(2 + 0j, 3)", 5 + 0j, False),  # a sum; the solution's run would say what is called
        *(("f([True, (2, 3)], {4})", 6, True), ("f(2.5, 3)", 5.5, False), ("f(3, 2)", 5, False)),
        *(("f('2', 3)", 5, False), ("f(float('inf'), 3)", 5, False)),
    ],
)
def test_an_example_in_other_types_is_a_copy(call: str, value: object, copied: bool) -> None:
    examples = ("assert f(2, 3) == 5", "assert f([1, (2, 3)], {4}) == 6")
    assert is_copy(call, value, examples, CanonicalCalls("f", ("x", "y"))) is copied


@pytest.mark.parametrize(
    ("call", "copied"), [("f(['a)', 1.0])", True), ("f(('a)', 1))", True), ("f(('a]', 1))", False)]
)
def test_texts_in_an_example_stay_as_they_are(call: str, copied: bool) -> None:
    assert is_copy(call, 2, ("assert f(('a)', 1)) == 2",), CanonicalCalls("f", ("x",))) is copied


def test_a_default_that_is_written_out_makes_no_new_example() -> None:
    assert is_copy("f(2, None)", 2, ("assert f(2) == 2",), CanonicalCalls.of("def f(x, y=None): return x", "f"))


SIGNATURE = "def f(a, b=2, *, sep=None, items=(), scale=1.0): return a"


@pytest.mark.parametrize(
    ("example", "call", "copied"),
    [
        *(("f(1)", "f(1, 2.0)", True), ("f(1)", "f(b=2.0, a=True)", True), ("f(1)", "f(1, items=[])", True)),
        *(("f(1, 2)", "f(1, scale=1, sep=None)", True), ("f(1, 2)", "f(1, 3)", False), ("f(1)", "f(1, 2.5)", False)),
        *(("f(1, b=2.0)", "f(1)", True), ("f(1, sep='')", "f(1)", False), ("f(1, items=[()])", "f(1)", False)),
        *(("f({'x': 1, 'y': 2})", "f({'y': 2, 'x': 1.0})", True), ("f({1: 2})", "f([[1, 2]])", False)),
        *(("f([9, 10])", "f({10, 9})", True), ("f([1e16])", "f((10000000000000000,))", True)),
        *(("f(frozenset([1, 2]))", "f({2, 1})", True), ("f('2.0')", "f('2')", False), ("f(b'a')", "f('a')", False)),
        ("f(list((1, 2)))", "f([1, 2])", True),
    ],
)
def test_calls_that_pass_the_same_are_copies_with_defaults_filled_in(example: str, call: str, copied: bool) -> None:
    assert is_copy(call, 2, (f"assert {example} == 2",), CanonicalCalls.of(SIGNATURE, "f")) is copied
