"""One problem, programs that fail it, and the prompts of a tester."""

from __future__ import annotations

from codea1_agents.prompts import load_prompts
from codea1_env.problems import GoldenCase, Problem

ADD = Problem(
    id="toy/add",
    statement="Return a + b.",
    entry_point="add",
    solution="def add(a, b):\n    return a + b\n",
    golden=tuple(GoldenCase(f"add({a}, {b})", str(a + b)) for a in range(3) for b in range(4)),
)
WRONG = [f"def add(a, b):\n    return a + b + {n}\n" for n in range(1, 6)]
PROMPTS = load_prompts("simple")
FAILING = {ADD.id: WRONG}
