"""What one meets in a REPL is shown in one line: a set of problems would fill 300,000 characters."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from codea1_env import Referee, bank_v0, code_a1_v0, judge, load_problems, preset
from codea1_env.facts.submissions import Candidate
from codea1_env.facts.verdicts import CandidateReport, ProblemReport, Verdict
from codea1_env.group_env import GroupVector
from codea1_env.gymnasium_views import TesterEnv
from codea1_env.rounds.referee import Scored
from codea1_env.rules.ruleset import PRESETS

STARTER = load_problems("starter")
FIXED = preset("fixed")


def report() -> CandidateReport:
    problem = STARTER.by_id("starter/count_carries")
    tests = "assert count_carries(5, 5) == 1\nassert count_carries(1, 2) == 0\nassert count_carries(9, 1) == 1"
    return judge(problem, "def count_carries(a, b): return 0", tests)


def played(make: Any, *replies: Any) -> Any:
    env = make()
    env.reset(seed=0, options={"problem_id": "starter/count_carries"})
    for reply in replies:
        env.step(reply)
    return env


GAME = "starter, 52 problems; rules fixed"
GROUP = partial(code_a1_v0.group_env, STARTER, n_candidates=2, n_suites=1)


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
        (lambda: report().suites[0], "<SuiteReport cases: 2 wrong_answer, 1 passed; rejections: none>"),
        (
            lambda: report().suites[0].cases[0],
            "<CaseReport wrong_answer: 'assert count_carries(5, 5) == 1'; it gave '0'>",
        ),
        (
            lambda: ProblemReport("starter/count_carries", (report(), CandidateReport(Candidate(""), Verdict.NO_CODE))),
            "<ProblemReport starter/count_carries: 1 of 2 candidates load; cases: 2 wrong_answer, 1 passed>",
        ),
        (lambda: Scored("p", 0.5, 0.125, "", {}, report()), "<Scored p: coder 0.5, tester 0.125>"),
        (lambda: Scored("p", None, None, "no sandbox"), "<Scored p: coder None, tester None (no sandbox)>"),
        (lambda: Referee(STARTER), "<Referee starter, 52 problems; rules fixed>"),
        (lambda: code_a1_v0.env(STARTER), f"<code_a1_v0 AEC: {GAME}; white_box; no episode>"),
        (
            lambda: played(partial(code_a1_v0.parallel_env, STARTER)),
            f"<code_a1_v0 parallel: {GAME}; white_box; turn of coder_0>",
        ),
        (lambda: code_a1_v0.blind_parallel_env(STARTER), f"<code_a1_v0 blind parallel: {GAME}; blind; no episode>"),
        (
            lambda: played(GROUP),
            f"<code_a1_group_v0 parallel: {GAME}; 2 candidates, 1 suites per candidate; turn of coders>",
        ),
        (
            lambda: GroupVector([GROUP()]),
            f"<GroupVector of 1 <code_a1_group_v0 parallel: {GAME}; 2 candidates, 1 suites per candidate; no episode>>",
        ),
        (
            lambda: bank_v0.env("starter"),
            "<bank_v0 AEC: starter, 52 problems, 5 programs x 10 suites; rules fixed; white_box; no episode>",
        ),
        (lambda: TesterEnv(problems=STARTER), f"<tester_0 of <code_a1_v0 raw: {GAME}; white_box; no episode>>"),
        (
            lambda: played(partial(code_a1_v0.raw_env, STARTER), "no code").last_round,
            "<JudgedRound 0 of starter/count_carries: coder 0, tester 0; <CandidateReport no_code; cases: none>>",
        ),
        (
            lambda: played(GROUP, {"coder_0": "no code", "coder_1": ""}).last_tree,
            "<JudgedTree <ProblemReport starter/count_carries: 0 of 2 candidates load; cases: none>; "
            "coders [0.0, 0.0]>",
        ),
        (lambda: preset("release").book, "<BookRules as by default>"),
        (lambda: preset("golden").reward, "<RewardRules scheme=golden>"),
    ],
)
def test_one_line(made: Any, shown: str) -> None:
    assert repr(made()) == shown
    assert len(shown) <= 200


@pytest.mark.parametrize("name", PRESETS)
def test_rules_fit_into_a_line(name: str) -> None:
    rules = preset(name)
    assert max(len(repr(each)) for each in (rules, rules.reward, rules.book)) <= 200
