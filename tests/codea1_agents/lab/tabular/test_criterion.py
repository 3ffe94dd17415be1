"""The criterion, against the rewards of the rules."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from codea1_agents.lab.tabular.criterion import FORMULAS, Skill, least_kill_rate
from codea1_agents.lab.tabular.world import Aim, DrawnTest, Program, World, candidate_report
from codea1_env.errors import UnknownName, UserError
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import Ruleset, preset

WORLD = World(n_kinds=8, n_rare=4)
KINDS = (0, 1, 2, 3)
shares = st.floats(0.05, 0.95)


def rules_of(formula: str, alpha: float, tests: int) -> Ruleset:
    full = preset(formula)
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


@pytest.mark.parametrize("formula", FORMULAS)
@given(naive=shares, aimed=shares, kills=shares, alpha=shares)
def test_at_the_criterion_both_kinds_of_tests_earn_the_same(
    formula: str, naive: float, aimed: float, kills: float, alpha: float
) -> None:
    least = least_kill_rate(Skill(naive, aimed), kills, alpha, formula)
    assume(0 <= least <= 1)
    rules = rules_of(formula, alpha, 1)
    assert mean_reward(aimed, least, rules) == pytest.approx(mean_reward(naive, kills, rules), abs=1e-9)
    if least < 0.99:
        assert mean_reward(aimed, least + 0.01, rules) > mean_reward(naive, kills, rules)


def test_numbers_out_of_range_are_refused() -> None:
    with pytest.raises(UserError, match="probabilities of right answers"):
        Skill(0.5, 0.0)
    with pytest.raises(UserError, match=r"alpha in \[0, 1\)"):
        least_kill_rate(Skill(0.5, 0.5), 0.1, 1.0)
    with pytest.raises(UnknownName, match="formula"):
        least_kill_rate(Skill(0.5, 0.5), 0.1, 0.5, "fixd")
