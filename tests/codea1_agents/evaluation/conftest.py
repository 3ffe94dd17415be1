"""A few tiny problems, and agents made of replies."""

from __future__ import annotations

import pytest

from codea1_env.problems.problem import GoldenCase, Problem, ProblemSet


@pytest.fixture
def problems() -> ProblemSet:
    """Two problems: the larger of two numbers, and the sign of one."""
    larger = Problem(
        id="larger",
        statement="def larger(a, b):\n    '''Return the larger number.'''\n",
        entry_point="larger",
        solution="def larger(a, b):\n    if a > b:\n        return a\n    return b\n",
        golden=(GoldenCase("larger(1, 2)", "2"), GoldenCase("larger(3, 2)", "3")),
    )
    sign = Problem(
        id="sign",
        statement="def sign(n):\n    '''Return -1, 0 or 1.'''\n",
        entry_point="sign",
        solution="def sign(n):\n    return (n > 0) - (n < 0)\n",
        golden=(GoldenCase("sign(5)", "1"), GoldenCase("sign(0)", "0"), GoldenCase("sign(-5)", "-1")),
    )
    return ProblemSet("tiny", (larger, sign))
