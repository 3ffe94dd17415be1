"""Who runs twice, and what two runs say together."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.facts.verdicts import Outcome, OutcomeKind
from codea1_env.judging.candidate_runs import combined_outcome, drawn_order, is_confirmed
from codea1_env.rules.ruleset import Comparison
from codea1_env.values import encode

PLAIN = Comparison()
ONE, TWO = Outcome(OutcomeKind.VALUE, encode(1)), Outcome(OutcomeKind.VALUE, encode(2))
OURS, UNKNOWN = Outcome(OutcomeKind.INTERNAL_ERROR), Outcome(OutcomeKind.NOT_RUN)
LATE, BAD = Outcome(OutcomeKind.TIME_LIMIT), Outcome(OutcomeKind.ERROR, error_type="ValueError")
PROGRAMS = st.text(st.characters(codec=None, exclude_categories=()))


@given(PROGRAMS, st.floats(0, 1), st.floats(0, 1))
def test_a_larger_share_confirms_all_that_a_smaller_one_does(program: str, a: float, b: float) -> None:
    assert is_confirmed(program, max(a, b)) >= is_confirmed(program, min(a, b))


@given(PROGRAMS)
def test_a_share_of_none_and_of_all(program: str) -> None:
    assert not is_confirmed(program, 0)
    assert is_confirmed(program, 1)


def test_about_the_share_asked_for_is_confirmed_and_always_the_same() -> None:
    programs = [f"def f(): return {n}" for n in range(2000)]
    chosen = [is_confirmed(program, 0.1) for program in programs]
    assert 150 < sum(chosen) < 250
    assert chosen == [is_confirmed(program, 0.1) for program in programs]
    assert is_confirmed("def f(): return 7", 0.5) is True  # the same in every process and version


@pytest.mark.parametrize("share", [-0.1, 1.1, float("nan")])
def test_other_shares_are_refused(share: float) -> None:
    with pytest.raises(ValueError, match=r"share must be in \[0, 1\], got"):
        is_confirmed("", share)


@pytest.mark.parametrize(
    ("first", "second", "together"),
    [
        (ONE, ONE, ONE),
        (ONE, LATE, LATE),
        (BAD, ONE, BAD),
        (BAD, LATE, BAD),
        (ONE, OURS, OURS),
        (OURS, BAD, OURS),
        (OURS, UNKNOWN, OURS),
        (UNKNOWN, OURS, OURS),
        (UNKNOWN, ONE, ONE),
        (LATE, UNKNOWN, LATE),
        (UNKNOWN, UNKNOWN, UNKNOWN),
    ],
)
def test_two_runs_say_together_what_neither_contradicts(first: Outcome, second: Outcome, together: Outcome) -> None:
    assert combined_outcome(first, second, PLAIN) == together


def test_two_values_that_differ_are_a_fault_of_the_program() -> None:
    outcome = combined_outcome(ONE, TWO, PLAIN)
    assert (outcome.kind, outcome.error_type, outcome.value) == (OutcomeKind.ERROR, "Flaky", None)


def test_values_are_compared_as_everywhere_else() -> None:
    nearly = Outcome(OutcomeKind.VALUE, encode(1.0 + 1e-9))
    float_one = Outcome(OutcomeKind.VALUE, encode(1.0))
    assert combined_outcome(float_one, nearly, Comparison(rel_tol=1e-6)) is float_one
    for one, other in ((ONE, nearly), (nearly, ONE)):  # neither run is the expected one
        assert combined_outcome(one, other, Comparison(rel_tol=1e-6)).error_type == "Flaky"
    assert combined_outcome(ONE, nearly, PLAIN).error_type == "Flaky"
    ordered, reordered = (Outcome(OutcomeKind.VALUE, encode(d)) for d in ({1: 1, 2: 2}, {2: 2, 1: 1}))
    assert combined_outcome(ordered, reordered, PLAIN) is ordered


CALLS = [f"f({n})" for n in range(6)]


def test_orders_are_drawn_from_program_and_calls_alone() -> None:
    orders = {drawn_order(f"def f(x): return {n}", CALLS, 0) for n in range(200)}
    assert len(orders) > 150  # of 720
    assert {order[0] for order in orders} == set(range(6))
    assert drawn_order("p", CALLS, 0) == drawn_order("p", CALLS, 0) != drawn_order("p", CALLS, 1)
    assert drawn_order("p", CALLS, 0) != drawn_order("p", [*CALLS[:-1], "f(7)"], 0)
    assert [drawn_order("p", CALLS[:n], 1) for n in range(3)] == [(), (0,), (1, 0)]


@given(st.text(), st.lists(st.text(), max_size=5))
def test_every_order_has_each_call_once_and_the_second_is_another(program: str, calls: list[str]) -> None:
    first, second = (drawn_order(program, calls, run) for run in (0, 1))
    assert sorted(first) == sorted(second) == [*range(len(calls))]
    assert len(calls) < 2 or [*second] != [*range(len(calls))]
