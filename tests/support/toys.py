"""Two small problems, and replies about the first whose verdicts are known."""

from __future__ import annotations

from dataclasses import replace

import pytest

from codea1_env.errors import AgentUnavailable
from codea1_env.problems import GoldenCase, Problem
from codea1_env.rules.ruleset import preset

ADD = Problem(
    "toy/add",
    'def add(a: int, b: int) -> int:\n    """Return a + b.\n\n    >>> add(1, 2)\n    3\n    """\n',
    "add",
    "def add(a, b):\n    return a + b\n",
    golden=(GoldenCase("add(1, 2)", "3"), GoldenCase("add(-1, 1)", "0")),
    examples=("assert add(1, 2) == 3",),
)
LAST = Problem(
    "toy/last",
    'def last(items: list[int]) -> int | None:\n    """Return the last item, None if there is none."""\n',
    "last",
    "def last(items):\n    return items[-1] if items else None\n",
    golden=(GoldenCase("last([])", "None"), GoldenCase("last([1, 2])", "2")),
)


def fenced(text: str) -> str:
    return f"```python\n{text}\n```"


RIGHT = fenced("def add(a, b):\n    return a + b")
LOOKS_RIGHT = fenced("def add(a, b):\n    return abs(a + b)")
"""Right unless the sum is negative."""
WRONG = fenced("def add(a, b):\n    return a - b")
BROKEN = "```python\ndef add(a, b:\n```"
"""Does not parse."""

NAIVE = fenced("assert add(1, 3) == 4\nassert add(0, 0) == 0")
"""Beats WRONG, in one of two cases."""
SHARP = fenced("assert add(-1, -2) == -3\nassert add(2, 1) == 3")
"""Beats LOOKS_RIGHT in one of two cases, WRONG in both."""
FALSE = fenced("assert add(1, 1) == 3\nassert add(5, 5) == 5")
"""Contradicts the solution."""

RULES = replace(preset("fixed"), tests_per_suite=2)
GONE = AgentUnavailable("gone")

TEXT_SPACES = pytest.mark.filterwarnings(
    "ignore:Observation space for each agent probably should be:UserWarning",
    "ignore:Action space for each agent probably should be:UserWarning",
    "ignore:Observation is not a NumPy array:UserWarning",
)
"""PettingZoo's api_test warns about every environment whose spaces are not Box or Discrete, by name. Ours are text."""
