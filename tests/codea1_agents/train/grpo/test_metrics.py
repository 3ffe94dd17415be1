"""Figures of trees in which suites are shared."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

pytest.importorskip("torch", reason="torch is not installed")

from codea1_agents.models.sampling import Response
from codea1_agents.train.grpo.hyperparameters import Shape
from codea1_agents.train.grpo.metrics import tree_figures
from codea1_agents.train.grpo.rollout import Reply
from codea1_agents.train.grpo.settings import TrainingSettings
from codea1_env.rounds.rounds import Turn
from tests.support.toys import BROKEN, FALSE, NAIVE, RIGHT, SHARP, WRONG
from tests.support.trees import PER_PROBLEM, Scripted, rolled


def test_programs_that_no_case_speaks_of_are_counted_among_those_that_load(sandbox, toys):
    players = {"coder": Scripted(RIGHT, WRONG, BROKEN), "tester": Scripted("no test", "none", NAIVE, "none")}
    (tree,) = rolled(sandbox, toys, players, Shape(n_candidates=3, n_suites=2))
    assert tree_figures(tree, 2)["untested_share"] == 0.5


class Sampled(Scripted):
    """Its replies have tokens, each another number of them."""

    def answer(self, turns: Sequence[Turn], *_: object) -> list[Reply]:
        return [
            replace(answer, prompt=(1, 2), response=Response((3,) * n, (-1.0,) * n, is_cut=n % 3 == 0))
            for n, answer in enumerate(super().answer(turns), 1)
        ]


def test_a_suite_that_all_candidates_meet_counts_once_and_figures_need_no_tokens(sandbox, toys):
    players = {"coder": Sampled(RIGHT, WRONG, WRONG, BROKEN), "tester": Sampled(NAIVE, SHARP, FALSE)}
    (tree,) = rolled(sandbox, toys, players, PER_PROBLEM)
    figures = tree_figures(tree, 2)
    assert (figures["distinct_suites"], figures["untested_share"]) == (1.0, 0.0)
    assert figures["suite_validity"] == pytest.approx(2 / 3)
    # Of three programs that load, the two wrong ones fail all three suites; in one suite only for a wrong answer.
    assert figures["kill_rate"] == pytest.approx(2 / 3)
    assert figures["right_kill_rate"] == pytest.approx(2 / 3 * 2 / 3)
    settings = TrainingSettings(module_by_role={"coder": "coder"})
    lean = tree.trim(tree.trained_responses(settings))
    assert lean.candidates == tree.candidates
    assert [each.response for each in lean.trained_responses(settings)] == [each.response for each in tree.candidates]
    assert len(lean.suites[0]) == 3
    assert not any(answer.prompt or isinstance(answer.response, Response) for answer in lean.suites[0])
    assert tree_figures(lean, 2) == figures
    assert {"coder_tokens", "tester_tokens", "coder_cut_share"} <= figures.keys()
