from __future__ import annotations

from dataclasses import replace

import pytest

from codea1_env.errors import UserError
from codea1_env.facts.submissions import Candidate, TestCase
from codea1_env.facts.verdicts import CandidateReport, CaseReport, SuiteReport, ValidCase, ValidSuite, Verdict
from codea1_env.rules.ruleset import preset
from codea1_lab.rescore_sweep import Rollout, Setting, settings_of, sweep

FIXED = replace(preset("fixed"), tests_per_suite=4)
PLAYED = Setting("as played", FIXED)


def cases(n_passed: int, n_failed: int) -> tuple[CaseReport, ...]:
    verdicts = [Verdict.PASSED] * n_passed + [Verdict.WRONG_ANSWER] * n_failed
    return tuple(
        CaseReport(ValidCase(TestCase(f"f({i})", f"{i}", (), True), b"%d" % i, True), verdict)
        for i, verdict in enumerate(verdicts)
    )


def rollout(*suites: tuple[int, int], replayed: tuple[int, int] = (0, 0), group: str = "g") -> Rollout:
    found = []
    for passed, failed in suites:
        of_suite = cases(passed, failed)
        found.append(SuiteReport(ValidSuite(tuple(case.case for case in of_suite), (), 0, 0.0), of_suite))
    return Rollout(group, "p", CandidateReport(Candidate("x"), Verdict.PASSED, "", cases(*replayed), tuple(found)))


def test_alpha_flips_the_signs_of_a_long_easy_suite_against_a_short_hard_one() -> None:
    many_easy, one_hard = rollout((4, 0)), rollout((0, 1))  # validity 1, .25; adversarial 0, .25
    (low, same, high) = sweep([many_easy, one_hard], PLAYED, settings_of(FIXED, {"alpha": ["0", ".5", "1"]}))
    assert same.tester.difference.mean == 0
    assert (same.tester.signs.n_flipped, same.tester.order.n_reversed, same.tester.n_other_best) == (0, 0, 0)
    assert (low.tester.signs.n, low.tester.signs.n_flipped) == (2, 2)  # .5 against .25 before, 0 against .25 after
    assert (low.tester.order.n_reversed, low.tester.n_other_best) == (1, 1)
    assert high.tester.signs.n_flipped == 0
    assert low.coder.difference.mean == high.coder.difference.mean == 0


def test_a_setting_that_pays_all_alike_loses_every_sign_and_says_so() -> None:
    (effect,) = sweep([rollout((4, 0)), rollout((0, 4))], PLAYED, settings_of(FIXED, {"alpha": ["1"]}))
    assert (effect.tester.n_groups, effect.tester.n_flat) == (1, 1)
    assert (effect.tester.signs.n_vanished, effect.tester.signs.n_flipped) == (2, 0)
    assert effect.tester.order.n_merged == 1


def test_suites_of_one_candidate_are_a_group_of_their_own() -> None:
    rollouts = [rollout((4, 0), (0, 4)), rollout((2, 2), (2, 2))]
    (effect,) = sweep(rollouts, PLAYED, settings_of(FIXED, {"alpha": [".5"]}))
    assert (effect.tester.n_groups, effect.tester.n_flat) == (2, 1)
    assert (effect.coder.n_groups, effect.coder.signs.n) == (1, 2)


def test_fewer_replays_are_the_first_ones() -> None:
    played = rollout((1, 0), replayed=(2, 2))  # passes the first two of four
    rewards = [
        effect.coder.reward.mean for effect in sweep([played], PLAYED, settings_of(FIXED, {"replay": ["0", ".5", "1"]}))
    ]
    assert rewards == [pytest.approx(1.0), pytest.approx(1.0), pytest.approx(0.75)]


def test_masked_rollouts_and_invalid_candidates_stay_out() -> None:
    broken = rollout((1, 0))
    report = replace(broken.report, verdict=Verdict.INTERNAL_ERROR)
    invalid = replace(broken, report=replace(broken.report, verdict=Verdict.SYNTAX_ERROR))
    (effect,) = sweep(
        [rollout((4, 0)), replace(broken, report=report), invalid], PLAYED, settings_of(FIXED, {"alpha": ["0"]})
    )
    assert (effect.coder.signs.n, effect.coder.reward.n_masked) == (2, 1)
    assert effect.tester.signs.n == 1


def test_parameters_multiply_and_presets_change_formulas_only() -> None:
    found = settings_of(FIXED, {"rules": ["paper", "zero_sum"], "alpha": ["0", "1"], "tests": ["8"]})
    assert [setting.label for setting in found] == [
        "rules paper, alpha 0, tests 8",
        "rules paper, alpha 1, tests 8",
        "rules zero_sum, alpha 0, tests 8",
        "rules zero_sum, alpha 1, tests 8",
    ]
    assert [setting.rules.reward.alpha for setting in found] == [0, 1, 0, 1]
    assert {setting.rules.tests_per_suite for setting in found} == {8}
    assert {setting.rules.validation for setting in found} == {FIXED.validation}


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"alfa": ["0"]}, "unknown parameter 'alfa'"),
        ({"alpha": ["2"]}, "alpha"),
        ({"alpha": ["x"]}, "alpha must be a number, not 'x'"),
        ({"alpha": ["nan"]}, "alpha must be a number"),
        ({"tests": ["1.5"]}, "whole number"),
        ({"replay": ["2"]}, "replay must be within"),
        ({"rules": ["papr"]}, "did you mean 'paper'"),
        ({"rules": ["golden"]}, "has not executed"),
        ({"alpha": ["0"] * 201}, "more than 200"),
    ],
)
def test_bad_parameters_are_one_sentence(parameters: dict[str, list[str]], said: str) -> None:
    with pytest.raises(UserError, match=said):
        settings_of(FIXED, parameters)
