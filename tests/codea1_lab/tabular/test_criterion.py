from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from codea1_agents.train.grpo.advantages import group_advantages
from codea1_env.errors import UserError
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import CreditRules, Ruleset, preset
from codea1_lab.tabular.criterion import Skill, alpha_of_first_kill, least_kill_rate
from codea1_lab.tabular.world import Aim, DrawnTest, Program, World, candidate_report

WORLD = World(n_kinds=8, n_rare=4)
KINDS = (0, 1, 2, 3)
shares = st.floats(0.05, 0.95)


def rules_of(alpha: float, tests: int) -> Ruleset:
    full = preset("fixed")
    return replace(full, reward=replace(full.reward, alpha=alpha), tests_per_suite=tests)


def mean_reward(right: float, kills: float, rules: Ruleset) -> float:
    """The expected reward of a suite of one test, over whether its answer is right and its program fails it."""
    total = 0.0
    for is_right, has_bug in ((a, b) for a in (True, False) for b in (True, False)):
        program = Program(KINDS, (has_bug, False, False, False), (0, 0, 0, 0))
        report = candidate_report(program, [[DrawnTest(Aim(0, 0), is_right)]], (), (), WORLD, drops_wrong=False)
        chance = (right if is_right else 1 - right) * (kills if has_bug else 1 - kills)
        total += chance * score(report, rules).testers[0].value
    return total


@given(naive=shares, aimed=shares, kills=shares, alpha=shares)
def test_at_the_criterion_both_kinds_of_tests_pay_alike(naive: float, aimed: float, kills: float, alpha: float) -> None:
    least = least_kill_rate(Skill(naive, aimed), kills, alpha)
    assume(0 <= least <= 1)
    rules = rules_of(alpha, 1)
    assert mean_reward(aimed, least, rules) == pytest.approx(mean_reward(naive, kills, rules), abs=1e-9)
    if least < 0.99:
        assert mean_reward(aimed, least + 0.01, rules) > mean_reward(naive, kills, rules)


def drift_of_aiming(skill: Skill, kills: tuple[float, float], rules: Ruleset, rng: np.random.Generator) -> float:
    """Return the gradient of the logit of aiming, at one half, over groups of suites of one test."""
    program = Program(KINDS, (True, False, False, False), (0, 0, 0, 0))  # fails the input (0, 0) alone
    total = 0.0
    for _ in range(20):
        aims = rng.random(32) < 0.5
        right = rng.random(32) < np.where(aims, skill.right_aimed, skill.right_naive)
        fails = rng.random(32) < np.where(aims, kills[1], kills[0])
        suites = [[DrawnTest(Aim(0, 0 if each else 1), bool(ok))] for each, ok in zip(fails, right, strict=True)]
        found = score(candidate_report(program, suites, (), (), WORLD, drops_wrong=False), rules).testers
        total += float(group_advantages(np.array([each.value for each in found])).values @ (aims - 0.5))
    return total


@pytest.mark.parametrize("seed", range(8))
def test_testers_learn_to_aim_where_the_criterion_says_so(seed: int) -> None:
    rng = np.random.default_rng([seed, 0])
    while True:
        v, va, h, ha, alpha = rng.uniform(0.05, 0.95, 5)
        skill, rules = Skill(v, va), rules_of(alpha, 1)
        if abs(mean_reward(va, ha, rules) - mean_reward(v, h, rules)) > 0.15:
            break
    aims = ha > least_kill_rate(skill, h, alpha)
    assert (drift_of_aiming(skill, (h, ha), rules, rng) > 0) == aims


@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("n_right", [1, 4])
def test_where_the_first_kill_alone_counts_it_is_worth_what_all_were(alpha: float, n_right: int) -> None:
    """A first failure is worth as many right answers as K failures were."""
    other = alpha_of_first_kill(alpha, 4)
    tests = [DrawnTest(Aim(1, n), True) for n in range(n_right - 1)]
    bugs = Program(KINDS, (True, False, False, False), (0, 0, 0, 0))
    rules = rules_of(other, 4)
    rules = replace(rules, reward=replace(rules.reward, credit=CreditRules(most_kills=1)))

    def earned(test: DrawnTest) -> float:
        report = candidate_report(bugs, [[*tests, test]], (), (), WORLD, drops_wrong=False)
        return score(report, rules).testers[0].value

    killing, right, wrong = (
        earned(each) for each in (DrawnTest(Aim(0, 0), True), DrawnTest(Aim(0, 1), True), DrawnTest(Aim(0, 1), False))
    )
    assert (killing - right) / (right - wrong) == pytest.approx(4 * (1 - alpha) / alpha)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(UserError, match="right_aimed in"):
        Skill(0.5, 0.0)
    with pytest.raises(UserError, match=r"alpha in \[0, 1\)"):
        least_kill_rate(Skill(0.5, 0.5), 0.1, 1.0)
