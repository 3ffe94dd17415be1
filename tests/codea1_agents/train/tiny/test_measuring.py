from __future__ import annotations

from collections.abc import Mapping
from statistics import fmean
from typing import Any

import pytest

from codea1_agents.play.named_agent import NamedAgent
from codea1_agents.train.tiny.measuring import FIGURES, Measurement, measure
from codea1_agents.train.tiny.problems import load
from codea1_env.agent import AgentContext, load_agent
from codea1_env.problems import GoldenCase, ProblemSet
from codea1_env.sandbox import Sandbox

PROBLEMS = ProblemSet("some", load("train-eval")[:6])


def measured(sandbox: Sandbox, coder: Any, tester: Any, view: Any = "white_box") -> Measurement:
    context = AgentContext(PROBLEMS, sandbox, 0)
    askers = [NamedAgent(load_agent(spec, context), "agent") for spec in (coder, tester)]
    return measure(PROBLEMS, *askers, sandbox, samples=2, tests=4, view=view)


def fails(case: GoldenCase, space: dict[str, Any]) -> bool:
    try:
        return bool(eval(case.expression, space) != eval(case.expected))
    except (ArithmeticError, LookupError, TypeError, ValueError):
        return True


def test_a_perfect_coder_and_a_tester_that_knows_the_answers(sandbox: Sandbox) -> None:
    found = measured(sandbox, "reference", "fuzz").figures
    assert set(found) == set(FIGURES)
    assert found["pass@1"].mean == found["golden_rate"].mean == 1.0
    assert found["validity"].mean > 0.9
    assert found["kill"].n == 0
    assert found["kill_subtlest"].mean >= found["hit"].mean > 0
    naive = []  # the share of golden tests that the subtlest mistake of each problem fails
    for problem in PROBLEMS:
        space: dict[str, Any] = {}
        exec(max(problem.wrong_programs, key=lambda wrong: wrong.subtlety).program, space)
        naive.append(fmean(fails(case, space) for case in problem.golden))
    assert found["aim"].mean == pytest.approx(found["hit"].mean - fmean(naive))
    assert min(found["right_hit"].mean, found["right_miss"].mean) > 0.9


def test_wrong_programs_and_useless_suites(sandbox: Sandbox) -> None:
    wrong = {problem.statement: problem.wrong_programs[0].program for problem in PROBLEMS}
    seen: list[str] = []

    def coder(observation: Mapping[str, Any]) -> str:
        return wrong[observation["problem"]]

    def tester(observation: Mapping[str, Any]) -> str:
        seen.append(observation["program"])
        return "assert f(None) == 3"

    found = measured(sandbox, coder, tester, "black_box").figures
    assert found["pass@1"].mean == 0.0
    assert 0 < found["golden_rate"].mean < 1
    assert found["validity"].mean == found["kill"].mean == found["kill_subtlest"].mean == 0.0
    assert set(seen) == {""}
