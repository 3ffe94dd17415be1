from __future__ import annotations

import math

import pytest

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.loop import load_training
from codea1_agents.train.loop.held_out import Finding, SuiteFigures, require_evaluation, summarise
from codea1_env.errors import UserError


def test_figures_are_means_over_problems_of_means_over_samples() -> None:
    both, none = SuiteFigures(1.0, True, True, 0.5), SuiteFigures(0.0, False, False, -0.25)
    findings = [
        Finding(0, (True, False), (1.0, 0.5), {"a": (both, SuiteFigures(0.5, False, True, math.nan))}),
        Finding(1, (False, False), (0.0, 0.0), {"a": (none,)}),
        Finding(2),  # nothing could be found out about it
    ]
    assert summarise(findings) == {
        "problems": 3.0,
        "coder_pass_at_1": pytest.approx(0.25),
        "coder_pass_at_1_low": 0.0,
        "coder_pass_at_1_high": 0.5,
        "coder_golden_rate": pytest.approx(0.375),
        "tester_validity/a": pytest.approx(0.375),
        "tester_right_kill_rate/a": pytest.approx(0.25),
        "tester_kill_rate/a": pytest.approx(0.5),
        "tester_aim/a": pytest.approx(0.125),
    }
    told = summarise([Finding(0, (True,) + (False,) * 7, (0.0,) * 8)])
    assert (told["coder_pass_at_1"], told["coder_pass_at_8"]) == (pytest.approx(1 / 8), 1.0)


def test_an_evaluation_needs_problems_and_is_checked_before_anything_is_built() -> None:
    require_evaluation(load_training().evaluation, "local")
    with pytest.raises(UserError, match=r"evaluation\.problems: name the problems"):
        require_evaluation(load_training("", ["evaluation.every=5"]).evaluation, "local")
    with pytest.raises(UserError, match="starter"):
        require_evaluation(load_training("", ["evaluation.every=5", "evaluation.problems=startr"]).evaluation, "local")
