from __future__ import annotations

from dataclasses import replace
from math import isnan

import pytest

from codea1_agents.play.games import PlayedEpisode
from codea1_agents.play.runner import play
from codea1_env.errors import UserError
from codea1_env.problems import ProblemSet
from codea1_env.rules.ruleset import PRESETS, preset
from codea1_env.runs.records import EpisodeRecord, RewardRecord, RewardsRecord
from codea1_env.sandbox import Sandbox
from codea1_lab.rescore import compare, rescored, with_rewards_of

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


def test_golden_rewards_cannot_be_had_from_a_run_without_golden_tests() -> None:
    for name in ("golden", "cure"):
        with pytest.raises(UserError, match=f"rules {name} pay for golden tests"):
            with_rewards_of(FIXED, preset(name))
    assert with_rewards_of(preset("golden"), preset("golden")).name == "golden"


def valued(record: EpisodeRecord, problem_id: str, coder_value: float | None, tester_value: float) -> EpisodeRecord:
    rewards = RewardsRecord(
        coder=RewardRecord(value=coder_value, parts=()), testers=(RewardRecord(value=tester_value, parts=()),)
    )
    played = record.rounds[0].model_copy(update={"rewards": rewards})
    return record.model_copy(update={"problem_id": problem_id, "rounds": (played,)})


def test_a_comparison_pairs_rounds_and_tells_which_problems_moved(records: list[EpisodeRecord]) -> None:
    def scored(*values: float | None) -> list[EpisodeRecord]:
        return [valued(records[0], name, value, 0.5) for name, value in zip("abc", values, strict=True)]

    found = compare(zip(scored(0.0, 0.5, 1.0), scored(0.9, 0.5, 1.0), strict=True))
    assert found.coder.difference.mean == pytest.approx(0.3)
    assert (found.coder.order.n_pairs, found.coder.order.n_reversed) == (3, 1)
    assert [(m.problem_id, m.rank_before, m.rank_after) for m in found.coder.moved] == [("a", 3, 2), ("b", 2, 3)]
    assert found.tester.moved == ()
    assert found.tester.difference.mean == 0.0


def test_masked_rounds_stay_masked_and_enter_no_difference(records: list[EpisodeRecord]) -> None:
    masked = valued(records[0], "a", None, 0.5)
    found = compare([(masked, masked)])
    assert isnan(found.coder.difference.mean)
    assert found.coder.before.n_masked == 1
    assert found.coder.moved == ()


def test_rounds_without_a_tester_do_not_enter_its_comparison(records: list[EpisodeRecord]) -> None:
    played = records[0].rounds[0].model_copy(update={"tester_reply": None})
    unasked = records[0].model_copy(update={"rounds": (played,)})
    found = compare([(unasked, unasked)])
    assert found.tester.before.n == 0
    assert found.coder.before.n == 1
