from __future__ import annotations

from dataclasses import replace

import pytest

from codea1_agents.play.games import PlayedEpisode
from codea1_agents.play.runner import play
from codea1_env.errors import UserError
from codea1_env.facts.verdicts import Verdict
from codea1_env.problems import ProblemSet
from codea1_env.rules.ruleset import PRESETS, preset
from codea1_env.runs.records import EpisodeRecord
from codea1_env.sandbox import Sandbox
from codea1_lab.rescore import Rollout, Setting, rescored, settings_of, sweep, with_rewards_of
from tests.support.reports import FAILED, PASSED, candidate, met_all, suite_of

FIXED = preset("fixed")


def coder(observation: dict[str, str]) -> str:
    return {"add": "def add(a, b):\n    return a + b + (a > 1)", "last": "def last(items):\n    return items[-1]"}[
        observation["entry_point"]
    ]


def suite(observation: dict[str, str]) -> str:
    return {
        "add": "assert add(1, 2) == 3\nassert add(3, 2) == 5\nassert add(4, 2) == 7",
        "last": "assert last([]) == None\nassert last([2]) == 2",
    }[observation["entry_point"]]


@pytest.fixture(scope="module")
def records(toys: ProblemSet, sandbox: Sandbox) -> list[EpisodeRecord]:
    games: list[PlayedEpisode] = []
    play(toys, coder, suite, sandbox=sandbox, episodes=4, on_episode=games.append)
    return [game.record for game in games]


def test_the_rules_of_the_run_give_back_the_run(records: list[EpisodeRecord]) -> None:
    assert [rescored(record, FIXED) for record in records] == records


def test_alpha_moves_the_testers_rewards_by_hand_calculation_and_the_coders_not(records: list[EpisodeRecord]) -> None:
    other = replace(FIXED, reward=replace(FIXED.reward, alpha=0.3))
    before, after = records[0].rounds[0].rewards, rescored(records[0], other).rounds[0].rewards
    validity, adversarial = 1 / 8, 1 / 8  # of the two right predictions one beats the program, one is an example
    assert before.testers[0].value == pytest.approx(0.5 * validity + 0.5 * adversarial)
    assert after.testers[0].value == pytest.approx(0.3 * validity + 0.7 * adversarial)
    assert after.coder == before.coder


@pytest.mark.parametrize("name", sorted(set(PRESETS) - {"golden", "cure"}))
def test_every_presets_formulas_can_be_asked_of_a_stored_run(records: list[EpisodeRecord], name: str) -> None:
    rules = with_rewards_of(FIXED, preset(name))
    assert (rules.reward, rules.tests_per_suite) == (preset(name).reward, preset(name).tests_per_suite)
    assert (rules.reading, rules.validation, rules.comparison, rules.book) == (
        FIXED.reading,
        FIXED.validation,
        FIXED.comparison,
        FIXED.book,
    )
    assert all(rescored(record, rules).rounds[0].rewards.coder.value is not None for record in records)


@pytest.mark.parametrize("name", ["fixed", "zero_sum", "release"])
def test_fewer_tests_per_suite_than_were_played_pay_at_most_1(records: list[EpisodeRecord], name: str) -> None:
    assert max(len(suite.cases) for each in records for r in each.rounds for suite in r.suites) > 2
    rules = replace(with_rewards_of(FIXED, preset(name)), tests_per_suite=2)
    rewards = [r.rewards for each in records for r in rescored(each, rules).rounds]
    paid = [one.value for each in rewards for one in (each.coder, *each.testers)]
    assert all(-1 <= value <= 1 for value in paid if value is not None)


def test_golden_rewards_cannot_be_had_from_a_run_without_golden_tests() -> None:
    for name in ("golden", "cure"):
        with pytest.raises(UserError, match=f"rules {name} pay for golden tests"):
            with_rewards_of(FIXED, preset(name))
    assert with_rewards_of(preset("golden"), preset("golden")).name == "golden"


FOUR = replace(FIXED, tests_per_suite=4)
PLAYED = Setting("as played", FOUR)


def verdicts(n_passed: int, n_failed: int) -> list[Verdict]:
    return [PASSED] * n_passed + [FAILED] * n_failed


def rollout(*suites: tuple[int, int], replayed: tuple[int, int] = (0, 0), group: str = "g") -> Rollout:
    found = [suite_of(*met_all(verdicts(*each))) for each in suites]
    return Rollout(group, "p", candidate(*found, replayed=verdicts(*replayed)))


