from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from statistics import fmean
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.facts.verdicts import ProblemReport
from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import preset
from codea1_lab.tabular.credit import JudgedTest, TestPay, baseline_per_input, brier, fixed, learnability, regret
from codea1_lab.tabular.learning import Schedule, System, _Policy, _rules, _Suite, _Training, train
from codea1_lab.tabular.payments import CREDIT, FIRST, Payment
from codea1_lab.tabular.world import Aim, DrawnTest, Program, World, candidate_report

WORLD = World(n_kinds=4, n_rare=4, right_careless=0.1, distraction=0.3)
SHORT = Schedule(steps=3, n_problems=8)
KILLING = Program((0, 1, 2, 3), (True, False, False, False), (0, 0, 0, 0))
"""Fails the input (0, 0)."""
PASSING = replace(KILLING, has_bug=(False,) * 4)

drawn_tests = st.builds(
    DrawnTest, st.none() | st.builds(Aim, st.just(0), st.integers(0, 2)), st.booleans(), st.integers(0, 2)
)
drawn_groups = st.lists(st.lists(drawn_tests, min_size=4, max_size=4), min_size=2, max_size=4)
Group = list[list[DrawnTest]]


class Payer:
    """What a system pays the tests of one group of suites for one program."""

    def __init__(self, system: System, alpha: float = 0.5) -> None:
        system = replace(system, has_book=False, alpha=alpha)
        self.training = _Training(system, WORLD, SHORT, _rules(system, SHORT, "fixed"), 0)
        self.policy = _Policy.of(self.training.tables)

    def suites(self, group: Group, n_others: int = 0) -> list[_Suite]:
        return [_Suite(tuple(each), (True,) * len(each), ((),) * len(each)) for each in group]

    def pays(self, suite: Sequence[DrawnTest], program: Program) -> list[float]:
        (made,) = self.suites([[*suite]])
        report = candidate_report(program, [suite], (), (), WORLD, drops_wrong=False)
        return [each.pay for each in self.training._paid_tests(made, report.suites, [program] * 4, self.policy)]

    def credits(self, group: Group, program: Program) -> Any:
        """Return (M, K, 2) credits of inputs and answers; 0 for a group that does not train."""
        report = candidate_report(program, group, (), (), WORLD, drops_wrong=False)
        found = self.training._credit_tests([self.suites(group)], ProblemReport("0", (report,)), [program], self.policy)
        return np.array([each for _, each in found]) if found else np.zeros((len(group), 4, 2))


@given(drawn_groups, st.sampled_from([KILLING, PASSING]), st.sampled_from([0.0, 0.1, 0.5, 1.0]))
def test_the_pay_of_fixed_is_that_of_the_rules(group: Group, program: Program, alpha: float) -> None:
    for pay in (fixed, None):
        payer = Payer(System("x", credit="test", pay=pay), alpha)
        report = candidate_report(program, group, (), (), WORLD, drops_wrong=False)
        expected = [each.value for each in score(report, payer.training.rules).testers]
        assert [fmean(payer.pays(suite, program)) for suite in group] == pytest.approx(expected)


def test_suites_paid_so_learn_as_under_the_rules() -> None:
    plain = System("x", has_book=False)
    one, other = (train(each, WORLD, SHORT, "fixed", 0)[-1] for each in (plain, replace(plain, pay=fixed)))
    assert (one.aims_if_read, *one.care) == pytest.approx((other.aims_if_read, *other.care))
    assert one.care != (0.5, 0.5)


# Credit per block

BLOCK = Payer(System("x", credit="block"))


@given(drawn_groups, st.integers(0, 3), st.sampled_from([KILLING, PASSING]))
def test_a_lie_never_raises_the_credit_of_an_input(group: Group, number: int, program: Program) -> None:
    lying = [[*suite] for suite in group]
    lying[0][number] = replace(lying[0][number], is_right=False)
    honest, lied = BLOCK.credits(group, program), BLOCK.credits(lying, program)
    assert lied[..., 0].tolist() == honest[..., 0].tolist()
    assert lied[0, number, 1] <= 0


@given(drawn_groups)
def test_a_valid_miss_never_costs_an_answer(group: Group) -> None:
    killing, missing = (BLOCK.credits(group, program) for program in (KILLING, PASSING))
    assert killing[..., 1].tolist() == missing[..., 1].tolist()
    is_right = np.array([[test.is_right for test in suite] for suite in group])
    assert (missing[..., 1][is_right] >= 0).all()


