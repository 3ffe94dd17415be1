"""Training with each form of advantages: what learners get is what one computes by hand from the rewards' parts."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from tests.support.advantages import by_hand, z
from tests.support.grpo import ON_RAY, Place, one_step

pytest.importorskip("ray", reason="Ray is not installed")

from codea1_agents.train.grpo import GRPOConfig
from codea1_agents.train.grpo.rollout import RolledTree
from codea1_env.errors import UserError
from codea1_env.rules.ruleset import preset

pytestmark = ON_RAY

RULES = replace(preset("fixed"), tests_per_suite=2)
VALID_FROM = 0.5


def suites_by_hand(tree: RolledTree, form: str) -> dict[Place, float]:
    """The advantages of a tree's suites that are not all 0 in their group."""
    found = {}
    weights = {"validity": RULES.reward.alpha, "adversarial": 1 - RULES.reward.alpha}
    for g, candidate in enumerate(tree.judged.rewards):
        parts = [{part.name: part.value for part in reward.parts} for reward in candidate.testers]
        columns = {name: [row.get(name, 0.0) for row in parts] for name in weights}
        values = by_hand(columns, weights, form, VALID_FROM) if parts else []
        if any(values):
            found.update({(tree.task.problem_id, f"tester_{g}_{m}"): value for m, value in enumerate(values)})
    return found


@pytest.mark.parametrize("form", ["sum", "decoupled", "conditioned"])
def test_learners_get_the_advantages_of_the_setting(config: GRPOConfig, learnt: dict[Place, float], form: str) -> None:
    config.environment(rules=RULES).training(advantages=form, valid_from=VALID_FROM, keep_zero_std_groups=False)
    trees, found = one_step(config, learnt)
    expected = {place: value for tree in trees for place, value in suites_by_hand(tree, form).items()}
    if form == "decoupled":
        expected = dict(zip(expected, z(list(expected.values())), strict=True))
    suites = {place: value for place, value in found.items() if place[1].startswith("tester")}
    assert suites == pytest.approx(expected, abs=1e-5)
    assert len(suites) >= 8  # two groups
    coders = {place: value for place, value in found.items() if place not in suites}
    for tree in trees:  # the coder's advantages have no form
        mine = [coders.get((tree.task.problem_id, f"coder_{n}"), 0.0) for n in range(6)]
        assert mine == pytest.approx(z(tree.coder_rewards.tolist()), abs=1e-5)


def test_rewards_without_the_parts_and_unknown_forms_are_refused_before_anything_starts(config: GRPOConfig) -> None:
    for rules, form in (("golden", "decoupled"), ("zero_sum", "conditioned"), ("cure", "conditioned")):
        with pytest.raises(UserError, match=f"^advantages='{form}' "):
            config.copy(copy_frozen=False).environment(rules=rules).training(advantages=form).validate()
    for setting in ({"advantages": "product"}, *({"valid_from": value} for value in (0.0, 1.5, math.nan))):
        with pytest.raises(UserError, match=next(iter(setting))):
            config.copy(copy_frozen=False).training(**setting).validate()
    for rules in ("fixed", "paper", "release", "utrl"):
        config.copy(copy_frozen=False).environment(rules=rules).training(advantages="conditioned").validate()
