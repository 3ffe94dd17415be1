"""Tests drawn anew for each tree: which they are follows from the run's seed and the number of the tree alone."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from codea1_agents.train.grpo.hyperparameters import Shape
from codea1_agents.train.grpo.rollout import AgentPlayer, Task, TreeRoller
from codea1_env.agent import AgentContext, load_agent
from codea1_env.problems import ProblemSet
from codea1_env.rounds.rounds import SuitesPer
from codea1_env.sandbox import Sandbox
from tests.support.toys import RIGHT, RULES, WRONG
from tests.support.trees import Scripted, group_envs

SHARED = Shape(n_candidates=2, n_suites=1, suites_per=SuitesPer.PROBLEM)


def drawn(sandbox: Sandbox, toys: ProblemSet, numbers: list[int], seed: int) -> list[tuple[str, ...]]:
    """Return the calls of each tree's tests, by a player that has played nothing before."""
    tester = AgentPlayer(load_agent("fuzz", AgentContext(toys, sandbox, seed)), "fuzz")
    roller = TreeRoller(
        group_envs(sandbox, toys, SHARED), {"coder": Scripted(RIGHT, WRONG), "tester": tester}, seed=seed
    )
    trees = roller.roll([Task(number, "toy/add") for number in numbers]).trees
    reports = [tree.judged.report for tree in trees]
    suites = [[each.suites[0].suite for each in report.candidates] for report in reports if report is not None]
    assert all(first == second for first, second in suites), "all candidates run the same tests"
    return [tuple(case.case.expression for case in suite.cases) for suite, _ in suites]


def test_a_run_draws_other_tests_each_time_and_a_resumed_one_the_same(sandbox: Sandbox, toys: ProblemSet) -> None:
    whole = drawn(sandbox, toys, [0, 1, 2, 3], seed=7)
    assert {len(calls) for calls in whole} == {RULES.tests_per_suite}
    assert len({frozenset(calls) for calls in whole}) == 4
    assert all(len(set(calls)) == len(calls) for calls in whole)
    assert drawn(sandbox, toys, [2, 3], seed=7) == whole[2:]
    assert drawn(sandbox, toys, [0, 1, 2, 3], seed=8) != whole
