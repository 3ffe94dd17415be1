"""In which order a program answers its calls."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codea1_env.judging.candidate_runs import drawn_order

CALLS = [f"f({n})" for n in range(6)]


def test_orders_are_drawn_from_program_and_calls_alone() -> None:
    orders = {drawn_order(f"def f(x): return {n}", CALLS) for n in range(200)}
    assert len(orders) > 150  # of 720
    assert {order[0] for order in orders} == set(range(6))
    assert drawn_order("p", CALLS) == drawn_order("p", CALLS)
    assert drawn_order("p", CALLS) != drawn_order("p", [*CALLS[:-1], "f(7)"])
    assert [drawn_order("p", CALLS[:n]) for n in range(2)] == [(), (0,)]


@given(st.text(), st.lists(st.text(), max_size=5))
def test_every_order_has_each_call_once(program: str, calls: list[str]) -> None:
    assert sorted(drawn_order(program, calls)) == [*range(len(calls))]
