from __future__ import annotations

from math import isnan, nan
from statistics import pstdev

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from codea1_lab.experiments.grid import Cell
from codea1_lab.experiments.spread import holm, p_of_interval, paired_difference, spread_of

pytest.importorskip("scipy", reason="scipy is not installed")

shares = st.lists(st.floats(0, 1), min_size=3, max_size=8)


def cells(values: list[float], *, system: str = "a", base: int = 0) -> dict[Cell, float]:
    return {Cell(system, base, seed): value for seed, value in enumerate(values)}


def test_students_interval_by_hand() -> None:
    found = spread_of(cells([0.2, 0.4, 0.6]))
    # t(.975, 2) = 4.302653, standard deviation .2
    assert (found.mean, found.low, found.high, found.n) == (pytest.approx(0.4), 0.2, 0.6, 3)
    assert found.half_width == pytest.approx(4.302653 * 0.2 / 3**0.5, rel=1e-6)
    assert spread_of({**cells([0.0, 1.0], base=0), **cells([0.5], base=3)}).by_base == (0.5, 0.5)
    masked = spread_of(cells([0.25, nan]))
    assert (masked.mean, masked.n, isnan(masked.half_width)) == (0.25, 1, True)


@given(shares)
def test_a_system_less_itself_is_nothing(values: list[float]) -> None:
    found = paired_difference(cells(values), cells(values))
    assert (found.mean, found.half_width, found.n_larger, found.is_shown, found.p) == (0, 0, 0, False, 1)


@given(shares, st.floats(0.01, 1))
def test_a_constant_lead_is_shown(values: list[float], lead: float) -> None:
    found = paired_difference(cells([value + lead for value in values]), cells(values, system="b"))
    assert found.mean == pytest.approx(lead)
    assert found.n_larger == found.n == len(values)


def test_over_bases_the_seeds_of_a_base_count_once() -> None:
    first = {**cells([0.5, 0.7], base=0), **cells([0.4, 0.6], base=1), **cells([0.8], base=2)}
    second = dict.fromkeys(first, 0.5)
    found, alike = (
        paired_difference(first, second, over_bases=True),
        paired_difference(cells([0.6, 0.5, 0.8]), cells([0.5, 0.5, 0.5])),
    )
    assert (found.n, found.n_larger, found.n_smaller) == (3, 2, 0)
    assert (found.mean, found.half_width, found.p) == pytest.approx((alike.mean, alike.half_width, alike.p))
    assert paired_difference(first, second).n == 5


def test_below_three_pairs_there_is_no_interval_and_no_p_and_none_where_all_differ_alike() -> None:
    found = paired_difference(cells([0.2, 0.4]), cells([0.1, 0.1], system="b"))
    assert (found.mean, found.n, isnan(found.half_width), isnan(found.p)) == (pytest.approx(0.2), 2, True, True)
    assert isnan(spread_of(cells([0.2, 0.4])).half_width)
    alike = paired_difference(cells([0.5, 0.75, 0.25]), cells([0.25, 0.5, 0.0], system="b"))
    assert (alike.mean, isnan(alike.p)) == (0.25, True)
    other = paired_difference(
        cells([1.0, 2.0, 3.0]), {Cell("b", 0, 1): 5.0, Cell("b", 1, 0): 9.0, Cell("b", 0, 2): 1.0}
    )
    assert (other.mean, other.n) == (-0.5, 2)  # pairs are of the same seed and base
    assert [p_of_interval(0.2, 0.0, 3, margin=margin) for margin in (0.1, 0.3)] == [1.0, 0.0]
    assert isnan(p_of_interval(0.2, 0.0, 3))
    assert isnan(p_of_interval(0.2, 0.1, 2, margin=0.3))


@given(st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1)), min_size=3, max_size=8))
def test_p_values_are_those_of_scipys_paired_t_test(pairs: list[tuple[float, float]]) -> None:
    from scipy.stats import ttest_rel

    first, second = map(list, zip(*pairs, strict=True))
    assume(pstdev(a - b for a, b in pairs) > 1e-6)
    found = paired_difference(cells(first), cells(second))
    assert found.p == pytest.approx(ttest_rel(first, second).pvalue, abs=1e-9)
    assert found.is_shown == (found.p < 0.05)


@given(shares, st.sampled_from([0.0, 0.1, 0.5]))
def test_an_interval_has_the_p_value_of_scipys_tests_of_its_numbers(values: list[float], margin: float) -> None:
    from scipy.stats import ttest_1samp

    assume(pstdev(values) > 1e-6)
    found = spread_of(cells(values))
    sides = [(-margin, "greater"), (margin, "less")] if margin else [(0.0, "two-sided")]
    wanted = max(ttest_1samp(values, mean, alternative=side).pvalue for mean, side in sides)
    assert p_of_interval(found.mean, found.half_width, found.n, margin=margin) == pytest.approx(wanted, abs=1e-9)


def test_holms_correction_by_hand() -> None:
    assert holm([0.01, 0.04, 0.03, nan]) == pytest.approx([0.04, 0.09, 0.09, nan], nan_ok=True)
    assert holm([0.5, 0.6]) == [1.0, 1.0]


@given(st.lists(st.floats(0, 1), max_size=6))
def test_a_correction_never_lowers_nor_reorders_p_values(p_values: list[float]) -> None:
    found = holm(p_values)
    assert all(new >= old for new, old in zip(found, p_values, strict=True))
    assert [found[i] for i in sorted(range(len(found)), key=p_values.__getitem__)] == sorted(found)
