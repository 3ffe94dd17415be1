"""A candidate's time follows from the solution's, in steps that noise does not cross."""

from __future__ import annotations

import math
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.judging.limits import FACTOR, calibrated_cpu_s

TIMES = st.floats(0, 1e6)
BOUNDS = st.tuples(st.floats(0.01, 10), st.floats(1, 100)).map(
    lambda it: {"floor_s": it[0], "ceiling_s": it[0] * it[1]}
)
limit_of = partial(calibrated_cpu_s, floor_s=2.0, ceiling_s=32.0)


@pytest.mark.parametrize(
    ("longest", "limit"), [(0.0, 2.0), (0.2, 2.0), (0.21, 4.0), (0.4, 4.0), (1.0, 16.0), (3.2, 32.0), (1e9, 32.0)]
)
def test_limits_double_from_the_floor_to_the_ceiling(longest: float, limit: float) -> None:
    assert limit_of(longest) == limit


@given(TIMES, BOUNDS)
def test_a_limit_is_enough_for_a_solution_times_the_factor_unless_capped(
    longest: float, bounds: dict[str, float]
) -> None:
    limit = calibrated_cpu_s(longest, **bounds)
    assert bounds["floor_s"] <= limit <= bounds["ceiling_s"]
    assert limit >= FACTOR * longest or limit == bounds["ceiling_s"]
    assert limit == bounds["floor_s"] or limit < 2 * FACTOR * longest


@given(TIMES, TIMES, BOUNDS)
def test_a_slower_solution_never_gives_less_time(a: float, b: float, bounds: dict[str, float]) -> None:
    assert calibrated_cpu_s(min(a, b), **bounds) <= calibrated_cpu_s(max(a, b), **bounds)


@given(st.floats(1e-6, 10), st.floats(0.5, 2))
def test_noise_of_a_factor_of_two_moves_a_limit_by_one_step_at_most(longest: float, noise: float) -> None:
    a, b = sorted((limit_of(longest), limit_of(longest * noise)))
    assert b <= 2 * a


@given(st.floats(0, 0.1), st.floats(0, 2))
def test_quick_solutions_all_get_the_floor_however_noisy_the_machine(longest: float, noise: float) -> None:
    assert limit_of(longest * noise) == 2.0


@pytest.mark.parametrize("time", [-1e-9, math.nan])
def test_no_time_is_negative(time: float) -> None:
    with pytest.raises(ValueError, match="solution_s must be at least 0"):
        limit_of(time)
