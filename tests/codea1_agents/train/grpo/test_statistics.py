"""Figures of trees in which suites are shared."""

from __future__ import annotations

import pytest

pytest.importorskip("torch", reason="torch is not installed")


from codea1_agents.train.grpo.hyperparameters import Shape
from codea1_agents.train.grpo.statistics import tree_figures
from tests.support.toys import BROKEN, FALSE, NAIVE, RIGHT, SHARP, WRONG
from tests.support.trees import PER_PROBLEM, Scripted, rolled


def test_a_suite_that_all_candidates_meet_counts_once(sandbox, toys):
    players = {"coder": Scripted(RIGHT, WRONG, WRONG, BROKEN), "tester": Scripted(NAIVE, SHARP, FALSE)}
    (tree,) = rolled(sandbox, toys, players, PER_PROBLEM)
    figures = tree_figures(tree, 2)
    assert figures["distinct_suites"] == 1.0
    assert figures["suite_validity"] == pytest.approx(2 / 3)
    assert figures["untested_share"] == 0.0
    # Of three programs that load, the two wrong ones are beaten by all three suites.
    assert figures["suites_that_beat"] == pytest.approx(2 / 3)


def test_programs_that_no_case_speaks_of_are_counted_among_those_that_load(sandbox, toys):
    players = {"coder": Scripted(RIGHT, WRONG, BROKEN), "tester": Scripted("no test", "none", NAIVE, "none")}
    (tree,) = rolled(sandbox, toys, players, Shape(n_candidates=3, n_suites=2))
    assert tree_figures(tree, 2)["untested_share"] == 0.5