def test_credit_follows_the_order_of_tests_and_a_duplicate_has_no_kill() -> None:
    kill, lie, miss = DrawnTest(Aim(0, 0), True), DrawnTest(Aim(0, 0), False), DrawnTest(None, True, 7)
    found = BLOCK.credits([[miss, kill, kill, DrawnTest(None, False, 8)], [lie, miss, lie, lie]], KILLING)
    high, low = found[0, 1, 0], found[0, 0, 0]
    assert high > 0 > low
    assert found[..., 0].tolist() == [[low, high, low, low], [high, low, low, low]]
    assert np.sign(found[..., 1]).tolist() == [[1, 1, 0, -1], [-1, 1, 0, 0]]
    payer = Payer(System("x", credit="test", pay=fixed))
    by_test = payer.credits([[kill, miss, lie, lie], [lie, miss, kill, kill]], KILLING)
    assert by_test[..., 0].tolist() == by_test[..., 1].tolist()


def test_answers_to_one_input_are_compared_with_each_other() -> None:
    payer = Payer(System("x", credit="block", n_answers=4))
    group = [[DrawnTest(Aim(0, 0), True), *(DrawnTest(None, True, n) for n in range(3))]] * 2
    suites = [
        replace(suite, others=tuple((replace(test, is_right=False),) * 3 for test in suite.tests))
        for suite in payer.suites(group)
    ]
    report = candidate_report(KILLING, group, (), (), WORLD, drops_wrong=False)
    found = payer.training._credit_tests([suites], ProblemReport("0", (report,)), [KILLING], payer.policy)
    for _, credits_ in found:
        assert np.shape(credits_) == (4, 5)
        assert np.asarray(credits_)[:, 1:].sum(axis=1) == pytest.approx(0)
        assert (np.asarray(credits_)[:, 1] > 0).all()
    drawn = payer.training._suite(KILLING, payer.policy)
    assert all({o.aim for o in others} == {test.aim} for test, others in zip(drawn.tests, drawn.others, strict=True))


@pytest.mark.parametrize("shares_suites", [False, True])
@pytest.mark.parametrize("payment", CREDIT, ids=lambda each: each.name)
def test_all_ways_to_pay_train(payment: Payment, *, shares_suites: bool) -> None:
    system = replace(payment.system, shares_suites=shares_suites, sees_program=not shares_suites)
    rules = replace(preset("fixed"), reward=payment.reward)
    one, again = (train(system, WORLD, SHORT, rules, 0)[-1] for _ in range(2))
    assert one == again
    assert 0.5 not in one.care


# Why no pay of whole tests can do it


def earned(pay: TestPay, kills: float, right: float, alpha: float) -> float:
    """The expected pay of a test, of four programs tried, by a tester that knows how often it is right."""
    total = 0.0
    for kill, is_right in product((0, 1), repeat=2):
        chance = (kills if kill else 1 - kills) * (right if is_right else 1 - right)
        total += chance * pay(JudgedTest(kill, is_right, right, right, 1 - kill / 4), alpha)
    return total


@pytest.mark.parametrize("pay", [fixed, brier, regret, learnability])
@pytest.mark.parametrize("alpha", [0.1, 0.5])
@pytest.mark.parametrize("kills", [0.0, 0.2, 0.5, 0.9])
def test_a_pay_for_every_better_aim_pays_nothing_for_being_right(pay: TestPay, alpha: float, kills: float) -> None:
    """Safe tests are always right and aimed ones never: one that pays the safe ones for that makes testers retreat."""
    safe = earned(pay, kills, 1.0, alpha)
    for_being_right = safe - earned(pay, kills, 0.0, alpha)
    always_pays = all(earned(pay, kills + more, 0.0, alpha) >= safe for more in (1e-9, 1e-6, 0.01, 0.1))
    assert always_pays == (for_being_right <= 1e-12)
    assert always_pays == (pay is brier)


@given(st.floats(0, 0.5), st.floats(0.01, 0.5), st.floats(0, 1), st.floats(0, 1))
def test_baselines_per_input_pay_for_aims_and_being_right(kills: float, more: float, safe: float, aimed: float) -> None:
    assert earned(baseline_per_input, kills + more, aimed, 0.5) > earned(baseline_per_input, kills, safe, 0.5)
    right, wrong = (baseline_per_input(JudgedTest(1, each, safe, safe, 1), 0.5) for each in (1, 0))
    assert right - wrong == pytest.approx(1)


@pytest.mark.parametrize(
    ("pay", "expected"),
    [
        (fixed, (0.0, 0.0, 0.5, 1.0)),
        (brier, (0.18, 0.68, 0.48, 0.98)),
        (regret, (0.0, 0.5, 0.5, 1.0)),
        (learnability, (0.0, 0.0, 0.5, 0.875)),
        (baseline_per_input, (-0.4, 0.6, 0.6, 1.6)),
    ],
)
def test_pays_of_a_miss_and_a_kill_wrong_and_right(pay: TestPay, expected: Sequence[float]) -> None:
    found = [pay(JudgedTest(kill, right, 0.8, 0.4, 1 - kill / 4), 0.5) for right, kill in product((0, 1), repeat=2)]
    assert found == pytest.approx(expected)


def test_fixed_is_what_others_are_compared_with() -> None:
    assert CREDIT[0].name == FIRST
    assert len({each.name for each in CREDIT}) == len(CREDIT)
