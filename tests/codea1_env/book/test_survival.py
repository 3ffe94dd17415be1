from __future__ import annotations

from itertools import pairwise
from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.book.survival import Stay, survival

stays = st.lists(st.builds(Stay, st.integers(0, 20), st.booleans()), max_size=60)


def test_the_textbook_example_of_remission_times() -> None:
    """6-MP arm of Freireich et al. (1963); estimates and Greenwood errors as in Kalbfleisch and Prentice."""
    fixed = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    censored = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    found = survival([*(Stay(t, True) for t in fixed), *(Stay(t, False) for t in censored)])
    assert [(s.time, s.n_at_risk, round(s.share, 4)) for s in found.steps] == [
        (6, 21, 0.8571),
        (7, 17, 0.8067),
        (10, 15, 0.7529),
        (13, 12, 0.6902),
        (16, 11, 0.6275),
        (22, 7, 0.5378),
        (23, 6, 0.4482),
    ]
    assert found.median == 23
    assert (found.steps[0].low, found.steps[0].high) == (pytest.approx(0.620, abs=1e-3), pytest.approx(0.952, abs=1e-3))


@given(st.lists(st.integers(0, 20), min_size=1, max_size=60))
def test_without_censoring_it_is_the_share_that_stays_longer(durations: list[int]) -> None:
    found = survival(Stay(duration, True) for duration in durations)
    for time in range(21):
        assert found.share_after(time) == pytest.approx(sum(d > time for d in durations) / len(durations))


@given(stays)
def test_shares_fall_and_intervals_hold_them(some: list[Stay]) -> None:
    found = survival(some)
    shares = [1.0, *(step.share for step in found.steps)]
    assert all(before > after for before, after in pairwise(shares))
    for step in found.steps:
        assert isnan(step.low) or 0 <= step.low <= step.share <= step.high <= 1
    assert (found.n, found.n_fixed) == (len(some), sum(stay.is_fixed for stay in some))


def test_nothing_fixed_has_no_median_and_a_negative_stay_is_refused() -> None:
    assert isnan(survival([Stay(3, False)]).median)
    with pytest.raises(ValueError, match="cannot stay"):
        survival([Stay(-1, True)])