def test_alpha_flips_the_signs_of_a_long_easy_suite_against_a_short_hard_one() -> None:
    many_easy, one_hard = rollout((4, 0)), rollout((0, 1))  # validity 1, .25; adversarial 0, .25
    (low, same, high) = sweep([many_easy, one_hard], PLAYED, settings_of(FOUR, {"alpha": ["0", ".5", "1"]}))
    assert same.tester.difference.mean == 0
    assert (same.tester.signs.n_flipped, same.tester.order.n_reversed, same.tester.n_other_best) == (0, 0, 0)
    assert (low.tester.signs.n, low.tester.signs.n_flipped) == (2, 2)  # .5 against .25 before, 0 against .25 after
    assert (low.tester.order.n_reversed, low.tester.n_other_best) == (1, 1)
    assert high.tester.signs.n_flipped == 0
    assert low.coder.difference.mean == high.coder.difference.mean == 0


def test_a_setting_that_pays_all_alike_loses_every_sign_and_says_so() -> None:
    (effect,) = sweep([rollout((4, 0)), rollout((0, 4))], PLAYED, settings_of(FOUR, {"alpha": ["1"]}))
    assert (effect.tester.n_groups, effect.tester.n_flat) == (1, 1)
    assert (effect.tester.signs.n_vanished, effect.tester.signs.n_flipped) == (2, 0)
    assert effect.tester.order.n_merged == 1


def test_suites_of_one_candidate_are_a_group_of_their_own() -> None:
    rollouts = [rollout((4, 0), (0, 4)), rollout((2, 2), (2, 2))]
    (effect,) = sweep(rollouts, PLAYED, settings_of(FOUR, {"alpha": [".5"]}))
    assert (effect.tester.n_groups, effect.tester.n_flat) == (2, 1)
    assert (effect.coder.n_groups, effect.coder.signs.n) == (1, 2)


def test_fewer_replays_are_the_first_ones() -> None:
    played = rollout((1, 0), replayed=(2, 2))  # passes the first two of four
    rewards = [
        effect.coder.reward.mean for effect in sweep([played], PLAYED, settings_of(FOUR, {"replay": ["0", ".5", "1"]}))
    ]
    assert rewards == [pytest.approx(1.0), pytest.approx(1.0), pytest.approx(0.75)]


def test_masked_rollouts_and_invalid_candidates_stay_out() -> None:
    broken = rollout((1, 0))
    report = replace(broken.report, verdict=Verdict.INTERNAL_ERROR)
    invalid = replace(broken, report=replace(broken.report, verdict=Verdict.SYNTAX_ERROR))
    (effect,) = sweep(
        [rollout((4, 0)), replace(broken, report=report), invalid], PLAYED, settings_of(FOUR, {"alpha": ["0"]})
    )
    assert (effect.coder.signs.n, effect.coder.reward.n_masked) == (2, 1)
    assert effect.tester.signs.n == 1


def test_without_parameters_the_rules_themselves_are_the_setting() -> None:
    (setting,) = settings_of(FOUR, {})
    assert (setting.label, setting.rules) == ("fixed (alpha 0.5, 4 tests per suite)", FOUR)


def test_parameters_multiply_and_presets_change_formulas_only() -> None:
    found = settings_of(FOUR, {"rules": ["paper", "zero_sum"], "alpha": ["0", "1"], "tests": ["8"]})
    assert [setting.label for setting in found] == [
        "rules paper, alpha 0, tests 8",
        "rules paper, alpha 1, tests 8",
        "rules zero_sum, alpha 0, tests 8",
        "rules zero_sum, alpha 1, tests 8",
    ]
    assert [setting.rules.reward.alpha for setting in found] == [0, 1, 0, 1]
    assert {setting.rules.tests_per_suite for setting in found} == {8}
    assert {setting.rules.validation for setting in found} == {FOUR.validation}


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"alfa": ["0"]}, "unknown parameter 'alfa'"),
        ({"alpha": ["2"]}, "alpha"),
        ({"alpha": ["x"]}, "alpha must be a number, got 'x'"),
        ({"alpha": ["nan"]}, "alpha must be a number"),
        ({"tests": ["1.5"]}, "whole number"),
        ({"replay": ["2"]}, "replay must be in"),
        ({"rules": ["papr"]}, "did you mean 'paper'"),
        ({"rules": ["golden"]}, "has not executed"),
        ({"alpha": ["0"] * 201}, "more than 200"),
    ],
)
def test_bad_parameters_are_one_sentence(parameters: dict[str, list[str]], said: str) -> None:
    with pytest.raises(UserError, match=said):
        settings_of(FOUR, parameters)
