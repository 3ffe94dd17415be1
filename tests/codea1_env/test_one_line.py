"""What one meets in a REPL is shown in one line: a set of problems would fill 300,000 characters."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from codea1_env import judge, load_problems, preset
from codea1_env.facts.submissions import Candidate
from codea1_env.facts.verdicts import CandidateReport, Verdict

STARTER = load_problems("starter")
FIXED = preset("fixed")


def report() -> CandidateReport:
    problem = STARTER.by_id("starter/count_carries")
    tests = "assert count_carries(5, 5) == 1\nassert count_carries(1, 2) == 0\nassert count_carries(9, 1) == 1"
    return judge(problem, "def count_carries(a, b): return 0", tests)


@pytest.mark.parametrize(
    ("made", "shown"),
    [
        (lambda: STARTER, f"<ProblemSet starter: {len(STARTER)} problems>"),
        (lambda: STARTER[0], "<Problem starter/assign_lockers: function assign_lockers, 17 golden tests>"),
        (lambda: FIXED, "<Ruleset fixed>"),
        (
            lambda: replace(FIXED, tests_per_suite=4, reward=replace(FIXED.reward, alpha=0.1)),
            "<Ruleset fixed, tests_per_suite=4, reward.alpha=0.1>",
        ),
        (report, "<CandidateReport loads; cases: 2 wrong_answer, 1 passed>"),
        (
            lambda: CandidateReport(Candidate(""), Verdict.SYNTAX_ERROR, golden_pass_rate=0.0),
            "<CandidateReport syntax_error; cases: none; golden 0>",
        ),
    ],
)
def test_one_line(made: Any, shown: str) -> None:
    assert repr(made()) == shown
