"""The benchmark of what strangers send, with few cases: nothing raises, and values compare as in Python."""

from __future__ import annotations

import runpy
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support import ROOT

BENCHMARKS = ROOT / "benchmarks"


@pytest.fixture(scope="module")
def script() -> Iterator[dict[str, Any]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(BENCHMARKS)
        yield runpy.run_path(str(BENCHMARKS / "budgets.py"))


def test_values_of_mixed_types_are_equal_as_in_python(script: dict[str, Any]) -> None:
    n_equal, wrong = script["compare_pairs"](20_000, 3)
    assert wrong == []
    assert n_equal > 100


@given(seed=st.integers(0, 2**32))
def test_any_two_values_are_equal_as_in_python(script: dict[str, Any], seed: int) -> None:
    _, wrong = script["compare_pairs"](100, seed)
    assert wrong == []


def test_small_inputs_valid_and_changed_raise_nothing(script: dict[str, Any]) -> None:
    small = list(script["inputs"](1_500, 5))
    assert len(small) >= 1_500
    for each in small:
        each.read()


@pytest.mark.slow
def test_inputs_full_of_one_thing_raise_nothing(script: dict[str, Any]) -> None:
    large = list(script["inputs"](0, 0, sizes=(3_000,), characters=(3_000,)))
    assert len(large) > 300
    for each in large:
        each.read()
