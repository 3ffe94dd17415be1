"""Means, intervals and paired differences over cells."""

from __future__ import annotations

from math import isnan, nan

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_agents.train.experiments.grid import Cell
from codea1_agents.train.experiments.spread import paired, spread_of

pytest.importorskip("scipy", reason="scipy is not installed")

shares = st.lists(st.floats(0, 1), min_size=2, max_size=8)


def cells(values: list[float], *, system: str = "a", base: int = 0) -> dict[Cell, float]:
    return {Cell(system, base, seed): value for seed, value in enumerate(values)}


def test_students_interval_by_hand() -> None:
    found = spread_of(cells([0.2, 0.4, 0.6]))
    # t(.975, 2) = 4.302653, standard deviation .2
    assert (found.mean, found.low, found.high, found.n) == (pytest.approx(0.4), 0.2, 0.6, 3)
    assert found.half_width == pytest.approx(4.302653 * 0.2 / 3**0.5, rel=1e-6)


def test_means_of_each_base() -> None:
    found = spread_of({**cells([0.0, 1.0], base=0), **cells([0.5], base=3)})
    assert found.by_base == (0.5, 0.5)


def test_masked_cells_are_left_out() -> None:
    found = spread_of(cells([0.25, nan]))
    assert (found.mean, found.n) == (0.25, 1)
    assert isnan(found.half_width)


@given(shares)
def test_a_system_less_itself_is_nothing(values: list[float]) -> None:
    found = paired(cells(values), cells(values))
    assert (found.mean, found.half_width, found.n_larger, found.is_shown) == (0, 0, 0, False)


@given(shares, st.floats(0.01, 1))
def test_a_constant_lead_is_shown(values: list[float], lead: float) -> None:
    found = paired(cells([value + lead for value in values]), cells(values, system="b"))
    assert found.mean == pytest.approx(lead)
    assert found.n_larger == found.n == len(values)


def test_pairs_are_of_the_same_seed_and_base() -> None:
    found = paired(cells([1.0, 2.0, 3.0]), {Cell("b", 0, 1): 5.0, Cell("b", 1, 0): 9.0, Cell("b", 0, 2): 1.0})
    assert (found.mean, found.n) == (-0.5, 2)
