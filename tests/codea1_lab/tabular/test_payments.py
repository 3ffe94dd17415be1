from __future__ import annotations

from dataclasses import replace

import pytest

from codea1_env.rules.ruleset import CreditRules, preset
from codea1_lab.tabular.learning import Schedule, System, train
from codea1_lab.tabular.payments import PAYMENTS, WORLDS, compare
from codea1_lab.tabular.world import World

SHORT = Schedule(steps=12, n_problems=16)
WORLD = World(n_rare=24, right_careless=0.0, distraction=1.0)


def test_a_tester_learns_to_lie_where_wrong_answers_pay_and_care_misses_the_aim() -> None:
    """Aimed with care, nothing is hit; without care everything, and no answer is right."""
    credit = replace(preset("fixed").reward, credit=CreditRules(wrong_answers=True))
    fast = replace(SHORT, lr_tester=4.0)
    steps = train(System("x", has_book=False, alpha=0.0), WORLD, fast, replace(preset("fixed"), reward=credit), 0)
    assert steps[0].care == (0.5, 0.5)
    assert steps[-1].care[1] < 0.4
    honest = train(System("x", has_book=False, alpha=1.0), WORLD, SHORT, "fixed", 0)
    assert min(honest[-1].care) > 0.6
    no_choice = train(System("x"), World(), replace(SHORT, steps=2), "fixed", 0)
    assert {step.care for step in no_choice} == {(1.0, 1.0)}


def test_lines_compare_each_way_with_fixed_and_release() -> None:
    chosen = [each for each in PAYMENTS if each.name in ("fixed", "release", "conditioned")]
    calls: list[None] = []
    small = {"worlds": WORLDS[:1], "schedule": replace(SHORT, steps=2)}
    lines = compare(2, alphas=(0.1,), payments=chosen, progress=lambda: calls.append(None), **small)
    assert [line.payment for line in lines] == ["fixed", "release", "conditioned"]
    assert len(calls) == 6
    fixed, release, conditioned = lines
    assert {each.mean for each in fixed.leads.values()} == {0.0} == {release.over_aiming.mean}
    assert fixed.over_aiming.mean == pytest.approx(fixed.spreads["aims"].mean - release.spreads["aims"].mean)
    assert conditioned.leads["right"].n == 2


@pytest.mark.slow
def test_the_first_kill_alone_makes_testers_aim_without_lies() -> None:
    """At alpha .5, a tester retreats under `fixed`; it does not if one failure earns the whole adversity."""
    chosen = [each for each in PAYMENTS if each.name in ("fixed", "release", "first kill")]
    *_, first_kill = compare(2, alphas=(0.5,), payments=chosen, worlds=WORLDS[:1])
    assert first_kill.leads["aims"].mean > 0.1
    assert first_kill.over_aiming.mean > 0.1
    assert first_kill.leads["care"].mean > -0.05
