from __future__ import annotations

from fractions import Fraction
from math import inf, nan

import pytest

from codea1_env.sandbox.inside import pytest_stand_in as stand_in


def test_raises_demands_the_exception_and_the_message() -> None:
    with stand_in.raises(ValueError, match="b.d") as info:
        raise ValueError("bad")
    assert str(info.value) == "bad"
    assert info.type is ValueError
    assert str(stand_in.raises((KeyError, ValueError), int, "x").value).startswith("invalid literal")
    with pytest.raises(AssertionError), stand_in.raises(ValueError):
        pass
    with pytest.raises(AssertionError), stand_in.raises(ValueError, match="good"):
        raise ValueError("bad")
    with pytest.raises(KeyError), stand_in.raises(ValueError):
        raise KeyError


@pytest.mark.parametrize(
    ("expected", "found", "options"),
    [
        (1.0, 1.0 + 1e-7, {}), (1.0, 1.0 + 1e-5, {}), (0.0, 1e-13, {}), (0.0, 1e-11, {}), (1.0, None, {}),
        (100, 101, {"abs": 1}), (100, 101, {"rel": 0.02}), (100, 101, {"abs": 0.5}), (1.0, 1.0 + 1e-7, {"abs": 1e-9}),
        ([1.0, 2.0], [1.0, 2.0 + 1e-7], {}), ([1.0], [1.0, 2.0], {}), ({"a": 1.0}, {"a": 1.0 + 1e-7}, {}),
        ({"a": 1.0}, {"b": 1.0}, {}), (inf, inf, {}), (inf, 1.0, {}), (nan, nan, {}), (nan, nan, {"nan_ok": True}),
        ([1.0, nan], [1.0, 2.0], {"nan_ok": True}), (0.5, Fraction(1, 2) + Fraction(1, 10**9), {}),
        (Fraction(1, 2), Fraction(1, 3), {"abs": 1}), (None, None, {}),
    ],
)  # fmt: skip
def test_approx_agrees_with_pytest(expected: object, found: object, options: dict[str, float]) -> None:
    assert (found == stand_in.approx(expected, **options)) is (found == pytest.approx(expected, **options))


def test_fail_fails() -> None:
    with pytest.raises(AssertionError, match="why"):
        stand_in.fail("why")
