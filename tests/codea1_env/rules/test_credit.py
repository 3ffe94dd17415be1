"""What a suite is paid for, over all parameters of `reward.credit`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from codea1_env.rules.rewards import score
from codea1_env.rules.ruleset import CommonKills, CreditRules, preset
from tests.support.reports import FAILED, PASSED, candidate, met, suite_of

K = 4
Written = tuple[bool, bool]
"""Whether the prediction of a case is right, and whether the program fails it."""
RIGHT_KILL, RIGHT, LYING_KILL, LIE = (True, True), (True, False), (False, True), (False, False)

written = st.tuples(st.booleans(), st.booleans())
suites = st.lists(written, max_size=K)
replays = st.lists(st.booleans(), max_size=3)
shares = st.floats(0, 1)
settings = st.fixed_dictionaries({"others": st.lists(suites, max_size=2), "replayed": replays, "alpha": shares})
"""Beside what a suite is judged."""
credit_rules = st.builds(
    CreditRules,
    wrong_answers=st.booleans(),
    forgiven=st.integers(0, 2),
    gate=shares,
    floor=st.floats(0.1, 1),
    power=st.sampled_from([0.0, 0.5, 1.0, 2.0]),
    most_kills=st.none() | st.integers(1, 5),
    common_kills=st.sampled_from(CommonKills),
)


def earned(
    cases: list[Written],
    credit: CreditRules,
    *,
    alpha: float = 0.5,
    others: list[list[Written]] | None = None,
    replayed: list[bool] | None = None,
) -> float:
    """Return the reward of a suite beside others, for a program that fails some replays."""
    rules = replace(preset("fixed"), tests_per_suite=K)
    rules = replace(rules, reward=replace(rules.reward, alpha=alpha, credit=credit))
    judged = [
        suite_of(*(met(FAILED if fails else PASSED, n=n, right=is_right) for n, (is_right, fails) in enumerate(each)))
        for each in [cases, *(others or [])]
    ]
    history = [FAILED if fails else PASSED for fails in replayed or []]
    return score(candidate(*judged, replayed=history), rules).testers[0].value


@given(cases=suites, setting=settings, credit=credit_rules)
def test_rewards_lie_between_0_and_1(cases, setting, credit):
    assert -1e-9 <= earned(cases, credit, **setting) <= 1 + 1e-9


@given(cases=suites, setting=settings)
def test_by_default_right_cases_count_and_nothing_else(cases, setting):
    alpha, replayed = setting["alpha"], setting["replayed"]
    right, kills = sum(each[0] for each in cases), sum(each == RIGHT_KILL for each in cases)
    adversarial = kills / K
    if replayed:
        adversarial = (adversarial - sum(replayed) / len(replayed) + 1) / 2 if right else 0.0
    assert earned(cases, CreditRules(), **setting) == pytest.approx(alpha * right / K + (1 - alpha) * adversarial)


@given(cases=st.lists(written, min_size=1, max_size=K), setting=settings, credit=credit_rules, data=st.data())
def test_a_right_answer_and_a_failure_never_cost_their_tester_anything(cases, setting, credit, data):
    number = data.draw(st.integers(0, len(cases) - 1))
    is_right, fails = cases[number]

    def with_cases(*instead: Written) -> float:
        return earned([*cases[:number], *instead, *cases[number + 1 :]], credit, **setting)

    assert with_cases((True, fails)) >= with_cases((False, fails)) - 1e-12
    assert with_cases((is_right, True)) >= with_cases((is_right, False)) - 1e-12
    assert with_cases((True, fails)) >= with_cases() - 1e-12
    if not credit.wrong_answers and not credit.forgiven:
        assert with_cases((False, fails)) == pytest.approx(with_cases())


@given(
    n_lies=st.integers(0, K),
    n_kills=st.integers(0, K),
    replayed=replays,
    credit=st.builds(replace, credit_rules, wrong_answers=st.just(True)).filter(lambda each: each.gate or each.power),
)
def test_lies_alone_earn_nothing(n_lies, n_kills, replayed, credit):
    cases = [LYING_KILL] * min(n_lies, n_kills) + [LIE] * max(n_lies - n_kills, 0)
    assert earned(cases, credit, replayed=replayed) == 0.0


@given(
    cases=suites,
    setting=settings,
    credit=st.builds(replace, credit_rules, wrong_answers=st.just(False), forgiven=st.just(0), floor=st.just(1.0)),
)
def test_what_only_takes_credit_away_earns_no_more_than_fixed(cases, setting, credit):
    assert earned(cases, credit, **setting) <= earned(cases, CreditRules(), **setting) + 1e-12


@pytest.mark.parametrize(
    ("credit", "cases", "reward"),
    [
        # alpha .5 and K 4: a right answer earns .125, and a failure that counts .125.
        (CreditRules(), [RIGHT_KILL, LYING_KILL, LIE], 0.25),
        (CreditRules(wrong_answers=True), [RIGHT_KILL, LYING_KILL, LIE], 0.375),
        (CreditRules(wrong_answers=True, gate=0.5), [RIGHT_KILL, LYING_KILL], 0.125),
        (CreditRules(wrong_answers=True, gate=0.5), [RIGHT, RIGHT, LYING_KILL], 0.375),
        (CreditRules(wrong_answers=True, power=1.0), [RIGHT, RIGHT, LYING_KILL], 0.25 + 0.0625),
        (CreditRules(wrong_answers=True, power=1.0, floor=0.5), [RIGHT, LYING_KILL], 0.25 + 0.0625),
        (CreditRules(floor=0.5), [RIGHT, RIGHT_KILL], 0.5 + 0.125),
        (CreditRules(floor=0.5), [RIGHT, RIGHT_KILL, RIGHT], 0.5 + 0.125),
        (CreditRules(forgiven=1), [LYING_KILL, LIE], 0.0),
        (CreditRules(forgiven=1), [RIGHT, LYING_KILL, LYING_KILL], 0.25 + 0.125),
        (CreditRules(most_kills=1), [RIGHT_KILL, RIGHT_KILL], 0.25 + 0.125),
        (CreditRules(most_kills=1), [RIGHT, RIGHT], 0.25),
    ],
)
def test_a_suite_by_hand(credit, cases, reward):
    assert earned(cases, credit) == pytest.approx(reward)


def test_a_failure_earns_less_where_the_program_fails_anyway():
    group, book = (CreditRules(common_kills=kind) for kind in (CommonKills.GROUP, CommonKills.BOOK))
    others = [[RIGHT_KILL, LYING_KILL, LIE, RIGHT]]
    assert earned([RIGHT_KILL], group, others=others) == pytest.approx(0.125 + 0.125 / 2)
    assert earned([RIGHT_KILL], group) == pytest.approx(0.25)
    assert earned([RIGHT_KILL], book, others=others, replayed=[True] * 2) == pytest.approx(0.125)
    assert earned([RIGHT_KILL], book, others=others) == pytest.approx(0.25)
