from __future__ import annotations

from math import isnan

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("scipy", reason="scipy is not installed")

from codea1_lab.book_history.survival import survival


def test_the_textbook_example_of_remission_times() -> None:
    """6-MP arm of Freireich et al. (1963); estimates and Greenwood errors as in Kalbfleisch and Prentice."""
    fixed = [6, 6, 6, 7, 10, 13, 16, 22, 23]
    censored = [6, 9, 10, 11, 17, 19, 20, 25, 32, 32, 34, 35]
    found = survival([*fixed, *censored], [True] * len(fixed) + [False] * len(censored))
    at_risk = {6: 21, 7: 17, 10: 15, 13: 12, 16: 11, 22: 7, 23: 6}
    assert {step.time: step.n_at_risk for step in found.steps} == at_risk
    shares = [0.8571, 0.8067, 0.7529, 0.6902, 0.6275, 0.5378, 0.4482]
    assert [round(step.share, 4) for step in found.steps] == shares
    assert (found.n, found.n_fixed, found.median) == (21, 9, 23)
    none = survival([3, 4], [False, False])
    assert (none.n, none.n_fixed, none.steps, isnan(none.median)) == (2, 0, (), True)
    assert (found.steps[0].low, found.steps[0].high) == (pytest.approx(0.620, abs=1e-3), pytest.approx(0.952, abs=1e-3))


@given(st.lists(st.integers(0, 20), max_size=60))
def test_without_censoring_it_is_the_share_that_stays_longer(durations: list[int]) -> None:
    found = survival(durations, [True] * len(durations))
    assert [step.time for step in found.steps] == sorted(set(durations))
    for step in found.steps:
        assert step.share == pytest.approx(sum(d > step.time for d in durations) / len(durations))
        assert isnan(step.low) == isnan(step.high) == (step is found.steps[-1])
