"""A candidate's time follows from the solution's, in steps that noise does not cross."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.rules.limits import Calibration, calibrated_cpu_s

TIMES = st.floats(0, 1e6)
RULES = st.builds(
    lambda factor, floor, span: Calibration(factor, floor, floor * span),
    st.floats(1, 100),
    st.floats(0.01, 10),
    st.floats(1, 100),
)


@pytest.mark.parametrize(
    ("longest", "limit"), [(0.0, 2.0), (0.2, 2.0), (0.21, 4.0), (0.4, 4.0), (1.0, 16.0), (3.2, 32.0), (1e9, 32.0)]
)
def test_limits_double_from_the_floor_to_the_ceiling(longest: float, limit: float) -> None:
    assert calibrated_cpu_s(longest) == limit


@given(TIMES, RULES)
def test_a_limit_is_enough_for_a_solution_times_the_factor_unless_capped(longest: float, rule: Calibration) -> None:
    limit = calibrated_cpu_s(longest, rule)
    assert rule.floor_s <= limit <= rule.ceiling_s
    assert limit >= rule.factor * longest or limit == rule.ceiling_s
    assert limit == rule.floor_s or limit < 2 * rule.factor * longest


@given(TIMES, TIMES, RULES)
def test_a_slower_solution_never_gives_less_time(a: float, b: float, rule: Calibration) -> None:
    assert calibrated_cpu_s(min(a, b), rule) <= calibrated_cpu_s(max(a, b), rule)


@given(st.floats(1e-6, 10), st.floats(0.5, 2))
def test_noise_of_a_factor_of_two_moves_a_limit_by_one_step_at_most(longest: float, noise: float) -> None:
    a, b = sorted((calibrated_cpu_s(longest), calibrated_cpu_s(longest * noise)))
    assert b <= 2 * a


@given(st.floats(0, 0.1), st.floats(0, 2))
def test_quick_solutions_all_get_the_floor_however_noisy_the_machine(longest: float, noise: float) -> None:
    assert calibrated_cpu_s(longest * noise) == 2.0


@pytest.mark.parametrize("wrong", [{"factor": 0.5}, {"floor_s": 0}, {"floor_s": 9, "ceiling_s": 8}])
def test_a_calibration_that_makes_no_sense_is_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="factor must be at least 1"):
        Calibration(**wrong)


@pytest.mark.parametrize("time", [-1e-9, math.nan])
def test_no_time_is_negative(time: float) -> None:
    with pytest.raises(ValueError, match="solution_s must be at least 0"):
        calibrated_cpu_s(time)
